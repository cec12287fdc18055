//! Objects that do not fit into a node of the table.

use super::arena::NodeId;
use super::types::exception::ExceptionData;
use super::types::numpy::{DtypeData, NdarrayData, ScalarData};
use super::types::record::RecordData;
use super::value::Kind;

/// An object that is kept apart. Containers inside it are nodes of their own that no stream can
/// refer to, so what works on lists and dicts works on them.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Map {
        class: MapClass,
        /// A dict that is no object of the stream.
        dict: NodeId,
        /// Of a defaultdict.
        factory: Option<NodeId>,
        /// A dict that is no object of the stream: instance attributes.
        attrs: Option<NodeId>,
    },
    Deque {
        /// A list that is no object of the stream.
        list: NodeId,
        maxlen: Option<u64>,
    },
    Exception(ExceptionData),
    Dtype(Box<DtypeData>),
    Ndarray(NdarrayData),
    NumpyScalar(ScalarData),
    Record(RecordData),
}

/// Which dict of `collections` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapClass {
    OrderedDict,
    Counter,
    DefaultDict,
}

impl Object {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Map { class, .. } => match class {
                MapClass::OrderedDict => Kind::OrderedDict,
                MapClass::Counter => Kind::Counter,
                MapClass::DefaultDict => Kind::DefaultDict,
            },
            Self::Deque { .. } => Kind::Deque,
            Self::Exception(_) => Kind::Exception,
            Self::Dtype(_) => Kind::Dtype,
            Self::Ndarray(_) => Kind::Ndarray,
            Self::NumpyScalar(_) => Kind::NumpyScalar,
            Self::Record(_) => Kind::Record,
        }
    }

    /// All that it refers to, in an order that is the same for every object of its kind.
    pub(super) fn references(&self) -> Vec<NodeId> {
        match self {
            Self::Map {
                dict,
                factory,
                attrs,
                ..
            } => [Some(*dict), *factory, *attrs]
                .into_iter()
                .flatten()
                .collect(),
            Self::Deque { list, .. } => vec![*list],
            Self::Exception(exception) => [
                Some(exception.args),
                Some(exception.fields),
                exception.attrs,
            ]
            .into_iter()
            .flatten()
            .collect(),
            Self::Dtype(dtype) => dtype.references(),
            Self::Ndarray(array) => array.references(),
            Self::NumpyScalar(scalar) => scalar.references(),
            Self::Record(record) => record.references(),
        }
    }

    /// The dict of instance attributes.
    pub(super) fn attrs(&self) -> Option<NodeId> {
        match self {
            Self::Map { attrs, .. } => *attrs,
            Self::Exception(exception) => exception.attrs,
            Self::Record(record) => record.attrs,
            _ => None,
        }
    }
}
