//! Saying what came of the vectors.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::judge::{Judgement, Told};
use super::run::{Plan, Record, Run, Tally};
use super::supervise::{Bounds, Ending};
use crate::report::{Format, Output, Progress};
use crate::runner::exit;

/// Where events of a run go.
#[derive(Debug)]
pub(crate) struct Report {
    output: Output,
    progress: Progress,
    /// The file, as on the command line.
    file: String,
    bounds: Option<Bounds>,
}

impl Report {
    /// # Errors
    ///
    /// When `out` cannot be written to.
    pub(crate) fn new(format: Format, out: Option<&Path>, file: String) -> std::io::Result<Self> {
        Ok(Self {
            output: Output::new(format, out)?,
            progress: Progress::hidden(),
            file,
            bounds: None,
        })
    }

    /// Goes nowhere.
    #[cfg(test)]
    pub(super) fn silent() -> Self {
        Self {
            output: Output::silent(),
            progress: Progress::hidden(),
            file: String::new(),
            bounds: None,
        }
    }

    pub(super) fn start(&mut self, plan: &Plan<'_>) {
        self.progress = Progress::start(plan.vectors.len());
        self.bounds = Some(plan.bounds);
        self.output.line(&json!({
            "kind": "start",
            "suite": env!("CARGO_PKG_VERSION"),
            "testee": "built-in decoder",
            "file": self.file,
            "vectors": plan.vectors.len(),
            "jobs": plan.jobs,
            "bounds": {
                "processor_s": plan.bounds.processor.as_secs_f64(),
                "clock_s": plan.bounds.clock.as_secs_f64(),
                "memory_bytes": plan.bounds.memory_bytes,
            },
        }));
    }

    pub(super) fn record(&mut self, record: &Record<'_>) {
        self.progress.begin(&record.vector.id);
        self.progress.step(record.judgement.fails());
        self.output.line(&self.vector(record));
    }

    pub(super) fn finish(&mut self, run: &Run<'_>) {
        self.progress.finish();
        self.output.line(&summary(run));
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_summary(&mut text, run);
        self.output.summary(&text);
    }

    fn vector(&self, record: &Record<'_>) -> Json {
        let observation = &record.observation;
        let mut line = json!({
            "kind": "vector",
            "vector": record.vector.id,
            "group": record.vector.group,
            "expect": record.vector.expect.name(),
            "status": record.judgement.name(),
            "ms": observation.elapsed.as_millis() as u64,
        });
        if let Some(processor) = observation.processor {
            line["decode_us"] = json!(processor.as_micros() as u64);
        }
        if let Ending::Refused(refusal) = &observation.ending {
            line["error"] = json!(refusal.text);
            line["error_kind"] = json!(refusal.kind);
        }
        if let Some(told) = record.judgement.told() {
            line["expected"] = json!(told.expected);
            line["found"] = json!(told.found);
            line["repeat"] = json!(self.repeat(record));
        }
        line
    }

    fn repeat(&self, record: &Record<'_>) -> String {
        let words = [
            "agentix-conformance",
            "run",
            "decoder",
            "--vectors",
            &self.file,
            "--case",
            &record.vector.id,
        ];
        shlex::try_join(words).unwrap_or_else(|_| words.join(" "))
    }

    fn write_summary(&self, out: &mut String, run: &Run<'_>) -> std::fmt::Result {
        let groups = run.groups();
        let names = groups.iter().map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0).max(5);
        writeln!(
            out,
            "{:width$}  right  wrong  over limit  crashed  any: equal  other  error",
            "group"
        )?;
        for (name, tally) in &groups {
            write_row(out, width, name, tally)?;
        }
        write_row(out, width, "total", &run.total())?;
        self.write_told(out, run, "wrong", |judgement| {
            matches!(judgement, Judgement::Wrong(_))
        })?;
        self.write_told(out, run, "over a limit", |judgement| {
            matches!(judgement, Judgement::OverLimit(_))
        })?;
        self.write_told(out, run, "crashed", |judgement| {
            matches!(judgement, Judgement::Crashed(_))
        })?;
        self.write_told(
            out,
            run,
            "any, with a value that is not known to be the file's; allowed",
            |judgement| matches!(judgement, Judgement::AnyOther(_)),
        )?;
        if let Some(reason) = &run.unstartable {
            writeln!(
                out,
                "\na process could not be started: {}",
                reason.trim_end()
            )?;
        }
        self.write_costs(out, run)?;
        writeln!(out, "\n{}", verdict(run))
    }

    fn write_told(
        &self,
        out: &mut String,
        run: &Run<'_>,
        title: &str,
        wanted: fn(&Judgement) -> bool,
    ) -> std::fmt::Result {
        let mut wanted = run
            .records
            .iter()
            .filter(|record| wanted(&record.judgement))
            .peekable();
        if wanted.peek().is_some() {
            writeln!(out, "\n{title}")?;
        }
        for record in wanted {
            writeln!(out, "  {}", record.vector.id)?;
            if let Some(Told { expected, found }) = record.judgement.told() {
                writeln!(out, "    expected  {}", indent(expected))?;
                writeln!(out, "    found     {}", indent(found))?;
            }
            if record.judgement.fails() {
                writeln!(out, "    repeat    {}", self.repeat(record))?;
            }
        }
        Ok(())
    }

    fn write_costs(&self, out: &mut String, run: &Run<'_>) -> std::fmt::Result {
        if let Some(bounds) = self.bounds {
            writeln!(
                out,
                "\nbounds for each vector: {:?} of processor time, {:?} on the clock, {} MiB of memory",
                bounds.processor,
                bounds.clock,
                bounds.memory_bytes >> 20
            )?;
        }
        let spent = |record: &&Record<'_>| record.observation.processor;
        if let Some(slowest) = run.records.iter().max_by_key(spent) {
            let spent = slowest.observation.processor.unwrap_or(Duration::ZERO);
            writeln!(out, "slowest to decode: {}, {spent:?}", slowest.vector.id)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut String, width: usize, name: &str, tally: &Tally) -> std::fmt::Result {
    writeln!(
        out,
        "{name:width$}  {:5}  {:5}  {:10}  {:7}  {:10}  {:5}  {:5}",
        tally.right,
        tally.wrong,
        tally.over_limit,
        tally.crashed,
        tally.any_equal,
        tally.any_other,
        tally.any_error
    )
}

fn verdict(run: &Run<'_>) -> String {
    let total = run.total();
    let any = total.any_equal + total.any_other + total.any_error;
    match run.exit_status() {
        exit::CONFORMS => format!(
            "conforms: {} vectors right, {any} more within the bounds",
            total.right
        ),
        exit::FAILURE => format!(
            "does not conform: {} of {} vectors right; {} wrong, {} over a limit, {} crashed",
            total.right,
            run.judged(),
            total.wrong,
            total.over_limit,
            total.crashed
        ),
        exit::NOT_STARTED => "not tested: a process could not be started".to_owned(),
        _ => "inconclusive: no vector was selected".to_owned(),
    }
}

fn counts(tally: &Tally) -> Json {
    json!({
        "right": tally.right,
        "wrong": tally.wrong,
        "over_limit": tally.over_limit,
        "crashed": tally.crashed,
        "any_equal": tally.any_equal,
        "any_other": tally.any_other,
        "any_error": tally.any_error,
    })
}

fn summary(run: &Run<'_>) -> Json {
    let groups = run.groups().into_iter().map(|(name, tally)| {
        let mut group = counts(&tally);
        group["group"] = json!(name);
        group
    });
    json!({
        "kind": "summary",
        "groups": groups.collect::<Vec<_>>(),
        "total": counts(&run.total()),
        "unstartable": run.unstartable,
        "exit_status": run.exit_status(),
    })
}

fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n              ")
}
