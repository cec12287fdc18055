//! Properties of everything that reads bytes: round trip, no panic, and the same frames however
//! the bytes are cut.
#![allow(clippy::unwrap_used)]

use agentix_protocol::codec::{Key, Keys, Limits, Timestamp, Value, scan};
use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::frame::{FromWorker, ToWorker};
use agentix_protocol::framing::{self, FrameDecoder};
use agentix_protocol::http::{CallReply, Prefer, decode_call};
use agentix_protocol::ident::Namespace;
use agentix_protocol::packet::{
    Assembler, EnginePacket, Event, Incoming, Payload, PollingItem, SocketPacket, join_polling,
    split_polling,
};
use agentix_protocol::stream::{Envelope, Feedback};
use agentix_protocol::target::CallTarget;
use bytes::Bytes;
use proptest::prelude::*;

fn key() -> impl Strategy<Value = Key<'static>> {
    prop_oneof![
        any::<String>().prop_map(|text| Key::Str(text.into())),
        any::<Vec<u8>>().prop_map(|bytes| Key::Bin(bytes.into())),
    ]
}

fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (i64::MAX as u64 + 1..).prop_map(Value::BigUint),
        any::<f64>()
            .prop_filter("NaN is not equal", |f| !f.is_nan())
            .prop_map(Value::F64),
        any::<String>().prop_map(|text| Value::Str(text.into())),
        any::<Vec<u8>>().prop_map(|bytes| Value::Bin(bytes.into())),
        (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanoseconds)| Value::Timestamp(
            Timestamp {
                seconds,
                nanoseconds
            }
        )),
        (3..=127_i8, any::<Vec<u8>>()).prop_map(|(code, data)| Value::Ext(code, data.into())),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::hash_map(key(), inner.clone(), 0..8)
                .prop_map(|map| Value::Map(map.into_iter().collect())),
            inner.prop_map(|content| Value::Model(Box::new(content))),
        ]
    })
}

fn identifier() -> impl Strategy<Value = String> {
    "[\\p{L}_][\\p{L}\\p{Nd}_]{0,8}".prop_filter("XID", |name| {
        CallTarget::validate(&format!("{name}::f")).is_ok()
    })
}

fn namespace() -> impl Strategy<Value = Namespace> {
    "/[a-z][a-z0-9_/.-]{0,20}".prop_map(|name| Namespace::new(name).unwrap())
}

proptest! {
    #[test]
    fn codec_round_trip(value in value()) {
        let bytes = value.encode().unwrap();
        prop_assert_eq!(Value::decode(&bytes).unwrap(), value.clone());
        prop_assert!(scan(&bytes, Keys::StrOrBin, &Limits::default()).is_ok());
        prop_assert_eq!(value.into_owned().encode().unwrap(), bytes);
    }

    /// A message that is cut anywhere is refused, and so is one with something behind it.
    #[test]
    fn codec_takes_whole_messages_only(value in value(), extra in 1..4_usize) {
        let mut bytes = value.encode().unwrap();
        for cut in 0..bytes.len().min(200) {
            prop_assert!(Value::decode(&bytes[..cut]).is_err());
        }
        bytes.extend(std::iter::repeat_n(0xc0, extra));
        prop_assert!(Value::decode(&bytes).is_err());
    }

    /// Whatever the scan accepts under strict keys and whatever builds agree, but for the contents
    /// of extensions, which only the builder looks into.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>(), name in "[a-z:_]{0,12}", status in 0..600_u16) {
        if Value::decode(&bytes).is_ok() {
            prop_assert!(scan(&bytes, Keys::StrOrBin, &Limits::default()).is_ok());
        }
        let payload = Bytes::from(bytes);
        for event in ["call", "cancel", "resume", "ack", "call:result", "call:error", &name] {
            let _ = HostEvent::decode(event, &payload);
            let _ = RuntimeEvent::decode(event, &payload);
        }
        let _ = ToWorker::decode(&payload);
        let _ = FromWorker::decode(&payload);
        let _ = decode_call(&payload);
        let _ = CallReply::decode(status, &payload);
        let _ = Envelope::decode(&payload);
        let _ = Feedback::decode("_ack", &payload);
        let _ = Feedback::decode("_resume", &payload);
    }

    /// One changed byte in a real message: an error, or a message that reads back as itself.
    #[test]
    fn flipped_bytes_never_panic(
        value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = value.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = Value::decode(&bytes)
            && let Ok(again) = value.encode()
            && let Ok(same) = Value::decode(&again)
        {
            // NaN is the one value that is not itself.
            prop_assert_eq!(format!("{same:?}"), format!("{:?}", widen(value)));
        }
    }

    #[test]
    fn framing_does_not_depend_on_how_bytes_arrive(
        bodies in prop::collection::vec(any::<Vec<u8>>(), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut stream = Vec::new();
        for body in &bodies {
            stream.extend_from_slice(&framing::header(body.len()).unwrap());
            stream.extend_from_slice(body);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut decoder = FrameDecoder::default();
        let mut frames = Vec::new();
        for piece in cuts.windows(2) {
            decoder.push(&stream[piece[0]..piece[1]]);
            while let Some(frame) = decoder.next_frame().unwrap() {
                frames.push(frame.to_vec());
            }
        }
        prop_assert_eq!(frames, bodies);
        prop_assert!(decoder.is_empty());
    }

    #[test]
    fn framing_never_panics(pieces in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
        let mut decoder = FrameDecoder::with_limit(64);
        for piece in pieces {
            decoder.push(&piece);
            while let Ok(Some(frame)) = decoder.next_frame() {
                prop_assert!(frame.len() <= 64);
            }
        }
    }

    #[test]
    fn packet_round_trip(
        namespace in namespace(), ack in any::<Option<u64>>(), name in any::<String>(),
        payload in any::<Vec<u8>>(),
    ) {
        let packet = SocketPacket::BinaryEvent {
            namespace: namespace.clone(), ack, name: name.clone(),
        };
        let text = packet.encode();
        prop_assert_eq!(SocketPacket::parse(&text).unwrap(), packet);
        let engine = EnginePacket::Message(text.clone());
        prop_assert_eq!(EnginePacket::parse(&engine.encode()).unwrap(), engine);

        let mut assembler = Assembler::default();
        prop_assert_eq!(assembler.text(&text).unwrap(), None);
        prop_assert!(assembler.text(&text).is_err());
        let payload = Bytes::from(payload);
        let event = Event { namespace, name, ack, payload: Payload::Binary(payload.clone()) };
        prop_assert_eq!(assembler.binary(payload.clone()).unwrap(), Incoming::Event(event));
        prop_assert!(assembler.binary(payload).is_err());
    }

    /// JSON that is relayed keeps its numbers to the last bit.
    #[test]
    fn json_numbers_survive(
        float in any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()), int in any::<i64>(),
    ) {
        let args = vec![float.into(), int.into()];
        let packet = SocketPacket::Event {
            namespace: Namespace::rpc(), ack: None, name: "e".into(), args,
        };
        prop_assert_eq!(SocketPacket::parse(&packet.encode()).unwrap(), packet);
    }

    #[test]
    fn polling_round_trip(items in prop::collection::vec(
        prop_oneof![
            "[0-6][^\u{1e}]{0,20}".prop_map(PollingItem::Text),
            any::<Vec<u8>>().prop_map(|bytes| PollingItem::Binary(bytes.into())),
        ], 1..6,
    )) {
        prop_assert_eq!(split_polling(&join_polling(&items)).unwrap(), items);
    }

    #[test]
    fn packets_never_panic(text in any::<String>(), kind in "[0-9]{1,3}-?", rest in "[/a-z,0-9\\[\\]{}\":]{0,30}") {
        for text in [text, format!("{kind}{rest}")] {
            let _ = EnginePacket::parse(&text);
            let _ = split_polling(&text);
            if let Ok(packet) = SocketPacket::parse(&text) {
                prop_assert_eq!(SocketPacket::parse(&packet.encode()).unwrap(), packet);
            }
        }
    }

    #[test]
    fn target_round_trip(
        module in prop::collection::vec(identifier(), 1..4),
        qualname in prop::collection::vec(identifier(), 1..4),
    ) {
        let (module, qualname) = (module.join("."), qualname.join("."));
        let target = CallTarget::validate(&format!("{module}::{qualname}")).unwrap();
        prop_assert_eq!(target.module(), module);
        prop_assert_eq!(target.qualname(), qualname);
        prop_assert_eq!(CallTarget::validate(target.as_str()).unwrap(), target);
    }

    #[test]
    fn targets_never_panic(text in any::<String>(), near in "[a-z.:<> 0-9_]{0,16}") {
        for text in [text, near] {
            match CallTarget::validate(&text) {
                Ok(target) => prop_assert_eq!(target.as_str(), &text),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn prefer_never_panics(header in any::<String>(), near in "[wait=0-9., ;\"eE+-]{0,24}") {
        for text in [header, near] {
            let prefer = Prefer::parse(&text);
            prop_assert!(prefer.wait <= Prefer::MAX_WAIT);
            prop_assert_eq!(Prefer::parse(&prefer.to_string()), prefer);
        }
    }
}

/// Found by fuzzing: a number that was read as another one each time.
#[test]
fn a_long_number_is_read_once_and_for_all() {
    let text = "4 88888880000000000000000000001024819115206086190";
    let packet = SocketPacket::parse(text).unwrap();
    assert_eq!(SocketPacket::parse(&packet.encode()).unwrap(), packet);
}

/// Single floats are written as doubles.
fn widen(value: Value<'_>) -> Value<'_> {
    match value {
        Value::F32(f) => Value::F64(f.into()),
        Value::Array(items) => Value::Array(items.into_iter().map(widen).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(k, v)| (k, widen(v))).collect())
        }
        Value::Model(inner) => Value::Model(Box::new(widen(*inner))),
        other => other,
    }
}
