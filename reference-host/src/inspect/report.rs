//! The report for people.

use std::io::{self, Write};

use agentix_protocol::safepickle::{DecodeError, DecodeErrorKind};

use super::listing::Argument;
use super::show::{cut, is_shell_safe, name, shown_bytes};
use super::stream::{Mention, Stream};
use super::{Options, Summary, Verdict, tree};
use crate::terminal::visible;

/// Characters of a message at most: it may hold names of any length.
const MOST_MESSAGE: usize = 400;

/// A form of output, which is told of the file part by part.
pub(super) trait Report {
    fn begin(&mut self, input: &[u8]) -> io::Result<()>;
    /// The stream of this number, from 1.
    fn stream(&mut self, number: usize, stream: Stream<'_>) -> io::Result<()>;
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()>;
}

/// Lines of text.
pub(super) struct Text<'o> {
    options: &'o Options,
    out: &'o mut dyn Write,
    is_zip: bool,
}

impl<'o> Text<'o> {
    pub(super) fn new(options: &'o Options, out: &'o mut dyn Write) -> Self {
        Self {
            options,
            out,
            is_zip: false,
        }
    }

    fn globals(&mut self, title: &str, mentions: &[&Mention]) -> io::Result<()> {
        if mentions.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "  {title}: {}", mentions.len())?;
        for mention in mentions.iter().take(self.options.bounds.lines) {
            self.mention(mention)?;
        }
        self.more(mentions.len(), "    ")
    }

    fn mention(&mut self, mention: &Mention) -> io::Result<()> {
        let name = name(&mention.name, self.options.bounds.content);
        write!(
            self.out,
            "    {} at {}",
            visible(&name, false),
            mention.offset
        )?;
        if mention.count > 1 {
            write!(self.out, ", {} times", mention.count)?;
        }
        if !mention.admitted
            && let Some(options) = admitting(mention)
            && options.iter().all(|option| is_shell_safe(option))
        {
            write!(self.out, "  ({} admits it)", options.join(" "))?;
        }
        writeln!(self.out)
    }

    /// Says how many of `count` lines were left out.
    fn more(&mut self, count: usize, indent: &str) -> io::Result<()> {
        match count.saturating_sub(self.options.bounds.lines) {
            0 => Ok(()),
            left => writeln!(self.out, "{indent}… {left} more"),
        }
    }

    fn opcodes(&mut self, stream: &Stream<'_>) -> io::Result<()> {
        writeln!(self.out, "  opcodes:")?;
        let bounds = &self.options.bounds;
        let mut written = Ok(());
        let mut count = 0_usize;
        stream.instructions(|offset, opcode, argument| {
            count += 1;
            if count <= bounds.lines && written.is_ok() {
                let argument = Argument::of(opcode, argument).show(bounds.content);
                let line = format!("{offset:>8} {:<16} {argument}", opcode.to_string());
                written = writeln!(self.out, "  {}", line.trim_end());
            }
        });
        written?;
        self.more(count, "    ")
    }
}

impl Report for Text<'_> {
    fn begin(&mut self, input: &[u8]) -> io::Result<()> {
        self.is_zip = input.starts_with(b"PK\x03\x04");
        Ok(())
    }

    fn stream(&mut self, number: usize, stream: Stream<'_>) -> io::Result<()> {
        let bounds = &self.options.bounds;
        let protocol = match stream.protocol {
            Some(protocol) => format!("protocol {protocol}"),
            None => "no PROTO".to_owned(),
        };
        writeln!(
            self.out,
            "stream {number} at {}: {} bytes, {protocol}",
            stream.offset,
            stream.length()
        )?;
        let (admitted, refused): (Vec<&Mention>, Vec<&Mention>) =
            stream.globals.iter().partition(|mention| mention.admitted);
        self.globals("globals that are not admitted", &refused)?;
        self.globals("globals that are admitted", &admitted)?;
        let ids = stream.persistent_ids.len() as u64 + stream.persistent_ids_left_out;
        if ids > 0 {
            writeln!(self.out, "  persistent ids: {ids}")?;
            for (offset, id) in &stream.persistent_ids {
                let id = visible(&cut(id, bounds.content), false);
                writeln!(self.out, "    {id} at {offset}")?;
            }
            if stream.persistent_ids_left_out > 0 {
                writeln!(self.out, "    … {} more", stream.persistent_ids_left_out)?;
            }
        }
        if let Ok(document) = &stream.outcome {
            writeln!(self.out, "  value:")?;
            tree::write(document.root(), bounds, "    ", self.out)?;
        }
        if self.options.opcodes {
            self.opcodes(&stream)?;
        }
        if let Some(refusal) = &stream.refusal {
            let why = explain(refusal, &stream);
            writeln!(self.out, "  refused under the policy: {why}")?;
        }
        if let Err(error) = &stream.outcome {
            writeln!(self.out, "  it breaks: {}", explain(error, &stream))?;
            if self.is_zip {
                writeln!(
                    self.out,
                    "  this is a ZIP archive: unpack it and inspect the pickles in it"
                )?;
            }
        }
        Ok(())
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        if summary.streams_left_out > 0 {
            writeln!(self.out, "… {} more streams", summary.streams_left_out)?;
        }
        if let Some((offset, bytes)) = summary.trailing {
            let shown = shown_bytes(bytes, self.options.bounds.content);
            writeln!(
                self.out,
                "trailing bytes at {offset}: {} bytes, {shown}",
                bytes.len()
            )?;
        }
        if summary.streams > 1 && !summary.refused.is_empty() {
            writeln!(self.out, "in all {} streams", summary.streams)?;
            let refused: Vec<&Mention> = summary.refused.iter().collect();
            self.globals("globals that are not admitted", &refused)?;
        }
        let streams = match summary.streams {
            1 => "1 stream".to_owned(),
            many => format!("{many} streams"),
        };
        match summary.verdict() {
            Verdict::Clean => writeln!(
                self.out,
                "clean: {streams}, all {} bytes read, nothing that is not admitted",
                summary.bytes
            ),
            Verdict::NotClean => {
                let mut reasons = Vec::new();
                match summary.refused.len() {
                    0 => {}
                    1 => reasons.push("1 global is not admitted".to_owned()),
                    many => reasons.push(format!("{many} globals are not admitted")),
                }
                if summary.refusals > 0 {
                    reasons.push(format!("refused: {} of {streams}", summary.refusals));
                }
                if let Some((_, bytes)) = summary.trailing {
                    reasons.push(format!("{} trailing bytes", bytes.len()));
                }
                writeln!(self.out, "not clean: {}", reasons.join("; "))
            }
            Verdict::Stopped { offset } => writeln!(
                self.out,
                "not clean: stopped at {offset} of {} bytes; what follows is unknown",
                summary.bytes
            ),
        }
    }
}

/// The options that would admit a name, unless it is long or stands for bytes that no option can spell.
pub(super) fn admitting(mention: &Mention) -> Option<Vec<String>> {
    let name = &mention.name;
    if mention.admitted_with_numpy {
        return Some(vec!["--numpy".to_owned()]);
    }
    let spelled = |text: &str| (1..=MOST_MESSAGE).contains(&text.len()) && !text.contains('\\');
    let fits = spelled(&name.module)
        && spelled(&name.qualname)
        && !name.module.contains(':')
        && !name.qualname.starts_with(':');
    fits.then(|| {
        vec![
            "--allow".to_owned(),
            format!("{}:{}", name.module, name.qualname),
        ]
    })
}

/// What was wrong and where, on one line.
fn explain(error: &DecodeError, stream: &Stream<'_>) -> String {
    let at = stream.at(error);
    let place = match error.opcode() {
        Some(opcode) => format!("at {at}, {opcode}"),
        None => format!("at {at}"),
    };
    format!("{} ({place})", message(error))
}

/// What was wrong, on one line.
pub(super) fn message(error: &DecodeError) -> String {
    let text = match error.kind() {
        DecodeErrorKind::RefusedGlobal { module, qualname } => {
            format!("global {module}.{qualname} is not admitted")
        }
        kind => kind.to_string(),
    };
    visible(&cut(&text, MOST_MESSAGE), false)
}
