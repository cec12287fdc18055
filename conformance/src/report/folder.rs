//! `--out DIR`: `report.jsonl`, `summary.txt`, and a transcript for each case that ran against a peer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::runner::Record;

/// A folder that takes the report of one run. What it held before under the same names is replaced.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    lines: File,
    /// The first write that failed; said once, at the end.
    failure: Option<io::Error>,
}

impl Folder {
    pub(crate) fn create(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        Ok(Self {
            root: root.to_owned(),
            lines: File::create(root.join("report.jsonl"))?,
            failure: None,
        })
    }

    pub(crate) fn line(&mut self, event: &serde_json::Value) {
        let written = self.lines.write_all(format!("{event}\n").as_bytes());
        self.keep(written);
    }

    pub(crate) fn transcript(&mut self, record: &Record) {
        let Some(transcript) = &record.transcript else {
            return;
        };
        let folder = self
            .root
            .join("transcripts")
            .join(file_name(&record.testee));
        let file = folder.join(format!("{}.jsonl", file_name(record.case.id)));
        let written =
            fs::create_dir_all(&folder).and_then(|()| fs::write(file, transcript.lines()));
        self.keep(written);
    }

    pub(crate) fn summary(&mut self, text: &str) {
        let written = fs::write(self.root.join("summary.txt"), text);
        self.keep(written);
        if let Some(error) = &self.failure {
            eprintln!("agentix-conformance: {}: {error}", self.root.display());
        }
    }

    fn keep(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

/// A name as one component of a path.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    name.replace('/', "__")
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}
