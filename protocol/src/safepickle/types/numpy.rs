//! numpy: dtypes, arrays and scalars.

use super::super::arena::NodeId;

/// A dtype.
#[derive(Clone, Debug)]
pub(in super::super) struct DtypeData {}

/// An array.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct NdarrayData {
    /// A dtype.
    pub(in super::super) dtype: NodeId,
}

/// A scalar.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ScalarData {
    /// A dtype.
    pub(in super::super) dtype: NodeId,
}

impl DtypeData {
    pub(in super::super) fn references(&self) -> Vec<NodeId> {
        Vec::new()
    }
}

impl NdarrayData {
    pub(in super::super) fn references(&self) -> Vec<NodeId> {
        vec![self.dtype]
    }
}

impl ScalarData {
    pub(in super::super) fn references(&self) -> Vec<NodeId> {
        vec![self.dtype]
    }
}
