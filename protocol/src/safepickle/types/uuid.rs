//! UUIDs.

/// A `uuid.UUID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Uuid {
    /// The 128 bits, the first byte of the usual text the highest.
    pub int: u128,
    /// Whether it was made in a way that is safe for several processes, if that is known.
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
