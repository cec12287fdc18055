//! What picklers write for each kind: the steps that an object takes in a stream.

mod numpy;

use std::borrow::Cow;

use super::arena::{Node, NodeId};
use super::object::{MapClass, Object};
use super::opcode::Opcode;
use super::types::exception::{ExceptionData, MadeWith};
use super::types::path::{self, PathClass};
use super::types::record::{Origin, RecordData};
use super::types::uuid::{Uuid, UuidSafety};
use super::value::{Text, Value};
use super::writer::{BATCH, Protocol};

/// One step of writing an object.
///
/// An object is *made* of some objects and then *filled* with others and given *states*: what it is
/// made of must have been written before there is anything to refer to, while what fills it may refer
/// to it.
#[derive(Debug)]
pub(super) enum Step<'d> {
    /// An object.
    Value(NodeId),
    /// Objects, one after the other.
    Items(Items<'d>),
    /// The object is made: it may be stored in the memo.
    Made(NodeId),
    /// The object is filled: what follows are states.
    Filled,
    /// What was met when the object was met has been written.
    End(NodeId),
    Op(Opcode),
    /// Closes a tuple of so many items.
    EndTuple(usize),
    Global(&'static str, &'static str),
    Int(i64),
    /// An int that may be wider.
    Wide(u128),
    Float(f64),
    Str(Cow<'d, str>),
    /// A str in generalised UTF-8.
    Text(Vec<u8>),
    Bytes(&'d [u8]),
    /// The state of a date or time.
    TimeState(Vec<u8>),
    /// A code of the extension registry.
    Extension(i64),
    /// A buffer that travels beside the stream.
    Buffer,
}

/// Objects to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Items<'d> {
    pub(super) ids: &'d [NodeId],
    pub(super) next: usize,
    /// Items between MARK and the opcode that takes them, and that opcode, if the items fill something.
    pub(super) batch: Option<(usize, Opcode)>,
}

impl<'d> Items<'d> {
    fn plain(ids: &'d [NodeId]) -> Self {
        Self {
            ids,
            next: 0,
            batch: None,
        }
    }

    fn batches(ids: &'d [NodeId], batch: usize, append: Opcode) -> Self {
        Self {
            ids,
            next: 0,
            batch: Some((batch, append)),
        }
    }

    fn append(ids: &'d [NodeId]) -> Self {
        Self::batches(ids, BATCH, Opcode::APPENDS)
    }

    fn set(ids: &'d [NodeId]) -> Self {
        Self::batches(ids, 2 * BATCH, Opcode::SETITEMS)
    }
}

/// Writes down the steps of an object of any kind but those that take a single opcode.
pub(super) fn steps<'d>(value: Value<'d>, protocol: Protocol, steps: &mut Vec<Step<'d>>) {
    let mut form = Form {
        root: value,
        protocol,
        steps,
    };
    form.value(value.id());
}

struct Form<'d, 's> {
    root: Value<'d>,
    protocol: Protocol,
    steps: &'s mut Vec<Step<'d>>,
}

impl<'d> Form<'d, '_> {
    fn push(&mut self, steps: impl IntoIterator<Item = Step<'d>>) {
        self.steps.extend(steps);
    }

    fn op(&mut self, opcode: Opcode) {
        self.steps.push(Step::Op(opcode));
    }

    fn children(&self, id: NodeId) -> &'d [NodeId] {
        self.root.arena().children(id)
    }

    /// A tuple of objects.
    fn tuple(&mut self, ids: &'d [NodeId]) {
        if ids.len() > 3 {
            self.op(Opcode::MARK);
        }
        self.push([Step::Items(Items::plain(ids)), Step::EndTuple(ids.len())]);
    }

    /// A call of a class with what `args` writes.
    fn call<const N: usize>(
        &mut self,
        id: NodeId,
        (module, name): (&'static str, &'static str),
        args: [Step<'d>; N],
    ) {
        self.push([Step::Global(module, name)]);
        if N > 3 {
            self.op(Opcode::MARK);
        }
        self.push(args);
        self.push([Step::EndTuple(N), Step::Op(Opcode::REDUCE), Step::Made(id)]);
    }

    /// A call of a class with some of its arguments.
    fn call_with(
        &mut self,
        id: NodeId,
        class: (&'static str, &'static str),
        first: Step<'d>,
        second: Option<NodeId>,
    ) {
        match second {
            Some(second) => self.call(id, class, [first, Step::Value(second)]),
            None => self.call(id, class, [first]),
        }
    }

    fn value(&mut self, id: NodeId) {
        let arena = self.root.arena();
        match arena.node(id) {
            Node::List(span) => self.push([
                Step::Op(Opcode::EMPTY_LIST),
                Step::Made(id),
                Step::Items(Items::append(arena.span(span))),
            ]),
            Node::Dict(span) => self.push([
                Step::Op(Opcode::EMPTY_DICT),
                Step::Made(id),
                Step::Items(Items::set(arena.span(span))),
            ]),
            Node::Tuple(span) => {
                self.tuple(arena.span(span));
                self.push([Step::Made(id)]);
            }
            Node::Set(span) if self.protocol >= Protocol::V4 => self.push([
                Step::Op(Opcode::EMPTY_SET),
                Step::Made(id),
                Step::Items(Items::batches(arena.span(span), BATCH, Opcode::ADDITEMS)),
            ]),
            Node::Frozenset(span) if self.protocol >= Protocol::V4 => self.push([
                Step::Op(Opcode::MARK),
                Step::Items(Items::plain(arena.span(span))),
                Step::Op(Opcode::FROZENSET),
                Step::Made(id),
            ]),
            Node::Set(_) => self.set_of_list(id, "set"),
            Node::Frozenset(_) => self.set_of_list(id, "frozenset"),
            Node::Bytearray(bytes) if bytes.len == 0 => {
                self.call(id, ("builtins", "bytearray"), [])
            }
            Node::Bytearray(bytes) => {
                let content = Step::Bytes(self.root.raw_bytes(bytes));
                self.call(id, ("builtins", "bytearray"), [content]);
            }
            Node::Bytes(_) => self.call(id, ("builtins", "bytes"), []),
            Node::Complex(index) => {
                let [re, im] = arena.complexes[index as usize];
                let parts = [Step::Float(re), Step::Float(im)];
                self.call(id, ("builtins", "complex"), parts);
            }
            Node::Range(_) => self.call_of(id, ("builtins", "range"), self.children(id)),
            Node::Slice(_) => self.call_of(id, ("builtins", "slice"), self.children(id)),
            Node::Date(raw) => self.call(id, ("datetime", "date"), [Step::TimeState(raw.to_vec())]),
            Node::Time { raw, tzinfo } => {
                self.call_with(
                    id,
                    ("datetime", "time"),
                    Step::TimeState(raw.to_vec()),
                    tzinfo,
                );
            }
            Node::Datetime { raw, tzinfo } => {
                self.call_with(
                    id,
                    ("datetime", "datetime"),
                    Step::TimeState(raw.to_vec()),
                    tzinfo,
                );
            }
            Node::Timedelta {
                days,
                seconds,
                microseconds,
            } => {
                let counts = [i64::from(days), seconds.into(), microseconds.into()];
                self.call(id, ("datetime", "timedelta"), counts.map(Step::Int));
            }
            Node::Timezone { offset, name } => {
                self.call_with(id, ("datetime", "timezone"), Step::Value(offset), name);
            }
            Node::Decimal(_) => {
                let text = self
                    .root
                    .at(id)
                    .decimal()
                    .map(|decimal| decimal.to_string());
                // The kind is the one asked for.
                let text = Step::Str(text.unwrap_or_default().into());
                self.call(id, ("decimal", "Decimal"), [text]);
            }
            Node::Fraction {
                numerator,
                denominator,
            } => {
                let parts = [numerator, denominator].map(Step::Value);
                self.call(id, ("fractions", "Fraction"), parts);
            }
            Node::Uuid(index) => self.uuid(id, arena.uuids[index as usize]),
            Node::Path { class, parts } => self.path(id, class, arena.span(parts)),
            Node::Object(index) => self.object(id, &arena.objects[index as usize]),
            // The others are written without steps.
            _ => debug_assert!(false, "{:?} takes steps", arena.kind(id)),
        }
    }

    /// A call of a class with objects.
    fn call_of(
        &mut self,
        id: NodeId,
        (module, name): (&'static str, &'static str),
        args: &'d [NodeId],
    ) {
        self.push([Step::Global(module, name)]);
        self.tuple(args);
        self.push([Step::Op(Opcode::REDUCE), Step::Made(id)]);
    }

    fn path(&mut self, id: NodeId, class: PathClass, parts: &'d [NodeId]) {
        self.push([Step::Global("pathlib", class.name())]);
        if parts.len() > 3 {
            self.op(Opcode::MARK);
        }
        for (at, part) in parts.iter().enumerate() {
            let text = self.root.at(*part).as_text();
            let content = text.map_or(&[][..], Text::as_generalised_utf8);
            self.push([match path::spelling(class, at == 0, content) {
                Some(spelt) => Step::Text(spelt),
                None => Step::Value(*part),
            }]);
        }
        self.push([
            Step::EndTuple(parts.len()),
            Step::Op(Opcode::REDUCE),
            Step::Made(id),
        ]);
    }

    /// A set before there were opcodes for sets: made from a list.
    fn set_of_list(&mut self, id: NodeId, class: &'static str) {
        let items = Items::append(self.children(id));
        self.push([
            Step::Global("builtins", class),
            Step::Op(Opcode::EMPTY_LIST),
            Step::Items(items),
            Step::EndTuple(1),
            Step::Op(Opcode::REDUCE),
            Step::Made(id),
        ]);
    }

    fn uuid(&mut self, id: NodeId, uuid: Uuid) {
        self.push([
            Step::Global("uuid", "UUID"),
            Step::EndTuple(0),
            Step::Op(Opcode::NEWOBJ),
            Step::Op(Opcode::EMPTY_DICT),
            Step::Str("int".into()),
            Step::Wide(uuid.int),
            Step::Op(Opcode::SETITEM),
        ]);
        if let Some(safety) = uuid.is_safe {
            self.push([
                Step::Str("is_safe".into()),
                Step::Int(match safety {
                    UuidSafety::Safe => 0,
                    UuidSafety::Unsafe => -1,
                }),
                Step::Op(Opcode::SETITEM),
            ]);
        }
        self.push([Step::Op(Opcode::BUILD), Step::Made(id)]);
    }

    fn object(&mut self, id: NodeId, object: &'d Object) {
        match object {
            Object::Map {
                class,
                dict,
                factory,
                attrs,
            } => {
                let class = (
                    "collections",
                    match class {
                        MapClass::OrderedDict => "OrderedDict",
                        MapClass::Counter => "Counter",
                        MapClass::DefaultDict => "defaultdict",
                    },
                );
                match factory {
                    Some(factory) => self.call(id, class, [Step::Value(*factory)]),
                    None => self.call(id, class, []),
                }
                let entries = Items::set(self.children(*dict));
                self.push([Step::Items(entries), Step::Filled]);
                self.attrs(*attrs);
            }
            Object::Deque { list, maxlen } => {
                let class = ("collections", "deque");
                match maxlen {
                    Some(maxlen) => {
                        let maxlen = Step::Wide((*maxlen).into());
                        self.call(id, class, [Step::EndTuple(0), maxlen]);
                    }
                    None => self.call(id, class, []),
                }
                self.push([Step::Items(Items::append(self.children(*list)))]);
            }
            Object::Exception(exception) => self.exception(id, exception),
            Object::Record(record) => self.record(id, record),
            Object::Dtype(dtype) => self.dtype(id, dtype),
            Object::Ndarray(array) => self.ndarray(id, array),
            Object::NumpyScalar(scalar) => self.numpy_scalar(id, scalar),
        }
    }

    fn exception(&mut self, id: NodeId, exception: &ExceptionData) {
        let reduction = exception.reduction(self.root.arena());
        self.push([Step::Global("builtins", exception.class.name())]);
        match reduction.made_with {
            MadeWith::Args => self.push([Step::Value(exception.args)]),
            MadeWith::These(ids) => {
                let count = ids.len();
                if count > 3 {
                    self.op(Opcode::MARK);
                }
                self.push(ids.into_iter().map(Step::Value));
                self.push([Step::EndTuple(count)]);
            }
            MadeWith::TwoFiles([errno, strerror, filename, filename2]) => {
                self.op(Opcode::MARK);
                self.push([errno, strerror, filename].map(Step::Value));
                self.push([
                    Step::Op(Opcode::NONE),
                    Step::Value(filename2),
                    Step::EndTuple(5),
                ]);
            }
        }
        self.push([Step::Op(Opcode::REDUCE), Step::Made(id), Step::Filled]);
        if reduction.state.is_empty() {
            return self.attrs(exception.attrs);
        }
        self.op(Opcode::EMPTY_DICT);
        for (name, field) in reduction.state {
            self.push([
                Step::Str(name.into()),
                Step::Value(field),
                Step::Op(Opcode::SETITEM),
            ]);
        }
        let attrs = exception
            .attrs
            .map_or(&[][..], |attrs| self.children(attrs));
        self.push([Step::Items(Items::set(attrs)), Step::Op(Opcode::BUILD)]);
    }

    /// A state that is a dict of attributes and no object of its own.
    fn attrs(&mut self, attrs: Option<NodeId>) {
        if let Some(attrs) = attrs {
            self.dict(attrs);
            self.op(Opcode::BUILD);
        }
    }

    /// A dict that is no object of its own.
    fn dict(&mut self, id: NodeId) {
        let entries = Items::set(self.children(id));
        self.push([Step::Op(Opcode::EMPTY_DICT), Step::Items(entries)]);
    }

    fn record(&mut self, id: NodeId, record: &RecordData) {
        let mut states = record
            .states
            .map_or(&[][..], |states| self.children(states));
        let class = record.class.map(Step::Value);
        match record.origin {
            Origin::Call => {
                self.push(class);
                self.push([Step::Value(record.args), Step::Op(Opcode::REDUCE)]);
            }
            Origin::New => match record.kwargs {
                None => {
                    self.push(class);
                    self.push([Step::Value(record.args), Step::Op(Opcode::NEWOBJ)]);
                }
                Some(kwargs) if self.protocol >= Protocol::V4 => {
                    self.push(class);
                    self.push([Step::Value(record.args)]);
                    self.dict(kwargs);
                    self.op(Opcode::NEWOBJ_EX);
                }
                Some(kwargs) => {
                    self.push([Step::Global("copyreg", "__newobj_ex__")]);
                    self.push(class);
                    self.push([Step::Value(record.args)]);
                    self.dict(kwargs);
                    self.push([Step::EndTuple(3), Step::Op(Opcode::REDUCE)]);
                }
            },
            Origin::State => {
                self.push(class);
                if let Some((first, rest)) = states.split_first() {
                    self.state(*first);
                    states = rest;
                }
            }
            Origin::PersistentId => {
                self.push([Step::Items(Items::plain(self.children(record.args)))]);
                self.op(Opcode::BINPERSID);
            }
            Origin::Extension => {
                let code = self.children(record.args).first().copied();
                let code = code.and_then(|code| self.root.at(code).as_i64());
                // The decoder always gives one.
                self.push([Step::Extension(code.unwrap_or_default())]);
            }
            Origin::Buffer => self.push([Step::Buffer]),
        }
        self.push([Step::Made(id)]);
        let list = record.list.map(|list| Items::append(self.children(list)));
        let dict = record.dict.map(|dict| Items::set(self.children(dict)));
        for items in [list, dict].into_iter().flatten() {
            match items.batch {
                // That there was nothing to add is told of a record as well.
                Some((_, append)) if items.ids.is_empty() => {
                    self.push([Step::Op(Opcode::MARK), Step::Op(append)]);
                }
                _ => self.push([Step::Items(items)]),
            }
        }
        self.push([Step::Filled]);
        for state in states {
            self.state(*state);
        }
    }

    /// A state of a record: dicts, alone or in a pair, are no objects of their own.
    fn state(&mut self, state: NodeId) {
        let arena = self.root.arena();
        match (arena.node(state), self.children(state)) {
            (Node::Dict(_), _) => self.dict(state),
            (Node::Tuple(_), [dict, slots])
                if [dict, slots]
                    .iter()
                    .all(|id| matches!(arena.node(**id), Node::None | Node::Dict(_))) =>
            {
                for part in [*dict, *slots] {
                    match arena.node(part) {
                        Node::Dict(_) => self.dict(part),
                        _ => self.op(Opcode::NONE),
                    }
                }
                self.push([Step::EndTuple(2)]);
            }
            _ => self.push([Step::Value(state)]),
        }
        self.op(Opcode::BUILD);
    }
}
