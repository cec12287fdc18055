//! The messages of the specification, byte by byte, as the suite sends them and as it expects them.

use crate::msgpack::{Msg, bin, map, text};

/// Payload of `call`, also the body of `POST /call`.
pub(crate) fn call(id: &str, target: &str, arguments: &[u8]) -> Vec<u8> {
    map([
        ("call_id", text(id)),
        ("callable", text(target)),
        ("arguments", bin(arguments)),
    ])
    .bytes()
}

/// Payload of `call` with `context`.
pub(crate) fn call_with_context(id: &str, target: &str, arguments: &[u8], context: Msg) -> Vec<u8> {
    map([
        ("call_id", text(id)),
        ("callable", text(target)),
        ("arguments", bin(arguments)),
        ("context", context),
    ])
    .bytes()
}

/// Payload of `cancel` and `ack`, and the body of a 202.
pub(crate) fn only_id(id: &str) -> Vec<u8> {
    map([("call_id", text(id))]).bytes()
}

/// Payload of `resume`.
pub(crate) fn resume(ids: &[&str]) -> Vec<u8> {
    let ids = ids.iter().map(|id| text(id)).collect();
    map([("call_ids", Msg::Array(ids))]).bytes()
}

/// Payload of `call:result`.
pub(crate) fn result(id: &str, value: &[u8]) -> Vec<u8> {
    map([("call_id", text(id)), ("value", bin(value))]).bytes()
}

/// An error map: five keys in order.
pub(crate) fn error(
    kind: &str,
    message: &str,
    traceback: Option<&str>,
    cancelled: bool,
    returncode: Option<i64>,
) -> Msg {
    map([
        ("type", text(kind)),
        ("message", text(message)),
        ("traceback", traceback.map_or(Msg::Nil, text)),
        ("cancelled", Msg::Bool(cancelled)),
        ("returncode", returncode.map_or(Msg::Nil, Msg::Int)),
    ])
}

/// Bodies of pipe frames, without their length.
pub(crate) mod frame {
    use crate::msgpack::{Msg, bin, map, text};

    /// Runs a function; `context` is nil where there is none.
    pub(crate) fn call(id: &str, target: &str, arguments: &[u8], context: Msg) -> Vec<u8> {
        map([
            ("type", text("call")),
            ("call_id", text(id)),
            ("callable", text(target)),
            ("arguments", bin(arguments)),
            ("context", context),
        ])
        .bytes()
    }

    /// Stops a call.
    pub(crate) fn cancel(id: &str) -> Vec<u8> {
        map([("type", text("cancel")), ("call_id", text(id))]).bytes()
    }

    /// Ends the worker.
    pub(crate) fn shutdown() -> Vec<u8> {
        map([("type", text("shutdown"))]).bytes()
    }

    /// An event of a host; `data` is msgpack already.
    pub(crate) fn sio_inbound(namespace: &str, event: &str, data: &[u8]) -> Vec<u8> {
        side("sio_inbound", namespace, event, data)
    }

    /// The worker can take calls.
    pub(crate) fn ready() -> Vec<u8> {
        map([("type", text("ready"))]).bytes()
    }

    /// The worker cannot start.
    pub(crate) fn boot_error(error: Msg) -> Vec<u8> {
        map([("type", text("boot_error")), ("error", error)]).bytes()
    }

    /// A call returned.
    pub(crate) fn result(id: &str, value: &[u8]) -> Vec<u8> {
        map([
            ("type", text("result")),
            ("call_id", text(id)),
            ("value", bin(value)),
        ])
        .bytes()
    }

    /// A call failed.
    pub(crate) fn error(id: &str, error: Msg) -> Vec<u8> {
        map([
            ("type", text("error")),
            ("call_id", text(id)),
            ("error", error),
        ])
        .bytes()
    }

    /// The namespace has handlers now.
    pub(crate) fn sio_open(namespace: &str) -> Vec<u8> {
        map([("type", text("sio_open")), ("namespace", text(namespace))]).bytes()
    }

    /// An event for the hosts; `data` is msgpack already.
    pub(crate) fn sio_emit(namespace: &str, event: &str, data: &[u8]) -> Vec<u8> {
        side("sio_emit", namespace, event, data)
    }

    fn side(tag: &str, namespace: &str, event: &str, data: &[u8]) -> Vec<u8> {
        map([
            ("type", text(tag)),
            ("namespace", text(namespace)),
            ("event", text(event)),
            ("data", Msg::Raw(data.to_vec())),
        ])
        .bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let compact: String = text.split_whitespace().collect();
        data_encoding::HEXLOWER.decode(compact.as_bytes()).unwrap()
    }

    /// The examples of messages-rpc.md and pipe.md.
    #[test]
    fn examples_of_the_specification() {
        let arguments = hex("80 04 95 0b00000000000000 4b01 4b02 86 94 7d 94 86 94 2e");
        assert_eq!(
            call("c1", "app::add", &arguments),
            hex("83 a7 63616c6c5f6964 a2 6331 a8 63616c6c61626c65 a8 6170703a3a616464
                 a9 617267756d656e7473 c4 16 80 04 95 0b00000000000000 4b01 4b02 86 94 7d 94 86 94 2e")
        );
        assert_eq!(
            result("c1", &hex("80044b032e")),
            hex("82 a7 63616c6c5f6964 a2 6331 a5 76616c7565 c4 05 80044b032e")
        );
        let rejected = map([
            ("call_id", text("")),
            (
                "error",
                error("BadRequest", "missing call_id", None, false, None),
            ),
        ]);
        assert_eq!(
            rejected.bytes(),
            hex(
                "82 a7 63616c6c5f6964 a0 a5 6572726f72 85 a4 74797065 aa 42616452657175657374
                 a7 6d657373616765 af 6d697373696e672063616c6c5f6964 a9 74726163656261636b c0
                 a9 63616e63656c6c6564 c2 aa 72657475726e636f6465 c0"
            )
        );
        assert_eq!(
            resume(&["c1", "c2"]),
            hex("81 a8 63616c6c5f696473 92 a2 6331 a2 6332")
        );
        assert_eq!(
            frame::cancel("c"),
            hex("82 a4 74797065 a6 63616e63656c a7 63616c6c5f6964 a1 63")
        );
        assert_eq!(
            frame::sio_open("/app"),
            hex("82 a4 74797065 a8 73696f5f6f70656e a9 6e616d657370616365 a4 2f617070")
        );
        assert_eq!(
            frame::result("c", &hex("80044e2e")),
            hex(
                "83 a4 74797065 a6 726573756c74 a7 63616c6c5f6964 a1 63 a5 76616c7565 c4 04 80044e2e"
            )
        );
    }
}
