//! Arrays as a reader sees them.

use std::borrow::Cow;
use std::fmt;

use super::super::super::arena::NodeId;
use super::super::super::object::Object;
use super::super::super::value::{Items, Value};
use super::array::{ArrayState, Order};
use super::dimension;
use super::dtype::Dtype;
use super::element::{self, Element};

/// A `numpy.ndarray`.
#[derive(Clone, Copy)]
pub struct Ndarray<'d> {
    value: Value<'d>,
    state: ArrayState,
    dtype: Dtype<'d>,
}

impl fmt::Debug for Ndarray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ndarray")
            .field("shape", &self.shape().collect::<Vec<_>>())
            .field("dtype", &self.dtype)
            .field("order", &self.order())
            .finish_non_exhaustive()
    }
}

/// In which order the elements of an array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayOrder {
    /// The last index changes first: the order of C. Also where the order makes no difference.
    RowFirst,
    /// The first index changes first: the order of Fortran.
    ColumnFirst,
    /// Another one.
    Mixed,
}

impl<'d> Value<'d> {
    /// A numpy array.
    pub fn ndarray(self) -> Option<Ndarray<'d>> {
        match self.arena().object(self.id()) {
            Some(Object::Ndarray(array)) => {
                let state = array.state?;
                Some(Ndarray {
                    value: self,
                    state,
                    dtype: self.at(state.dtype).dtype()?,
                })
            }
            _ => None,
        }
    }
}

impl<'d> Ndarray<'d> {
    /// What its elements are.
    pub fn dtype(self) -> Dtype<'d> {
        self.dtype
    }

    /// The dimensions as the data is stored row-first by, and for each dimension of the array its place
    /// there.
    fn stored(self) -> (&'d [NodeId], Option<&'d [NodeId]>) {
        let arena = self.value.arena();
        let axes = match self.state.order {
            Order::Axes(axes) => Some(arena.children(axes)),
            _ => None,
        };
        (arena.children(self.state.shape), axes)
    }

    /// The dimensions, 64 at most.
    pub fn shape(self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'d> {
        let arena = self.value.arena();
        let (stored, axes) = self.stored();
        (0..stored.len()).map(move |at| {
            let axis = axes.map_or(at, |axes| dimension(arena, axes[at]) as usize);
            dimension(arena, stored[axis])
        })
    }

    /// How many elements there are.
    pub fn len(self) -> u64 {
        // What there is data for was checked.
        self.shape().product()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.shape().any(|dimension| dimension == 0)
    }

    /// In which order [`Ndarray::data`] stores the elements.
    pub fn order(self) -> ArrayOrder {
        if self.is_empty() || self.dtype.itemsize() == 0 {
            return ArrayOrder::RowFirst;
        }
        let strides = self.strides();
        let axes: Vec<(u64, u64)> = self.shape().zip(strides).collect();
        if is_packed(axes.iter().rev()) {
            ArrayOrder::RowFirst
        } else if is_packed(axes.iter()) {
            ArrayOrder::ColumnFirst
        } else {
            ArrayOrder::Mixed
        }
    }

    /// From each element to the next along an axis, in elements. There is at least one element.
    fn strides(self) -> Vec<u64> {
        let arena = self.value.arena();
        let (stored, axes) = self.stored();
        let mut strides = vec![1; stored.len()];
        let mut size = 1;
        let mut set = |axis: usize| {
            strides[axis] = size;
            size *= dimension(arena, stored[axis]);
        };
        match self.state.order {
            Order::Column => (0..stored.len()).for_each(&mut set),
            Order::Row | Order::Axes(_) => (0..stored.len()).rev().for_each(&mut set),
        }
        match axes {
            Some(axes) => axes
                .iter()
                .map(|axis| strides[dimension(arena, *axis) as usize])
                .collect(),
            None => strides,
        }
    }

    /// The data as it is stored, in the order of [`Ndarray::order`] and the byte order of the dtype;
    /// `None` if the elements are objects or hold some.
    pub fn data(self) -> Option<&'d [u8]> {
        self.value.at(self.state.data).as_bytes()
    }

    /// The elements of an array of objects in row-first order, whatever [`Ndarray::order`] says; if
    /// they are structures, each is a tuple of the fields. `None` if they are no objects and hold none.
    pub fn items(self) -> Option<Items<'d>> {
        self.value.at(self.state.data).tuple()
    }

    /// The tuple of [`Ndarray::items`].
    pub(in crate::safepickle) fn objects(self) -> Option<NodeId> {
        self.items().map(|_| self.state.data)
    }

    /// The bytes of each element, in row-first order; `None` if the elements are objects or hold some.
    pub fn elements(self) -> Option<Elements<'d>> {
        let data = self.data()?;
        let itemsize = self.dtype.itemsize() as usize;
        let left = usize::try_from(self.len()).ok()?;
        let axes = if left == 0 || self.order() == ArrayOrder::RowFirst {
            vec![Axis {
                dimension: left,
                stride: itemsize,
                at: 0,
            }]
        } else {
            // All fit, since they are below the length of the data.
            let axes = self.shape().zip(self.strides());
            axes.map(|(dimension, stride)| Axis {
                dimension: dimension as usize,
                stride: stride as usize * itemsize,
                at: 0,
            })
            .collect()
        };
        Some(Elements {
            data,
            itemsize,
            axes,
            at: 0,
            left,
        })
    }

    /// The data in row-first order, which mostly is the order that it is stored in. The byte order is that
    /// of the dtype. `None` if the elements are objects or hold some.
    pub fn row_first(self) -> Option<Cow<'d, [u8]>> {
        let data = self.data()?;
        if self.order() == ArrayOrder::RowFirst {
            return Some(Cow::Borrowed(data));
        }
        let mut ordered = Vec::with_capacity(data.len());
        self.elements()?
            .for_each(|element| ordered.extend_from_slice(element));
        Some(Cow::Owned(ordered))
    }

    /// The elements in row-first order, if the dtype is that of `T`.
    pub fn to_vec<T: Element>(self) -> Option<Vec<T>> {
        if !element::fits::<T>(self.dtype) {
            return None;
        }
        let order = self.dtype.byte_order();
        self.elements()?
            .map(|element| T::read(element, order))
            .collect()
    }
}

/// Whether the stride of each axis, given as dimension and stride, is the product of the dimensions
/// before, where the axis has more than one place to go to.
fn is_packed<'x>(axes: impl Iterator<Item = &'x (u64, u64)>) -> bool {
    let mut size = 1;
    let mut axes = axes;
    axes.all(|(dimension, stride)| {
        let fits = *dimension == 1 || *stride == size;
        size *= dimension;
        fits
    })
}

/// The bytes of each element of an array, in row-first order.
#[derive(Clone, Debug)]
pub struct Elements<'d> {
    data: &'d [u8],
    itemsize: usize,
    axes: Vec<Axis>,
    /// Where the next element begins.
    at: usize,
    left: usize,
}

#[derive(Clone, Debug)]
struct Axis {
    dimension: usize,
    /// Bytes.
    stride: usize,
    at: usize,
}

impl<'d> Iterator for Elements<'d> {
    type Item = &'d [u8];

    fn next(&mut self) -> Option<&'d [u8]> {
        self.left = self.left.checked_sub(1)?;
        let element = self.data.get(self.at..self.at + self.itemsize)?;
        for axis in self.axes.iter_mut().rev() {
            axis.at += 1;
            self.at += axis.stride;
            if axis.at < axis.dimension {
                break;
            }
            self.at -= axis.stride * axis.dimension;
            axis.at = 0;
        }
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Elements<'_> {}
