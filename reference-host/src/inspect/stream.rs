//! One stream of a file: what it mentions, what it stands for, what the policy makes of it.

use std::collections::HashMap;
use std::rc::Rc;

use agentix_protocol::safepickle::{
    DecodeError, DecodeErrorKind, Decoder, Document, Event, LimitKind, Limits, Opcode, Policy,
};

use super::Options;

/// Bytes of the first attempt at a further stream.
const FIRST_WINDOW: usize = 32;
/// Steps of work that an attempt at a further stream may take: so many, and so many for each byte.
const WORK: (u64, u64) = (256, 32);

/// The steps of work that may be lost on attempts that took too many.
///
/// The decoder takes work by the bytes that it is given, not by those that it reads. So a further stream
/// is given few bytes at first and twice as many when that fails. What succeeds costs a constant
/// times its own bytes; what fails for its cost again and again is charged here, or many small
/// streams that each cost as much as a large one would be quadratic.
pub(super) struct Work {
    left: u64,
}

impl Work {
    /// For a file of so many bytes: what one stream of that size may take, and some.
    pub(super) fn for_file(bytes: usize) -> Self {
        Self {
            left: 1_000_000 + 32 * bytes as u64,
        }
    }

    /// Charges a failed attempt with this window. False if too much was lost.
    fn charge(&mut self, window: usize) -> bool {
        let (base, per_byte) = WORK;
        self.left = self.left.saturating_sub(base + per_byte * window as u64);
        self.left > 0
    }
}

/// A stream, read to its STOP or to where it breaks.
pub(super) struct Stream<'a> {
    /// Where it starts in the file.
    pub(super) offset: usize,
    /// What the decoder was given: the stream, and maybe what follows.
    window: &'a [u8],
    /// Within which it was decoded.
    limits: Limits,
    /// What its first PROTO says.
    pub(super) protocol: Option<u8>,
    /// Each name once, by its first offset.
    pub(super) globals: Vec<Mention>,
    /// As many as are to be shown.
    pub(super) persistent_ids: Vec<(u64, String)>,
    pub(super) persistent_ids_left_out: u64,
    pub(super) outcome: Result<Document<'a>, DecodeError>,
    /// Why the policy does not accept it; known only if it was read to its STOP.
    pub(super) refusal: Option<DecodeError>,
}

/// A class or function that a stream names.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) name: Rc<Name>,
    /// Where it is first named, in the file.
    pub(super) offset: u64,
    /// How often.
    pub(super) count: u64,
    /// By the policy.
    pub(super) admitted: bool,
    /// Whether numpy's names would admit it.
    pub(super) admitted_with_numpy: bool,
}

/// A name as [`Event::Global`] has it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) module: String,
    pub(super) qualname: String,
}

impl<'a> Stream<'a> {
    /// Reads what stands at `offset`; `None` if it does not look like a pickle.
    pub(super) fn read(
        input: &'a [u8],
        offset: usize,
        options: &Options,
        work: &mut Work,
    ) -> Option<Self> {
        let rest = &input[offset..];
        let mut window = match offset {
            0 => rest.len(),
            _ => rest.len().min(FIRST_WINDOW),
        };
        let (mut seen, limits, outcome) = loop {
            let is_last = window == rest.len();
            let limits = match is_last {
                true => options.limits,
                false => options.limits.work_steps(WORK.0, WORK.1),
            };
            let mut seen = Seen::new(offset, options.bounds.lines);
            let outcome = Decoder::new(Policy::inspect(), limits)
                .decode_observed(&rest[..window], |event| seen.note(event));
            let goes_on = match &outcome {
                Ok(_) => false,
                Err(error) if is_cost(error) => work.charge(window),
                Err(_) => true,
            };
            if is_last || !goes_on {
                break (seen, limits, outcome);
            }
            window = window.saturating_mul(2).min(rest.len());
        };
        let is_stream = match &outcome {
            Ok(_) => true,
            Err(error) => {
                offset == 0
                    || matches!(rest, [0x80, 0..=5, ..])
                    || seen.names_something()
                    || matches!(error.kind(), DecodeErrorKind::Limit { .. })
            }
        };
        if !is_stream {
            return None;
        }
        let window = &rest[..window];
        let refusal = outcome.is_ok().then(|| {
            let decoder = Decoder::new(options.policy.clone(), limits);
            decoder.decode(window).err()
        });
        Some(Self {
            offset,
            window,
            limits,
            protocol: seen.protocol,
            persistent_ids_left_out: seen.ids - seen.persistent_ids.len() as u64,
            persistent_ids: std::mem::take(&mut seen.persistent_ids),
            globals: seen.into_globals(&options.policy),
            outcome,
            refusal: refusal.flatten(),
        })
    }

    /// Where in the file it ends: behind its STOP, or where it breaks.
    pub(super) fn end(&self) -> usize {
        self.offset
            + match &self.outcome {
                Ok(document) => document.consumed(),
                // An offset into the window.
                Err(error) => error.offset() as usize,
            }
    }

    /// How many bytes were carried out.
    pub(super) fn length(&self) -> usize {
        self.end() - self.offset
    }

    /// Where in the file an error is.
    pub(super) fn at(&self, error: &DecodeError) -> u64 {
        self.offset as u64 + error.offset()
    }

    /// Carries the stream out once more, and tells `observe` of each instruction: offset in the file,
    /// opcode, argument.
    pub(super) fn instructions(&self, mut observe: impl FnMut(u64, Opcode, &[u8])) {
        let start = self.offset as u64;
        let decoder = Decoder::new(Policy::inspect(), self.limits);
        let again = decoder.decode_observed(self.window, |event| {
            if let Event::Instruction {
                offset,
                opcode,
                argument,
            } = event
            {
                observe(start + offset, opcode, argument);
            }
        });
        debug_assert_eq!(again.is_ok(), self.outcome.is_ok());
    }
}

/// Whether more work would have been needed.
fn is_cost(error: &DecodeError) -> bool {
    matches!(
        error.kind(),
        DecodeErrorKind::Limit {
            limit: LimitKind::WorkSteps,
            ..
        }
    )
}

/// What an attempt at a stream meets.
struct Seen {
    start: u64,
    protocol: Option<u8>,
    /// First offset and count.
    globals: HashMap<Rc<Name>, (u64, u64)>,
    /// At most `most_ids`.
    persistent_ids: Vec<(u64, String)>,
    most_ids: usize,
    /// How many there are.
    ids: u64,
}

impl Seen {
    fn new(start: usize, most_ids: usize) -> Self {
        Self {
            start: start as u64,
            protocol: None,
            globals: HashMap::new(),
            persistent_ids: Vec::new(),
            most_ids,
            ids: 0,
        }
    }

    fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Global {
                offset,
                module,
                qualname,
                ..
            } => {
                let name = Rc::new(Name {
                    module: module.to_owned(),
                    qualname: qualname.to_owned(),
                });
                let (_, count) = self.globals.entry(name).or_insert((self.start + offset, 0));
                *count += 1;
            }
            Event::PersistentId { offset, id } => {
                self.ids += 1;
                if self.persistent_ids.len() < self.most_ids {
                    self.persistent_ids
                        .push((self.start + offset, id.to_owned()));
                }
            }
            Event::Instruction {
                opcode: Opcode::PROTO,
                argument: [protocol],
                ..
            } => {
                self.protocol.get_or_insert(*protocol);
            }
            _ => {}
        }
    }

    fn names_something(&self) -> bool {
        !self.globals.is_empty() || self.ids > 0
    }

    fn into_globals(self, policy: &Policy) -> Vec<Mention> {
        let with_numpy = policy.clone().with_numpy();
        let mut globals: Vec<Mention> = self
            .globals
            .into_iter()
            .map(|(name, (offset, count))| Mention {
                admitted: policy.admits(&name.module, &name.qualname),
                admitted_with_numpy: with_numpy.admits(&name.module, &name.qualname),
                name,
                offset,
                count,
            })
            .collect();
        globals.sort_unstable_by_key(|mention| mention.offset);
        globals
    }
}
