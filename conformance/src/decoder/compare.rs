//! Is a decoded value the one that a vector asks for?
//!
//! Both sides are graphs, of any depth, with sharing and cycles. The comparison walks them together, by a list of pairs
//! that are due, and keeps which node goes with which object. Sets come last: their elements are put into classes of
//! those that hold the same, and where a class has several, such as two exceptions with equal arguments, each way to pair
//! them is tried, up to [`TRIES`].

use std::collections::{HashMap, HashSet, VecDeque};

use agentix_protocol::safepickle::{NodeId, Value};
use serde_json::Value as Json;

use super::classes::{Class, Classes};
use super::difference::{Difference, Reason, TRIES};
use super::found;
use super::shape::{self, Part, Shape, Step};
use super::table::Table;

/// How many pairings are kept in mind, to try another: each costs as much memory as its class has elements.
const CHOICES: usize = 256;

/// Compares a decoded value with a vector's table, identity included.
///
/// Takes no machine stack, whatever the depth.
///
/// # Errors
///
/// The first difference found; or that the table is not of the format.
pub fn compare(table: &Json, found: Value<'_>) -> Result<(), Difference> {
    let table = Table::parse(table)
        .map_err(|error| Difference::new("$".to_owned(), Reason::Table(error)))?;
    table.compare(found)
}

impl Table {
    /// Compares a decoded value with this one, identity included.
    ///
    /// # Errors
    ///
    /// The first difference found.
    pub fn compare(&self, found: Value<'_>) -> Result<(), Difference> {
        Matcher::new(self).run(found)
    }
}

type Expected<'a> = Part<'a, usize>;
type Found<'a> = Part<'a, Value<'a>>;

/// A place: a number in [`Matcher::places`].
type Place = usize;

/// Two values that have to be the same.
struct Due<'a> {
    place: Place,
    expected: Expected<'a>,
    found: Found<'a>,
}

/// The elements of two sets, to be paired.
#[derive(Clone)]
struct DueSet<'a> {
    place: Place,
    expected: Vec<Expected<'a>>,
    found: Vec<Found<'a>>,
}

/// Elements of two sets that hold the same and can be paired in several ways.
#[derive(Clone)]
struct DueClass<'a> {
    place: Place,
    /// With their places in the set.
    expected: Vec<(usize, usize)>,
    found: Vec<Value<'a>>,
}

/// A pairing that was chosen among several.
struct Choice<'a> {
    /// What to go back to.
    log: usize,
    rest: VecDeque<DueClass<'a>>,
    class: DueClass<'a>,
    /// Which of the found elements goes with the first expected one.
    chosen: usize,
}

struct Failed {
    place: Place,
    reason: Reason,
}

struct Matcher<'a> {
    table: &'a Table,
    /// The place that holds each, and the step from there. The root holds itself.
    places: Vec<(Place, Step<'a>)>,
    due: Vec<Due<'a>>,
    due_sets: Vec<DueSet<'a>>,
    due_classes: VecDeque<DueClass<'a>>,
    choices: Vec<Choice<'a>>,
    /// Node to object, object to node: for what has identity.
    objects: HashMap<usize, NodeId>,
    nodes: HashMap<NodeId, usize>,
    /// Pairs that have been compared, or are being compared.
    seen: HashSet<(usize, NodeId)>,
    /// What entered `seen`, in order.
    log: Vec<(usize, NodeId)>,
    classes: Classes<'a>,
    tries: usize,
    /// Was a pairing taken for which no other will be tried?
    given_up: bool,
}

impl<'a> Matcher<'a> {
    fn new(table: &'a Table) -> Self {
        Self {
            table,
            places: vec![(0, Step::Item(0))],
            due: Vec::new(),
            due_sets: Vec::new(),
            due_classes: VecDeque::new(),
            choices: Vec::new(),
            objects: HashMap::new(),
            nodes: HashMap::new(),
            seen: HashSet::new(),
            log: Vec::new(),
            classes: Classes::default(),
            tries: 0,
            given_up: false,
        }
    }

    fn run(mut self, root: Value<'a>) -> Result<(), Difference> {
        let table = self.table;
        let found = match found_part(root) {
            Ok(found) => found,
            Err(reason) => return Err(self.difference(Failed { place: 0, reason })),
        };
        self.due.push(Due {
            place: 0,
            expected: shape::part(&table.root),
            found,
        });
        let mut first = None;
        loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(failed) => {
                    let first = first.get_or_insert(failed);
                    if self.tries < TRIES && self.choose_again() {
                        continue;
                    }
                    if self.given_up || self.tries >= TRIES {
                        first.reason = Reason::Undecided;
                    }
                    let Failed { place, reason } = first;
                    let (place, reason) = (*place, reason.clone());
                    return Err(self.difference(Failed { place, reason }));
                }
            }
        }
    }

    /// Does the next thing that is due; false when there is none.
    fn step(&mut self) -> Result<bool, Failed> {
        if let Some(due) = self.due.pop() {
            let place = due.place;
            self.pair(due).map_err(|reason| Failed { place, reason })?;
        } else if let Some(set) = self.due_sets.pop() {
            let place = set.place;
            self.pair_elements(set)
                .map_err(|reason| Failed { place, reason })?;
        } else if let Some(class) = self.due_classes.pop_front() {
            let place = class.place;
            self.pair_class(class)
                .map_err(|reason| Failed { place, reason })?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn pair(&mut self, due: Due<'a>) -> Result<(), Reason> {
        let (number, value) = match (due.expected, due.found) {
            (Part::Leaf(expected), Part::Leaf(found)) if expected == found => return Ok(()),
            (Part::Node(number), Part::Node(value)) => (number, value),
            (expected, found) => {
                return Err(Reason::Content {
                    expected: self.show_expected(&expected),
                    found: show_found(&found),
                });
            }
        };
        if self.seen.contains(&(number, value.id())) {
            return Ok(());
        }
        let expected = self
            .table
            .shape(number)
            .map_err(|what| Reason::Incomparable {
                what: what.to_owned(),
            })?;
        let found = found_shape(value)?;
        if expected.label != found.label {
            return Err(Reason::Content {
                expected: expected.label.to_string(),
                found: found.label.to_string(),
            });
        }
        same_parts(&expected, &found)?;
        if expected.nature.identity {
            let known = (self.objects.get(&number), self.nodes.get(&value.id()));
            if known != (None, None) {
                return Err(Reason::Sharing {
                    expected_shared: known.0.is_some(),
                });
            }
            self.objects.insert(number, value.id());
            self.nodes.insert(value.id(), number);
        }
        self.seen.insert((number, value.id()));
        self.log.push((number, value.id()));
        if !expected.elements.is_empty() {
            self.due_sets.push(DueSet {
                place: due.place,
                expected: expected.elements,
                found: found.elements,
            });
        }
        // Backwards, so that the first part is compared first.
        let parts = expected.parts.into_iter().zip(found.parts).rev();
        for ((step, expected), (_, found)) in parts {
            let place = self.place(due.place, step);
            self.due.push(Due {
                place,
                expected,
                found,
            });
        }
        Ok(())
    }

    fn place(&mut self, holder: Place, step: Step<'a>) -> Place {
        self.places.push((holder, step));
        self.places.len() - 1
    }

    /// Pairs elements by what they hold.
    fn pair_elements(&mut self, set: DueSet<'a>) -> Result<(), Reason> {
        let table = self.table;
        let mut expected = Vec::with_capacity(set.expected.len());
        for (index, part) in set.expected.into_iter().enumerate() {
            expected.push((self.classes.expected(table, &part), index, part));
        }
        let mut found = Vec::with_capacity(set.found.len());
        for part in set.found {
            found.push((self.classes.found(&part), part));
        }
        expected.sort_by_key(|(class, index, _)| (*class, *index));
        found.sort_by_key(|(class, _)| *class);
        let lacking = first_lacking(&expected, |(class, ..)| *class, &found, |(class, _)| *class);
        let beside = first_lacking(&found, |(class, _)| *class, &expected, |(class, ..)| *class);
        // There are as many of the one as of the other.
        if let (Some((_, _, expected)), Some((_, found))) = (lacking, beside) {
            return Err(Reason::Elements {
                expected: self.show_expected(expected),
                found: show_found(found),
            });
        }
        let mut expected = expected.into_iter().zip(found).peekable();
        while let Some(((class, index, part), (_, other))) = expected.next() {
            let (Part::Node(number), Part::Node(value)) = (part, other) else {
                // Leaves of one class are equal.
                continue;
            };
            let mut due = DueClass {
                place: set.place,
                expected: vec![(index, number)],
                found: vec![value],
            };
            while let Some(((_, index, Part::Node(number)), (_, Part::Node(value)))) =
                expected.next_if(|((next, ..), _)| *next == class)
            {
                due.expected.push((index, number));
                due.found.push(value);
            }
            if let ([(index, number)], [value]) = (&*due.expected, &*due.found) {
                self.due_element(set.place, *index, *number, *value);
            } else {
                self.due_classes.push_back(due);
            }
        }
        Ok(())
    }

    fn due_element(&mut self, set: Place, index: usize, number: usize, value: Value<'a>) {
        let place = self.place(set, Step::Element(index));
        self.due.push(Due {
            place,
            expected: Part::Node(number),
            found: Part::Node(value),
        });
    }

    /// Pairs elements that hold the same: those known to go together, and then the first with each of the others in turn.
    fn pair_class(&mut self, mut class: DueClass<'a>) -> Result<(), Reason> {
        let objects = &self.objects;
        let mut astray = false;
        class.expected.retain(|(_, number)| {
            let Some(object) = objects.get(number) else {
                return true;
            };
            let at = class.found.iter().position(|value| value.id() == *object);
            match at {
                Some(at) => {
                    class.found.swap_remove(at);
                }
                None => astray = true,
            }
            false
        });
        if astray {
            return Err(Reason::Sharing {
                expected_shared: true,
            });
        }
        match class.expected.len() {
            0 => {}
            1 => {
                let (index, number) = class.expected[0];
                self.due_element(class.place, index, number, class.found[0]);
            }
            _ => {
                if self.choices.len() < CHOICES {
                    self.choices.push(Choice {
                        log: self.log.len(),
                        rest: self.due_classes.clone(),
                        class: class.clone(),
                        chosen: 0,
                    });
                } else {
                    self.given_up = true;
                }
                self.choose(class, 0);
            }
        }
        Ok(())
    }

    /// Pairs the first expected element of a class with one of the found.
    fn choose(&mut self, mut class: DueClass<'a>, chosen: usize) {
        let (index, number) = class.expected.remove(0);
        let value = class.found.remove(chosen);
        let place = class.place;
        self.due_classes.push_front(class);
        self.due_element(place, index, number, value);
    }

    /// Goes back to the last choice that leaves another way, and takes it; false if there is none.
    fn choose_again(&mut self) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            let log = choice.log;
            choice.chosen += 1;
            let left = choice.chosen < choice.class.found.len();
            for (number, id) in self.log.drain(log..) {
                self.seen.remove(&(number, id));
                if self.objects.get(&number) == Some(&id) {
                    self.objects.remove(&number);
                    self.nodes.remove(&id);
                }
            }
            self.due.clear();
            self.due_sets.clear();
            if left {
                let (class, chosen) = (choice.class.clone(), choice.chosen);
                self.due_classes = choice.rest.clone();
                self.tries += 1;
                self.choose(class, chosen);
                return true;
            }
            self.choices.pop();
        }
        false
    }

    fn show_expected(&self, part: &Expected<'_>) -> String {
        match part {
            Part::Leaf(leaf) => leaf.to_string(),
            Part::Node(number) => match self.table.shape(*number) {
                Ok(shape) => shape.label.to_string(),
                Err(what) => what.to_owned(),
            },
        }
    }

    fn difference(&self, failed: Failed) -> Difference {
        Difference::new(self.path(failed.place), failed.reason)
    }

    /// The steps from the root; of many, the first and the last.
    fn path(&self, mut place: Place) -> String {
        const SHOWN: usize = 10;
        let mut steps = Vec::new();
        while place != 0 {
            let (holder, step) = &self.places[place];
            steps.push(step);
            place = *holder;
        }
        let mut path = "$".to_owned();
        let left_out = steps.len().saturating_sub(2 * SHOWN);
        for (number, step) in steps.iter().rev().enumerate() {
            if number < SHOWN || number >= SHOWN + left_out {
                path.push_str(&step.to_string());
            } else if number == SHOWN {
                path.push_str(&format!(" ... {left_out} more ... "));
            }
        }
        path
    }
}

fn found_part<'a>(value: Value<'a>) -> Result<Found<'a>, Reason> {
    found::part(value).ok_or_else(|| foreign(value))
}

fn found_shape<'a>(value: Value<'a>) -> Result<Shape<'a, Value<'a>>, Reason> {
    found::shape(value).ok_or_else(|| foreign(value))
}

fn foreign(value: Value<'_>) -> Reason {
    Reason::Foreign {
        kind: value.kind().name().to_owned(),
    }
}

fn show_found(part: &Found<'_>) -> String {
    match part {
        Part::Leaf(leaf) => leaf.to_string(),
        Part::Node(value) => match found::shape(*value) {
            Some(shape) => shape.label.to_string(),
            None => value.kind().name().to_owned(),
        },
    }
}

/// The first of `these` that is not among `those`, both sorted by class.
fn first_lacking<'s, A, B>(
    these: &'s [A],
    this: fn(&A) -> Class,
    those: &[B],
    that: fn(&B) -> Class,
) -> Option<&'s A> {
    let mut those = those.iter().peekable();
    these.iter().find(|wanted| {
        while those.next_if(|other| that(other) < this(wanted)).is_some() {}
        those.next_if(|other| that(other) == this(wanted)).is_none()
    })
}

fn same_parts<A, B>(expected: &Shape<'_, A>, found: &Shape<'_, B>) -> Result<(), Reason> {
    if expected.elements.len() != found.elements.len() {
        return Err(Reason::Parts {
            expected: format!("{} elements", expected.elements.len()),
            found: format!("{} elements", found.elements.len()),
        });
    }
    let differs = expected
        .parts
        .iter()
        .zip(&found.parts)
        .position(|((expected, _), (found, _))| expected != found);
    let shorter = expected.parts.len().min(found.parts.len());
    if differs.is_none() && expected.parts.len() == found.parts.len() {
        return Ok(());
    }
    let at = differs.unwrap_or(shorter);
    let show = |step: Option<String>, count: usize| match step {
        Some(step) => format!("{step} of {count} parts"),
        None => format!("{count} parts"),
    };
    let expected_step = expected.parts.get(at).map(|(step, _)| step.to_string());
    let found_step = found.parts.get(at).map(|(step, _)| step.to_string());
    Err(Reason::Parts {
        expected: show(expected_step, expected.parts.len()),
        found: show(found_step, found.parts.len()),
    })
}
