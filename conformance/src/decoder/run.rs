//! All vectors of a file, several at once.

use std::cell::{Cell, RefCell};

use futures_util::future::join_all;

use super::judge::{Judgement, judge};
use super::report::Report;
use super::supervise::{Bounds, Observation, StartError, Supervisor};
use super::vectors::{Expect, Vector};
use crate::process::Program;
use crate::runner::exit;

/// What is run, and how.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) vectors: &'a [Vector],
    /// The process that decodes.
    pub(super) program: Program,
    pub(super) bounds: Bounds,
    /// How many processes at once.
    pub(super) jobs: usize,
}

/// What came of one vector.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) vector: &'a Vector,
    pub(super) judgement: Judgement,
    pub(super) observation: Observation,
}

/// A whole run.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    /// In the order of the file.
    pub(super) records: Vec<Record<'a>>,
    /// Why no more were run.
    pub(super) unstartable: Option<String>,
}

/// How often each judgement was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) right: usize,
    pub(super) wrong: usize,
    pub(super) over_limit: usize,
    pub(super) crashed: usize,
    pub(super) any_equal: usize,
    pub(super) any_other: usize,
    pub(super) any_error: usize,
}

impl Tally {
    fn count(&mut self, judgement: &Judgement) {
        *match judgement {
            Judgement::Right => &mut self.right,
            Judgement::Wrong(_) => &mut self.wrong,
            Judgement::OverLimit(_) => &mut self.over_limit,
            Judgement::Crashed(_) => &mut self.crashed,
            Judgement::AnyEqual => &mut self.any_equal,
            Judgement::AnyOther(_) => &mut self.any_other,
            Judgement::AnyError => &mut self.any_error,
        } += 1;
    }
}

impl<'a> Run<'a> {
    /// What the run says about the decoder, as an exit status.
    pub(super) fn exit_status(&self) -> u8 {
        if self.records.iter().any(|record| record.judgement.fails()) {
            exit::FAILURE
        } else if self.unstartable.is_some() {
            exit::NOT_STARTED
        } else if self.records.is_empty() {
            exit::INCONCLUSIVE
        } else {
            exit::CONFORMS
        }
    }

    /// The groups in the order of the file.
    pub(super) fn groups(&self) -> Vec<(&'a str, Tally)> {
        let mut groups: Vec<(&str, Tally)> = Vec::new();
        for record in &self.records {
            let name = record.vector.group.as_str();
            let at = groups.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| {
                groups.push((name, Tally::default()));
                groups.len() - 1
            });
            groups[at].1.count(&record.judgement);
        }
        groups
    }

    pub(super) fn total(&self) -> Tally {
        let mut total = Tally::default();
        for record in &self.records {
            total.count(&record.judgement);
        }
        total
    }

    /// How many vectors had one right end.
    pub(super) fn judged(&self) -> usize {
        let judged = self.records.iter();
        judged
            .filter(|record| record.vector.expect != Expect::Any)
            .count()
    }
}

/// Runs the plan.
pub(super) async fn run<'a>(plan: &Plan<'a>, report: &mut Report) -> Run<'a> {
    report.start(plan);
    let next = Cell::new(0);
    let report = RefCell::new(report);
    let unstartable = RefCell::new(None);
    let lanes = (0..plan.jobs.min(plan.vectors.len())).map(async |_| {
        let mut supervisor = Supervisor::new(&plan.program, plan.bounds);
        let mut records = Vec::new();
        while unstartable.borrow().is_none() {
            let number = next.get();
            let Some(vector) = plan.vectors.get(number) else {
                break;
            };
            next.set(number + 1);
            match supervisor.observe(vector).await {
                Ok(observation) => {
                    let record = Record {
                        vector,
                        judgement: judge(vector.expect, &observation.ending),
                        observation,
                    };
                    report.borrow_mut().record(&record);
                    records.push((number, record));
                }
                Err(StartError(reason)) => {
                    unstartable.borrow_mut().get_or_insert(reason);
                }
            }
        }
        records
    });
    let mut records: Vec<_> = join_all(lanes).await.into_iter().flatten().collect();
    records.sort_by_key(|(number, _)| *number);
    let run = Run {
        records: records.into_iter().map(|(_, record)| record).collect(),
        unstartable: unstartable.into_inner(),
    };
    report.into_inner().finish(&run);
    run
}

#[cfg(test)]
mod tests;
