//! UUIDs.

use std::fmt;

use num_traits::ToPrimitive;

use super::super::arena::{Arena, Node, NodeId, Span};
use super::super::construct::{Args, How};
use super::super::error::Malformed;
use super::super::known::Known;
use super::super::machine::{Machine, Step};
use super::super::object::Object;
use super::super::value::{Kind, Value};
use super::record::Origin;

/// A `uuid.UUID`.
///
/// `Display` gives what `str()` gives in Python.
///
/// ```
/// use agentix_protocol::safepickle::decode;
/// let stream = b"\x80\x04cuuid\nUUID\n)\x81}\x8c\x03int\x8a\x10xV4\x12xV4\x12xV4\x12xV4\x12sb.";
/// let document = decode(stream)?;
/// let uuid = document.root().uuid().unwrap();
/// assert_eq!(uuid.to_string(), "12345678-1234-5678-1234-567812345678");
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uuid {
    /// The 128 bits, the first byte of the usual text the highest.
    pub int: u128,
    /// Whether it was made in a way that is safe for several processes, if that is known. Without
    /// meaning for equality in Python.
    pub is_safe: Option<UuidSafety>,
}

/// `uuid.SafeUUID`, where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UuidSafety {
    /// `safe`: 0.
    Safe,
    /// `unsafe`: -1.
    Unsafe,
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            self.int >> 96,
            self.int >> 80 & 0xffff,
            self.int >> 64 & 0xffff,
            self.int >> 48 & 0xffff,
            self.int & 0xffff_ffff_ffff
        )
    }
}

impl Value<'_> {
    /// A UUID.
    pub fn uuid(self) -> Option<Uuid> {
        match self.node() {
            Node::Uuid(index) => Some(self.arena().uuids[index as usize]),
            _ => None,
        }
    }
}

impl Machine<'_, '_> {
    /// `UUID.__new__(UUID)`: a record, until its state turns it into a UUID.
    pub(in super::super) fn new_uuid(
        &mut self,
        how: How,
        class: NodeId,
        args: Args,
    ) -> Step<NodeId> {
        if how != How::New || args.len() != 0 {
            return Err(Malformed::Arguments.into());
        }
        let id = self.record(Origin::New, Some(class), args.tuple, None)?;
        self.expect_build(id);
        Ok(id)
    }

    /// Whether this is a UUID without its state.
    pub(in super::super) fn is_uuid_without_state(&self, id: NodeId) -> bool {
        match self.arena.object(id) {
            Some(Object::Record(record)) => {
                let class = record.class.and_then(|class| self.arena.global(class));
                class.and_then(|class| class.known) == Some(Known::Uuid)
                    && record.origin == Origin::New
                    && record.states.is_none()
                    && matches!(
                        self.arena.node(record.args),
                        Node::Tuple(Span { len: 0, .. })
                    )
            }
            _ => false,
        }
    }

    /// Turns a UUID without its state into a UUID. Everything that refers to it sees the UUID.
    pub(in super::super) fn build_uuid(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        self.charge(self.arena.children(state).len() as u64 / 2)?;
        let uuid = uuid_of(&self.arena, state).ok_or(Malformed::NoState(Kind::Uuid))?;
        let index = u32::try_from(self.arena.uuids.len()).map_err(|_| Malformed::Arguments)?;
        if let Node::Object(object) = self.arena.node(id)
            && object as usize + 1 == self.arena.objects.len()
        {
            self.arena.objects.pop();
        }
        self.arena.uuids.push(uuid);
        self.arena.nodes[id.index()] = Node::Uuid(index);
        self.built(id);
        Ok(())
    }
}

/// The UUID whose state is a dict with `int` and maybe `is_safe`. As in Python, other entries are
/// left aside.
fn uuid_of(arena: &Arena<'_>, state: NodeId) -> Option<Uuid> {
    let Node::Dict(_) = arena.node(state) else {
        return None;
    };
    let entries = arena.children(state).chunks_exact(2);
    let value = |name: &[u8]| {
        entries
            .clone()
            .find_map(|entry| match arena.node(entry[0]) {
                Node::Str(bytes) if arena.bytes(bytes) == name => Some(arena.node(entry[1])),
                _ => None,
            })
    };
    let int = match value(b"int")? {
        Node::Int(int) => u128::try_from(int).ok()?,
        Node::BigInt(index) => arena.big_ints[index as usize].to_u128()?,
        _ => return None,
    };
    let is_safe = match value(b"is_safe") {
        None | Some(Node::None) => None,
        Some(Node::Int(0)) => Some(UuidSafety::Safe),
        Some(Node::Int(-1)) => Some(UuidSafety::Unsafe),
        Some(_) => return None,
    };
    Some(Uuid { int, is_safe })
}
