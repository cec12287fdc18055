//! Records: objects of classes that the decoder knows by name only, and the result records of the
//! framework.

use super::super::arena::{Node, NodeId};
use super::super::error::Malformed;
use super::super::machine::{Machine, Step};
use super::super::object::Object;
use super::super::value::{Entries, Items, Kind, Value};

/// How a record came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The class or function was called.
    Call,
    /// The object was made without calling its initialiser, as `cls.__new__` does.
    New,
    /// A state was given to an object that cannot take one; [`Record::class`] is that object. Under
    /// [`Policy::inspect`](super::super::Policy::inspect) alone.
    State,
    /// The stream refers to an object outside of itself, by the id that [`Record::args`] holds. Under
    /// [`Policy::inspect`](super::super::Policy::inspect) alone.
    PersistentId,
    /// The stream names a global by a code of the extension registry, which [`Record::args`] holds.
    /// Under [`Policy::inspect`](super::super::Policy::inspect) alone.
    Extension,
    /// The stream refers to a buffer that travels beside it. Under
    /// [`Policy::inspect`](super::super::Policy::inspect) alone.
    Buffer,
}

/// What a record holds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct RecordData {
    pub(in super::super) origin: Origin,
    /// A global, or under inspection any object that is called.
    pub(in super::super) class: Option<NodeId>,
    /// A tuple.
    pub(in super::super) args: NodeId,
    /// A dict that is no object of the stream.
    pub(in super::super) kwargs: Option<NodeId>,
    /// A list that is no object of the stream: every state that was given, in order. Those that are dicts
    /// or pairs of dicts are copies that are no objects of the stream either.
    pub(in super::super) states: Option<NodeId>,
    /// A dict that is no object of the stream: what the states say of instance attributes.
    pub(in super::super) attrs: Option<NodeId>,
    /// A list that is no object of the stream: what was appended.
    pub(in super::super) list: Option<NodeId>,
    /// A dict that is no object of the stream: what was set by key.
    pub(in super::super) dict: Option<NodeId>,
}

impl RecordData {
    fn parts(&self) -> [Option<NodeId>; 7] {
        [
            self.class,
            Some(self.args),
            self.kwargs,
            self.states,
            self.attrs,
            self.list,
            self.dict,
        ]
    }

    pub(in super::super) fn references(&self) -> Vec<NodeId> {
        self.parts().into_iter().flatten().collect()
    }

    /// Which of its parts there are.
    pub(in super::super) fn present(&self) -> [bool; 7] {
        self.parts().map(|part| part.is_some())
    }
}

macro_rules! framework {
    ($($(#[$doc:meta])* $name:ident = $module:literal $qualname:literal { $($field:ident),* } slots $slots:literal, $accessor:ident;)*) => {
        /// A result record of the framework.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Framework {
            $($(#[$doc])* $name,)*
        }

        impl Framework {
            pub(in super::super) fn find(module: &[u8], qualname: &[u8]) -> Option<Self> {
                $(if module == $module.as_bytes() && qualname == $qualname.as_bytes() {
                    return Some(Self::$name);
                })*
                None
            }

            /// The names of its fields. Every decoded record has them all.
            pub fn fields(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$(stringify!($field)),*],)* }
            }

            /// Whether instances keep their fields in slots, and so have no other attributes.
            fn slots(self) -> bool {
                match self { $(Self::$name => $slots,)* }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name<'d> { $(
                #[doc = concat!("The field `", stringify!($field), "`.")]
                pub $field: Value<'d>,
            )* }

            impl<'d> Value<'d> {
                $(#[$doc])*
                pub fn $accessor(self) -> Option<$name<'d>> {
                    let record = self.record().filter(|record| record.framework() == Some(Framework::$name))?;
                    Some($name { $($field: record.field(stringify!($field))?,)* })
                }
            }
        )*
    };
}

framework! {
    /// `agentix.bridge.proxy.TunnelHandle`.
    TunnelHandle = "agentix.bridge.proxy" "TunnelHandle" { url, port } slots true, tunnel_handle;
    /// `agentix.bash.BashResult`.
    BashResult = "agentix.bash" "BashResult" { exit_code, stdout, stderr } slots false, bash_result;
    /// `agentix.files.UploadResult`.
    UploadResult = "agentix.files" "UploadResult" { path, size } slots false, upload_result;
    /// `agentix.agents.claude_code.agent.ClaudeCodeResult`.
    ClaudeCodeResult = "agentix.agents.claude_code.agent" "ClaudeCodeResult"
        { returncode, stdout, stderr } slots false, claude_code_result;
    /// `agentix.agents.qwen_code.Result`.
    QwenCodeResult = "agentix.agents.qwen_code" "Result"
        { exit_code, stdout, stderr } slots false, qwen_code_result;
    /// `agentix.plugins.datasets.swe.env.PrepareEnvResult`.
    PrepareEnvResult = "agentix.plugins.datasets.swe.env" "PrepareEnvResult"
        { ok, head, log } slots false, prepare_env_result;
}

/// An object of a class that the decoder knows by name only, or a result record of the framework:
/// what the stream says of it, and nothing that its class would make of that.
#[derive(Clone, Copy, Debug)]
pub struct Record<'d> {
    value: Value<'d>,
    data: &'d RecordData,
}

impl<'d> Record<'d> {
    pub(in super::super) fn new(value: Value<'d>, data: &'d RecordData) -> Self {
        Self { value, data }
    }

    fn at(self, id: Option<NodeId>) -> Option<Value<'d>> {
        id.map(|id| self.value.at(id))
    }

    /// How it came to be.
    pub fn origin(self) -> Origin {
        self.data.origin
    }

    /// The class or function; a [`Kind::Global`], except under
    /// [`Policy::inspect`](super::super::Policy::inspect), where what a record stands for may be called
    /// in turn. `None` for persistent ids, extension codes and buffers.
    pub fn class(self) -> Option<Value<'d>> {
        self.at(self.data.class)
    }

    /// Which record of the framework it is.
    pub fn framework(self) -> Option<Framework> {
        match self.value.arena().global(self.data.class?)?.known? {
            super::super::known::Known::Framework(framework) => Some(framework),
            _ => None,
        }
    }

    /// The arguments that it was made with.
    pub fn args(self) -> Items<'d> {
        self.value.items_of(self.data.args)
    }

    /// The keyword arguments that it was made with, if the stream gave any.
    pub fn kwargs(self) -> Option<Entries<'d>> {
        self.data.kwargs.map(|id| self.value.entries_of(id))
    }

    /// Every state that it was given, in order. Picklers write one at most.
    pub fn states(self) -> Option<Items<'d>> {
        self.data.states.map(|id| self.value.items_of(id))
    }

    /// The last state that it was given.
    pub fn state(self) -> Option<Value<'d>> {
        self.states()?.iter().last()
    }

    /// The instance attributes: what its states that are dicts, or pairs of dicts, say together.
    pub fn attrs(self) -> Option<Entries<'d>> {
        self.data.attrs.map(|id| self.value.entries_of(id))
    }

    /// The instance attribute of a name.
    pub fn field(self, name: &str) -> Option<Value<'d>> {
        self.attrs()?
            .iter()
            .find(|(key, _)| key.as_str() == Some(name))
            .map(|(_, value)| value)
    }

    /// What was appended to it, as to a list.
    pub fn items(self) -> Option<Items<'d>> {
        self.data.list.map(|id| self.value.items_of(id))
    }

    /// What was set in it by key, as in a dict.
    pub fn entries(self) -> Option<Entries<'d>> {
        self.data.dict.map(|id| self.value.entries_of(id))
    }
}

impl Machine<'_, '_> {
    /// A record that is no more than what the stream says.
    pub(in super::super) fn record(
        &mut self,
        origin: Origin,
        class: Option<NodeId>,
        args: NodeId,
        kwargs: Option<NodeId>,
    ) -> Step<NodeId> {
        self.make_object(Object::Record(RecordData {
            origin,
            class,
            args,
            kwargs,
            states: None,
            attrs: None,
            list: None,
            dict: None,
        }))
    }

    /// Gives a record a state.
    pub(in super::super) fn build_record(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        let record = match self.arena.object(id) {
            Some(Object::Record(record)) => *record,
            _ => return Err(Malformed::NoState(self.arena.kind(id)).into()),
        };
        let framework = record
            .class
            .and_then(|class| self.arena.global(class)?.known)
            .and_then(|known| match known {
                super::super::known::Known::Framework(framework) => Some(framework),
                _ => None,
            });
        let parts = self.state_parts(state);
        let entries: usize = parts
            .into_iter()
            .flatten()
            .flatten()
            .map(|part| self.arena.children(part).len())
            .sum();
        // The same large state may be given again and again.
        self.charge_copies(entries)?;
        let (state, copies) = match parts {
            Some(parts) => self.copied_state(state, parts)?,
            None => (state, [None, None]),
        };
        let attrs = match framework {
            Some(framework) => Some(self.framework_state(framework, record.attrs, state)?),
            None if copies
                .into_iter()
                .flatten()
                .all(|part| self.has_names(part)) =>
            {
                let mut attrs = record.attrs;
                for part in copies.into_iter().flatten() {
                    attrs = Some(self.joined(attrs, part)?);
                }
                attrs
            }
            None => record.attrs,
        };
        let states = match record.states {
            Some(states) => states,
            None => self.make(Node::List(Default::default()))?,
        };
        self.extend(states, &[state])?;
        if let Some(Object::Record(record)) = self.arena.object_mut(id) {
            record.states = Some(states);
            record.attrs = attrs;
        }
        self.built(id);
        Ok(())
    }

    /// The dicts of a state in the form that Python itself gives it: one dict, or a pair of such or None.
    fn state_parts(&self, state: NodeId) -> Option<[Option<NodeId>; 2]> {
        let part = |id: NodeId| match self.arena.node(id) {
            Node::Dict(_) => Some(Some(id)),
            Node::None => Some(None),
            _ => None,
        };
        match self.arena.node(state) {
            Node::Dict(_) => Some([Some(state), None]),
            Node::Tuple(span) => match *self.arena.span(span) {
                [dict, slots] => Some([part(dict)?, part(slots)?]),
                _ => None,
            },
            _ => None,
        }
    }

    /// A copy of a state of that form, and the dicts in it. In Python an object takes over what the
    /// dicts hold, and nothing that happens to them later.
    fn copied_state(
        &mut self,
        state: NodeId,
        parts: [Option<NodeId>; 2],
    ) -> Step<(NodeId, [Option<NodeId>; 2])> {
        let mut copies = [None, None];
        for (part, copy) in parts.into_iter().zip(&mut copies) {
            if let Some(part) = part {
                *copy = Some(self.copied_dict(part)?);
            }
        }
        if let Node::Tuple(span) = self.arena.node(state) {
            let mut items = self.arena.span(span).to_vec();
            for (item, copy) in items.iter_mut().zip(copies) {
                *item = copy.unwrap_or(*item);
            }
            let span = self.new_span(&items)?;
            return Ok((self.make(Node::Tuple(span))?, copies));
        }
        Ok((copies[0].unwrap_or(state), copies))
    }

    /// A dict that no stream can refer to, with the entries of another.
    pub(in super::super) fn copied_dict(&mut self, dict: NodeId) -> Step<NodeId> {
        let entries = self.arena.children(dict).to_vec();
        let span = self.new_span(&entries)?;
        self.make(Node::Dict(span))
    }

    fn has_names(&self, dict: NodeId) -> bool {
        let mut keys = self.arena.children(dict).iter().step_by(2);
        keys.all(|key| matches!(self.arena.node(*key), Node::Str(_)))
    }

    /// Attributes and more of them. The first are those of a state itself, which must stay as it is.
    fn joined(&mut self, attrs: Option<NodeId>, more: NodeId) -> Step<NodeId> {
        let Some(attrs) = attrs else {
            return Ok(more);
        };
        self.charge_copies(self.arena.children(attrs).len())?;
        let joined = self.copied_dict(attrs)?;
        self.update(joined, more)?;
        Ok(joined)
    }

    /// The attributes of a record of the framework, all of its fields among them.
    fn framework_state(
        &mut self,
        framework: Framework,
        attrs: Option<NodeId>,
        state: NodeId,
    ) -> Step<NodeId> {
        let wrong = Malformed::NoState(Kind::Record);
        let dict = match (framework.slots(), self.arena.node(state)) {
            (false, Node::Dict(_)) => state,
            (true, Node::Tuple(span)) => match *self.arena.span(span) {
                [none, slots]
                    if matches!(self.arena.node(none), Node::None)
                        && matches!(self.arena.node(slots), Node::Dict(_)) =>
                {
                    slots
                }
                _ => return Err(wrong.into()),
            },
            _ => return Err(wrong.into()),
        };
        if !self.has_names(dict) {
            return Err(wrong.into());
        }
        let names = || {
            let keys = self.arena.children(dict).iter().step_by(2);
            keys.map(|key| match self.arena.node(*key) {
                Node::Str(bytes) => self.arena.bytes(bytes),
                _ => &[],
            })
        };
        let fields = framework.fields();
        let complete = fields
            .iter()
            .all(|field| names().any(|name| name == field.as_bytes()));
        if !complete || framework.slots() && names().count() > fields.len() {
            return Err(wrong.into());
        }
        self.joined(attrs, dict)
    }
}
