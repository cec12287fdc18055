//! Messages that the tests send.

use agentix_protocol::error::RemoteError;
use agentix_protocol::ident::CallId;
use agentix_protocol::message::{Call, Outcome};
use bytes::Bytes;

pub(crate) fn id(n: u128) -> CallId {
    CallId::from_random(n)
}

pub(crate) fn call(n: u128) -> Call {
    Call {
        call_id: id(n),
        callable: "app::run".into(),
        arguments: Bytes::from_static(b"\x80\x04)}\x86."),
        context: None,
    }
}

pub(crate) fn value(n: u128) -> Outcome {
    Outcome::value(id(n), Bytes::from(format!("value {n}")))
}

pub(crate) fn unavailable(n: u128) -> Outcome {
    Outcome::error(id(n), RemoteError::result_unavailable())
}

pub(crate) fn cancelled(n: u128) -> Outcome {
    Outcome::error(id(n), RemoteError::cancelled())
}
