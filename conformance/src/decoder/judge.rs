//! What came of a vector, held against what it expects.

use super::exchange::{DecodedValue, Likeness};
use super::supervise::Ending;
use super::vectors::Expect;

/// The judgement of one vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// `accept` gave the exact value, `reject` an error.
    Right,
    Wrong(Told),
    OverLimit(Told),
    Crashed(Told),
    /// `any` ended within the bounds, with an error.
    AnyError,
    /// `any` ended within the bounds, with the value of the file.
    AnyEqual,
    /// `any` ended within the bounds, with another value than the file has, which is allowed and told.
    AnyOther(Told),
}

/// For people: what was expected, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) expected: String,
    pub(super) found: String,
}

impl Judgement {
    /// As reports spell it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong(_) => "wrong",
            Self::OverLimit(_) => "over_limit",
            Self::Crashed(_) => "crashed",
            Self::AnyError => "any_error",
            Self::AnyEqual => "any_equal",
            Self::AnyOther(_) => "any_other",
        }
    }

    /// Does the decoder fail for it?
    pub(super) fn fails(&self) -> bool {
        matches!(self, Self::Wrong(_) | Self::OverLimit(_) | Self::Crashed(_))
    }

    pub(super) fn told(&self) -> Option<&Told> {
        match self {
            Self::Wrong(told) | Self::OverLimit(told) | Self::Crashed(told) => Some(told),
            Self::AnyOther(told) => Some(told),
            Self::Right | Self::AnyError | Self::AnyEqual => None,
        }
    }
}

/// Judges one vector.
pub(super) fn judge(expect: Expect, ending: &Ending) -> Judgement {
    let due = match expect {
        Expect::Accept => "the exact value",
        Expect::Reject => "an error",
        Expect::Any => "a value or an error, within the bounds",
    };
    let told = |found: String| Told {
        expected: due.to_owned(),
        found,
    };
    match (ending, expect) {
        (Ending::Over { bound, phase }, _) => Judgement::OverLimit(told(format!(
            "more {} than allowed, {}",
            bound.name(),
            phase.name()
        ))),
        (Ending::Crashed { phase, how }, _) => Judgement::Crashed(told(format!(
            "the end of the process {}: {how}",
            phase.name()
        ))),
        (Ending::Refused(_), Expect::Reject) => Judgement::Right,
        (Ending::Refused(_), Expect::Any) => Judgement::AnyError,
        (Ending::Refused(refusal), Expect::Accept) => {
            Judgement::Wrong(told(format!("an error: {}", refusal.text)))
        }
        (Ending::Value(value), Expect::Reject) => {
            Judgement::Wrong(told(format!("the value {}", value.shown)))
        }
        (Ending::Value(value), Expect::Accept) => match different(value) {
            None => Judgement::Right,
            Some(told) => Judgement::Wrong(told),
        },
        (Ending::Value(value), Expect::Any) => match different(value) {
            None => Judgement::AnyEqual,
            Some(told) => Judgement::AnyOther(told),
        },
    }
}

fn different(value: &DecodedValue) -> Option<Told> {
    let (expected, found) = match &value.likeness {
        Likeness::Equal => return None,
        Likeness::Different {
            at,
            expected,
            found,
        } => (
            format!("{expected} at {at}"),
            format!("{found}\nin {}", value.shown),
        ),
        Likeness::Unknown => (
            "unknown: the file has no value".to_owned(),
            value.shown.clone(),
        ),
    };
    Some(Told { expected, found })
}
