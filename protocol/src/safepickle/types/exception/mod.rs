//! Exceptions of the builtins: how they are made, and what a state does to them.

mod class;
mod reduce;
mod view;

pub use class::ExceptionClass;
pub(in crate::safepickle) use reduce::MadeWith;
pub use view::Exception;

use class::{Layout, SYNTAX_ERROR};

use super::super::arena::{Arena, Node, NodeId};
use super::super::construct::Args;
use super::super::error::{DecodeErrorKind, Malformed};
use super::super::machine::{Machine, Step};
use super::super::make::SHARED_NONE;
use super::super::object::Object;
use super::super::value::Kind;

/// What an exception holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::safepickle) struct ExceptionData {
    pub(in crate::safepickle) class: ExceptionClass,
    /// A tuple.
    pub(in crate::safepickle) args: NodeId,
    /// A tuple that is no object of the stream: the class's fields in their order.
    pub(in crate::safepickle) fields: NodeId,
    /// A dict that is no object of the stream: instance attributes.
    pub(in crate::safepickle) attrs: Option<NodeId>,
}

/// What a class makes of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    class: ExceptionClass,
    /// `None` for the arguments as they are.
    args: Option<[NodeId; 2]>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    None,
    Int(i64),
    Object(NodeId),
    /// A tuple of what a list holds.
    TupleOf(NodeId),
    /// A bytes object of what a bytearray holds.
    BytesOf(NodeId),
}

impl From<NodeId> for Field {
    fn from(id: NodeId) -> Self {
        Self::Object(id)
    }
}

/// What a call of `class` makes, or `None` if it would be refused. `tuple` is the tuple of the
/// arguments, if there is one.
fn plan(
    arena: &Arena<'_>,
    class: ExceptionClass,
    ids: &[NodeId],
    tuple: Option<NodeId>,
) -> Option<Plan> {
    let mut plan = Plan {
        class,
        args: None,
        fields: Vec::new(),
    };
    let first = ids.first().map_or(Field::None, |id| Field::Object(*id));
    match class.layout() {
        Layout::Plain => {}
        Layout::OsError => os_error(arena, ids, &mut plan)?,
        Layout::SystemExit => plan.fields.push(match ids.len() {
            0 | 1 => first,
            _ => Field::Object(tuple?),
        }),
        Layout::StopIteration => plan.fields.push(first),
        Layout::ImportError => {
            let msg = if ids.len() == 1 { first } else { Field::None };
            plan.fields.extend([msg, Field::None, Field::None]);
        }
        Layout::SyntaxError => {
            plan.fields.push(first);
            let details: &[NodeId] = match *ids {
                [_, details] => match (arena.node(details), arena.children(details)) {
                    // Four of Python 3.9 and before, six since.
                    (Node::Tuple(_) | Node::List(_), ids) if matches!(ids.len(), 4 | 6) => ids,
                    _ => return None,
                },
                _ => &[],
            };
            plan.fields
                .extend(details.iter().map(|id| Field::Object(*id)));
            plan.fields.resize(SYNTAX_ERROR.len(), Field::None);
        }
        Layout::NameError => plan.fields.push(Field::None),
        Layout::AttributeError => plan.fields.extend([Field::None, Field::None]),
        Layout::UnicodeEncode | Layout::UnicodeDecode => {
            let [encoding, object, start, end, reason] = *ids else {
                return None;
            };
            let decode = class.layout() == Layout::UnicodeDecode;
            let object = match arena.kind(object) {
                Kind::Str if !decode => Field::Object(object),
                Kind::Bytes if decode => Field::Object(object),
                Kind::Bytearray if decode => Field::BytesOf(object),
                _ => return None,
            };
            let texts = [encoding, reason];
            if texts.iter().any(|id| arena.kind(*id) != Kind::Str) {
                return None;
            }
            let [start, end] = [index(arena, start)?, index(arena, end)?];
            plan.fields
                .extend([encoding.into(), object, start, end, reason.into()]);
        }
        Layout::UnicodeTranslate => {
            let [object, start, end, reason] = *ids else {
                return None;
            };
            if [object, reason]
                .iter()
                .any(|id| arena.kind(*id) != Kind::Str)
            {
                return None;
            }
            let [start, end] = [index(arena, start)?, index(arena, end)?];
            plan.fields
                .extend([object.into(), start, end, reason.into()]);
        }
        Layout::Group => group(arena, ids, &mut plan)?,
    }
    Some(plan)
}

/// An int or bool of 64 bits, as an int.
fn index(arena: &Arena<'_>, id: NodeId) -> Option<Field> {
    match arena.node(id) {
        Node::Int(_) => Some(Field::Object(id)),
        Node::Bool(value) => Some(Field::Int(i64::from(value))),
        _ => None,
    }
}

fn os_error(arena: &Arena<'_>, ids: &[NodeId], plan: &mut Plan) -> Option<()> {
    let given = if matches!(ids.len(), 2..=5) { ids } else { &[] };
    // The fourth is the error of Windows, which only Windows looks at.
    let [errno, strerror, filename, _, filename2] =
        std::array::from_fn(|at| given.get(at).copied());
    let named = |id: Option<NodeId>| id.filter(|id| arena.kind(*id) != Kind::None);
    if plan.class == ExceptionClass::OSError {
        let errno = errno.and_then(|id| match arena.node(id) {
            Node::Int(errno) => Some(errno),
            Node::Bool(errno) => Some(i64::from(errno)),
            _ => None,
        });
        plan.class = errno
            .and_then(ExceptionClass::of_errno)
            .unwrap_or(plan.class);
    }
    let field = |id: Option<NodeId>| id.map_or(Field::None, Field::Object);
    plan.fields.extend([field(errno), field(strerror)]);
    let Some(filename) = named(filename) else {
        plan.fields.extend([Field::None, Field::None]);
        return Some(());
    };
    if plan.class == ExceptionClass::BlockingIOError {
        match arena.kind(filename) {
            // A number there is how many characters were written, -1 is Python's mark for none.
            Kind::Int | Kind::Bool => {
                plan.fields.extend([Field::None, Field::None]);
                if !matches!(arena.node(filename), Node::Int(-1)) {
                    plan.fields.push(index(arena, filename)?);
                }
                return Some(());
            }
            // Python takes these for numbers as well, and finds that they are none it can use.
            Kind::Float
            | Kind::Complex
            | Kind::Decimal
            | Kind::Fraction
            | Kind::Uuid
            | Kind::Ndarray
            | Kind::NumpyScalar => return None,
            _ => {}
        }
    }
    plan.fields
        .extend([field(Some(filename)), field(named(filename2))]);
    if let (Some(errno), Some(strerror)) = (errno, strerror) {
        plan.args = Some([errno, strerror]);
    }
    Some(())
}

fn group(arena: &Arena<'_>, ids: &[NodeId], plan: &mut Plan) -> Option<()> {
    let [message, nested] = *ids else {
        return None;
    };
    let exceptions = match arena.node(nested) {
        Node::Tuple(_) => Field::Object(nested),
        Node::List(_) => Field::TupleOf(nested),
        _ => return None,
    };
    let nested = arena.children(nested);
    if arena.kind(message) != Kind::Str || nested.is_empty() {
        return None;
    }
    let mut all_exceptions = true;
    for id in nested {
        match arena.object(*id) {
            Some(Object::Exception(exception)) => {
                let is_exception = exception.class.is_subclass_of(ExceptionClass::Exception);
                if !is_exception && plan.class == ExceptionClass::ExceptionGroup {
                    return None;
                }
                all_exceptions &= is_exception;
            }
            // Of a class known by name only, which may be derived from either; then the sender's
            // choice between the two groups stands.
            Some(Object::Record(record)) if by_name_only(arena, record.class) => {
                all_exceptions = false;
            }
            _ => return None,
        }
    }
    if all_exceptions {
        plan.class = ExceptionClass::ExceptionGroup;
    }
    plan.fields.extend([message.into(), exceptions]);
    Some(())
}

fn by_name_only(arena: &Arena<'_>, class: Option<NodeId>) -> bool {
    class
        .and_then(|class| arena.global(class))
        .is_some_and(|global| global.known.is_none())
}

impl Machine<'_, '_> {
    /// Calls a class of exceptions.
    pub(in crate::safepickle) fn exception(
        &mut self,
        class: ExceptionClass,
        args: Args,
    ) -> Step<NodeId> {
        if class.layout() == Layout::Group {
            // The same exceptions may be looked at, and copied, for many groups.
            let nested = args.ids(&self.arena).get(1);
            let nested = nested.map_or(0, |id| self.arena.children(*id).len());
            self.charge_copies(nested)?;
        }
        let Some(plan) = plan(&self.arena, class, args.ids(&self.arena), Some(args.tuple)) else {
            return Err(Malformed::Arguments.into());
        };
        let args = match plan.args {
            Some(args) => self.hidden_tuple(&args)?,
            None => args.tuple,
        };
        let mut fields = Vec::with_capacity(plan.fields.len());
        for field in plan.fields {
            fields.push(match field {
                Field::None => self.make_shared(SHARED_NONE, Node::None)?,
                Field::Int(value) => self.make(Node::Int(value))?,
                Field::Object(id) => id,
                Field::TupleOf(list) => {
                    let items = self.arena.children(list).to_vec();
                    self.hidden_tuple(&items)?
                }
                Field::BytesOf(bytearray) => match self.arena.node(bytearray) {
                    Node::Bytearray(bytes) => {
                        // As for a bytearray of bytes.
                        self.charge(u64::from(bytes.len) / 8)?;
                        self.make(Node::Bytes(bytes))?
                    }
                    _ => bytearray,
                },
            });
        }
        let fields = self.hidden_tuple(&fields)?;
        self.make_object(Object::Exception(ExceptionData {
            class: plan.class,
            args,
            fields,
            attrs: None,
        }))
    }

    /// A tuple of these; the shared one if there are none.
    pub(in crate::safepickle) fn hidden_tuple(&mut self, items: &[NodeId]) -> Step<NodeId> {
        if items.is_empty() {
            return self.empty_tuple();
        }
        let span = self.new_span(items)?;
        self.make(Node::Tuple(span))
    }

    /// Gives an exception a state: a dict of fields and attributes.
    pub(in crate::safepickle) fn build_exception(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        let no_state = || DecodeErrorKind::from(Malformed::NoState(Kind::Exception));
        let mut data = match self.arena.object(id) {
            Some(Object::Exception(data)) => *data,
            _ => return Err(no_state()),
        };
        if self.arena.kind(state) != Kind::Dict {
            return Err(no_state());
        }
        let entries = self.arena.children(state).to_vec();
        self.charge(entries.len() as u64)?;
        let mut attrs = Vec::new();
        for entry in entries.chunks_exact(2) {
            let (key, value) = (entry[0], entry[1]);
            let Node::Str(name) = self.arena.node(key) else {
                return Err(no_state());
            };
            let name = self.arena.bytes(name);
            let names = data.class.field_names();
            let field = names.iter().position(|field| field.as_bytes() == name);
            match (name, field) {
                (_, Some(field)) => self.set_field(&data, field, value)?,
                // What AttributeError writes since Python 3.12.
                (b"args", _) => match self.arena.node(value) {
                    Node::Tuple(_) => data.args = value,
                    _ => return Err(no_state()),
                },
                // Setting these does something in Python, and no pickler writes them.
                (
                    b"__cause__"
                    | b"__context__"
                    | b"__suppress_context__"
                    | b"__traceback__"
                    | b"__dict__"
                    | b"__class__",
                    _,
                ) => return Err(no_state()),
                _ => attrs.push((key, value)),
            }
        }
        if !attrs.is_empty() {
            let dict = match data.attrs {
                Some(dict) => dict,
                None => self.make(Node::Dict(Default::default()))?,
            };
            for (key, value) in attrs {
                self.set_item(dict, key, value)?;
            }
            data.attrs = Some(dict);
        }
        if let Some(Object::Exception(kept)) = self.arena.object_mut(id) {
            *kept = data;
        }
        Ok(())
    }

    /// Sets a field as Python does on assignment.
    fn set_field(&mut self, data: &ExceptionData, field: usize, value: NodeId) -> Step<()> {
        let no_state = || DecodeErrorKind::from(Malformed::NoState(Kind::Exception));
        let kind = self.arena.kind(value);
        let fits = match (data.class.layout(), data.class.field_names()[field]) {
            // Read-only.
            (Layout::Group, _) => false,
            (Layout::OsError, "characters_written")
            | (
                Layout::UnicodeEncode | Layout::UnicodeDecode | Layout::UnicodeTranslate,
                "start" | "end",
            ) => matches!(self.arena.node(value), Node::Int(value) if value != -1),
            (Layout::UnicodeDecode, "object") => matches!(kind, Kind::Bytes | Kind::Bytearray),
            (Layout::UnicodeEncode | Layout::UnicodeDecode | Layout::UnicodeTranslate, _) => {
                kind == Kind::Str
            }
            _ => true,
        };
        let Node::Tuple(mut span) = self.arena.node(data.fields) else {
            return Err(no_state());
        };
        if !fits || field > span.len as usize {
            return Err(no_state());
        }
        if field == span.len as usize {
            let mut fields = self.arena.span(span).to_vec();
            fields.push(value);
            span = self.new_span(&fields)?;
            self.arena.nodes[data.fields.index()] = Node::Tuple(span);
        } else {
            self.arena.items[span.start as usize + field] = value;
        }
        Ok(())
    }
}
