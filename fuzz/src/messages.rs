//! Every typed message: what decodes is written again, and reads back as itself.

use agentix_protocol::event::{HostEvent, RuntimeEvent};
use agentix_protocol::frame::{FromWorker, ToWorker};
use agentix_protocol::framing::FrameDecoder;
use agentix_protocol::http::{CallReply, decode_call};
use agentix_protocol::packet::{EnginePacket, SocketPacket, split_polling};
use bytes::Bytes;

/// Reads `bytes` as each message there is.
pub fn messages(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = EnginePacket::parse(text);
        let _ = split_polling(text);
        if let Ok(packet) = SocketPacket::parse(text) {
            assert_eq!(SocketPacket::parse(&packet.encode()).as_ref(), Ok(&packet));
        }
    }
    let payload = Bytes::copy_from_slice(bytes);
    for name in ["call", "cancel", "resume", "ack"] {
        if let Ok(event) = HostEvent::decode(name, &payload) {
            assert_eq!(HostEvent::decode(name, &event.payload().into()), Ok(event));
        }
    }
    for name in ["call:result", "call:error"] {
        if let Ok(event) = RuntimeEvent::decode(name, &payload) {
            assert_eq!(
                RuntimeEvent::decode(event.name(), &event.payload().into()),
                Ok(event)
            );
        }
    }
    if let Ok(call) = decode_call(&payload) {
        assert_eq!(decode_call(&call.encode().into()), Ok(call));
    }
    for status in [200, 202, 400, 413] {
        if let Ok(reply) = CallReply::decode(status, &payload) {
            assert_eq!(CallReply::decode(status, &reply.encode().into()), Ok(reply));
        }
    }
    let mut decoder = FrameDecoder::default();
    decoder.push(bytes);
    while let Ok(Some(body)) = decoder.next_frame() {
        if let Ok(frame) = ToWorker::decode(&body) {
            assert_eq!(ToWorker::decode(&frame.encode().into()), Ok(frame));
        }
        if let Ok(frame) = FromWorker::decode(&body) {
            assert_eq!(FromWorker::decode(&frame.encode().into()), Ok(frame));
        }
    }
}
