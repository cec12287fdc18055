//! Where this decoder and CPython differ, by kind, and why. Anything else that differs is a fault, and a
//! kind that no longer occurs has no place here: the test fails in both cases.
//!
//! Each kind is recognised by what this decoder says, error and opcode, and by what the unpickler in
//! Python finds at that very offset (the labels are told in `cpython.py`); never by the verdict alone.

use agentix_protocol::safepickle::{
    DecodeError, DecodeErrorKind, Kind, LimitKind, Malformed, Opcode, TextRule, Unsupported,
};

use super::oracle::Said;

/// A kind of difference.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// What CPython does; what this decoder does; why.
    pub(crate) why: &'static str,
    /// Whether it takes numpy on CPython's side.
    pub(crate) numpy: bool,
    recognise: fn(&Case<'_>) -> bool,
}

/// A pickle on which the two do not agree.
pub(crate) struct Case<'a> {
    /// Why this decoder refused it, or `None`.
    pub(crate) ours: Option<&'a DecodeError>,
    /// What CPython said; `None` if its process ended over it.
    pub(crate) theirs: Option<&'a Said>,
    /// Whether both accepted it, and the values would be equal if classes went by the names in the stream.
    pub(crate) aliases: bool,
}

impl<'a> Case<'a> {
    /// If this decoder alone refused it: why, at which opcode, and what no pickler writes there.
    fn refused(&self) -> Option<(&'a DecodeErrorKind, Opcode, &'a str)> {
        let (error, theirs) = (self.ours?, self.theirs?);
        if !theirs.accepted() {
            return None;
        }
        let label = theirs.label_at(error.offset()).unwrap_or("");
        Some((error.kind(), error.opcode()?, label))
    }

    /// If CPython alone refused it: the class of its exception.
    fn accepted(&self) -> Option<&'a str> {
        match self.ours {
            None => self.theirs?.error.as_deref(),
            Some(_) => None,
        }
    }

    /// What no pickler writes where the unpickler in Python stopped.
    fn stopped(&self) -> Option<&'a str> {
        let (_, label, _) = self.theirs?.stopped.as_ref()?;
        Some(label)
    }

    /// Whether something that no pickler writes occurs anywhere.
    fn has(&self, label: &str) -> bool {
        let mut labels = self.theirs.into_iter().flat_map(|said| &said.labels);
        labels.any(|(_, found)| found == label)
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

/// The id of the kind that is about names alone.
pub(crate) const ALIAS: &str = "alias";

pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "int-text",
        why: "CPython reads INT and LONG with blanks, underscores, plus signs, leading zeros and \
              prefixes of other bases, and any two characters that come to 0 or 1 as a bool. No \
              pickler writes them, and readers do not agree on what they mean.",
        numpy: false,
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
        numpy: false,
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
        numpy: false,
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
        numpy: false,
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
        numpy: false,
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
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, _, label)| {
                limit(kind) == Some(LimitKind::WorkSteps) && label == "key:wide"
            })
        },
    },
    Known {
        id: "endless",
        why: "CPython does what a stream asks for, however long it takes: hashes 2^60 tuples, takes as \
              many items from a range. Here work is bounded, and ranges are not run through.",
        numpy: false,
        recognise: |case| {
            case.theirs.is_none()
                && case.ours.is_some_and(|error| {
                    limit(error.kind()) == Some(LimitKind::WorkSteps)
                        || (malformed(error.kind()) == Some(Malformed::Arguments)
                            && error.opcode() == Some(Opcode::REDUCE))
                })
        },
    },
    Known {
        id: "memo-index",
        why: "CPython makes a table as long as the largest memo index, and runs out of memory or of
              numbers. Here \
              an index is no size.",
        numpy: false,
        recognise: |case| {
            matches!(case.accepted(), Some("MemoryError" | "OverflowError"))
                && case.has("memo-index")
        },
    },
    Known {
        id: "read-only-bytearray",
        why: "CPython turns a bytearray into a memoryview, which no value here stands for.",
        numpy: false,
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
        numpy: false,
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
        numpy: false,
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
    Known {
        id: "call",
        why: "CPython calls a class with whatever arguments it takes. Here a class has the forms in \
              which picklers call it; the others are accidents or attacks, and some cost much.",
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                let refused = match malformed(kind) {
                    Some(Malformed::Arguments) => label.starts_with("call:"),
                    // What a helper calls, or with what.
                    Some(Malformed::Operand { .. }) => label.starts_with("call:copyreg."),
                    _ => false,
                };
                refused && opcode == Opcode::REDUCE
            })
        },
    },
    Known {
        id: "new",
        why: "CPython makes an object of any class without initialising it. Picklers do that with UUIDs \
              and the result records, without arguments.",
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                match (malformed(kind), opcode) {
                    (Some(Malformed::Arguments), Opcode::NEWOBJ) => label.starts_with("newobj:"),
                    // CPython also takes a dict of another class there.
                    (
                        Some(
                            Malformed::Arguments
                            | Malformed::Operand {
                                expected: "dict", ..
                            },
                        ),
                        Opcode::NEWOBJ_EX,
                    ) => label.starts_with("newobj-ex:"),
                    _ => false,
                }
            })
        },
    },
    Known {
        id: "instance",
        why: "INST and OBJ make instances of the classic classes of Python 2, of which none is admitted. \
              CPython applies them to any class; here they have to come to what a pickler writes.",
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                let how = match opcode {
                    Opcode::INST => "inst:",
                    Opcode::OBJ => "obj:",
                    _ => return false,
                };
                label
                    .strip_prefix(how)
                    .is_some_and(|name| match malformed(kind) {
                        Some(Malformed::Arguments) => true,
                        // A helper is no class.
                        Some(Malformed::Operand { .. }) => name.starts_with("copyreg."),
                        _ => false,
                    })
            })
        },
    },
    Known {
        id: "build-class",
        why: "CPython gives a state to a class or function, and so changes it for the whole process.",
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                malformed(kind) == Some(Malformed::NoState(Kind::Global))
                    && opcode == Opcode::BUILD
                    && label == "build-class"
            })
        },
    },
    Known {
        id: "unbuilt",
        why: "CPython returns objects that lack what every method of theirs relies on. Here an object \
              that waits for its state when the stream ends is no value.",
        numpy: false,
        recognise: |case| {
            case.refused().is_some_and(|(kind, opcode, label)| {
                malformed(kind) == Some(Malformed::Unbuilt)
                    && opcode == Opcode::STOP
                    && label == "unbuilt"
            })
        },
    },
    Known {
        id: ALIAS,
        why: "A class as a value: CPython knows it by the name that it was defined under, this decoder by \
              the one in the stream.",
        numpy: false,
        recognise: |case| case.aliases,
    },
    Known {
        id: "windows-path",
        why: "CPython makes a WindowsPath on Windows only. Here paths are data, and no system is asked.",
        numpy: false,
        recognise: |case| {
            matches!(
                case.accepted(),
                Some("NotImplementedError" | "UnsupportedOperation")
            ) && case.stopped() == Some("windows-path")
        },
    },
];

/// A name in the stream, and the name under which CPython knows the same class or function.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("builtins.IOError", "builtins.OSError"),
    ("builtins.EnvironmentError", "builtins.OSError"),
    ("pathlib._local.PurePath", "pathlib.PurePath"),
    ("pathlib._local.PurePosixPath", "pathlib.PurePosixPath"),
    ("pathlib._local.PureWindowsPath", "pathlib.PureWindowsPath"),
    ("pathlib._local.Path", "pathlib.Path"),
    ("pathlib._local.PosixPath", "pathlib.PosixPath"),
    ("pathlib._local.WindowsPath", "pathlib.WindowsPath"),
    (
        "numpy.core.multiarray._reconstruct",
        "numpy._core.multiarray._reconstruct",
    ),
];
