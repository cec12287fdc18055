//! Elements of arrays of structures that hold objects: tuples that must go with the dtype.

use super::super::super::arena::{Node, NodeId};
use super::super::super::machine::{Machine, Step};
use super::super::super::object::Object;
use super::dtype::{DtypeData, DtypeKind, built};
use super::rule::NumpyRule;

impl Machine<'_, '_> {
    /// Makes sure that an element is what numpy writes for one of this dtype. Each look at it is
    /// charged, since parts of elements and of dtypes may be shared.
    pub(super) fn check_item(&mut self, dtype: NodeId, item: NodeId) -> Step<()> {
        let mut pending = vec![(dtype, item)];
        while let Some((dtype, item)) = pending.pop() {
            let text = match self.arena.node(item) {
                Node::Str(text) => u64::from(text.len) / 32,
                _ => 0,
            };
            self.charge(1 + text)?;
            let Some(data) = built(&self.arena, dtype) else {
                return Err(NumpyRule::NoDtype.into());
            };
            if let Some(fields) = data.fields {
                let fields = self.arena.children(fields);
                let values = match self.arena.node(item) {
                    Node::Tuple(span) => self.arena.span(span),
                    _ => return Err(NumpyRule::Item.into()),
                };
                if 2 * values.len() != fields.len() {
                    return Err(NumpyRule::Item.into());
                }
                for (field, value) in fields.chunks_exact(2).zip(values) {
                    let details = self.arena.children(field[1]);
                    let dtype = details.first().ok_or(NumpyRule::NoDtype)?;
                    pending.push((*dtype, *value));
                }
            } else if !self.is_item(data, item) {
                return Err(NumpyRule::Item.into());
            }
        }
        Ok(())
    }

    /// Whether a value is what numpy makes of an item that is no structure.
    fn is_item(&self, data: &DtypeData, item: NodeId) -> bool {
        let node = self.arena.node(item);
        let itemsize = u64::from(data.label.itemsize);
        if let Some(subarray) = data.subarray {
            return self.is_subarray(self.arena.children(subarray), item);
        }
        match (data.label.kind, node) {
            (DtypeKind::Object, _)
            | (DtypeKind::Bool, Node::Bool(_))
            | (DtypeKind::Float, Node::Float(_))
            | (DtypeKind::Complex, Node::Complex(_))
            // Dates and durations that Python's types cannot hold are counts, and there is none.
            | (DtypeKind::Datetime, Node::Int(_) | Node::None | Node::Date(_))
            | (DtypeKind::Datetime, Node::Datetime { .. })
            | (DtypeKind::Timedelta, Node::Int(_) | Node::None | Node::Timedelta { .. }) => true,
            // Of floats that Python's cannot hold.
            (DtypeKind::Float | DtypeKind::Complex, Node::Object(_)) => {
                matches!(self.arena.object(item), Some(Object::NumpyScalar(scalar))
                    if built(&self.arena, scalar.dtype).is_some_and(|own| own.label == data.label))
            }
            (DtypeKind::Int, Node::Int(value)) => {
                let bits = 8 * data.label.itemsize;
                bits == 64 || (value >> (bits - 1) == 0 || value >> (bits - 1) == -1)
            }
            (DtypeKind::Uint, Node::Int(value)) => {
                let bits = 8 * data.label.itemsize;
                value >= 0 && (bits == 64 || value >> bits == 0)
            }
            (DtypeKind::Uint, Node::BigInt(index)) => {
                let value = &self.arena.big_ints[index as usize];
                itemsize == 8 && u64::try_from(value).is_ok()
            }
            (DtypeKind::Bytes, Node::Bytes(bytes)) => u64::from(bytes.len) <= itemsize,
            (DtypeKind::Void, Node::Bytes(bytes)) => u64::from(bytes.len) == itemsize,
            // A code point takes four bytes there, and four at most here.
            (DtypeKind::Str, Node::Str(text)) => {
                let points = self.arena.bytes(text);
                let points = points.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
                4 * points as u64 <= itemsize
            }
            _ => false,
        }
    }

    /// Whether a value is an array of the dtype and shape that a subarray is of.
    fn is_subarray(&self, subarray: &[NodeId], item: NodeId) -> bool {
        let (&[base, shape], Some(Object::Ndarray(array))) = (subarray, self.arena.object(item))
        else {
            return false;
        };
        let Some(state) = array.state else {
            return false;
        };
        let [own, expected] = [state.dtype, base].map(|id| built(&self.arena, id));
        let shapes = [state.shape, shape].map(|id| {
            let dimensions = self.arena.children(id).iter();
            dimensions.map(|id| super::dimension(&self.arena, *id))
        });
        let [own_shape, expected_shape] = shapes;
        own.zip(expected)
            .is_some_and(|(own, expected)| own.label == expected.label)
            && own_shape.eq(expected_shape)
    }
}
