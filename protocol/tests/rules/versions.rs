//! Which runtimes a host can talk to, and what it may ignore.

use agentix_protocol::error::RemoteError;
use agentix_protocol::event::HostEvent;
use agentix_protocol::frame::FromWorker;
use agentix_protocol::http::{CallReply, Health, Incompatible, Peer};
use agentix_protocol::ident::CallId;
use bytes::Bytes;

use crate::messages::call;

fn peer(version: &str, protocol: Option<&str>) -> Result<Peer, Incompatible> {
    let health = Health {
        status: "ok".into(),
        version: version.into(),
        protocol: protocol.map(str::to_owned),
    };
    health.peer()
}

fn too_old(version: &str) {
    let error = Incompatible::TooOld {
        version: version.into(),
    };
    assert_eq!(peer(version, None), Err(error));
}

#[test]
fn agx_ver_001_a_runtime_states_protocol_1_0() {
    let health = Health::healthy("7.8.9");
    let json = serde_json::to_value(&health).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"status": "ok", "version": "7.8.9", "protocol": "1.0"})
    );
}

#[test]
fn agx_ver_003_version_is_ignored_where_protocol_is_present() {
    for version in ["0.0.1", "", "0.2.6", "none"] {
        assert_eq!(peer(version, Some("1.0")), Ok(Peer::V1));
    }
}

#[test]
fn agx_ver_004_the_major_version_decides() {
    assert_eq!(peer("9.0", Some("1")), Ok(Peer::V1));
    assert_eq!(peer("9.0", Some("1.7")), Ok(Peer::V1));
    for protocol in ["2.0", "0.9", "10.0", "", "one", "1x.0", "-1", " 1"] {
        let error = Incompatible::Protocol {
            protocol: protocol.into(),
        };
        assert_eq!(peer("9.0", Some(protocol)), Err(error));
    }
}

#[test]
fn agx_ver_005_a_peer_without_protocol_is_compatible_from_0_2_7() {
    for version in ["0.2.7", "0.2.8", "0.3", "0.10.0", "1.0", "1"] {
        assert_eq!(peer(version, None), Ok(Peer::Legacy));
    }
}

#[test]
fn agx_ver_006_an_older_one_is_refused() {
    for version in ["0.2.6", "0.2", "0", "", "none"] {
        too_old(version);
    }
}

#[test]
fn agx_ver_007_versions_are_compared_by_their_numbers() {
    for version in ["0.2.10", "0.2.7rc1", "0.2.7+local", "0.02.07", "0.2.7.1"] {
        assert_eq!(peer(version, None), Ok(Peer::Legacy), "{version}");
    }
    for version in ["0.2.6rc9", "0.1.99", "0.2.x"] {
        too_old(version);
    }
}

#[test]
fn agx_ver_008_unknown_fields_are_ignored() {
    let health: Health =
        serde_json::from_str(r#"{"status":"ok","version":"1","protocol":"1.0","new":[{}]}"#)
            .unwrap();
    assert_eq!(health.peer(), Ok(Peer::V1));
    // One more field, in front of those of a call, a 202, and a frame.
    let more = |body: Vec<u8>| -> Bytes {
        let mut longer = vec![body[0] + 1];
        longer.extend_from_slice(b"\xa3new\x92\x01\x80");
        longer.extend_from_slice(&body[1..]);
        longer.into()
    };
    let sent = HostEvent::Call(call(1));
    assert_eq!(
        HostEvent::decode(sent.name(), &more(sent.payload())),
        Ok(sent)
    );
    let id = CallId::from_random(1);
    let reply = CallReply::Accepted(id);
    assert_eq!(
        CallReply::decode(reply.status(), &more(reply.encode())),
        Ok(reply)
    );
    let reply = CallReply::Done(Err(RemoteError::cancelled()));
    assert_eq!(
        CallReply::decode(reply.status(), &more(reply.encode())),
        Ok(reply)
    );
    assert_eq!(
        FromWorker::decode(&more(FromWorker::Ready.encode())),
        Ok(FromWorker::Ready)
    );
}
