//! Scalars: one element, and its dtype.

use super::super::super::arena::{Node, NodeId};
use super::super::super::construct::Args;
use super::super::super::machine::{Machine, Step};
use super::super::super::object::Object;
use super::super::super::value::Value;
use super::dtype::{Dtype, DtypeKind, built};
use super::element::{self, Element};
use super::rule::NumpyRule;
use super::view::Ndarray;

/// A scalar.
#[derive(Clone, Copy, Debug)]
pub(in crate::safepickle) struct ScalarData {
    /// A dtype that has its state and is no subarray.
    pub(in crate::safepickle) dtype: NodeId,
    /// A bytes object of just one item; or, if the dtype has objects, an array without dimensions.
    pub(in crate::safepickle) data: NodeId,
}

impl ScalarData {
    pub(in crate::safepickle) fn references(&self) -> Vec<NodeId> {
        vec![self.dtype, self.data]
    }

    /// The same with other references.
    pub(in crate::safepickle) fn with(&self, mut other: impl FnMut(NodeId) -> NodeId) -> Self {
        Self {
            dtype: other(self.dtype),
            data: other(self.data),
        }
    }
}

impl Machine<'_, '_> {
    /// `numpy.core.multiarray.scalar(dtype, data)`.
    pub(in crate::safepickle) fn numpy_scalar(&mut self, args: Args) -> Step<NodeId> {
        let [dtype, data] = args.exactly(&self.arena)?;
        let own = built(&self.arena, dtype).ok_or(NumpyRule::NoDtype)?;
        if own.subarray.is_some() {
            return Err(NumpyRule::WrongDtype.into());
        }
        if own.label.kind == DtypeKind::Object {
            // A scalar of objects is the object.
            return Ok(data);
        }
        let fits = match (own.label.has_object(), self.arena.node(data)) {
            (false, Node::Bytes(bytes)) => bytes.len == own.label.itemsize,
            (true, Node::Object(_)) => match self.arena.object(data) {
                Some(Object::Ndarray(array)) => array.state.is_some_and(|state| {
                    state.dtype == dtype && self.arena.children(state.shape).is_empty()
                }),
                _ => false,
            },
            _ => false,
        };
        if !fits {
            return Err(NumpyRule::Data.into());
        }
        self.make_object(Object::NumpyScalar(ScalarData { dtype, data }))
    }
}

/// A scalar of numpy, such as a `numpy.float64`.
#[derive(Clone, Copy, Debug)]
pub struct NumpyScalar<'d> {
    dtype: Dtype<'d>,
    data: Value<'d>,
}

impl<'d> Value<'d> {
    /// A scalar of numpy.
    pub fn numpy_scalar(self) -> Option<NumpyScalar<'d>> {
        match self.arena().object(self.id()) {
            Some(Object::NumpyScalar(scalar)) => Some(NumpyScalar {
                dtype: self.at(scalar.dtype).dtype()?,
                data: self.at(scalar.data),
            }),
            _ => None,
        }
    }
}

impl<'d> NumpyScalar<'d> {
    /// What it is.
    pub fn dtype(self) -> Dtype<'d> {
        self.dtype
    }

    /// Its bytes, in the byte order of the dtype; `None` for a structure that holds objects.
    pub fn data(self) -> Option<&'d [u8]> {
        self.data.as_bytes()
    }

    /// The one element of this array is what a structure that holds objects consists of.
    pub fn array(self) -> Option<Ndarray<'d>> {
        self.data.ndarray()
    }

    /// Its value, if its dtype is that of `T`.
    pub fn value<T: Element>(self) -> Option<T> {
        if !element::fits::<T>(self.dtype) {
            return None;
        }
        T::read(self.data()?, self.dtype.byte_order())
    }

    /// The text of a `numpy.str_`; `None` for others, and for text with lone surrogates.
    pub fn text(self) -> Option<String> {
        if self.dtype.kind() != DtypeKind::Str {
            return None;
        }
        let points = self.data()?.chunks_exact(4);
        let points: Option<Vec<u32>> = points
            .map(|point| u32::read(point, self.dtype.byte_order()))
            .collect();
        let points = points?;
        let len = points
            .iter()
            .rposition(|point| *point != 0)
            .map_or(0, |last| last + 1);
        points[..len]
            .iter()
            .map(|point| char::from_u32(*point))
            .collect()
    }
}
