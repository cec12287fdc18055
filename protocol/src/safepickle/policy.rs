//! Which globals a decoder admits.

use std::collections::BTreeSet;

use super::known::Known;

/// Which classes and functions a stream may name.
///
/// A policy belongs to one [`Decoder`](super::Decoder); nothing is process-wide. Naming anything
/// that is not admitted is [`DecodeErrorKind::RefusedGlobal`](super::DecodeErrorKind::RefusedGlobal),
/// wherever in the stream it stands and whether or not its result is used. Names are compared as they
/// stand in the stream, before any mapping of Python 2 names.
///
/// Whatever a policy admits, nothing is imported or called: a class that the decoder has no value
/// type for becomes a [`Record`](super::Record) of its name, arguments and state.
///
/// ```
/// use agentix_protocol::safepickle::{Decoder, Limits, Policy};
/// // What pickle writes for an object of the class `app.Point` with two attributes.
/// let stream = b"\x80\x04\x8c\x03app\x8c\x05Point\x93)\x81}(\x8c\x01xK\x01\x8c\x01yK\x02ub.";
/// let decoder = Decoder::new(Policy::agentix().allow("app", "Point"), Limits::default());
/// let document = decoder.decode(stream)?;
/// let point = document.root().record().unwrap();
/// assert_eq!(point.field("y").unwrap().as_i64(), Some(2));
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    mode: Mode,
    numpy: bool,
    allowed: BTreeSet<Name>,
}

/// A module and a qualified name.
type Name = (Box<[u8]>, Box<[u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// What is listed.
    Listed,
    /// Everything, for show.
    Inspect,
}

/// What a policy says of a name that it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// The decoder knows what it stands for.
    Known(Known),
    /// It is a name and nothing more.
    Name,
}

impl Policy {
    /// The policy of the Agentix protocol: the value types of Python's standard library that
    /// [`Kind`](super::Kind) lists, numpy's arrays and dtypes as protocols 3 and 4 write them, the
    /// exceptions of the builtins, and the result records of the framework.
    pub fn agentix() -> Self {
        Self {
            mode: Mode::Listed,
            numpy: false,
            allowed: BTreeSet::new(),
        }
    }

    /// Every name, for tools that show what a stream holds. What the decoder knows becomes a value of
    /// its type where its arguments make sense; anything else becomes a
    /// [`Record`](super::Record), persistent ids, extension codes and out-of-band buffers too.
    ///
    /// That is safe, since nothing is ever carried out, but what it returns is what a stranger
    /// chose to write: use it to look, not to work.
    pub fn inspect() -> Self {
        Self {
            mode: Mode::Inspect,
            numpy: true,
            allowed: BTreeSet::new(),
        }
    }

    /// Admits one more class or function, by its exact module and qualified name. Objects of it become
    /// a [`Record`](super::Record).
    #[must_use]
    pub fn allow(mut self, module: &str, qualname: &str) -> Self {
        self.allowed
            .insert((module.as_bytes().into(), qualname.as_bytes().into()));
        self
    }

    /// Admits what numpy needs beyond the protocol's list: scalars, arrays as protocol 5 writes them
    /// (`_frombuffer`), and `_codecs.encode` for bytes in Latin-1, which protocols 0 to 2 use.
    ///
    /// It is not the default, since the protocol's own list has none of these; use it when senders pickle
    /// with protocol 5, as CPython 3.14 does by default.
    #[must_use]
    pub fn with_numpy(mut self) -> Self {
        self.numpy = true;
        self
    }

    /// Whether a stream may name this class or function.
    pub fn admits(&self, module: &str, qualname: &str) -> bool {
        self.look_up(module.as_bytes(), qualname.as_bytes())
            .is_some()
    }

    /// What `module` and `qualname`, exactly as they stand in the stream, stand for.
    pub(super) fn look_up(&self, module: &[u8], qualname: &[u8]) -> Option<Admitted> {
        if let Some(known) = Known::find(module, qualname)
            && (self.numpy || !known.is_extra())
        {
            return Some(Admitted::Known(known));
        }
        let listed = || {
            // A name is seldom listed, so the copies are seldom made.
            !self.allowed.is_empty() && self.allowed.contains(&(module.into(), qualname.into()))
        };
        (self.mode == Mode::Inspect || listed()).then_some(Admitted::Name)
    }

    pub(super) fn is_inspect(&self) -> bool {
        self.mode == Mode::Inspect
    }
}

impl Default for Policy {
    /// [`Policy::agentix`].
    fn default() -> Self {
        Self::agentix()
    }
}
