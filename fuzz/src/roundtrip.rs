//! What decodes is encoded, and decodes to the same again.

use agentix_protocol::safepickle::{
    Decoder, Document, EncodeError, Kind, Limits, Policy, Protocol, Value, encode,
};

use super::walk::{assert_same_sharing, each};

const PROTOCOLS: [Protocol; 4] = [Protocol::V2, Protocol::V3, Protocol::V4, Protocol::V5];

/// Decodes `bytes`; encodes the value at each protocol that can hold it; decodes that; and wants the
/// same value, sharing included, and the same pickle when it is encoded once more.
pub fn roundtrip(bytes: &[u8]) {
    for policy in [Policy::agentix().with_numpy(), Policy::inspect()] {
        let decoder = Decoder::new(policy.clone(), Limits::default());
        // Another form of the same value may take more steps: a set is a list first below protocol 4.
        let reader = Decoder::new(policy, Limits::default().work_steps(1 << 20, 512));
        if let Ok(document) = decoder.decode(bytes)
            && !holds_numpy(document.root())
        {
            survives(&reader, &document);
        }
    }
}

/// These are not encoded yet.
fn holds_numpy(root: Value<'_>) -> bool {
    let mut found = false;
    each(root, |value| {
        found |= matches!(
            value.kind(),
            Kind::Dtype | Kind::Ndarray | Kind::NumpyScalar
        );
    });
    found
}

/// The check on a document.
pub fn survives(decoder: &Decoder, document: &Document<'_>) {
    let mut encodable = false;
    for protocol in PROTOCOLS {
        let pickle = match encode(document.root(), protocol) {
            Ok(pickle) => pickle,
            Err(EncodeError::NotInProtocol { needed, .. }) => {
                assert!(needed > protocol, "{needed:?} > {protocol:?}");
                assert!(!encodable, "{protocol:?} has all that the one before has");
                continue;
            }
            Err(error) => panic!("{protocol:?}: {error}"),
        };
        encodable = true;
        let again = decoder
            .decode(&pickle)
            .unwrap_or_else(|error| panic!("{protocol:?}: {error}: {}", pickle.escape_ascii()));
        assert_eq!(&again, document, "{protocol:?}");
        assert_same_sharing(document.root(), again.root());
        let once_more = encode(again.root(), protocol);
        assert_eq!(once_more.as_ref(), Ok(&pickle), "{protocol:?}");
    }
    assert!(encodable, "the last protocol has opcodes for everything");
}
