//! What a pickle holds, without carrying any of it out: `agentix-host inspect`.
//!
//! [`inspect`] reads every stream of a file with [`Policy::inspect`], so that one refused name does
//! not hide the next, and asks beside that what [`Options::policy`] makes of each. It needs nothing
//! but the bytes.
//!
//! # Streams and trailing bytes
//!
//! The file begins with a stream. What follows its STOP is a further stream if it begins with PROTO, if
//! it can be read to a STOP of its own, or if it names a global or a persistent id or exceeds a limit
//! before it breaks; anything else is trailing bytes. A stream that breaks ends the inspection, with
//! [`Verdict::Stopped`].
//!
//! # Bounds
//!
//! Each part of the output is bounded by [`Bounds`] and says how much it left out; the verdict is on
//! all of the file, shown or not. Time and memory are at most a constant times the file.
//!
//! # The JSON document
//!
//! One object:
//!
//! | field | meaning |
//! | --- | --- |
//! | `bytes` | size of the file |
//! | `streams` | see below |
//! | `streams_left_out` | how many are not in `streams` |
//! | `trailing` | `null`, or `offset`, `length` and the first bytes as `hex` |
//! | `refused` | the names that the policy does not admit, in all streams: as `globals` below |
//! | `refused_left_out` | how many are not in `refused` |
//! | `verdict` | `clean`, `not_clean` or `stopped` |
//! | `status` | the exit status: 0, 1 or 3 |
//!
//! Each of `streams`:
//!
//! | field | meaning |
//! | --- | --- |
//! | `offset`, `length` | where in the file; of a stream that breaks, up to where it broke |
//! | `protocol` | what its first PROTO says; `null` if there is none, as in protocols 0 and 1 |
//! | `globals` | each name once, by its first offset: `module`, `qualname`, `offset`, `count`, `admitted`, and `admit_with`: the arguments that would admit it, or `null` |
//! | `globals_left_out` | how many are not in `globals` |
//! | `persistent_ids` | `offset` and `id` |
//! | `persistent_ids_left_out` | how many are not in `persistent_ids` |
//! | `value` | `null` if it broke, else the table of nodes below |
//! | `opcodes` | only if asked for: `offset`, `opcode` and `argument` |
//! | `opcodes_left_out` | how many are not in `opcodes` |
//! | `error` | `null`, or why it broke: `kind`, `offset`, `opcode`, `message` |
//! | `refusal` | `null` if a decoder with the policy accepts the stream or it broke, else why not, as in `error` |
//!
//! Offsets count from the start of the file. `kind` is one of `global`, `extension`, `persistent_id`,
//! `malformed`, `limit` and `unsupported`. An `argument` is `null`, a number, a string, a pair of strings,
//! or `{"hex", "length"}`. A text that was cut is `{"text", "left_out"}`.
//!
//! `value` is `{"root": V, "nodes": [NODE, …], "nodes_left_out"}`, in the form of the vectors in
//! `spec/vectors/pickle`, so that no depth needs recursion in a reader. Beyond that form:
//!
//! | form | meaning |
//! | --- | --- |
//! | V `{"left_out": "list"}` | a node that is not in the table, by its kind |
//! | V `{"text", "left_out"}`, `{"bytes", "left_out"}` | cut, with the number of code points or bytes |
//! | V `{"int_hex"}` | an int of more than 14,285 bits, about 4,300 digits |
//! | NODE `left_out` | how many items, entries, arguments and attributes are not in it |
//! | NODE `{"t": "npscalar", "dtype", "hex"}` | a scalar of numpy; with `items` if it holds objects |
//! | NODE `{"t": "dtype", "dtype", "metadata"}` | `metadata` as `items` of a dict |
//! | dtype `{…, "left_out": true}` | not all of its fields |
//! | NODE `{"t": "record", "origin", "class", "args", "kwargs", "states", "attrs", "appended", "entries"}` | what the stream says of an object of a class that is a name only. `origin`: `call`, `new`, `state` (given to `class`, which takes none), `persistent_id`, `extension`, `buffer` |

mod json;
mod listing;
mod parts;
mod report;
mod show;
mod stream;
mod tree;

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use agentix_protocol::safepickle::{Limits, Policy};

use report::Report;
use stream::{Mention, Name, Stream, Work};

/// How [`inspect`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the verdict is by.
    pub policy: Policy,
    /// Budgets of each stream. [`Limits::input_bytes`] bounds the file. Further streams have a budget of
    /// their own for work, so that all of them together cost no more than a constant times the file.
    pub limits: Limits,
    /// How much is shown.
    pub bounds: Bounds,
    /// Whether the opcodes are listed.
    pub opcodes: bool,
    /// In which form.
    pub format: Format,
}

impl Default for Options {
    /// Text under [`Policy::agentix`] with the default [`Limits`] and [`Bounds`], no opcodes.
    fn default() -> Self {
        Self {
            policy: Policy::agentix(),
            limits: Limits::default(),
            bounds: Bounds::default(),
            opcodes: false,
            format: Format::Text,
        }
    }
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people. It may change at any time.
    Text,
    /// One JSON document on one line, as the [module](self) has it.
    Json,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lines of each part: tree, globals, persistent ids, opcodes, streams. In JSON entries and nodes.
    pub lines: usize,
    /// Items of one container.
    pub items: usize,
    /// Code points of one str, bytes of one bytes object.
    pub content: usize,
}

impl Bounds {
    /// So many lines of each part, a tenth of that but at least 10 of one container, 80 characters of
    /// one text.
    pub fn lines(lines: usize) -> Self {
        Self {
            lines,
            items: (lines / 10).max(10),
            content: 80,
        }
    }

    /// Everything is shown.
    pub const NONE: Self = Self {
        lines: usize::MAX,
        items: usize::MAX,
        content: usize::MAX,
    };
}

impl Default for Bounds {
    /// 200 lines: a few screens.
    fn default() -> Self {
        Self::lines(200)
    }
}

/// What is to be thought of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every byte was read, and a decoder with the policy accepts every stream.
    Clean,
    /// It was read to the end, but the policy does not admit all of it, or bytes follow the last stream.
    NotClean,
    /// A stream broke, so that what follows is unknown.
    Stopped {
        /// Where, in bytes from the start of the file.
        offset: u64,
    },
}

impl Verdict {
    /// The exit status that stands for it.
    pub fn status(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::NotClean => 1,
            Self::Stopped { .. } => 3,
        }
    }
}

/// Reads every stream of `input` and writes what it holds.
///
/// # Errors
///
/// What `out` reports.
///
/// # Example
///
/// ```
/// use agentix_reference_host::inspect::{Options, Verdict, inspect};
///
/// let mut text = Vec::new();
/// let verdict = inspect(b"cos\nsystem\n(S'id'\ntR.", &Options::default(), &mut text)?;
/// assert_eq!(verdict, Verdict::NotClean);
/// assert!(String::from_utf8_lossy(&text).contains("os.system"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn inspect(input: &[u8], options: &Options, out: &mut dyn Write) -> io::Result<Verdict> {
    let mut report: Box<dyn Report> = match options.format {
        Format::Text => Box::new(report::Text::new(options, out)),
        Format::Json => Box::new(json::Json::new(options, out)),
    };
    let mut summary = Summary {
        bytes: input.len(),
        streams: 0,
        streams_left_out: 0,
        refused: Vec::new(),
        refusals: 0,
        trailing: None,
        stopped: None,
    };
    let mut refused: HashMap<Rc<Name>, Mention> = HashMap::new();
    report.begin(input)?;
    let mut work = Work::for_file(input.len());
    let mut offset = 0;
    while offset < input.len() || summary.streams == 0 {
        let Some(stream) = Stream::read(input, offset, options, &mut work) else {
            summary.trailing = Some((offset, &input[offset..]));
            break;
        };
        for mention in stream.globals.iter().filter(|mention| !mention.admitted) {
            refused
                .entry(Rc::clone(&mention.name))
                .and_modify(|known| known.count += mention.count)
                .or_insert_with(|| mention.clone());
        }
        summary.streams += 1;
        summary.refusals += usize::from(stream.refusal.is_some());
        summary.stopped = stream.outcome.as_ref().err().map(|error| stream.at(error));
        offset = stream.end();
        if summary.streams <= options.bounds.lines || summary.stopped.is_some() {
            report.stream(summary.streams, stream)?;
        } else {
            summary.streams_left_out += 1;
        }
        if summary.stopped.is_some() {
            break;
        }
    }
    summary.refused = refused.into_values().collect();
    summary.refused.sort_by_key(|mention| mention.offset);
    report.end(&summary)?;
    Ok(summary.verdict())
}

/// What all of a file comes to.
struct Summary<'a> {
    bytes: usize,
    streams: usize,
    streams_left_out: usize,
    /// The names that the policy does not admit, by their first offset.
    refused: Vec<Mention>,
    /// How many streams the policy does not accept.
    refusals: usize,
    trailing: Option<(usize, &'a [u8])>,
    /// Where a stream broke.
    stopped: Option<u64>,
}

impl Summary<'_> {
    fn verdict(&self) -> Verdict {
        match self.stopped {
            Some(offset) => Verdict::Stopped { offset },
            None if self.refusals > 0 || !self.refused.is_empty() || self.trailing.is_some() => {
                Verdict::NotClean
            }
            None => Verdict::Clean,
        }
    }
}
