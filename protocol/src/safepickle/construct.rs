//! Calls of classes and functions, and states: what REDUCE, NEWOBJ, OBJ, INST and BUILD ask for.
//! Nothing is called. Each known class has the forms that picklers write; any other class that a
//! policy admits becomes a record.

use super::arena::{Arena, GlobalData, Node, NodeId, Span};
use super::error::{DecodeErrorKind, Malformed};
use super::known::Known;
use super::machine::{Machine, Step};
use super::object::{MapClass, Object};
use super::types::record::Origin;
use super::value::Kind;

/// How an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// `callee(*args)`.
    Call,
    /// `cls.__new__(cls, *args)`.
    New,
}

/// The arguments of a call: a tuple of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    /// The tuple.
    pub(super) tuple: NodeId,
    span: Span,
}

impl Args {
    pub(super) fn len(self) -> usize {
        self.span.len as usize
    }

    pub(super) fn ids<'x>(self, arena: &'x Arena<'_>) -> &'x [NodeId] {
        arena.span(self.span)
    }

    /// The arguments if there are `N`.
    pub(super) fn exactly<const N: usize>(self, arena: &Arena<'_>) -> Step<[NodeId; N]> {
        self.ids(arena)
            .try_into()
            .map_err(|_| Malformed::Arguments.into())
    }
}

impl Machine<'_, '_> {
    /// The arguments that a tuple holds.
    pub(super) fn args(&self, tuple: NodeId) -> Step<Args> {
        match self.arena.node(tuple) {
            Node::Tuple(span) => Ok(Args { tuple, span }),
            _ => Err(Malformed::Operand {
                expected: "a tuple of arguments",
                found: self.arena.kind(tuple),
            }
            .into()),
        }
    }

    /// Makes the object that a call of `callee` stands for.
    pub(super) fn construct(
        &mut self,
        how: How,
        callee: NodeId,
        tuple: NodeId,
        kwargs: Option<NodeId>,
    ) -> Step<NodeId> {
        let args = self.args(tuple)?;
        let kwargs = kwargs.filter(|id| !self.arena.children(*id).is_empty());
        let global = match self.arena.node(callee) {
            Node::Global(index) => Some(self.arena.globals[index as usize]),
            _ if self.policy.is_inspect() => None,
            _ => {
                return Err(Malformed::Operand {
                    expected: "a class or function",
                    found: self.arena.kind(callee),
                }
                .into());
            }
        };
        let made = match global {
            Some(GlobalData {
                known: Some(known), ..
            }) => self.construct_known(known, how, callee, args, kwargs),
            _ => return self.construct_record(how, callee, tuple, kwargs),
        };
        match made {
            // Inspection shows what it cannot make sense of.
            Err(error) if self.policy.is_inspect() && !is_limit(&error) => {
                self.construct_record(how, callee, tuple, kwargs)
            }
            made => made,
        }
    }

    fn construct_record(
        &mut self,
        how: How,
        callee: NodeId,
        tuple: NodeId,
        kwargs: Option<NodeId>,
    ) -> Step<NodeId> {
        let origin = match how {
            How::Call => Origin::Call,
            How::New => Origin::New,
        };
        let kwargs = match kwargs {
            Some(kwargs) => {
                self.charge_copies(self.arena.children(kwargs).len())?;
                Some(self.copied_dict(kwargs)?)
            }
            None => None,
        };
        self.record(origin, Some(callee), tuple, kwargs)
    }

    fn construct_known(
        &mut self,
        known: Known,
        how: How,
        callee: NodeId,
        args: Args,
        kwargs: Option<NodeId>,
    ) -> Step<NodeId> {
        if kwargs.is_some() {
            return Err(Malformed::Arguments.into());
        }
        match known {
            Known::Set
            | Known::Frozenset
            | Known::Bytearray
            | Known::Bytes
            | Known::List
            | Known::Dict
            | Known::Range
            | Known::Slice
            | Known::OrderedDict
            | Known::Counter
            | Known::DefaultDict
            | Known::Deque => self.collection(known, how, args),
            Known::Complex | Known::Decimal | Known::Fraction => self.number(known, how, args),
            Known::Date | Known::Time | Known::Datetime | Known::Timedelta | Known::Timezone => {
                self.time_value(known, how, args)
            }
            Known::Uuid => self.new_uuid(how, callee, args),
            Known::Path(_) | Known::PurePath => self.path(known, how, args),
            Known::Exception(class) if how == How::Call => self.exception(class, args),
            Known::Dtype if how == How::Call => self.dtype(args),
            Known::NumpyReconstruct => self.ndarray_shell(args),
            Known::NumpyFromBuffer => self.array_from_buffer(args),
            Known::NumpyScalar => self.numpy_scalar(args),
            Known::CodecsEncode => self.encode_latin1(args),
            Known::Framework(_) if how == How::New && args.len() == 0 => {
                let id = self.record(Origin::New, Some(callee), args.tuple, None)?;
                self.expect_build(id);
                Ok(id)
            }
            Known::NewObj => {
                let ids = args.ids(&self.arena);
                let Some((class, rest)) = ids.split_first() else {
                    return Err(Malformed::Arguments.into());
                };
                let (class, rest) = (*class, rest.to_vec());
                self.charge_copies(rest.len())?;
                self.class(class)?;
                let span = self.new_span(&rest)?;
                let tuple = self.make(Node::Tuple(span))?;
                self.construct(How::New, class, tuple, None)
            }
            Known::NewObjEx => {
                let [class, tuple, kwargs] = args.exactly(&self.arena)?;
                self.new_object(class, tuple, Some(kwargs))
            }
            Known::Reconstructor => self.reconstruct(args),
            _ => Err(Malformed::Arguments.into()),
        }
    }

    /// `copyreg._reconstructor(cls, base, state)`: how protocols 0 and 1 write objects.
    fn reconstruct(&mut self, args: Args) -> Step<NodeId> {
        let [class, base, state] = args.exactly(&self.arena)?;
        self.class(class)?;
        self.class(base)?;
        // Only `object` takes no state; a value type never has it as its base.
        let by_name_only = |id| {
            self.arena
                .global(id)
                .is_some_and(|global| global.known.is_none())
        };
        if by_name_only(class) && by_name_only(base) && self.arena.kind(state) == Kind::None {
            let empty = self.empty_tuple()?;
            return self.construct(How::New, class, empty, None);
        }
        if by_name_only(class) {
            let span = self.new_span(&[state])?;
            let tuple = self.make(Node::Tuple(span))?;
            return self.construct(How::New, class, tuple, None);
        }
        Err(Malformed::Arguments.into())
    }

    /// NEWOBJ and NEWOBJ_EX.
    pub(super) fn new_object(
        &mut self,
        class: NodeId,
        tuple: NodeId,
        kwargs: Option<NodeId>,
    ) -> Step<NodeId> {
        self.class(class)?;
        if let Some(kwargs) = kwargs
            && self.arena.kind(kwargs) != Kind::Dict
        {
            return Err(Malformed::Operand {
                expected: Kind::Dict.name(),
                found: self.arena.kind(kwargs),
            }
            .into());
        }
        self.construct(How::New, class, tuple, kwargs)
    }

    /// Makes sure that an operand can be a class.
    fn class(&self, id: NodeId) -> Step<()> {
        let fits = match self.arena.global(id) {
            Some(global) => !global.known.is_some_and(Known::is_function),
            None => self.policy.is_inspect(),
        };
        if fits {
            Ok(())
        } else {
            Err(Malformed::Operand {
                expected: "a class",
                found: self.arena.kind(id),
            }
            .into())
        }
    }

    /// INST and OBJ: a call, or without arguments an object that was not initialised.
    pub(super) fn instance(&mut self, class: NodeId, arguments: &[NodeId]) -> Step<NodeId> {
        self.class(class)?;
        let how = if arguments.is_empty() {
            How::New
        } else {
            How::Call
        };
        let span = self.new_span(arguments)?;
        let tuple = self.make(Node::Tuple(span))?;
        self.construct(how, class, tuple, None)
    }

    /// Gives an object its state. The result takes the place of the object on the stack.
    pub(super) fn build(&mut self, id: NodeId, state: NodeId) -> Step<NodeId> {
        match self.build_known(id, state) {
            Ok(()) => Ok(id),
            Err(error) if self.policy.is_inspect() && !is_limit(&error) => {
                let empty = self.empty_tuple()?;
                let record = self.record(Origin::State, Some(id), empty, None)?;
                self.build_record(record, state)?;
                Ok(record)
            }
            Err(error) => Err(error),
        }
    }

    fn build_known(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        match self.arena.object(id) {
            Some(Object::Record(_)) if self.is_uuid_without_state(id) => {
                match self.build_uuid(id, state) {
                    Err(error) if self.policy.is_inspect() && !is_limit(&error) => {
                        self.build_record(id, state)
                    }
                    built => built,
                }
            }
            Some(Object::Record(_)) => self.build_record(id, state),
            Some(Object::Exception(_)) => self.build_exception(id, state),
            Some(Object::Dtype(_)) => self.build_dtype(id, state),
            Some(Object::Ndarray(_)) => self.build_ndarray(id, state),
            Some(Object::Map { attrs, class, .. }) if *class != MapClass::DefaultDict => {
                let updated = self.update_attrs(*attrs, state)?;
                if let Some(Object::Map { attrs, .. }) = self.arena.object_mut(id) {
                    *attrs = Some(updated);
                }
                Ok(())
            }
            _ => Err(Malformed::NoState(self.arena.kind(id)).into()),
        }
    }

    /// Adds what a dict with names for keys says to a dict of attributes.
    pub(super) fn update_attrs(&mut self, attrs: Option<NodeId>, state: NodeId) -> Step<NodeId> {
        let Node::Dict(_) = self.arena.node(state) else {
            return Err(Malformed::Operand {
                expected: "a dict of attributes",
                found: self.arena.kind(state),
            }
            .into());
        };
        let mut keys = self.arena.children(state).iter().step_by(2);
        if let Some(key) = keys.find(|key| self.arena.kind(**key) != Kind::Str) {
            return Err(Malformed::Operand {
                expected: "the name of an attribute",
                found: self.arena.kind(*key),
            }
            .into());
        }
        let attrs = match attrs {
            Some(attrs) => attrs,
            None => self.make(Node::Dict(Span::default()))?,
        };
        self.update(attrs, state)?;
        Ok(attrs)
    }

    /// Notes that an object is nothing yet without its state.
    pub(super) fn expect_build(&mut self, id: NodeId) {
        if !self.policy.is_inspect() {
            self.unbuilt.insert(id);
        }
    }

    /// Notes that an object has its state.
    pub(super) fn built(&mut self, id: NodeId) {
        self.unbuilt.remove(&id);
    }
}

fn is_limit(error: &DecodeErrorKind) -> bool {
    matches!(error, DecodeErrorKind::Limit { .. })
}
