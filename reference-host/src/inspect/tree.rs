//! A value as lines of text, one object a line.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use agentix_protocol::safepickle::{NodeId, Value};

use super::Bounds;
use super::parts::{Group, Keys, Label, groups, has_identity};
use super::show::{head, quoted};
use crate::terminal::visible;

/// Deepest nesting that is shown by blanks; what is deeper shows its depth as a number, or the
/// blanks alone would be quadratic in the depth.
const MOST_INDENTED: usize = 30;

/// Writes what `root` holds, each line behind `indent`.
///
/// An object that is referred to more than once has a number, such as `#1`, where it is shown; other
/// references to it, from inside it too, are shown as `-> #1`.
pub(super) fn write(
    root: Value<'_>,
    bounds: &Bounds,
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut shared = HashSet::new();
    let mut lines = 0_usize;
    for line in Walk::new(root, bounds) {
        lines += 1;
        if let What::Again(value) = line.what {
            shared.insert(value.id());
        }
    }
    let mut numbers: HashMap<NodeId, usize> = HashMap::new();
    for line in Walk::new(root, bounds).take(bounds.lines) {
        write!(out, "{indent}")?;
        match line.depth {
            depth @ 0..=MOST_INDENTED => write!(out, "{:1$}", "", 2 * depth)?,
            depth => write!(out, "{:1$}[{depth}] ", "", 2 * MOST_INDENTED)?,
        }
        let mut text = match line.label {
            Some(label) => show_label(label, bounds),
            None => String::new(),
        };
        match line.what {
            What::First(value) => {
                if shared.contains(&value.id()) {
                    let next = numbers.len() + 1;
                    let number = numbers.entry(value.id()).or_insert(next);
                    text.push_str(&format!("#{number} "));
                }
                text.push_str(&head(value, bounds.content));
            }
            What::Again(value) => {
                // It was shown in an earlier line.
                let number = numbers.get(&value.id()).copied().unwrap_or_default();
                text.push_str(&format!("-> #{number}"));
            }
            What::Entry => text.push_str("entry"),
            What::More(count) => text.push_str(&format!("… {count} more")),
        }
        writeln!(out, "{}", visible(&text, false))?;
    }
    match lines.saturating_sub(bounds.lines) {
        0 => Ok(()),
        left => writeln!(out, "{indent}… {left} more lines"),
    }
}

fn show_label(label: Label<'_>, bounds: &Bounds) -> String {
    match label {
        Label::Name(name) => format!("{name}: "),
        Label::Item("", index) => format!("{index}: "),
        Label::Item(name, index) => format!("{name} {index}: "),
        Label::DtypeField(name, offset) => {
            format!("field {} at {offset}: ", quoted(name, bounds.content))
        }
        Label::Key(Keys::Dict, key) => format!("{}: ", head(key, bounds.content)),
        Label::Key(keys, key) => {
            let name = match key.as_text() {
                Some(text) => quoted(text, bounds.content),
                None => head(key, bounds.content),
            };
            match keys {
                Keys::Attributes => format!("attribute {name}: "),
                Keys::Metadata => format!("metadata {name}: "),
                _ => format!("keyword {name}: "),
            }
        }
    }
}

struct Line<'d> {
    depth: usize,
    label: Option<Label<'d>>,
    what: What<'d>,
}

enum What<'d> {
    /// An object, whose parts follow.
    First(Value<'d>),
    /// An object that was shown before.
    Again(Value<'d>),
    /// A key that needs lines of its own, and its value follow.
    Entry,
    /// So many parts are left out.
    More(usize),
}

/// Goes through a value, each object once.
struct Walk<'d> {
    root: Option<Value<'d>>,
    most: usize,
    seen: HashSet<NodeId>,
    open: Vec<Open<'d>>,
}

/// An object whose parts are being shown.
struct Open<'d> {
    /// The groups that are left, the next one last.
    groups: Vec<Group<'d>>,
    /// How far the next group is shown.
    at: usize,
    /// How many parts may still be shown.
    left: usize,
}

impl<'d> Walk<'d> {
    fn new(root: Value<'d>, bounds: &Bounds) -> Self {
        Self {
            root: Some(root),
            most: bounds.items,
            seen: HashSet::new(),
            open: Vec::new(),
        }
    }

    fn visit(&mut self, label: Option<Label<'d>>, value: Value<'d>) -> Line<'d> {
        let depth = self.open.len();
        if has_identity(value) && !self.seen.insert(value.id()) {
            let what = What::Again(value);
            return Line { depth, label, what };
        }
        let groups = groups(value);
        if !groups.is_empty() {
            self.open(groups);
        }
        let what = What::First(value);
        Line { depth, label, what }
    }

    fn open(&mut self, mut groups: Vec<Group<'d>>) {
        groups.reverse();
        self.open.push(Open {
            groups,
            at: 0,
            left: self.most,
        });
    }
}

impl<'d> Iterator for Walk<'d> {
    type Item = Line<'d>;

    fn next(&mut self) -> Option<Line<'d>> {
        if let Some(root) = self.root.take() {
            return Some(self.visit(None, root));
        }
        loop {
            let depth = self.open.len();
            let open = self.open.last_mut()?;
            let Some(group) = open.groups.last() else {
                self.open.pop();
                continue;
            };
            let Some((label, value)) = group.at(open.at) else {
                open.groups.pop();
                open.at = 0;
                continue;
            };
            if open.left == 0 {
                let left = open.groups.iter().map(|group| group.len()).sum::<usize>() - open.at;
                open.groups.clear();
                return Some(Line {
                    depth,
                    label: None,
                    what: What::More(left),
                });
            }
            open.left -= 1;
            open.at += 1;
            return Some(match label {
                Label::Key(_, key) if has_identity(key) => {
                    self.open(vec![Group::One("key", key), Group::One("value", value)]);
                    Line {
                        depth,
                        label: None,
                        what: What::Entry,
                    }
                }
                _ => self.visit(Some(label), value),
            });
        }
    }
}
