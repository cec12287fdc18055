//! Dict keys and set elements: equality and hashing as in Python, counted and without recursion.
//!
//! Numbers are equal across kinds (`1`, `1.0` and `True` are one key); `str` and `bytes` never are;
//! tuples and frozensets compare by content; NaN is equal to itself as an object only, and so are
//! exceptions and records. What Python cannot hash is no key: lists, dicts, sets, arrays, slices.

use std::collections::BTreeMap;

use super::arena::{Arena, Node, NodeId};
use super::leaf::{self, Identity};
use super::value::{Kind, Value};

/// Why a key was not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    Unhashable(Kind),
    /// Nested deeper than allowed.
    TooDeep,
    /// The work budget is spent.
    WorkSpent,
}

/// The budget for looking at keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) work: u64,
    pub(super) depth: usize,
}

impl Budget {
    const UNBOUNDED: Budget = Budget {
        work: u64::MAX,
        depth: usize::MAX,
    };

    pub(super) fn charge(&mut self, steps: u64) -> Result<(), KeyError> {
        self.work = self.work.checked_sub(steps).ok_or(KeyError::WorkSpent)?;
        Ok(())
    }
}

/// What a container of keys says about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It is there, under this entry number.
    At(usize),
    /// It is not, and is taken to become the next entry.
    New,
}

/// Containers up to this many entries are searched from end to end.
const LINEAR: usize = 12;

/// Steps for an entry of an index: up to 32 bytes of memory, which a stream may ask for again and again
/// by making sets of one list.
const INDEX: u64 = 8;

/// The keys of every container that is being built.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) budget: Budget,
    indexes: BTreeMap<NodeId, Index>,
}

impl Keys {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            budget,
            indexes: BTreeMap::new(),
        }
    }

    /// Looks for `key` among the entries of `container`, each of which takes `stride` items.
    pub(super) fn position(
        &mut self,
        arena: &Arena<'_>,
        container: NodeId,
        stride: usize,
        key: NodeId,
    ) -> Result<Position, KeyError> {
        let entries = arena.children(container);
        let count = entries.len() / stride;
        if count <= LINEAR {
            return self.scan(arena, entries, stride, key);
        }
        self.search(arena, container, entries, stride, key)
    }

    /// Whether `operands`, keys and values in turn, are few and hold no key twice. If not, nothing is
    /// charged.
    pub(super) fn distinct(&mut self, arena: &Arena<'_>, operands: &[NodeId]) -> bool {
        let before = self.budget;
        let distinct = operands.len() <= 2 * LINEAR
            && (0..operands.len())
                .step_by(2)
                .all(|at| self.scan(arena, &operands[..at], 2, operands[at]) == Ok(Position::New));
        if !distinct {
            self.budget = before;
        }
        distinct
    }

    /// Looks through few entries from end to end.
    fn scan(
        &mut self,
        arena: &Arena<'_>,
        entries: &[NodeId],
        stride: usize,
        key: NodeId,
    ) -> Result<Position, KeyError> {
        // Nobody hashes these here, but whoever compares two sets does, for each set that holds one.
        if let (1, Node::Str(bytes) | Node::Bytes(bytes)) = (stride, arena.node(key)) {
            self.budget.charge(u64::from(bytes.len) / 32)?;
        }
        if let Node::Str(bytes) = arena.node(key) {
            return self.scan_for_str(arena, entries, stride, (key, arena.bytes(bytes)));
        }
        // Hashing says whether it can be hashed, and charges for it. Of these it is known.
        if !matches!(
            arena.node(key),
            Node::Int(_) | Node::Bytes(_) | Node::None | Node::Bool(_)
        ) {
            hash(arena, key, Identity::Object, &mut self.budget)?;
        }
        for (at, candidate) in entries.iter().step_by(stride).enumerate() {
            if equal(
                (arena, *candidate),
                (arena, key),
                Identity::Object,
                &mut self.budget,
            )? {
                return Ok(Position::At(at));
            }
        }
        Ok(Position::New)
    }

    /// The usual key, without what it takes to compare any.
    fn scan_for_str(
        &mut self,
        arena: &Arena<'_>,
        entries: &[NodeId],
        stride: usize,
        (key, text): (NodeId, &[u8]),
    ) -> Result<Position, KeyError> {
        for (at, candidate) in entries.iter().step_by(stride).enumerate() {
            self.budget.charge(1)?;
            if *candidate == key {
                return Ok(Position::At(at));
            }
            if let Node::Str(bytes) = arena.node(*candidate)
                && bytes.len as usize == text.len()
            {
                self.budget.charge(u64::from(bytes.len) / 32)?;
                if arena.bytes(bytes) == text {
                    return Ok(Position::At(at));
                }
            }
            // A scalar of numpy may be a str as well.
            if matches!(arena.node(*candidate), Node::Object(_))
                && leaf::equal(
                    (arena, *candidate),
                    (arena, key),
                    Identity::Object,
                    &mut self.budget,
                )?
            {
                return Ok(Position::At(at));
            }
        }
        Ok(Position::New)
    }

    /// Looks an entry up by its hash.
    fn search(
        &mut self,
        arena: &Arena<'_>,
        container: NodeId,
        entries: &[NodeId],
        stride: usize,
        key: NodeId,
    ) -> Result<Position, KeyError> {
        let count = entries.len() / stride;
        let index = match self.indexes.entry(container) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                self.budget.charge(INDEX * count as u64)?;
                let mut index = Index::default();
                for (at, known) in entries.iter().step_by(stride).enumerate() {
                    let known = hash(arena, *known, Identity::Object, &mut self.budget)?;
                    index.add(known, at);
                }
                entry.insert(index)
            }
        };
        let wanted = hash(arena, key, Identity::Object, &mut self.budget)?;
        let mut slot = index.first_slot(wanted as u32);
        while let Some((found, at)) = index.slots[slot].entry() {
            self.budget.charge(1)?;
            let candidate = entries[at * stride];
            if found == wanted as u32
                && equal(
                    (arena, candidate),
                    (arena, key),
                    Identity::Object,
                    &mut self.budget,
                )?
            {
                return Ok(Position::At(at));
            }
            slot = index.after(slot);
        }
        self.budget.charge(INDEX)?;
        index.add(wanted, count);
        Ok(Position::New)
    }
}

/// An open-addressing table from hash to entry number, at most half full. Only the low half of a
/// hash is used.
#[derive(Debug, Default)]
struct Index {
    slots: Vec<Slot>,
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    /// One more than the entry number, or 0 if the slot is free.
    next: u32,
}

impl Slot {
    fn entry(self) -> Option<(u32, usize)> {
        Some((self.hash, self.next.checked_sub(1)? as usize))
    }
}

impl Index {
    fn first_slot(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn add(&mut self, hash: u64, at: usize) {
        if self.used * 2 >= self.slots.len() {
            let larger = vec![Slot::default(); (self.slots.len() * 2).max(32)];
            for slot in std::mem::replace(&mut self.slots, larger) {
                if slot.next != 0 {
                    self.place(slot);
                }
            }
        }
        // There are fewer entries than objects, hence fewer than 2^32.
        self.place(Slot {
            hash: hash as u32,
            next: at as u32 + 1,
        });
        self.used += 1;
    }

    fn place(&mut self, entry: Slot) {
        let mut slot = self.first_slot(entry.hash);
        while self.slots[slot].next != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = entry;
    }
}

/// One multiplication folded: fast, and spreads well. It need not resist an attacker, since every
/// collision is charged to the work budget.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ ((product >> 64) as u64)
}

pub(super) fn bytes_hash(bytes: &[u8], salt: u64) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let mut hash = mix(bytes.len() as u64, salt);
    for chunk in &mut chunks {
        // Chunks are eight bytes each.
        hash = mix(
            hash,
            chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        );
    }
    mix(
        hash,
        chunks
            .remainder()
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    )
}

struct HashFrame {
    container: NodeId,
    next: usize,
    hash: u64,
}

fn hash(
    arena: &Arena<'_>,
    id: NodeId,
    identity: Identity,
    budget: &mut Budget,
) -> Result<u64, KeyError> {
    let mut open: Vec<HashFrame> = Vec::new();
    let mut current = id;
    loop {
        budget.charge(leaf::cost(arena, current))?;
        let mut done = leaf::hash(arena, current, identity)?;
        if done.is_none() {
            if open.len() >= budget.depth {
                return Err(KeyError::TooDeep);
            }
            open.push(HashFrame {
                container: current,
                next: 0,
                hash: 7,
            });
        }
        current = loop {
            let Some(frame) = open.last_mut() else {
                // Without an open frame the last hash is the whole one.
                return Ok(done.unwrap_or_default());
            };
            let tuple = matches!(arena.node(frame.container), Node::Tuple(_));
            if let Some(hash) = done.take() {
                frame.hash = if tuple {
                    mix(frame.hash, hash)
                } else {
                    frame.hash.wrapping_add(mix(hash, 8))
                };
            }
            let items = arena.children(frame.container);
            if let Some(next) = items.get(frame.next) {
                frame.next += 1;
                break *next;
            }
            done = Some(mix(frame.hash, if tuple { 9 } else { 10 }));
            open.pop();
        };
    }
}

pub(super) type Side<'x, 'a> = (&'x Arena<'a>, NodeId);

/// A comparison of two containers under way.
enum EqualFrame {
    Tuples {
        left: NodeId,
        right: NodeId,
        next: usize,
    },
    /// Elements of the left are matched, one by one, to unused ones of the right with the same hash.
    Sets {
        left: NodeId,
        right: NodeId,
        next: usize,
        candidates: Vec<(u64, usize, bool)>,
        candidate: usize,
        hash: u64,
    },
}

enum Step {
    Done(bool),
    Compare(NodeId, NodeId),
}

/// Whether two keys are equal.
fn equal(
    left: Side<'_, '_>,
    right: Side<'_, '_>,
    identity: Identity,
    budget: &mut Budget,
) -> Result<bool, KeyError> {
    let mut open = Vec::new();
    let verdict = begin(left, right, identity, &mut open, budget)?;
    conclude(left.0, right.0, identity, open, verdict, budget)
}

/// Runs open comparisons to their end.
fn conclude(
    left: &Arena<'_>,
    right: &Arena<'_>,
    identity: Identity,
    mut open: Vec<EqualFrame>,
    mut verdict: Option<bool>,
    budget: &mut Budget,
) -> Result<bool, KeyError> {
    while let Some(frame) = open.last_mut() {
        match frame.advance(left, right, identity, verdict.take(), budget)? {
            Step::Done(equal) => {
                open.pop();
                verdict = Some(equal);
            }
            Step::Compare(a, b) => {
                verdict = begin((left, a), (right, b), identity, &mut open, budget)?
            }
        }
    }
    // Without an open frame there is a verdict.
    Ok(verdict.unwrap_or_default())
}

/// Compares two leaves, or opens a frame for two containers.
fn begin(
    (left, a): Side<'_, '_>,
    (right, b): Side<'_, '_>,
    identity: Identity,
    open: &mut Vec<EqualFrame>,
    budget: &mut Budget,
) -> Result<Option<bool>, KeyError> {
    // Charged even if this is one object, of which a tuple may hold any number.
    budget.charge(1)?;
    if std::ptr::eq(left, right) && a == b {
        return Ok(Some(true));
    }
    match (left.node(a), right.node(b)) {
        (Node::Tuple(x), Node::Tuple(y)) if x.len == y.len => {
            open.push(EqualFrame::Tuples {
                left: a,
                right: b,
                next: 0,
            });
            too_deep(open, budget).map(|()| None)
        }
        (Node::Frozenset(x), Node::Frozenset(y)) if x.len == y.len => {
            open.push(sets(a, (right, b), identity, budget)?);
            too_deep(open, budget).map(|()| None)
        }
        _ => leaf::equal((left, a), (right, b), identity, budget).map(Some),
    }
}

fn too_deep(open: &[EqualFrame], budget: &Budget) -> Result<(), KeyError> {
    if open.len() > budget.depth {
        Err(KeyError::TooDeep)
    } else {
        Ok(())
    }
}

fn sets(
    left: NodeId,
    (arena, right): Side<'_, '_>,
    identity: Identity,
    budget: &mut Budget,
) -> Result<EqualFrame, KeyError> {
    let mut candidates = Vec::new();
    for (at, element) in arena.children(right).iter().enumerate() {
        candidates.push((hash(arena, *element, identity, budget)?, at, false));
    }
    candidates.sort_unstable();
    Ok(EqualFrame::Sets {
        left,
        right,
        next: 0,
        candidates,
        candidate: usize::MAX,
        hash: 0,
    })
}

impl EqualFrame {
    /// Takes the verdict on the pair last asked for, and asks for the next or concludes.
    fn advance(
        &mut self,
        left_arena: &Arena<'_>,
        right_arena: &Arena<'_>,
        identity: Identity,
        verdict: Option<bool>,
        budget: &mut Budget,
    ) -> Result<Step, KeyError> {
        match self {
            Self::Tuples { left, right, next } => {
                if verdict == Some(false) {
                    return Ok(Step::Done(false));
                }
                let (a, b) = (left_arena.children(*left), right_arena.children(*right));
                let Some(pair) = a.get(*next).zip(b.get(*next)) else {
                    return Ok(Step::Done(true));
                };
                *next += 1;
                Ok(Step::Compare(*pair.0, *pair.1))
            }
            Self::Sets {
                left,
                right,
                next,
                candidates,
                candidate,
                hash: wanted,
            } => {
                let elements = left_arena.children(*left);
                let mut fresh = verdict.is_none();
                match verdict {
                    Some(true) => {
                        candidates[*candidate].2 = true;
                        *next += 1;
                        fresh = true;
                    }
                    Some(false) => *candidate += 1,
                    None => {}
                }
                let Some(element) = elements.get(*next) else {
                    return Ok(Step::Done(true));
                };
                if fresh {
                    *wanted = hash(left_arena, *element, identity, budget)?;
                    *candidate = candidates.partition_point(|(hash, ..)| hash < wanted);
                }
                while let Some((hash, at, used)) = candidates.get(*candidate) {
                    if hash != wanted {
                        break;
                    }
                    budget.charge(1)?;
                    if !used {
                        return Ok(Step::Compare(*element, right_arena.children(*right)[*at]));
                    }
                    *candidate += 1;
                }
                Ok(Step::Done(false))
            }
        }
    }
}

/// Pairs the elements of two sets, or of two frozensets, that may be the same as [`Value`]'s equality
/// has it; `None` if there are no such pairs.
///
/// What Python holds equal is in a set but once, so there is one partner at most for each element. Only
/// what is equal to nothing but itself is paired by its looks, the first with the first.
///
/// Unbounded, since the decoder charged for hashing these very elements.
pub(super) fn pair_elements(left: Value<'_>, right: Value<'_>) -> Option<Vec<(NodeId, NodeId)>> {
    let (a, b) = (left.arena(), right.arena());
    let mut budget = Budget::UNBOUNDED;
    let elements = b.children(right.id());
    let mut candidates = Vec::with_capacity(elements.len());
    for (at, element) in elements.iter().enumerate() {
        let hash = hash(b, *element, Identity::Looks, &mut budget).ok()?;
        candidates.push((hash, at, false));
    }
    candidates.sort_unstable();
    // For where those of one hash begin, how many in a row have a partner: many may look alike.
    let mut paired = vec![0_usize; candidates.len()];
    let mut pairs = Vec::with_capacity(elements.len());
    for element in a.children(left.id()) {
        let wanted = hash(a, *element, Identity::Looks, &mut budget).ok()?;
        let from = candidates.partition_point(|(hash, ..)| *hash < wanted);
        let skipped = paired.get_mut(from)?;
        while matches!(candidates.get(from + *skipped), Some((hash, _, true)) if *hash == wanted) {
            *skipped += 1;
        }
        let alike = candidates[from + *skipped..].iter_mut();
        let (_, at, used) = alike
            .take_while(|(hash, ..)| *hash == wanted)
            .filter(|(.., used)| !used)
            .find(|(_, at, _)| {
                let partner = (b, elements[*at]);
                equal((a, *element), partner, Identity::Looks, &mut budget).unwrap_or(false)
            })?;
        *used = true;
        pairs.push((*element, elements[*at]));
    }
    Some(pairs)
}
