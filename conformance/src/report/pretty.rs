//! The report for people.

use std::fmt::Write;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::case::Case;
use crate::cases;
use crate::registry::{Registry, Requirement};
use crate::runner::{Run, Status, exit};

/// A bar on standard error, where that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    failed: usize,
}

impl Progress {
    pub(crate) fn hidden() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            failed: 0,
        }
    }

    pub(crate) fn start(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::hidden();
        }
        let bar = ProgressBar::new(total as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, failed: 0 }
    }

    pub(crate) fn begin(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    pub(crate) fn step(&mut self, failed: bool) {
        if failed {
            self.failed += 1;
            self.bar.set_prefix(format!("{} failed,", self.failed));
        }
        self.bar.inc(1);
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The table, then the failures by requirement, then what was not run, then one line with the verdict.
pub(crate) fn summary(run: &Run, registry: &Registry) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_summary(&mut out, run, registry);
    out
}

fn write_summary(out: &mut String, run: &Run, registry: &Registry) -> std::fmt::Result {
    let tallies = run.tallies();
    let width = tallies
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(6);
    writeln!(
        out,
        "{:width$}  passed  failed  advised  not run    time",
        "testee"
    )?;
    for (name, tally) in &tallies {
        writeln!(
            out,
            "{name:width$}  {:6}  {:6}  {:7}  {:7}  {:4.1} s",
            tally.passed,
            tally.failed,
            tally.advised,
            tally.not_run,
            tally.elapsed.as_secs_f64()
        )?;
    }
    write_failures(out, run, registry)?;
    write_not_run(out, run)?;
    for (testee, reason) in &run.unstartable {
        writeln!(
            out,
            "\n{testee} could not be started: {}",
            reason.trim_end()
        )?;
    }
    writeln!(out, "\n{}", verdict(run))
}

fn write_failures(out: &mut String, run: &Run, registry: &Registry) -> std::fmt::Result {
    let mut failed = Vec::new();
    let mut advised = Vec::new();
    for record in &run.records {
        match &record.status {
            Status::Failed {
                requirement,
                expected,
                observed,
            } => {
                failed.push((*requirement, record, expected, observed));
            }
            Status::Advised {
                requirement,
                expected,
                observed,
            } => {
                advised.push((*requirement, record, expected, observed));
            }
            _ => {}
        }
    }
    for (title, mut found) in [
        ("", failed),
        ("\nRecommendations that were not followed:\n", advised),
    ] {
        if found.is_empty() {
            continue;
        }
        out.push_str(title);
        found.sort_by_key(|(requirement, ..)| *requirement);
        let mut last = "";
        for (requirement, record, expected, observed) in found {
            if requirement != last {
                last = requirement;
                let text = registry
                    .find(requirement)
                    .map_or("", |entry| entry.text.as_str());
                writeln!(out, "\n{requirement}  {text}")?;
            }
            writeln!(
                out,
                "  {} on {}: {}",
                record.case.id, record.testee, record.case.title
            )?;
            writeln!(out, "    expected  {}", indent(expected))?;
            writeln!(out, "    observed  {}", indent(observed))?;
            writeln!(out, "    repeat    {}", record.repeat)?;
        }
    }
    for record in &run.records {
        if let Status::Fault(reason) = &record.status {
            writeln!(
                out,
                "\nfault of the suite in {} on {}: {reason}",
                record.case.id, record.testee
            )?;
        }
    }
    Ok(())
}

fn write_not_run(out: &mut String, run: &Run) -> std::fmt::Result {
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for record in &run.records {
        let Status::NotRun { reason, .. } = &record.status else {
            continue;
        };
        let known = groups
            .iter_mut()
            .find(|(testee, why, _)| *testee == record.testee && why == reason);
        match known {
            Some((.., cases)) => cases.push(record.case.id),
            None => groups.push((&record.testee, reason, vec![record.case.id])),
        }
    }
    for (testee, reason, cases) in groups {
        writeln!(
            out,
            "\nnot run on {testee}: {} case(s): {reason}",
            cases.len()
        )?;
        for case in cases.iter().take(3) {
            writeln!(out, "  {case}")?;
        }
        if cases.len() > 3 {
            writeln!(out, "  and {} more", cases.len() - 3)?;
        }
    }
    Ok(())
}

fn verdict(run: &Run) -> String {
    let passed: usize = run.tallies().iter().map(|(_, tally)| tally.passed).sum();
    match run.exit_status() {
        exit::CONFORMS => format!("conforms: {passed} cases passed"),
        exit::FAILURE => "does not conform".to_owned(),
        exit::NOT_STARTED => "not tested: a testee could not be started".to_owned(),
        exit::FAULT => "the suite is at fault; the result says nothing".to_owned(),
        _ if run.records.is_empty() => "inconclusive: no case was selected".to_owned(),
        _ => "inconclusive: a required case did not run; --no-script leaves out those that need {worker}".to_owned(),
    }
}

fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n              ")
}

/// A requirement, with its cases.
pub(crate) fn describe_requirement(requirement: &Requirement) -> String {
    let mut out = format!(
        "{}  {} ({})\n  {}\n  spec/{}\n",
        requirement.id,
        requirement.level,
        requirement.roles.join(", "),
        requirement.text,
        requirement.section
    );
    let citing = cases::all()
        .into_iter()
        .filter(|case| case.requirements.contains(&&*requirement.id));
    let citing: Vec<_> = citing.collect();
    if citing.is_empty() {
        out.push_str("  no case tests it\n");
    }
    for case in citing {
        let _ = writeln!(out, "  {}: {}", case.id, case.title);
    }
    out
}

/// A case, with its requirements.
pub(crate) fn describe_case(case: &Case, registry: &Registry) -> String {
    let mut out = format!(
        "{}\n  {}\n  needs {}\n",
        case.id,
        case.title,
        case.kind().needs()
    );
    for id in case.requirements {
        let text = registry.find(id).map_or("", |entry| entry.text.as_str());
        let _ = writeln!(out, "  {id}  {text}");
    }
    out
}
