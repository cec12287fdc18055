//! The report for programs.

mod node;
mod table;

use std::cell::Cell;
use std::io::{self, Write};

use agentix_protocol::safepickle::{DecodeError, DecodeErrorKind};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::listing::Argument;
use super::report::{Report, admitting, message};
use super::stream::{Mention, Stream};
use super::{Bounds, Options, Summary, Verdict};
use crate::json::write_line;
use table::Table;

/// One JSON document on one line, written stream by stream.
pub(super) struct Json<'o> {
    options: &'o Options,
    out: &'o mut dyn Write,
    is_first: bool,
}

impl<'o> Json<'o> {
    pub(super) fn new(options: &'o Options, out: &'o mut dyn Write) -> Self {
        Self {
            options,
            out,
            is_first: true,
        }
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        Ok(write_line(value, &mut *self.out)?)
    }

    fn field(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        write!(self.out, ", \"{name}\": ")?;
        self.write(value)
    }
}

impl Report for Json<'_> {
    fn begin(&mut self, input: &[u8]) -> io::Result<()> {
        write!(self.out, "{{\"bytes\": {}, \"streams\": [", input.len())
    }

    fn stream(&mut self, _number: usize, stream: Stream<'_>) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            write!(self.out, ", ")?;
        }
        self.write(&StreamObject(&stream, self.options))
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let bounds = &self.options.bounds;
        write!(self.out, "]")?;
        self.field("streams_left_out", &summary.streams_left_out)?;
        let trailing = summary.trailing.map(|(offset, bytes)| Trailing {
            offset,
            bytes,
            bounds,
        });
        self.field("trailing", &trailing)?;
        self.field("refused", &Mentions(&summary.refused, bounds))?;
        let left_out = summary.refused.len().saturating_sub(bounds.lines);
        self.field("refused_left_out", &left_out)?;
        let verdict = summary.verdict();
        let name = match verdict {
            Verdict::Clean => "clean",
            Verdict::NotClean => "not_clean",
            Verdict::Stopped { .. } => "stopped",
        };
        self.field("verdict", &name)?;
        self.field("status", &verdict.status())?;
        writeln!(self.out, "}}")
    }
}

struct Trailing<'s> {
    offset: usize,
    bytes: &'s [u8],
    bounds: &'s Bounds,
}

impl Serialize for Trailing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("length", &self.bytes.len())?;
        map.serialize_entry("hex", &hex(self.bytes, self.bounds))?;
        map.end()
    }
}

struct StreamObject<'s, 'a>(&'s Stream<'a>, &'s Options);

impl Serialize for StreamObject<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(stream, options) = self;
        let bounds = &options.bounds;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("offset", &stream.offset)?;
        map.serialize_entry("length", &stream.length())?;
        map.serialize_entry("protocol", &stream.protocol)?;
        map.serialize_entry("globals", &Mentions(&stream.globals, bounds))?;
        let left_out = stream.globals.len().saturating_sub(bounds.lines);
        map.serialize_entry("globals_left_out", &left_out)?;
        map.serialize_entry("persistent_ids", &PersistentIds(stream, bounds))?;
        map.serialize_entry("persistent_ids_left_out", &stream.persistent_ids_left_out)?;
        let document = stream.outcome.as_ref().ok();
        map.serialize_entry(
            "value",
            &document.map(|document| Table::new(document.root(), bounds)),
        )?;
        if options.opcodes {
            let left_out = Cell::new(0);
            map.serialize_entry("opcodes", &Opcodes(stream, options, &left_out))?;
            map.serialize_entry("opcodes_left_out", &left_out.get())?;
        }
        let error = stream.outcome.as_ref().err();
        map.serialize_entry("error", &error.map(|error| ErrorObject(error, stream)))?;
        let refusal = stream.refusal.as_ref();
        map.serialize_entry("refusal", &refusal.map(|error| ErrorObject(error, stream)))?;
        map.end()
    }
}

struct Mentions<'s>(&'s [Mention], &'s Bounds);

impl Serialize for Mentions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(mentions, bounds) = self;
        let shown = mentions.iter().take(bounds.lines);
        serializer.collect_seq(shown.map(|mention| MentionObject(mention, bounds)))
    }
}

struct MentionObject<'s>(&'s Mention, &'s Bounds);

impl Serialize for MentionObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(mention, bounds) = self;
        let most = bounds.content.saturating_mul(10);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("module", &CutText(&mention.name.module, most))?;
        map.serialize_entry("qualname", &CutText(&mention.name.qualname, most))?;
        map.serialize_entry("offset", &mention.offset)?;
        map.serialize_entry("count", &mention.count)?;
        map.serialize_entry("admitted", &mention.admitted)?;
        let options = (!mention.admitted).then(|| admitting(mention)).flatten();
        map.serialize_entry("admit_with", &options)?;
        map.end()
    }
}

struct PersistentIds<'s, 'a>(&'s Stream<'a>, &'s Bounds);

impl Serialize for PersistentIds<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Id<'s> {
            offset: u64,
            id: CutText<'s>,
        }
        let Self(stream, bounds) = self;
        serializer.collect_seq(stream.persistent_ids.iter().map(|(offset, id)| Id {
            offset: *offset,
            id: CutText(id, bounds.content),
        }))
    }
}

struct ErrorObject<'s, 'a>(&'s DecodeError, &'s Stream<'a>);

impl Serialize for ErrorObject<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(error, stream) = self;
        let kind = match error.kind() {
            DecodeErrorKind::RefusedGlobal { .. } => "global",
            DecodeErrorKind::RefusedExtension { .. } => "extension",
            DecodeErrorKind::RefusedPersistentId { .. } => "persistent_id",
            DecodeErrorKind::Malformed(_) => "malformed",
            DecodeErrorKind::Limit { .. } => "limit",
            _ => "unsupported",
        };
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", kind)?;
        map.serialize_entry("offset", &stream.at(error))?;
        let opcode = error.opcode().map(|opcode| opcode.to_string());
        map.serialize_entry("opcode", &opcode)?;
        map.serialize_entry("message", &message(error))?;
        map.end()
    }
}

/// The opcodes, as the stream is carried out once more. Serializing them sets how many are left out.
struct Opcodes<'s, 'a>(&'s Stream<'a>, &'s Options, &'s Cell<u64>);

impl Serialize for Opcodes<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Instruction<'s> {
            offset: u64,
            opcode: String,
            argument: ArgumentValue<'s>,
        }
        let Self(stream, options, left_out) = self;
        let mut seq = serializer.serialize_seq(None)?;
        let mut left = options.bounds.lines;
        let mut written = Ok(());
        stream.instructions(|offset, opcode, argument| {
            if left == 0 {
                left_out.set(left_out.get() + 1);
            } else if written.is_ok() {
                left -= 1;
                let argument = Argument::of(opcode, argument);
                written = seq.serialize_element(&Instruction {
                    offset,
                    opcode: opcode.to_string(),
                    argument: ArgumentValue(&argument, &options.bounds),
                });
            }
        });
        written?;
        seq.end()
    }
}

struct ArgumentValue<'s>(&'s Argument<'s>, &'s Bounds);

impl Serialize for ArgumentValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(argument, bounds) = self;
        let names = bounds.content.saturating_mul(10);
        match argument {
            Argument::None => serializer.serialize_none(),
            Argument::Int(int) => match i64::try_from(*int) {
                Ok(int) => serializer.serialize_i64(int),
                Err(_) => serializer.serialize_str(&int.to_string()),
            },
            Argument::Float(float) if float.is_finite() => serializer.serialize_f64(*float),
            Argument::Float(float) => serializer.serialize_str(&format!("{float:?}")),
            Argument::Text(text) => CutText(text, bounds.content).serialize(serializer),
            Argument::Names(module, name) => {
                [CutText(module, names), CutText(name, names)].serialize(serializer)
            }
            Argument::Bytes(bytes) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("hex", &hex(bytes, bounds))?;
                map.serialize_entry("length", &bytes.len())?;
                map.end()
            }
        }
    }
}

/// A text, cut after so many characters.
struct CutText<'s>(&'s str, usize);

impl Serialize for CutText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(text, most) = self;
        let Some((end, _)) = text.char_indices().nth(*most) else {
            return serializer.serialize_str(text);
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("text", &text[..end])?;
        map.serialize_entry("left_out", &text[end..].chars().count())?;
        map.end()
    }
}

/// The first bytes, as many as are shown.
fn hex(bytes: &[u8], bounds: &Bounds) -> String {
    data_encoding::HEXLOWER.encode(&bytes[..bytes.len().min(bounds.content)])
}
