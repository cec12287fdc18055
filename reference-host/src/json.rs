//! JSON for tools: arguments that a person types, results that a person or a script reads.
//!
//! Arguments become Python values as JSON suggests: object to `dict` with the keys in their order,
//! array to `list`, and so on. Integers have at most 64 bits.
//!
//! Results become JSON in the manner of Python's `json.dumps`, with a blank after `:` and `,` and
//! keys in the order of the dict. Characters are written as they are. What JSON lacks is written as
//! an object with one key that begins with `$`:
//!
//! | Python | JSON |
//! | --- | --- |
//! | `None`, `bool`, `str`, `list` | `null`, `true`, `"…"`, `[…]` |
//! | `int` of any size | digits |
//! | finite `float` | a number with a point or an exponent |
//! | `nan`, `inf`, `-inf` | `{"$float": "nan"}` |
//! | `tuple` | an array, as in Python |
//! | `dict` with `str` keys | an object |
//! | other `dict` | `{"$dict": [[key, value], …]}` |
//! | `bytes`, `bytearray` | `{"$bytes": "base64"}`, `{"$bytearray": "base64"}` |
//! | `set`, `frozenset` | `{"$set": […]}`, `{"$frozenset": […]}` |
//!
//! A dict whose only key is a `str` that begins with `$` is written as `$dict` too, so that it is
//! not taken for one of these. A surrogate code point in a `str` is written as an escape like `\ud800`.

mod arguments;
mod output;

pub(crate) use arguments::Arguments;
pub use arguments::{ParseError, parse};
pub use output::{JsonError, MAX_DEPTH, to_line, to_string};
