//! Counts: what came of the pickles, and what occurred in them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many faults of one sort are shown.
const SHOWN: usize = 3;

/// How often each thing occurred, in pickles that both decoders accepted with the same value and in all.
#[derive(Clone, Copy, Default)]
pub(crate) struct Occurred {
    pub(crate) equal: u64,
    pub(crate) all: u64,
}

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) pickles: u64,
    /// By outcome: `equal`, `rejected`, or the id of a known difference.
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) ways: BTreeMap<String, Occurred>,
    pub(crate) opcodes: BTreeMap<&'static str, Occurred>,
    /// Admitted names, by the instructions that name them.
    pub(crate) names: BTreeMap<String, Occurred>,
    /// Kinds of values, with the class if there is one, in equal values.
    pub(crate) kinds: BTreeMap<String, u64>,
    /// By sort.
    pub(crate) faults: BTreeMap<String, Vec<String>>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.pickles += other.pickles;
        merge(&mut self.outcomes, other.outcomes, |sum, n| *sum += n);
        let both = |sum: &mut Occurred, n: Occurred| {
            sum.equal += n.equal;
            sum.all += n.all;
        };
        merge(&mut self.ways, other.ways, both);
        merge(&mut self.opcodes, other.opcodes, both);
        merge(&mut self.names, other.names, both);
        merge(&mut self.kinds, other.kinds, |sum, n| *sum += n);
        merge(&mut self.faults, other.faults, |all, more| all.extend(more));
    }

    /// Every sort of fault, with its shortest instances.
    pub(crate) fn faults(&self) -> String {
        let mut out = String::new();
        for (sort, faults) in &self.faults {
            writeln!(out, "{} x {sort}", faults.len()).unwrap();
            let mut faults: Vec<&String> = faults.iter().collect();
            faults.sort_by_key(|fault| fault.len());
            for fault in faults.iter().take(SHOWN) {
                writeln!(out, "    {fault}").unwrap();
            }
        }
        out
    }

    pub(crate) fn report(&self) -> String {
        let mut out = format!("{} pickles\n", self.pickles);
        let section = |out: &mut String, title: &str| {
            writeln!(out, "\n{title}").unwrap();
        };
        section(&mut out, "outcome");
        for (outcome, count) in &self.outcomes {
            writeln!(out, "  {outcome:<32}{count:>9}").unwrap();
        }
        for (title, table) in [
            ("made as", strings(&self.ways)),
            ("opcode", strings(&self.opcodes)),
            ("name", strings(&self.names)),
        ] {
            section(&mut out, &format!("{title:<50}{:>9}{:>9}", "equal", "all"));
            for (what, occurred) in table {
                writeln!(out, "  {what:<48}{:>9}{:>9}", occurred.equal, occurred.all).unwrap();
            }
        }
        section(&mut out, "values that were equal");
        for (kind, count) in &self.kinds {
            writeln!(out, "  {kind:<48}{count:>9}").unwrap();
        }
        out
    }
}

fn strings<K: ToString>(table: &BTreeMap<K, Occurred>) -> Vec<(String, Occurred)> {
    table
        .iter()
        .map(|(what, occurred)| (what.to_string(), *occurred))
        .collect()
}

fn merge<K: Ord, V: Default>(
    into: &mut BTreeMap<K, V>,
    from: BTreeMap<K, V>,
    mut add: impl FnMut(&mut V, V),
) {
    for (key, value) in from {
        add(into.entry(key).or_default(), value);
    }
}
