//! What numpy writes for its objects.

use super::{Form, Items, Step};
use crate::safepickle::arena::{Node, NodeId};
use crate::safepickle::object::Object;
use crate::safepickle::opcode::Opcode;
use crate::safepickle::types::numpy::{ArrayState, DtypeData, NdarrayData, Order, ScalarData};

const MULTIARRAY: &str = "numpy._core.multiarray";

impl<'d> Form<'d, '_> {
    /// A dtype is complete before anything refers to it.
    pub(super) fn dtype(&mut self, id: NodeId, dtype: &'d DtypeData) {
        let label = dtype.label;
        self.push([
            Step::Global("numpy", "dtype"),
            Step::Str(label.name().into()),
            Step::Op(Opcode::NEWFALSE),
            Step::Op(Opcode::NEWTRUE),
            Step::EndTuple(3),
            Step::Op(Opcode::REDUCE),
        ]);
        if dtype.is_built() {
            self.dtype_state(dtype);
        }
        self.push([Step::Made(id)]);
    }

    fn dtype_state(&mut self, dtype: &'d DtypeData) {
        let label = dtype.label;
        let is_longer = label.unit.is_some() || dtype.metadata.is_some();
        self.push([
            Step::Op(Opcode::MARK),
            Step::Int(if is_longer { 4 } else { 3 }),
            Step::Str(label.order.code().to_string().into()),
            value_or_none(dtype.subarray),
        ]);
        match dtype.fields {
            Some(fields) => self.fields(self.children(fields)),
            None => self.push([Step::Op(Opcode::NONE), Step::Op(Opcode::NONE)]),
        }
        let sizes = if label.kind.is_flexible() {
            [label.itemsize.into(), label.alignment.into()]
        } else {
            [-1, -1]
        };
        self.push(sizes.map(Step::Int));
        self.push([Step::Int(label.flags.into())]);
        match label.unit {
            Some(unit) => self.push([
                value_or_none(dtype.metadata),
                Step::Op(Opcode::MARK),
                Step::Bytes(unit.unit.name().as_bytes()),
                Step::Int(unit.count.into()),
                Step::Int(1),
                Step::Int(1),
                Step::EndTuple(4),
                Step::EndTuple(2),
            ]),
            None => self.push(dtype.metadata.map(Step::Value)),
        }
        let len = if is_longer { 9 } else { 8 };
        self.push([Step::EndTuple(len), Step::Op(Opcode::BUILD)]);
    }

    /// The names of a structure, and a dict of its fields, by their titles as well.
    fn fields(&mut self, pairs: &'d [NodeId]) {
        let count = pairs.len() / 2;
        if count > 3 {
            self.op(Opcode::MARK);
        }
        self.push(pairs.iter().step_by(2).map(|name| Step::Value(*name)));
        self.push([Step::EndTuple(count), Step::Op(Opcode::EMPTY_DICT)]);
        self.push([Step::Items(Items::set(pairs))]);
        for details in pairs.iter().skip(1).step_by(2) {
            if let Some(title) = self.children(*details).get(2)
                && matches!(self.root.arena().node(*title), Node::Str(_))
            {
                self.push([
                    Step::Value(*title),
                    Step::Value(*details),
                    Step::Op(Opcode::SETITEM),
                ]);
            }
        }
    }

    pub(super) fn ndarray(&mut self, id: NodeId, array: &'d NdarrayData) {
        let state = array.state.filter(|_| array.is_built());
        if let Some(state) = state
            && let Order::Axes(axes) = state.order
        {
            self.push([
                Step::Global("numpy._core.numeric", "_frombuffer"),
                Step::Op(Opcode::MARK),
                Step::Value(state.data),
                Step::Value(state.dtype),
                Step::Value(state.shape),
                Step::Str("K".into()),
                Step::Value(axes),
                Step::EndTuple(5),
                Step::Op(Opcode::REDUCE),
                Step::Made(id),
            ]);
            return;
        }
        self.array_shell();
        self.push([Step::Made(id), Step::Filled]);
        if let Some(state) = state {
            self.array_state(state);
        }
    }

    fn array_shell(&mut self) {
        self.push([
            Step::Global(MULTIARRAY, "_reconstruct"),
            Step::Global("numpy", "ndarray"),
            Step::Int(0),
            Step::EndTuple(1),
            Step::Bytes(b"b"),
            Step::EndTuple(3),
            Step::Op(Opcode::REDUCE),
        ]);
    }

    fn array_state(&mut self, state: ArrayState) {
        self.push([
            Step::Op(Opcode::MARK),
            Step::Int(1),
            Step::Value(state.shape),
            Step::Value(state.dtype),
            Step::Op(match state.order {
                Order::Column => Opcode::NEWTRUE,
                Order::Row | Order::Axes(_) => Opcode::NEWFALSE,
            }),
        ]);
        match self.root.arena().node(state.data) {
            // Objects are kept in a tuple, which is no object of the stream.
            Node::Tuple(items) => {
                let items = self.root.arena().span(items);
                self.push([
                    Step::Op(Opcode::EMPTY_LIST),
                    Step::Items(Items::append(items)),
                ]);
            }
            _ => self.push([Step::Value(state.data)]),
        }
        self.push([Step::EndTuple(5), Step::Op(Opcode::BUILD)]);
    }

    pub(super) fn numpy_scalar(&mut self, id: NodeId, scalar: &'d ScalarData) {
        self.push([
            Step::Global(MULTIARRAY, "scalar"),
            Step::Value(scalar.dtype),
        ]);
        match self.root.arena().object(scalar.data) {
            // numpy reads it at once, so it is complete, and nothing else refers to it.
            Some(Object::Ndarray(NdarrayData {
                state: Some(state), ..
            })) => {
                self.array_shell();
                self.array_state(*state);
            }
            _ => self.push([Step::Value(scalar.data)]),
        }
        self.push([Step::EndTuple(2), Step::Op(Opcode::REDUCE), Step::Made(id)]);
    }
}

fn value_or_none<'d>(id: Option<NodeId>) -> Step<'d> {
    id.map_or(Step::Op(Opcode::NONE), Step::Value)
}
