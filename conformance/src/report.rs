//! Saying what came of a run.

mod folder;
mod json;
mod pretty;

use std::path::Path;

use crate::case::Case;
use crate::registry::Registry;
use crate::runner::{Record, Run, Status};
use crate::testee::Testee;

pub(crate) use pretty::{Progress, describe_case, describe_requirement};

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table, then the failures.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Standard output, and the folder of a report.
#[derive(Debug)]
pub(crate) struct Output {
    /// Nothing goes to standard output without.
    format: Option<Format>,
    folder: Option<folder::Folder>,
}

impl Output {
    /// # Errors
    ///
    /// When `out` cannot be written to.
    pub(crate) fn new(format: Format, out: Option<&Path>) -> std::io::Result<Self> {
        Ok(Self {
            format: Some(format),
            folder: out.map(folder::Folder::create).transpose()?,
        })
    }

    /// Goes nowhere.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self {
            format: None,
            folder: None,
        }
    }

    /// An event.
    pub(crate) fn line(&mut self, event: &serde_json::Value) {
        if self.format == Some(Format::Json) {
            print_out(&format!("{event}\n"));
        }
        if let Some(folder) = &mut self.folder {
            folder.line(event);
        }
    }

    /// The end, for people.
    pub(crate) fn summary(&mut self, text: &str) {
        if self.format == Some(Format::Pretty) {
            print_out(text);
        }
        if let Some(folder) = &mut self.folder {
            folder.summary(text);
        }
    }

    fn transcript(&mut self, record: &Record) {
        if let Some(folder) = &mut self.folder {
            folder.transcript(record);
        }
    }
}

/// Where events of a run go.
#[derive(Debug)]
pub(crate) struct Report {
    output: Output,
    progress: Progress,
    registry: Registry,
}

impl Report {
    /// # Errors
    ///
    /// When `out` cannot be written to.
    pub(crate) fn new(
        format: Format,
        out: Option<&Path>,
        registry: Registry,
    ) -> std::io::Result<Self> {
        Ok(Self {
            output: Output::new(format, out)?,
            progress: Progress::hidden(),
            registry,
        })
    }

    /// Is this requirement a recommendation?
    pub(crate) fn recommends(&self, requirement: &str) -> bool {
        let level = self
            .registry
            .find(requirement)
            .map(|entry| entry.level.as_str());
        matches!(level, Some("SHOULD" | "SHOULD NOT" | "MAY"))
    }

    pub(crate) fn start(&mut self, testees: &[Testee], cases: &[&'static Case]) {
        let total = testees
            .iter()
            .map(|testee| cases.iter().filter(|case| testee.takes(case)).count());
        let total = total.sum();
        self.progress = Progress::start(total);
        self.output.line(&json::start(testees, total));
    }

    pub(crate) fn begin(&self, testee: &Testee, case: &Case) {
        self.progress
            .begin(&format!("{}: {}", testee.name, case.id));
    }

    pub(crate) fn record(&mut self, record: &Record) {
        let failed = matches!(record.status, Status::Failed { .. } | Status::Fault(_));
        self.progress.step(failed);
        self.output.line(&json::case(record));
        self.output.transcript(record);
    }

    pub(crate) fn finish(&mut self, run: &Run) {
        self.progress.finish();
        self.output.line(&json::summary(run));
        self.output.summary(&pretty::summary(run, &self.registry));
    }
}

/// Writes to standard output; a reader that has gone away is no reason to panic.
pub(crate) fn print_out(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
