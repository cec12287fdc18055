//! Where this decoder and CPython differ, by kind, and why. Anything else that differs is a fault, and a
//! kind that no longer occurs has no place here: the test fails in both cases.
//!
//! Each kind is recognised by what this decoder says, error and opcode, and by what the unpickler in
//! Python finds at that very offset (the labels are told in `cpython.py`); never by the verdict alone.

use agentix_protocol::safepickle::{
    DecodeError, DecodeErrorKind, LimitKind, Malformed, Opcode, TextRule, Unsupported,
};

use super::oracle::Said;

/// What has to be there for a kind to occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// The names of classes.
    Globals,
    /// Numpy on CPython's side.
    Numpy,
}

/// A kind of difference.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// What CPython does; what this decoder does; why.
    pub(crate) why: &'static str,
    pub(crate) needs: Needs,
    recognise: fn(&Case<'_>) -> bool,
}

/// A pickle on which the two do not agree.
pub(crate) struct Case<'a> {
    /// Why this decoder refused it, or `None`.
    pub(crate) ours: Option<&'a DecodeError>,
    pub(crate) theirs: &'a Said,
}

impl<'a> Case<'a> {
    /// If this decoder alone refused it: why, at which opcode, and what no pickler writes there.
    fn refused(&self) -> Option<(&'a DecodeErrorKind, Opcode, &'a str)> {
        let error = self.ours.filter(|_| self.theirs.accepted())?;
        let label = self.theirs.label_at(error.offset()).unwrap_or("");
        Some((error.kind(), error.opcode()?, label))
    }

    /// If CPython alone refused it: the class of its exception.
    fn accepted(&self) -> Option<&'a str> {
        match self.ours {
            None => self.theirs.error.as_deref(),
            Some(_) => None,
        }
    }

    /// Whether something that no pickler writes occurs anywhere.
    fn has(&self, label: &str) -> bool {
        self.theirs.labels.iter().any(|(_, found)| found == label)
    }
}

/// The kind that a difference is of.
pub(crate) fn find(case: &Case<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| (known.recognise)(case))
}

fn malformed(kind: &DecodeErrorKind) -> Option<Malformed> {
    match kind {
        DecodeErrorKind::Malformed(malformed) => Some(*malformed),
        _ => None,
    }
}

fn limit(kind: &DecodeErrorKind) -> Option<LimitKind> {
    match kind {
        DecodeErrorKind::Limit { limit, .. } => Some(*limit),
        _ => None,
    }
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "int-text",
        why: "CPython reads INT and LONG with blanks, underscores, plus signs, leading zeros and \
              prefixes of other bases, and any two characters that come to 0 or 1 as a bool. No \
              pickler writes them, and readers do not agree on what they mean.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                malformed(kind) == Some(Malformed::Text(TextRule::Integer))
                    && matches!(
                        (opcode, label),
                        (Opcode::INT, "int-text") | (Opcode::LONG, "long-text")
                    )
            })
        },
    },
    Known {
        id: "float-text",
        why: "CPython reads a float up to a NUL and takes no notice of what follows. No pickler writes \
              NULs there.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                malformed(kind) == Some(Malformed::Text(TextRule::Float))
                    && opcode == Opcode::FLOAT
                    && label == "float-text"
            })
        },
    },
    Known {
        id: "memo-text",
        why: "CPython reads the index of GET and PUT like an int of its own, blanks, signs and \
              underscores included. Picklers write decimal digits.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                malformed(kind) == Some(Malformed::Text(TextRule::MemoIndex))
                    && matches!(opcode, Opcode::GET | Opcode::PUT)
                    && label == "memo-text"
            })
        },
    },
    Known {
        id: "frame",
        why: "CPython only sees to it that a frame fits the input. Here an instruction has to end \
              within its frame, so that all readers see the same instructions.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, _, label)| {
                matches!(
                    malformed(kind),
                    Some(Malformed::FrameCrossed | Malformed::FrameInFrame)
                ) && label == "frame"
            })
        },
    },
    Known {
        id: "deep-key",
        why: "CPython hashes keys by recursion, and dies of one that is deep enough. Here a key \
              nests 500 times at most.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, _, label)| {
                limit(kind) == Some(LimitKind::KeyDepth) && label == "key:deep"
            })
        },
    },
    Known {
        id: "wide-key",
        why: "CPython hashes what a key shares as often as it is referred to, without a bound. Here \
              work is bounded by the size of the input.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, _, label)| {
                limit(kind) == Some(LimitKind::WorkSteps) && label == "key:wide"
            })
        },
    },
    Known {
        id: "memo-index",
        why: "CPython makes a table as long as the largest memo index, and runs out of memory or of
              numbers. Here \
              an index is no size.",
        needs: Needs::Nothing,
        recognise: |case| {
            matches!(case.accepted(), Some("MemoryError" | "OverflowError"))
                && case.has("memo-index")
        },
    },
    Known {
        id: "read-only-bytearray",
        why: "CPython turns a bytearray into a memoryview, which no value here stands for.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                *kind == DecodeErrorKind::Unsupported(Unsupported::ReadOnlyBytearray)
                    && opcode == Opcode::READONLY_BUFFER
                    && label == "buffer:bytearray"
            })
        },
    },
    Known {
        id: "other-container",
        why: "CPython sets items of lists and bytearrays, appends to whatever can be appended to, and \
              adds nothing to anything. Picklers do not: each container has its own opcodes.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                matches!(malformed(kind), Some(Malformed::Operand { .. }))
                    && match opcode {
                        Opcode::APPEND | Opcode::APPENDS => label.starts_with("append:"),
                        Opcode::SETITEM | Opcode::SETITEMS => label.starts_with("setitem:"),
                        Opcode::ADDITEMS => label.starts_with("additems:"),
                        _ => false,
                    }
            })
        },
    },
    Known {
        id: "state",
        why: "CPython gives a state to whatever takes it: nothing to anything, attributes to any object \
              that has them. Here a class takes the states that picklers write for it.",
        needs: Needs::Nothing,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                matches!(
                    malformed(kind),
                    Some(Malformed::NoState(_) | Malformed::Operand { .. })
                ) && opcode == Opcode::BUILD
                    && label.starts_with("build:")
            })
        },
    },
];
