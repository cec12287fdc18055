//! Classes of set elements that hold the same, on both sides of a comparison.
//!
//! What is hashed by what it holds (tuples, frozensets, dates, ...) is in one class exactly if it holds the same, to any
//! depth. What is hashed by identity, such as an exception, is put into classes by its kind and by those of its parts
//! that have no parts of their own: more cannot be told without walking cycles, and the comparison tells the rest.

use std::collections::HashMap;
use std::hash::Hash;

use agentix_protocol::safepickle::{NodeId, Value};

use super::found;
use super::shape::{Label, Leaf, Part, Shape};
use super::table::Table;

/// The number of a class.
pub(super) type Class = usize;

/// The class of what is not looked into.
const ANY: Class = 0;

/// What makes a class.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Leaf(Leaf<'a>),
    Node {
        label: Box<Label<'a>>,
        parts: Vec<Class>,
        elements: Vec<Class>,
    },
}

/// The classes met so far.
#[derive(Debug, Default)]
pub(super) struct Classes<'a> {
    keys: HashMap<Key<'a>, Class>,
    nodes: HashMap<usize, Class>,
    objects: HashMap<NodeId, Class>,
}

impl<'a> Classes<'a> {
    /// The class of an expected element.
    pub(super) fn expected(&mut self, table: &'a Table, part: &Part<'a, usize>) -> Class {
        let shape = |number| table.shape(number).ok();
        classify(
            &mut self.keys,
            &mut self.nodes,
            part,
            |number| number,
            shape,
        )
    }

    /// The class of a decoded element.
    pub(super) fn found(&mut self, part: &Part<'a, Value<'a>>) -> Class {
        classify(
            &mut self.keys,
            &mut self.objects,
            part,
            Value::id,
            found::shape,
        )
    }
}

fn intern<'a>(keys: &mut HashMap<Key<'a>, Class>, key: Key<'a>) -> Class {
    let next = keys.len() + 1;
    *keys.entry(key).or_insert(next)
}

/// The class of a part on one side, whose nodes have ids and shapes.
fn classify<'a, N: Copy, I: Copy + Eq + Hash>(
    keys: &mut HashMap<Key<'a>, Class>,
    known: &mut HashMap<I, Class>,
    part: &Part<'a, N>,
    id: impl Fn(N) -> I,
    shape: impl Fn(N) -> Option<Shape<'a, N>>,
) -> Class {
    let root = match part {
        Part::Leaf(leaf) => return intern(keys, Key::Leaf(leaf.clone())),
        Part::Node(node) => *node,
    };
    /// A node to look at, or one whose parts have been looked at.
    enum Task<'a, N> {
        Enter(N),
        Leave(N, Box<Shape<'a, N>>),
    }
    let mut tasks = vec![Task::Enter(root)];
    while let Some(task) = tasks.pop() {
        let (node, shape) = match task {
            Task::Leave(node, shape) => (node, *shape),
            Task::Enter(node) => {
                if known.contains_key(&id(node)) {
                    continue;
                }
                // Stands for it where its own parts lead back to it.
                known.insert(id(node), ANY);
                let Some(shape) = shape(node) else {
                    continue;
                };
                let nodes = shape
                    .parts
                    .iter()
                    .map(|(_, part)| part)
                    .chain(&shape.elements)
                    .filter_map(|part| match part {
                        Part::Node(node) if shape.nature.by_value => Some(Task::Enter(*node)),
                        _ => None,
                    });
                let nodes: Vec<_> = nodes.collect();
                tasks.push(Task::Leave(node, Box::new(shape)));
                tasks.extend(nodes);
                continue;
            }
        };
        let mut class = |part: &Part<'a, N>| match part {
            Part::Leaf(leaf) => intern(keys, Key::Leaf(leaf.clone())),
            Part::Node(node) if shape.nature.by_value => {
                known.get(&id(*node)).copied().unwrap_or(ANY)
            }
            Part::Node(_) => ANY,
        };
        let parts = shape.parts.iter().map(|(_, part)| class(part)).collect();
        let mut elements: Vec<_> = shape.elements.iter().map(&mut class).collect();
        elements.sort_unstable();
        let key = Key::Node {
            label: Box::new(shape.label),
            parts,
            elements,
        };
        let class = intern(keys, key);
        known.insert(id(node), class);
    }
    known.get(&id(root)).copied().unwrap_or(ANY)
}
