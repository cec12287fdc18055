//! Reliable streams (`/log`, `/trace`): in order, without a gap that nobody was told of, without
//! duplicates.
//!
//! The sender numbers records from 1, keeps them until the receiver acks, and sends them again
//! on `_resume`. The receiver keeps a cursor for each `_sid`.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::codec::{FieldError, FieldErrorKind, Fields, Writer};
use crate::ident::{Seq, StreamId};
use crate::limits::STREAM_BUFFER;
use crate::message::NotAMessage;
use crate::names::stream;

/// One record on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its stream.
    pub sid: StreamId,
    /// Its position.
    pub seq: Seq,
    /// The record: one msgpack value.
    pub data: Bytes,
}

/// What a receiver sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Everything up to here was consumed. Peers before 1.0 leave `sid` out.
    Ack {
        /// Which stream.
        sid: Option<StreamId>,
        /// How far.
        seq: Seq,
    },
    /// Send everything after this again. Peers before 1.0 leave `sid` out.
    Resume {
        /// Which stream.
        sid: Option<StreamId>,
        /// How far the receiver is.
        since: Seq,
    },
}

/// A payload that is no record and no feedback.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStreamEvent {
    /// No map.
    #[error(transparent)]
    NotAMessage(#[from] NotAMessage),
    /// A field is missing or not acceptable.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// No such event on a stream.
    #[error("unknown event")]
    Unknown,
}

fn sid_field(fields: &Fields) -> Result<StreamId, FieldError> {
    StreamId::new(fields.str(stream::SID)?).map_err(|_| FieldError {
        field: stream::SID,
        kind: FieldErrorKind::Value {
            expected: "1 to 64 bytes of UTF-8",
        },
    })
}

fn seq_field(fields: &Fields, field: &'static str) -> Result<Seq, FieldError> {
    u64::try_from(fields.int(field)?)
        .map(Seq)
        .map_err(|_| FieldError {
            field,
            kind: FieldErrorKind::Value {
                expected: "0 or more",
            },
        })
}

impl Envelope {
    /// Reads a record's payload.
    ///
    /// # Errors
    ///
    /// [`BadStreamEvent`] names the field.
    pub fn decode(payload: &Bytes) -> Result<Self, BadStreamEvent> {
        let names = &[stream::SID, stream::SEQ, stream::DATA];
        let fields = Fields::parse_relaying(payload, names, &[stream::DATA])
            .map_err(NotAMessage::Codec)?
            .ok_or(NotAMessage::NotAMap)?;
        let missing = FieldError {
            field: stream::DATA,
            kind: FieldErrorKind::Missing,
        };
        Ok(Self {
            sid: sid_field(&fields)?,
            seq: seq_field(&fields, stream::SEQ)?,
            data: fields.raw(stream::DATA).cloned().ok_or(missing)?,
        })
    }

    /// Writes the payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(self.data.len() + 48);
        w.map(3);
        w.str(stream::SID);
        w.str(self.sid.as_str());
        w.str(stream::SEQ);
        w.uint(self.seq.0);
        w.str(stream::DATA);
        w.raw(&self.data);
        w.into_vec()
    }
}

impl Feedback {
    /// Reads `_ack` or `_resume`.
    ///
    /// # Errors
    ///
    /// [`BadStreamEvent`] when it is neither, or malformed. A `_resume` without a usable position
    /// means 0.
    pub fn decode(event: &str, payload: &Bytes) -> Result<Self, BadStreamEvent> {
        let position = match event {
            stream::ACK => stream::ACK_SEQ,
            stream::RESUME => stream::SINCE_SEQ,
            _ => return Err(BadStreamEvent::Unknown),
        };
        let fields = Fields::parse(payload, &[position, stream::SID])
            .map_err(NotAMessage::Codec)?
            .ok_or(NotAMessage::NotAMap)?;
        let sid = if fields.has(stream::SID) {
            Some(sid_field(&fields)?)
        } else {
            None
        };
        if event == stream::ACK {
            return Ok(Self::Ack {
                sid,
                seq: seq_field(&fields, position)?,
            });
        }
        Ok(Self::Resume {
            sid,
            since: seq_field(&fields, position).unwrap_or(Seq::ZERO),
        })
    }

    /// Event name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ack { .. } => stream::ACK,
            Self::Resume { .. } => stream::RESUME,
        }
    }

    /// Payload on the wire.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let (field, position, sid) = match self {
            Self::Ack { sid, seq } => (stream::ACK_SEQ, seq, sid),
            Self::Resume { sid, since } => (stream::SINCE_SEQ, since, sid),
        };
        let mut w = Writer::default();
        w.map(if sid.is_some() { 2 } else { 1 });
        w.str(field);
        w.uint(position.0);
        if let Some(sid) = sid {
            w.str(stream::SID);
            w.str(sid.as_str());
        }
        w.into_vec()
    }
}

/// The sending end: numbers records and holds them until they are acked.
#[derive(Clone, Debug)]
pub struct Sender {
    sid: StreamId,
    last: Seq,
    held: VecDeque<Envelope>,
    capacity: usize,
    evicted: u64,
}

/// A record was pushed out before it was acked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// How many were so far.
    pub total: u64,
}

impl Sender {
    /// An empty stream that holds up to 10,000 records.
    #[must_use]
    pub fn new(sid: StreamId) -> Self {
        Self::with_capacity(sid, STREAM_BUFFER)
    }

    /// An empty stream that holds up to `records` records; 0 counts as 1.
    #[must_use]
    pub fn with_capacity(sid: StreamId, records: usize) -> Self {
        Self {
            sid,
            last: Seq::ZERO,
            held: VecDeque::new(),
            capacity: records.max(1),
            evicted: 0,
        }
    }

    /// Adds a record; returns it as it is to be sent. When the buffer was full, says so for the
    /// first record that was lost and then for each thousandth.
    pub fn push(&mut self, data: Bytes) -> (Envelope, Option<Evicted>) {
        self.last = self.last.next();
        let envelope = Envelope {
            sid: self.sid.clone(),
            seq: self.last,
            data,
        };
        self.held.push_back(envelope.clone());
        let mut report = None;
        if self.held.len() > self.capacity {
            self.held.pop_front();
            self.evicted += 1;
            if self.evicted == 1 || self.evicted.is_multiple_of(1000) {
                report = Some(Evicted {
                    total: self.evicted,
                });
            }
        }
        (envelope, report)
    }

    /// Takes feedback; returns what to send again, in order.
    pub fn feedback(&mut self, feedback: &Feedback) -> Vec<Envelope> {
        match feedback {
            Feedback::Ack { sid, seq } => {
                if sid.as_ref().is_none_or(|sid| *sid == self.sid) {
                    while self.held.front().is_some_and(|record| record.seq <= *seq) {
                        self.held.pop_front();
                    }
                }
                Vec::new()
            }
            Feedback::Resume { sid, since } => {
                // The position of another stream says nothing about this one.
                let other = sid.as_ref().is_some_and(|sid| *sid != self.sid);
                let since = if other { Seq::ZERO } else { *since };
                self.held
                    .iter()
                    .filter(|record| record.seq > since)
                    .cloned()
                    .collect()
            }
        }
    }

    /// Records that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

/// The receiving end: a cursor for each stream.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The streams seen last, the current one at the end.
    cursors: VecDeque<(StreamId, Seq)>,
}

/// Streams whose cursors are remembered; a peer has one, and a new one after each restart.
const MAX_STREAMS: usize = 64;

/// What a received record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The next one: deliver it. `missing` records before it are lost for good: the sender let
    /// them go.
    New {
        /// How many are lost.
        missing: u64,
    },
    /// Delivered before.
    Duplicate,
}

impl Receiver {
    /// Takes a record; returns what it is, and the ack to send either way.
    pub fn record(&mut self, envelope: &Envelope) -> (Received, Feedback) {
        let known = self
            .cursors
            .iter()
            .position(|(sid, _)| *sid == envelope.sid);
        let cursor = known
            .and_then(|at| self.cursors.remove(at))
            .map_or(Seq::ZERO, |(_, seq)| seq);
        let mut next = cursor;
        let received = if envelope.seq <= cursor {
            Received::Duplicate
        } else {
            // A stream that this receiver joins late has no gap before its first record.
            let missing = if known.is_some() {
                envelope.seq.0 - cursor.0 - 1
            } else {
                0
            };
            next = envelope.seq;
            Received::New { missing }
        };
        self.cursors.push_back((envelope.sid.clone(), next));
        if self.cursors.len() > MAX_STREAMS {
            self.cursors.pop_front();
        }
        (
            received,
            Feedback::Ack {
                sid: Some(envelope.sid.clone()),
                seq: next,
            },
        )
    }

    /// What to send after each connect.
    #[must_use]
    pub fn resume(&self) -> Feedback {
        match self.cursors.back() {
            Some((sid, since)) => Feedback::Resume {
                sid: Some(sid.clone()),
                since: *since,
            },
            None => Feedback::Resume {
                sid: None,
                since: Seq::ZERO,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Sender {
        Sender::with_capacity(StreamId::from_random(1), 3)
    }

    fn push(s: &mut Sender, n: u8) -> (Envelope, Option<Evicted>) {
        s.push(vec![n].into())
    }

    #[test]
    fn lost_records_come_again_and_duplicates_do_not_count() {
        let (mut s, mut r) = (sender(), Receiver::default());
        let (first, _) = push(&mut s, 1);
        assert_eq!(r.record(&first).0, Received::New { missing: 0 });
        let (_lost, _) = push(&mut s, 2);
        let (_lost, _) = push(&mut s, 3);
        let again = s.feedback(&r.resume());
        assert_eq!(again.iter().map(|e| e.seq.0).collect::<Vec<_>>(), [2, 3]);
        for envelope in &again {
            assert_eq!(r.record(envelope).0, Received::New { missing: 0 });
        }
        assert_eq!(r.record(&first).0, Received::Duplicate);
        let (_, ack) = r.record(&again[1]);
        assert_eq!(
            ack,
            Feedback::Ack {
                sid: Some(StreamId::from_random(1)),
                seq: Seq(3)
            }
        );
        s.feedback(&ack);
        assert_eq!(s.held(), 0);
    }

    #[test]
    fn eviction_is_reported_and_seen_as_a_gap() {
        let (mut s, mut r) = (sender(), Receiver::default());
        r.record(&push(&mut s, 0).0);
        let reports: Vec<_> = (1..=1003).map(|_| push(&mut s, 0).1).collect();
        let totals: Vec<u64> = reports.iter().flatten().map(|e| e.total).collect();
        assert_eq!(totals, [1, 1000]);
        let again = s.feedback(&r.resume());
        assert_eq!(again.len(), 3);
        assert_eq!(r.record(&again[0]).0, Received::New { missing: 1000 });
    }

    #[test]
    fn another_streams_position_means_nothing() {
        let mut s = sender();
        push(&mut s, 1);
        let other = Some(StreamId::from_random(2));
        s.feedback(&Feedback::Ack {
            sid: other.clone(),
            seq: Seq(9),
        });
        assert_eq!(s.held(), 1);
        assert_eq!(
            s.feedback(&Feedback::Resume {
                sid: other,
                since: Seq(9)
            })
            .len(),
            1
        );
        assert_eq!(
            s.feedback(&Feedback::Resume {
                sid: None,
                since: Seq(9)
            })
            .len(),
            0
        );
    }

    #[test]
    fn feedback_of_older_peers_has_no_sid() {
        let payload = Bytes::from_static(b"\x81\xa3seq\x02");
        assert_eq!(
            Feedback::decode("_ack", &payload),
            Ok(Feedback::Ack {
                sid: None,
                seq: Seq(2)
            })
        );
        let payload = Bytes::from_static(b"\x80");
        assert_eq!(
            Feedback::decode("_resume", &payload),
            Ok(Feedback::Resume {
                sid: None,
                since: Seq::ZERO
            })
        );
    }
}
