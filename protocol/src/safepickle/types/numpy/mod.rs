//! numpy: dtypes, arrays and scalars.
//!
//! What numpy believes without a check is checked here before it is a value: that fields lie inside
//! their item, that no dtype is part of itself, that an array has as many bytes or objects as its
//! shape says. Data is borrowed from the stream and read element by element, whatever its
//! byte order and the order of its axes.
//!
//! ```
//! use agentix_protocol::safepickle::{Builder, numpy::DtypeKind};
//! let mut builder = Builder::new();
//! let array = builder.ndarray(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let document = builder.finish(array)?;
//! let array = document.root().ndarray().unwrap();
//! assert_eq!(array.dtype().kind(), DtypeKind::Float);
//! assert_eq!(array.shape().collect::<Vec<_>>(), [2, 3]);
//! assert_eq!(array.to_vec::<f64>().unwrap()[4], 5.0);
//! assert_eq!(array.to_vec::<i64>(), None); // another type
//! # Ok::<(), agentix_protocol::safepickle::BuildError>(())
//! ```

mod array;
mod build;
mod dtype;
mod element;
mod items;
mod key;
mod made;
mod rule;
mod scalar;
mod view;

pub use dtype::{ByteOrder, DatetimeUnit, Dtype, DtypeField, DtypeKind, Subarray, Unit};
pub use element::Element;
pub use rule::NumpyRule;
pub use scalar::NumpyScalar;
pub use view::{ArrayOrder, Elements, Ndarray};

pub(in crate::safepickle) use array::{ArrayState, NdarrayData, Order};
pub(in crate::safepickle) use dtype::DtypeData;
pub(in crate::safepickle) use key::{ScalarKey, dtype_hash, equal_dtypes, number, scalar};
pub(in crate::safepickle) use scalar::ScalarData;

use super::super::arena::{Arena, Node, NodeId};

/// Dimensions of an array at most, as in numpy 2.
const MAX_DIMS: usize = 64;
/// Dtypes inside each other at most. Nobody nests them by hand as deep, and it lets those who walk
/// them recurse.
const MAX_DEPTH: u8 = 32;
/// Elements of an array at most where they are of no size, and the stream pays nothing for them.
const MAX_EMPTY_ELEMENTS: u64 = 65_536;

/// The dimensions that a tuple holds, if it is the shape of an array or a subarray.
fn dimensions<'x>(arena: &'x Arena<'_>, shape: NodeId) -> Option<&'x [NodeId]> {
    let Node::Tuple(span) = arena.node(shape) else {
        return None;
    };
    let ids = arena.span(span);
    let fits = |id: &NodeId| matches!(arena.node(*id), Node::Int(0..));
    (ids.len() <= MAX_DIMS && ids.iter().all(fits)).then_some(ids)
}

/// The size of a dimension that [`dimensions`] found to be one.
fn dimension(arena: &Arena<'_>, id: NodeId) -> u64 {
    match arena.node(id) {
        Node::Int(value) => u64::try_from(value).unwrap_or(0),
        _ => 0,
    }
}

/// How many elements an array of these dimensions has, unless they are more than numpy can address
/// at `itemsize` bytes each. As in numpy, a dimension of 0 does not make up for one that is too large.
fn element_count(arena: &Arena<'_>, dimensions: &[NodeId], itemsize: u32) -> Option<u64> {
    let mut size = i64::from(itemsize.max(1));
    let mut empty = false;
    let mut count = 1_i64;
    for id in dimensions {
        let Node::Int(dimension) = arena.node(*id) else {
            return None;
        };
        if dimension == 0 {
            empty = true;
        } else {
            size = size.checked_mul(dimension)?;
            count *= dimension;
        }
    }
    if empty {
        Some(0)
    } else {
        u64::try_from(count).ok()
    }
}
