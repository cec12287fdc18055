//! One thing that is tested.

use std::future::Future;
use std::pin::Pin;

use crate::context::{RuntimeCase, ScriptedCase, WorkerCase};
use crate::verdict::Verdict;

/// Which side of the protocol a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Runtime,
    Worker,
}

/// What a case needs of its testee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A runtime whose worker offers the conformance functions.
    Runtime,
    /// A runtime that can be given a worker: the suite plays it.
    Scripted,
    /// A worker that offers the conformance functions.
    Worker,
}

/// A running case.
pub(crate) type Run = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// How a case is run, by kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Runtime(fn(RuntimeCase) -> Run),
    /// As `Runtime`, in a process that no other case has used or will use, where the suite starts it.
    Isolated(fn(RuntimeCase) -> Run),
    Scripted(fn(ScriptedCase) -> Run),
    Worker(fn(WorkerCase) -> Run),
}

/// A case: what it is called, what it is about, and how it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Stable: `role/subject/what`.
    pub(crate) id: &'static str,
    /// One line.
    pub(crate) title: &'static str,
    /// The requirements that it tests, the chief one first.
    pub(crate) requirements: &'static [&'static str],
    pub(crate) body: Body,
}

impl Case {
    pub(crate) fn kind(&self) -> Kind {
        match self.body {
            Body::Runtime(_) | Body::Isolated(_) => Kind::Runtime,
            Body::Scripted(_) => Kind::Scripted,
            Body::Worker(_) => Kind::Worker,
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.kind().role()
    }
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Worker => "worker",
        }
    }
}

impl Kind {
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Runtime | Self::Scripted => Role::Runtime,
            Self::Worker => Role::Worker,
        }
    }

    pub(crate) fn needs(self) -> &'static str {
        match self {
            Self::Runtime | Self::Worker => "the conformance functions",
            Self::Scripted => "{worker} in the command",
        }
    }
}

/// Writes a table of cases: `id, title, requirements, kind(function)`.
macro_rules! cases {
    ($($kind:ident $id:literal, $title:literal, [$($requirement:literal),+ $(,)?], $run:path;)+) => {
        /// The cases of this module.
        pub(crate) const CASES: &[$crate::case::Case] = &[$(
            $crate::case::Case {
                id: $id,
                title: $title,
                requirements: &[$($requirement),+],
                body: $crate::case::Body::$kind(|case| Box::pin($run(case))),
            },
        )+];
    };
}
pub(crate) use cases;

/// Does `pattern`, in which `*` stands for any text, match the whole of `text`?
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(prefix) else {
        return false;
    };
    let mut text = text;
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*/cancel/*", "runtime/cancel/async", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
