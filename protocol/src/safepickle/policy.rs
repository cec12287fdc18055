//! Which globals a decoder admits.

/// Which classes and functions a stream may name.
///
/// A policy belongs to one [`Decoder`](super::Decoder); nothing is process-wide. Naming anything
/// that is not admitted is [`DecodeErrorKind::RefusedGlobal`](super::DecodeErrorKind::RefusedGlobal),
/// wherever in the stream it stands and whether or not its result is used.
///
/// No policy admits a global yet: plain values need none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    _private: (),
}

impl Policy {
    /// The policy of the Agentix protocol.
    ///
    /// It admits plain values: `None`, bool, int, float, str, bytes, bytearray, list, tuple, dict,
    /// set and frozenset. To pass anything else, send it as one of these (a `datetime` as its
    /// `isoformat()`, an object as its `__dict__`).
    pub fn agentix() -> Self {
        Self { _private: () }
    }

    /// Whether `module` and `qualname`, exactly as they stand in the stream, are admitted.
    pub(super) fn admits(&self, module: &[u8], qualname: &[u8]) -> bool {
        let _ = (module, qualname);
        false
    }
}

impl Default for Policy {
    /// [`Policy::agentix`].
    fn default() -> Self {
        Self::agentix()
    }
}
