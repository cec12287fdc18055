//! Numbers that every part keeps.

/// Largest message on every edge, in bytes: 256 MiB (AGX-LIM).
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;
/// Most values in one msgpack message: 2^24, so that a decoder needs at most 1 GiB beside the bytes.
pub const MAX_VALUES: usize = 1 << 24;
/// Deepest nesting of containers in one msgpack message; what CPython's msgpack accepts.
pub const MAX_DEPTH: usize = 1024;
/// Deepest nesting of extension type 2.
pub const MAX_MODEL_DEPTH: usize = 16;
/// Longest call id, in bytes of UTF-8.
pub const MAX_CALL_ID_BYTES: usize = 128;
/// Retained results by count.
pub const MAX_RETAINED: usize = 4096;
/// Retained results by payload bytes: 1 GiB.
pub const MAX_RETAINED_BYTES: usize = 1024 * 1024 * 1024;
/// Records held for one reliable stream.
pub const STREAM_BUFFER: usize = 10_000;
/// Events held for a namespace that the worker has not opened.
pub const HELD_EVENTS: usize = 1024;
/// Bytes held for a namespace that the worker has not opened: 1 MiB.
pub const HELD_BYTES: usize = 1024 * 1024;
