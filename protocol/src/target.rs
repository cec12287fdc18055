//! Call targets: which function a call runs.

use std::fmt;

/// Longest target, in bytes of UTF-8.
pub const MAX_TARGET_BYTES: usize = 1024;

/// A function to call, written `module::qualname` (AGX-TGT).
///
/// `module` is a dotted path of identifiers as Python imports it; `qualname` is a dotted path of
/// identifiers inside that module.
///
/// # Example
///
/// ```
/// use agentix_protocol::target::{CallTarget, InvalidTarget};
///
/// let target = CallTarget::validate("pkg.sub::Tools.run")?;
/// assert_eq!(target.module(), "pkg.sub");
/// assert_eq!(target.qualname(), "Tools.run");
/// assert!(matches!(CallTarget::validate("pkg.sub.run"), Err(InvalidTarget::NoSeparator { .. })));
/// # Ok::<(), InvalidTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallTarget {
    text: Box<str>,
    separator: usize,
}

/// Which half of a target an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The part before `::`.
    Module,
    /// The part after `::`.
    Qualname,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module => "module",
            Self::Qualname => "qualname",
        })
    }
}

/// Which rule a target string breaks, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// There is no `::`.
    #[error(
        "target {target:?} has no '::'; write module::qualname, for example app::run for the function run of app.py"
    )]
    NoSeparator {
        /// The string.
        target: String,
    },
    /// There is more than one `::`.
    #[error(
        "target {target:?} has more than one '::'; separate the parts inside the module and inside the qualname with '.'"
    )]
    ExtraSeparator {
        /// The string.
        target: String,
    },
    /// A part is empty: nothing before, after or between dots.
    #[error(
        "the {half} of target {target:?} has an empty part at byte {offset}; remove the stray '.' or name the part"
    )]
    EmptyPart {
        /// The string.
        target: String,
        /// Which half.
        half: Half,
        /// Where, in bytes.
        offset: usize,
    },
    /// The target names a lambda: it cannot be imported by name.
    #[error(
        "target {target:?} names a lambda, which cannot be imported by name; give it a def at module level"
    )]
    Lambda {
        /// The string.
        target: String,
    },
    /// The target names a function inside a function: it cannot be imported by name.
    #[error(
        "target {target:?} names a local function, which cannot be imported by name; move its def to module level"
    )]
    Local {
        /// The string.
        target: String,
    },
    /// A part is not an identifier.
    #[error(
        "the {half} of target {target:?} has {found:?} at byte {offset}, which an identifier cannot hold there"
    )]
    NotIdentifier {
        /// The string.
        target: String,
        /// Which half.
        half: Half,
        /// The character.
        found: char,
        /// Where, in bytes.
        offset: usize,
    },
    /// The string is longer than [`MAX_TARGET_BYTES`].
    #[error("a target has at most {MAX_TARGET_BYTES} bytes, this one has {len}")]
    TooLong {
        /// Length in bytes.
        len: usize,
    },
}

impl CallTarget {
    /// Checks a string that comes from outside.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] says which rule it breaks, where, and what to do.
    pub fn validate(text: &str) -> Result<Self, InvalidTarget> {
        if text.len() > MAX_TARGET_BYTES {
            return Err(InvalidTarget::TooLong { len: text.len() });
        }
        let target = || text.to_owned();
        let Some(separator) = text.find("::") else {
            return Err(InvalidTarget::NoSeparator { target: target() });
        };
        let (module, qualname) = (&text[..separator], &text[separator + 2..]);
        if qualname.contains("::") {
            return Err(InvalidTarget::ExtraSeparator { target: target() });
        }
        if qualname.contains("<lambda>") {
            return Err(InvalidTarget::Lambda { target: target() });
        }
        if qualname.contains("<locals>") {
            return Err(InvalidTarget::Local { target: target() });
        }
        check_half(text, Half::Module, module, 0)?;
        check_half(text, Half::Qualname, qualname, separator + 2)?;
        Ok(Self {
            text: text.into(),
            separator,
        })
    }

    /// Builds a target from a Rust module path (`crate_name::module`) and a function name.
    ///
    /// The `::` inside the module path become dots: `my_crate::tools` and `run` give
    /// `my_crate.tools::run`.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] when a part is not an identifier that a target can hold, as with the raw
    /// identifier `r#type`.
    pub fn from_rust_path(module_path: &str, function: &str) -> Result<Self, InvalidTarget> {
        Self::validate(&format!("{}::{function}", module_path.replace("::", ".")))
    }

    /// The whole target as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before `::`.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.text[..self.separator]
    }

    /// The part after `::`.
    #[must_use]
    pub fn qualname(&self) -> &str {
        &self.text[self.separator + 2..]
    }
}

impl fmt::Display for CallTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for CallTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        Self::validate(text)
    }
}

fn check_half(text: &str, half: Half, part: &str, start: usize) -> Result<(), InvalidTarget> {
    let mut at_start = true;
    for (i, c) in part.char_indices() {
        let offset = start + i;
        if c == '.' {
            if at_start {
                return Err(InvalidTarget::EmptyPart {
                    target: text.to_owned(),
                    half,
                    offset,
                });
            }
            at_start = true;
            continue;
        }
        let fits = if at_start {
            c == '_' || unicode_ident::is_xid_start(c)
        } else {
            unicode_ident::is_xid_continue(c)
        };
        if !fits {
            return Err(InvalidTarget::NotIdentifier {
                target: text.to_owned(),
                half,
                found: c,
                offset,
            });
        }
        at_start = false;
    }
    if at_start {
        let offset = start + part.len();
        return Err(InvalidTarget::EmptyPart {
            target: text.to_owned(),
            half,
            offset,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_paths_become_dotted_modules() {
        let target = CallTarget::from_rust_path("my_crate::tools", "run").unwrap();
        assert_eq!(target.as_str(), "my_crate.tools::run");
        assert_eq!(
            (target.module(), target.qualname()),
            ("my_crate.tools", "run")
        );
    }

    #[test]
    fn each_rule_has_its_error() {
        use InvalidTarget as E;
        let error = |text: &str| CallTarget::validate(text).unwrap_err();
        assert!(matches!(error("app"), E::NoSeparator { .. }));
        assert!(matches!(error("app:add"), E::NoSeparator { .. }));
        assert!(matches!(error("app::a::b"), E::ExtraSeparator { .. }));
        assert!(matches!(
            error("::run"),
            E::EmptyPart {
                half: Half::Module,
                offset: 0,
                ..
            }
        ));
        assert!(matches!(
            error("app::"),
            E::EmptyPart {
                half: Half::Qualname,
                offset: 5,
                ..
            }
        ));
        assert!(matches!(
            error("app::a..b"),
            E::EmptyPart {
                half: Half::Qualname,
                offset: 7,
                ..
            }
        ));
        assert!(matches!(
            error("pkg.::f"),
            E::EmptyPart {
                half: Half::Module,
                offset: 4,
                ..
            }
        ));
        assert!(matches!(error("app::<lambda>"), E::Lambda { .. }));
        assert!(matches!(error("app::f.<locals>.g"), E::Local { .. }));
        assert!(matches!(
            error("a b::c"),
            E::NotIdentifier {
                half: Half::Module,
                found: ' ',
                offset: 1,
                ..
            }
        ));
        assert!(matches!(
            error("app::5"),
            E::NotIdentifier {
                half: Half::Qualname,
                found: '5',
                offset: 5,
                ..
            }
        ));
        assert!(matches!(
            error(&format!("a::{}", "b".repeat(1022))),
            E::TooLong { len: 1025 }
        ));
    }
}
