//! How an exception is written: arguments to make it with, and what they leave to a state.

use std::borrow::Cow;

use super::class::Layout;
use super::{ExceptionData, Field, Plan, plan};
use crate::safepickle::arena::{Arena, Node, NodeId};

/// What makes an exception.
#[derive(Clone, Debug)]
pub(in crate::safepickle) struct Reduction {
    pub(in crate::safepickle) made_with: MadeWith,
    /// Fields that the arguments do not set as they are, by name; `args` may be among them.
    pub(in crate::safepickle) state: Vec<(&'static str, NodeId)>,
}

/// The arguments of the call that makes an exception.
#[derive(Clone, Debug)]
pub(in crate::safepickle) enum MadeWith {
    /// Its `args`, the tuple itself.
    Args,
    These(Vec<NodeId>),
    /// Error number, message, file name, nothing, second file name.
    TwoFiles([NodeId; 4]),
}

impl ExceptionData {
    /// Finds arguments and a state that give this exception, preferably without a state, and with the
    /// arguments that Python's own pickler takes.
    pub(in crate::safepickle) fn reduction(&self, arena: &Arena<'_>) -> Reduction {
        let mut with_state = None;
        for made_with in self.candidates(arena) {
            let Some(state) = self.left_over(arena, &made_with) else {
                continue;
            };
            let reduction = Reduction { made_with, state };
            if reduction.state.is_empty() {
                return reduction;
            }
            with_state.get_or_insert(reduction);
        }
        // The last candidate gives every exception.
        with_state.unwrap_or(Reduction {
            made_with: MadeWith::Args,
            state: Vec::new(),
        })
    }

    fn candidates(&self, arena: &Arena<'_>) -> Vec<MadeWith> {
        let (args, fields) = (arena.children(self.args), arena.children(self.fields));
        let mut candidates = Vec::new();
        let layout = self.class.layout();
        if let (Layout::OsError, [errno, strerror], [_, _, filename, filename2, ..]) =
            (layout, args, fields)
        {
            let is_none = |id: &NodeId| matches!(arena.node(*id), Node::None);
            // A state may have set a name that holds the exception.
            let is_name = |id: &NodeId| {
                arena.references(*id).is_empty() || matches!(arena.node(*id), Node::Path { .. })
            };
            if !is_name(filename) || !is_name(filename2) {
                // They are left to a state.
            } else if !is_none(filename2) {
                candidates.push(MadeWith::TwoFiles([
                    *errno, *strerror, *filename, *filename2,
                ]));
            } else if !is_none(filename) {
                candidates.push(MadeWith::These(vec![*errno, *strerror, *filename]));
            }
        }
        // A list is read when the exception is made; in a cycle it may not be full then.
        let reads_list = matches!(layout, Layout::Group | Layout::SyntaxError)
            && args
                .get(1)
                .is_some_and(|id| matches!(arena.node(*id), Node::List(_)));
        // Of a group, what it is made of stays; a state may have set other arguments, whatever many.
        let other_group = layout == Layout::Group && args.get(1) != fields.get(1);
        if !reads_list && !other_group {
            candidates.push(MadeWith::Args);
        }
        candidates.push(MadeWith::These(match layout {
            Layout::UnicodeEncode
            | Layout::UnicodeDecode
            | Layout::UnicodeTranslate
            | Layout::Group => fields.to_vec(),
            _ => Vec::new(),
        }));
        candidates
    }

    /// What a state has to say once the exception is made, or `None` if it cannot become this one.
    fn left_over(
        &self,
        arena: &Arena<'_>,
        made_with: &MadeWith,
    ) -> Option<Vec<(&'static str, NodeId)>> {
        let (args, fields) = (arena.children(self.args), arena.children(self.fields));
        let made: Cow<'_, [NodeId]> = match made_with {
            // They may be any number, and shared by as many exceptions.
            MadeWith::Args => args.into(),
            MadeWith::These(ids) => ids.into(),
            // Nobody looks at the fourth.
            MadeWith::TwoFiles([errno, strerror, filename, filename2]) => {
                vec![*errno, *strerror, *filename, *errno, *filename2].into()
            }
        };
        let tuple = matches!(made_with, MadeWith::Args).then_some(self.args);
        let Plan {
            class,
            args: made_args,
            fields: made_fields,
        } = plan(arena, self.class, &made, tuple)?;
        if class != self.class || made_fields.len() > fields.len() {
            return None;
        }
        let mut state = Vec::new();
        let left = match (&made_args, tuple) {
            (Some(made), _) => made.as_slice() != args,
            (None, Some(_)) => false,
            (None, None) => *made != *args,
        };
        if left {
            state.push(("args", self.args));
        }
        let names = self.class.field_names().iter();
        for (at, (name, field)) in names.zip(fields).enumerate() {
            if !made_fields
                .get(at)
                .is_some_and(|made| made.is(arena, *field))
            {
                state.push((*name, *field));
            }
        }
        let fixed =
            class.layout() == Layout::Group && state.iter().any(|(name, _)| *name != "args");
        (!fixed).then_some(state)
    }
}

impl Field {
    /// Whether it is this object, or one that cannot be told from it.
    fn is(&self, arena: &Arena<'_>, id: NodeId) -> bool {
        match (self, arena.node(id)) {
            (Self::None, node) => matches!(node, Node::None),
            (Self::Int(value), node) => matches!(node, Node::Int(int) if int == *value),
            (Self::Object(object), _) => *object == id,
            (Self::TupleOf(list), Node::Tuple(span)) => arena.children(*list) == arena.span(span),
            (Self::BytesOf(bytearray), Node::Bytes(bytes)) => {
                // Long content is looked at but once, when the exception is made: after that, what is the
                // same lies in one place.
                matches!(arena.node(*bytearray), Node::Bytearray(of)
                    if of == bytes || of.len <= 1024 && arena.bytes(of) == arena.bytes(bytes))
            }
            _ => false,
        }
    }
}
