//! Pickles that a generator makes of what the fuzzer chooses, so that most get far.

use agentix_protocol::safepickle::{DecodeErrorKind, Decoder, Kind, Limits, Malformed, Policy};
use arbitrary::Unstructured;

use super::generator::{Choices, Scope, Way, pickle};
use super::{differential, roundtrip, unpickle};

/// The fuzzer's bytes as choices.
struct Chosen<'a>(Unstructured<'a>);

impl Choices for Chosen<'_> {
    fn below(&mut self, n: usize) -> usize {
        // Gives the first when there are no more bytes.
        self.0.choose_index(n).unwrap_or(0)
    }
}

/// The pickle that these choices come to.
pub fn chosen(choices: &[u8]) -> (Way, Vec<u8>) {
    let scope = Scope {
        globals: true,
        numpy: true,
    };
    pickle(&mut Chosen(Unstructured::new(choices)), scope, &[])
}

/// Makes a pickle and checks it by all that the other targets check. What a pickler writes is
/// readable, by inspection at least; but for a Decimal that is a signaling NaN, which the generator
/// may take for a key.
pub fn structured(choices: &[u8]) {
    let (way, stream) = chosen(choices);
    if matches!(way, Way::Pickler | Way::Optimized) {
        let decoder = Decoder::new(Policy::inspect(), Limits::default());
        if let Err(error) = decoder.decode(&stream) {
            let unhashable = Malformed::Unhashable(Kind::Decimal);
            assert_eq!(
                error.kind(),
                &DecodeErrorKind::Malformed(unhashable),
                "{error}: {}",
                stream.escape_ascii()
            );
        }
    }
    unpickle(&stream);
    roundtrip(&stream);
    differential(&stream);
}
