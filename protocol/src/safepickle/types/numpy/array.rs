//! How an array is made: from a shell and a state, or from a buffer.

use super::super::super::arena::{Node, NodeId, Span};
use super::super::super::construct::Args;
use super::super::super::error::Malformed;
use super::super::super::known::Known;
use super::super::super::machine::{Machine, Step};
use super::super::super::object::Object;
use super::super::super::value::Kind;
use super::dtype::{DtypeData, DtypeKind, DtypeLabel, built};
use super::rule::NumpyRule;
use super::{MAX_EMPTY_ELEMENTS, dimension, dimensions, element_count};

/// An array.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::safepickle) struct NdarrayData {
    /// All it is made of; `None` until it gets its state.
    pub(in crate::safepickle) state: Option<ArrayState>,
    /// Whether it has got its state from the stream, and takes no other.
    built: bool,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::safepickle) struct ArrayState {
    /// A dtype that has its state and is no subarray.
    pub(in crate::safepickle) dtype: NodeId,
    /// A tuple of dimensions: those of the array, or those of the data where `order` has axes.
    pub(in crate::safepickle) shape: NodeId,
    /// A bytes object of just as many bytes as there are. Or, if the dtype has objects, a tuple that is no object of the stream, of just as many objects as there are,
    /// in row-first order whatever `order` is.
    pub(in crate::safepickle) data: NodeId,
    pub(in crate::safepickle) order: Order,
}

/// In which order elements are stored.
#[derive(Clone, Copy, Debug)]
pub(in crate::safepickle) enum Order {
    /// The last index changes first.
    Row,
    /// The first index changes first. Only where that makes a difference.
    Column,
    /// Row-first by the shape; then the axes are put into the order of this tuple.
    Axes(NodeId),
}

impl NdarrayData {
    pub(in crate::safepickle) fn is_built(&self) -> bool {
        self.built
    }

    pub(in crate::safepickle) fn references(&self) -> Vec<NodeId> {
        let Some(state) = self.state else {
            return Vec::new();
        };
        let mut references = vec![state.dtype, state.shape, state.data];
        if let Order::Axes(axes) = state.order {
            references.push(axes);
        }
        references
    }

    /// The same with other references.
    pub(in crate::safepickle) fn with(&self, mut other: impl FnMut(NodeId) -> NodeId) -> Self {
        let state = self.state.map(|state| ArrayState {
            dtype: other(state.dtype),
            shape: other(state.shape),
            data: other(state.data),
            order: match state.order {
                Order::Axes(axes) => Order::Axes(other(axes)),
                order => order,
            },
        });
        Self { state, ..*self }
    }

    /// Whether two are equal apart from what they refer to, and refer to as much.
    pub(in crate::safepickle) fn same_label(&self, other: &Self) -> bool {
        let order = |data: &Self| data.state.map(|state| std::mem::discriminant(&state.order));
        order(self) == order(other)
    }
}

impl Machine<'_, '_> {
    /// `_reconstruct(numpy.ndarray, (0,), b'b')`: a shell that gets its state later.
    pub(in crate::safepickle) fn ndarray_shell(&mut self, args: Args) -> Step<NodeId> {
        let [class, shape, code] = args.exactly(&self.arena)?;
        let global = self.arena.global(class);
        let is_ndarray = global.is_some_and(|global| global.known == Some(Known::Ndarray));
        let is_empty = match self.arena.node(shape) {
            Node::Tuple(span) => {
                matches!(*self.arena.span(span), [zero] if matches!(self.arena.node(zero), Node::Int(0)))
            }
            _ => false,
        };
        let is_byte =
            matches!(self.arena.node(code), Node::Bytes(code) if self.arena.bytes(code) == b"b");
        if !(is_ndarray && is_empty && is_byte) {
            return Err(NumpyRule::Reconstruct.into());
        }
        let id = self.make_object(Object::Ndarray(NdarrayData::default()))?;
        if self.policy.is_inspect() {
            // Nobody asks for its state there, and this is what it is without one.
            let byte = DtypeLabel::from_name(b"i1").ok_or(NumpyRule::TypeString)?;
            let dtype = self.make_object(Object::Dtype(Box::new(DtypeData::complete(byte))))?;
            let empty = self.own(&[], false)?;
            let data = self.make(Node::Bytes(empty))?;
            self.set_array(
                id,
                ArrayState {
                    dtype,
                    shape,
                    data,
                    order: Order::Row,
                },
                false,
            );
        }
        self.expect_build(id);
        Ok(id)
    }

    fn set_array(&mut self, id: NodeId, state: ArrayState, built: bool) {
        let state = Some(state);
        if let Some(Object::Ndarray(data)) = self.arena.object_mut(id) {
            *data = NdarrayData { state, built };
        }
    }

    /// Gives a shell its state: `(1, shape, dtype, is_fortran, data)`.
    pub(in crate::safepickle) fn build_ndarray(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        match self.arena.object(id) {
            // One that has its state may be in use by others.
            Some(Object::Ndarray(data)) if !data.built => {}
            _ => return Err(Malformed::NoState(Kind::Ndarray).into()),
        }
        let Node::Tuple(span) = self.arena.node(state) else {
            return Err(NumpyRule::ArrayState.into());
        };
        let &[version, shape, dtype, is_fortran, data] = self.arena.span(span) else {
            return Err(NumpyRule::ArrayState.into());
        };
        let is_fortran = match [version, is_fortran].map(|id| self.arena.node(id)) {
            [Node::Int(1), Node::Bool(is_fortran)] => is_fortran,
            _ => return Err(NumpyRule::ArrayState.into()),
        };
        let (label, count) = self.array_size(shape, dtype)?;
        let data = if label.has_object() {
            let Node::List(items) = self.arena.node(data) else {
                return Err(NumpyRule::Data.into());
            };
            self.objects(dtype, label, items, count)?
        } else {
            let Node::Bytes(bytes) = self.arena.node(data) else {
                return Err(NumpyRule::Data.into());
            };
            check_size(label, count, bytes.len)?;
            data
        };
        let order = if is_fortran && self.is_ordered(shape, label) {
            Order::Column
        } else {
            Order::Row
        };
        self.set_array(
            id,
            ArrayState {
                dtype,
                shape,
                data,
                order,
            },
            true,
        );
        self.built(id);
        Ok(())
    }

    /// The dtype of an array, and how many elements it has.
    fn array_size(&self, shape: NodeId, dtype: NodeId) -> Step<(DtypeLabel, u64)> {
        let dtype = built(&self.arena, dtype).ok_or(NumpyRule::NoDtype)?;
        if dtype.subarray.is_some() {
            // numpy adds its dimensions to those of the array.
            return Err(NumpyRule::WrongDtype.into());
        }
        let dimensions = dimensions(&self.arena, shape).ok_or(NumpyRule::Shape)?;
        let itemsize = dtype.label.itemsize;
        match element_count(&self.arena, dimensions, itemsize) {
            Some(count) if itemsize > 0 || count <= MAX_EMPTY_ELEMENTS => Ok((dtype.label, count)),
            _ => Err(NumpyRule::Shape.into()),
        }
    }

    /// Whether it makes a difference which index changes first.
    fn is_ordered(&self, shape: NodeId, label: DtypeLabel) -> bool {
        let ids = self.arena.children(shape).iter();
        let dimensions = ids.map(|id| dimension(&self.arena, *id));
        label.itemsize > 0
            && !dimensions.clone().any(|dimension| dimension == 0)
            && dimensions.filter(|dimension| *dimension > 1).count() > 1
    }

    /// The objects of an array. They are copied, since the list may change.
    fn objects(
        &mut self,
        dtype: NodeId,
        label: DtypeLabel,
        items: Span,
        count: u64,
    ) -> Step<NodeId> {
        if u64::from(items.len) != count {
            return Err(NumpyRule::Size.into());
        }
        self.charge_copies(items.len as usize)?;
        let items = self.arena.span(items).to_vec();
        if label.kind != DtypeKind::Object {
            for item in &items {
                self.check_item(dtype, *item)?;
            }
        }
        self.hidden_tuple(&items)
    }

    /// `_frombuffer(buffer, dtype, shape, order)`, and since numpy 2.3 the order of the axes where it is
    /// `"K"`.
    pub(in crate::safepickle) fn array_from_buffer(&mut self, args: Args) -> Step<NodeId> {
        let (&[buffer, dtype, shape, order], rest) = args
            .ids(&self.arena)
            .split_first_chunk::<4>()
            .ok_or(Malformed::Arguments)?;
        let order = match self.arena.node(order) {
            Node::Str(order) => self.arena.bytes(order),
            _ => return Err(NumpyRule::Order.into()),
        };
        let (label, count) = self.array_size(shape, dtype)?;
        let order = match (order, rest) {
            (b"C", []) => Order::Row,
            (b"F", []) if self.is_ordered(shape, label) => Order::Column,
            (b"F", []) => Order::Row,
            (b"K", [axes]) if self.is_permutation(*axes, shape) => Order::Axes(*axes),
            _ => return Err(NumpyRule::Order.into()),
        };
        if label.has_object() || label.itemsize == 0 {
            return Err(NumpyRule::WrongDtype.into());
        }
        let data = match self.arena.node(buffer) {
            Node::Bytes(bytes) => {
                check_size(label, count, bytes.len)?;
                buffer
            }
            // Nothing in this decoder changes a bytearray once it is made, so it is as good as bytes.
            Node::Bytearray(bytes) => {
                check_size(label, count, bytes.len)?;
                self.make(Node::Bytes(bytes))?
            }
            _ => return Err(NumpyRule::Data.into()),
        };
        self.make_object(Object::Ndarray(NdarrayData {
            state: Some(ArrayState {
                dtype,
                shape,
                data,
                order,
            }),
            built: true,
        }))
    }

    /// Whether `axes` is a tuple that names each axis of `shape` once.
    fn is_permutation(&self, axes: NodeId, shape: NodeId) -> bool {
        let (Some(axes), Some(shape)) = (
            dimensions(&self.arena, axes),
            dimensions(&self.arena, shape),
        ) else {
            return false;
        };
        let mut seen = [false; super::MAX_DIMS];
        axes.len() == shape.len()
            && axes.iter().all(|axis| {
                let axis = usize::try_from(dimension(&self.arena, *axis)).unwrap_or(usize::MAX);
                axis < axes.len() && !std::mem::replace(&mut seen[axis], true)
            })
    }
}

fn check_size(label: DtypeLabel, count: u64, len: u32) -> Step<()> {
    if count.checked_mul(label.itemsize.into()) == Some(len.into()) {
        Ok(())
    } else {
        Err(NumpyRule::Size.into())
    }
}
