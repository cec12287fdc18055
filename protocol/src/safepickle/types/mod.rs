//! The value types that need a global: how each is made, and what it tells.

pub(super) mod codec;
pub(super) mod collection;
pub(super) mod decimal;
pub(super) mod exception;
pub(super) mod number;
pub mod numpy;
pub(super) mod path;
pub(super) mod record;
mod scalar_builder;
pub(super) mod time;
pub(super) mod uuid;
