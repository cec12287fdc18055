//! JSON for tools: arguments that a person types, results that a person or a script reads.
//!
//! Arguments become Python values as JSON suggests: object to `dict` with the keys in their order,
//! array to `list`, and so on. Integers have at most 64 bits.
//!
//! Results become JSON in the manner of Python's `json.dumps`, with a blank after `:` and `,` and
//! keys in the order of the dict. Characters are written as they are, except those that a terminal
//! would obey or not show. What JSON lacks is written as an object with one key that begins with `$`:
//!
//! | Python | JSON |
//! | --- | --- |
//! | `None`, `bool`, `str`, `list` | `null`, `true`, `"…"`, `[…]` |
//! | `int` | digits; beyond 14,285 bits, about 4,300 digits, `{"$int": "0x…"}` |
//! | finite `float` | a number with a point or an exponent |
//! | `nan`, `inf`, `-inf` | `{"$float": "nan"}` |
//! | `complex` | `{"$complex": [real, imaginary]}` |
//! | `tuple`, `deque` | an array, as `json.dumps` writes tuples |
//! | `dict`, `OrderedDict`, `Counter`, `defaultdict` with `str` keys | an object |
//! | the same with other keys | `{"$dict": [[key, value], …]}` |
//! | `bytes`, `bytearray` | `{"$bytes": "base64"}`, `{"$bytearray": "base64"}` |
//! | `set`, `frozenset` | `{"$set": […]}`, `{"$frozenset": […]}` |
//! | `range`, `slice` | `{"$range": [start, stop, step]}`, `{"$slice": […]}` |
//! | `date`, `time`, `datetime` | a string, what `isoformat()` gives |
//! | `timedelta` | `{"$timedelta": [days, seconds, microseconds]}` |
//! | `timezone` | `{"$timezone": [timedelta, name or null]}` |
//! | `Decimal`, `Fraction`, `UUID`, a path | a string, what `str()` gives |
//! | an exception | `{"$exception": {"class": "KeyError", "args": […], "fields": {…}, "attrs": {…}}}` |
//! | an array of numpy | `{"$ndarray": {"dtype": "<f8", "shape": [2, 3], "elements": […]}}` |
//! | a scalar of numpy | the number or the string; else `{"$scalar": {"dtype": "<c16", "data": "base64"}}` |
//! | a dtype | `{"$dtype": "<f8"}` |
//! | a class or function | `{"$global": "module:qualname"}` |
//! | a record | `{"$record": {"class": "module:qualname", "attrs": {…}}}` |
//!
//! The elements of an array are all in one JSON array, the last index changing first. Numbers that JSON lacks,
//! text, dates and structures are `data` instead, the bytes in the same order in Base64; objects are
//! `items`, each of which is a tuple of the fields where they lie in structures. A dtype is a string,
//! what numpy has as `dtype.str`, or for structures and subarrays an object in the form of the
//! vectors in `spec/vectors/pickle`.
//!
//! The fields of an exception are those that are not None, `fields` and `attrs` there only if there
//! are some. A record may also have `args`, `kwargs`, `entries` and `items`, and `states` where these
//! are not attributes. A time whose zone is a record is `{"$time": [string, record]}`, a datetime
//! `{"$datetime": […]}`; a Fraction with an int beyond 14,285 bits is `{"$fraction": [numerator,
//! denominator]}`.
//!
//! A dict whose only key is a `str` that begins with `$` is written as `$dict` too, so that it is
//! not taken for one of these. A surrogate code point in a `str` is written as an escape like `\ud800`.

mod arguments;
mod format;
pub(crate) mod numpy;
mod output;

pub(crate) use arguments::Arguments;
pub use arguments::{ParseError, parse};
pub use format::to_line;
pub(crate) use format::write_line;
pub use output::{JsonError, MAX_DEPTH, to_string};
