//! Dates, times, durations and time zones of `datetime`.

use std::fmt::{self, Write};
use std::time::Duration;

use super::super::arena::{Arena, Node, NodeId};
use super::super::construct::{Args, How};
use super::super::error::Malformed;
use super::super::known::Known;
use super::super::machine::{Machine, Step};
use super::super::object::Object;
use super::super::value::{Text, Value};

const MICROSECONDS_PER_SECOND: i128 = 1_000_000;
const SECONDS_PER_DAY: i128 = 86_400;
const MICROSECONDS_PER_DAY: i128 = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND;
/// The most days of a timedelta, in either direction.
const MAX_DAYS: i128 = 999_999_999;
/// Set in the first byte of a time, or in the month of a datetime: the second of two equal clock
/// readings.
const FOLD: u8 = 0x80;

/// A `datetime.date`: a day of the proleptic Gregorian calendar, of the years 1 to 9999.
///
/// `Display` gives what `str()` gives in Python.
///
/// ```
/// use agentix_protocol::safepickle::decode;
/// let document = decode(b"\x80\x04\x8c\x08datetime\x8c\x04date\x93C\x04\x07\xea\x07\x18\x85R.")?;
/// assert_eq!(document.root().date().unwrap().to_string(), "2026-07-24");
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    /// 1 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to the length of the month.
    pub day: u8,
}

impl Date {
    fn of(raw: [u8; 4]) -> Self {
        Self {
            year: u16::from_be_bytes([raw[0], raw[1]]),
            month: raw[2],
            day: raw[3],
        }
    }

    pub(in super::super) fn raw(self) -> [u8; 4] {
        let [high, low] = self.year.to_be_bytes();
        [high, low, self.month, self.day]
    }

    /// Whether there is such a day.
    pub(in super::super) fn is_valid(self) -> bool {
        let length = match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if self.is_leap_year() => 29,
            2 => 28,
            _ => 0,
        };
        (1..=9999).contains(&self.year) && (1..=length).contains(&self.day)
    }

    fn is_leap_year(self) -> bool {
        self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400))
    }

    /// Days since 1970-01-01; negative before.
    pub fn unix_days(self) -> i32 {
        // Years are counted from March, so that a leap day is the last of its year.
        let (month, year) = if self.month > 2 {
            (i32::from(self.month) - 3, i32::from(self.year))
        } else {
            (i32::from(self.month) + 9, i32::from(self.year) - 1)
        };
        let days_before_month = (153 * month + 2) / 5;
        let leap_days = year / 4 - year / 100 + year / 400;
        // 719,469 days lie between 1 March of year 0 and 1 January 1970, that day included.
        365 * year + leap_days + days_before_month + i32::from(self.day) - 719_469
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A `datetime.time`: a clock reading, with or without a time zone.
///
/// `Display` gives what `str()` gives in Python, if the time zone is a [`Timezone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time<'d> {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub microsecond: u32,
    /// Whether this is the second of two equal clock readings, where clocks are set back.
    pub fold: bool,
    /// The time zone: a timezone; or, if the policy admits more than the value types, a record.
    pub tzinfo: Option<Value<'d>>,
}

impl<'d> Time<'d> {
    pub(in super::super) fn of(raw: [u8; 6], tzinfo: Option<Value<'d>>) -> Self {
        let [first, minute, second, ..] = raw;
        Self {
            hour: first & !FOLD,
            minute,
            second,
            microsecond: u32::from_be_bytes([0, raw[3], raw[4], raw[5]]),
            fold: first & FOLD != 0,
            tzinfo,
        }
    }

    pub(in super::super) fn raw(self) -> [u8; 6] {
        let [_, high, middle, low] = self.microsecond.to_be_bytes();
        let fold = if self.fold { FOLD } else { 0 };
        [
            self.hour | fold,
            self.minute,
            self.second,
            high,
            middle,
            low,
        ]
    }

    /// Whether a clock may show it.
    pub(in super::super) fn is_valid(self) -> bool {
        self.hour < 24 && self.minute < 60 && self.second < 60 && self.microsecond < 1_000_000
    }

    /// Microseconds since midnight.
    pub(in super::super) fn microseconds(self) -> i64 {
        let seconds =
            (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        seconds * 1_000_000 + i64::from(self.microsecond)
    }

    /// How far ahead of UTC it is; `None` without a time zone, and with one that is only a record.
    pub fn utc_offset(self) -> Option<Timedelta> {
        Some(self.tzinfo?.timezone()?.utc_offset())
    }
}

impl fmt::Display for Time<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        if self.microsecond != 0 {
            write!(f, ".{:06}", self.microsecond)?;
        }
        match self.utc_offset() {
            Some(offset) => write_offset(offset, f),
            None => Ok(()),
        }
    }
}

/// Writes an offset as `+HH:MM`, and seconds and microseconds if there are any.
fn write_offset(offset: Timedelta, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let total = offset.total_microseconds();
    f.write_char(if total < 0 { '-' } else { '+' })?;
    let (total, microseconds) = (
        total.abs() / MICROSECONDS_PER_SECOND,
        total.abs() % MICROSECONDS_PER_SECOND,
    );
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    write!(f, "{hours:02}:{minutes:02}")?;
    if seconds != 0 || microseconds != 0 {
        write!(f, ":{seconds:02}")?;
    }
    if microseconds != 0 {
        write!(f, ".{microseconds:06}")?;
    }
    Ok(())
}

/// A `datetime.datetime`: a day and a clock reading.
///
/// `Display` gives what `str()` gives in Python, if the time zone is a [`Timezone`].
///
/// ```
/// use agentix_protocol::safepickle::decode;
/// let stream = b"\x80\x04cdatetime\ndatetime\n(C\x0a\x07\xea\x01\x02\x03\x04\x05\x00\x00\x06\
///     cdatetime\ntimezone\n(cdatetime\ntimedelta\n(K\x00M\x10\x0eK\x00tRtRtR.";
/// let document = decode(stream)?;
/// let datetime = document.root().datetime().unwrap();
/// assert_eq!(datetime.to_string(), "2026-01-02 03:04:05.000006+01:00");
/// assert_eq!(datetime.isoformat().to_string(), "2026-01-02T03:04:05.000006+01:00");
/// assert_eq!(datetime.unix_microseconds(), Some(1_767_319_445_000_006));
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datetime<'d> {
    /// The day.
    pub date: Date,
    /// The clock reading and its time zone.
    pub time: Time<'d>,
}

impl<'d> Datetime<'d> {
    pub(in super::super) fn of(raw: [u8; 10], tzinfo: Option<Value<'d>>) -> Self {
        let [y0, y1, month, day, hour, rest @ ..] = raw;
        let [minute, second, u0, u1, u2] = rest;
        Self {
            date: Date::of([y0, y1, month & !FOLD, day]),
            time: Time::of([hour | month & FOLD, minute, second, u0, u1, u2], tzinfo),
        }
    }

    pub(in super::super) fn raw(self) -> [u8; 10] {
        let [y0, y1, month, day] = self.date.raw();
        let [hour, minute, second, u0, u1, u2] = self.time.raw();
        [
            y0,
            y1,
            month | hour & FOLD,
            day,
            hour & !FOLD,
            minute,
            second,
            u0,
            u1,
            u2,
        ]
    }

    /// Whether there is such a day and a clock may show such a time.
    pub(in super::super) fn is_valid(self) -> bool {
        self.date.is_valid() && self.time.is_valid()
    }

    /// How far ahead of UTC it is; `None` without a time zone, and with one that is only a record.
    pub fn utc_offset(self) -> Option<Timedelta> {
        self.time.utc_offset()
    }

    /// Microseconds since 1970-01-01T00:00:00Z, negative before; `None` where
    /// [`Datetime::utc_offset`] is.
    pub fn unix_microseconds(self) -> Option<i64> {
        // An offset is below a day.
        let offset = self.utc_offset()?.total_microseconds() as i64;
        Some(self.local_microseconds() - offset)
    }

    /// Microseconds since 1970-01-01T00:00:00 by the clock that the reading is of.
    pub(in super::super) fn local_microseconds(self) -> i64 {
        i64::from(self.date.unix_days()) * MICROSECONDS_PER_DAY as i64 + self.time.microseconds()
    }

    /// What `isoformat()` gives in Python: `Display` with a `T` between day and time.
    pub fn isoformat(self) -> impl fmt::Display + use<'d> {
        Isoformat(self)
    }
}

struct Isoformat<'d>(Datetime<'d>);

impl fmt::Display for Isoformat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.0.date, self.0.time)
    }
}

impl fmt::Display for Datetime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.time)
    }
}

/// A `datetime.timedelta`: a duration, negative ones included, in the one form that Python gives it.
///
/// `Display` gives what `str()` gives in Python.
///
/// ```
/// use agentix_protocol::safepickle::decode;
/// let document = decode(b"\x80\x04cdatetime\ntimedelta\n(J\xff\xff\xff\xffM\xe8\x03K\x05tR.")?;
/// let timedelta = document.root().timedelta().unwrap();
/// assert_eq!(timedelta.to_string(), "-1 day, 0:16:40.000005");
/// assert_eq!(timedelta.total_microseconds(), -85_399_999_995);
/// # Ok::<(), agentix_protocol::safepickle::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timedelta {
    /// Days, -999,999,999 to 999,999,999.
    pub days: i32,
    /// Seconds to be added to the days, 0 to 86,399.
    pub seconds: u32,
    /// Microseconds to be added to these, 0 to 999,999.
    pub microseconds: u32,
}

impl Timedelta {
    /// The timedelta of so many days, seconds and microseconds together, if it is within Python's
    /// bounds.
    pub(in super::super) fn new(days: i64, seconds: i64, microseconds: i64) -> Option<Self> {
        let total = i128::from(days) * MICROSECONDS_PER_DAY
            + i128::from(seconds) * MICROSECONDS_PER_SECOND
            + i128::from(microseconds);
        let (days, rest) = (
            total.div_euclid(MICROSECONDS_PER_DAY),
            total.rem_euclid(MICROSECONDS_PER_DAY),
        );
        // Seconds of a day and microseconds of a second are far below 2^32.
        (days.abs() <= MAX_DAYS).then_some(Self {
            days: i32::try_from(days).ok()?,
            seconds: (rest / MICROSECONDS_PER_SECOND) as u32,
            microseconds: (rest % MICROSECONDS_PER_SECOND) as u32,
        })
    }

    /// The whole of it in microseconds.
    pub fn total_microseconds(self) -> i128 {
        i128::from(self.days) * MICROSECONDS_PER_DAY
            + i128::from(self.seconds) * MICROSECONDS_PER_SECOND
            + i128::from(self.microseconds)
    }

    /// The same as a [`Duration`]; `None` if it is negative.
    pub fn to_duration(self) -> Option<Duration> {
        let days = u64::try_from(self.days).ok()?;
        Some(Duration::new(
            days * SECONDS_PER_DAY as u64 + u64::from(self.seconds),
            self.microseconds * 1000,
        ))
    }

    /// Whether a timezone may be so far from UTC: less than a day.
    pub(in super::super) fn is_offset(self) -> bool {
        self.total_microseconds().abs() < MICROSECONDS_PER_DAY
    }
}

impl fmt::Display for Timedelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.days {
            0 => {}
            -1 | 1 => write!(f, "{} day, ", self.days)?,
            days => write!(f, "{days} days, ")?,
        }
        let (minutes, second) = (self.seconds / 60, self.seconds % 60);
        write!(f, "{}:{:02}:{second:02}", minutes / 60, minutes % 60)?;
        if self.microseconds != 0 {
            write!(f, ".{:06}", self.microseconds)?;
        }
        Ok(())
    }
}

/// A `datetime.timezone`: a fixed distance from UTC.
///
/// `Display` gives what `str()` gives in Python: the name, or `UTC` and the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timezone<'d> {
    /// A timedelta, of less than a day in either direction: how far ahead of UTC.
    pub offset: Value<'d>,
    /// The name, if it has one of its own.
    pub name: Option<Text<'d>>,
}

impl Timezone<'_> {
    /// How far ahead of UTC it is.
    pub fn utc_offset(self) -> Timedelta {
        // The offset of a timezone is a timedelta.
        self.offset.timedelta().unwrap_or(Timedelta {
            days: 0,
            seconds: 0,
            microseconds: 0,
        })
    }
}

impl fmt::Display for Timezone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name {
            return f.write_str(&name.to_string_lossy());
        }
        f.write_str("UTC")?;
        match self.utc_offset() {
            offset if offset.total_microseconds() == 0 => Ok(()),
            offset => write_offset(offset, f),
        }
    }
}

impl<'d> Value<'d> {
    /// A date. A datetime is none, although in Python its class is derived from this one.
    pub fn date(self) -> Option<Date> {
        match self.node() {
            Node::Date(raw) => Some(Date::of(raw)),
            _ => None,
        }
    }

    /// A time.
    pub fn time(self) -> Option<Time<'d>> {
        match self.node() {
            Node::Time { raw, tzinfo } => Some(Time::of(raw, tzinfo.map(|id| self.at(id)))),
            _ => None,
        }
    }

    /// A datetime.
    pub fn datetime(self) -> Option<Datetime<'d>> {
        match self.node() {
            Node::Datetime { raw, tzinfo } => Some(Datetime::of(raw, tzinfo.map(|id| self.at(id)))),
            _ => None,
        }
    }

    /// A timedelta.
    pub fn timedelta(self) -> Option<Timedelta> {
        match self.node() {
            Node::Timedelta {
                days,
                seconds,
                microseconds,
            } => Some(Timedelta {
                days,
                seconds,
                microseconds,
            }),
            _ => None,
        }
    }

    /// A timezone.
    pub fn timezone(self) -> Option<Timezone<'d>> {
        match self.node() {
            Node::Timezone { offset, name } => Some(Timezone {
                offset: self.at(offset),
                name: name.and_then(|id| self.at(id).as_text()),
            }),
            _ => None,
        }
    }
}

impl Machine<'_, '_> {
    /// Calls a class of `datetime`, in the way that picklers write.
    pub(in super::super) fn time_value(
        &mut self,
        known: Known,
        how: How,
        args: Args,
    ) -> Step<NodeId> {
        let ids = args.ids(&self.arena);
        let node = match (known, how, ids) {
            (Known::Date, How::Call, [state]) => state_bytes(&self.arena, *state)
                .filter(|raw| Date::of(*raw).is_valid())
                .map(Node::Date),
            (Known::Time, How::Call, [state, zone @ ..]) => {
                let tzinfo = self.tzinfo(zone)?;
                state_bytes(&self.arena, *state)
                    .filter(|raw| Time::of(*raw, None).is_valid())
                    .map(|raw| Node::Time { raw, tzinfo })
            }
            (Known::Datetime, How::Call, [state, zone @ ..]) => {
                let tzinfo = self.tzinfo(zone)?;
                state_bytes(&self.arena, *state)
                    // The bit of the fold is in the month alone.
                    .filter(|raw: &[u8; 10]| raw[4] & FOLD == 0)
                    .filter(|raw| Datetime::of(*raw, None).is_valid())
                    .map(|raw| Node::Datetime { raw, tzinfo })
            }
            (Known::Timedelta, How::Call, [days, seconds, microseconds]) => {
                match [days, seconds, microseconds].map(|id| self.arena.node(*id)) {
                    [Node::Int(days), Node::Int(seconds), Node::Int(microseconds)] => {
                        Timedelta::new(days, seconds, microseconds).map(|timedelta| {
                            Node::Timedelta {
                                days: timedelta.days,
                                seconds: timedelta.seconds,
                                microseconds: timedelta.microseconds,
                            }
                        })
                    }
                    _ => None,
                }
            }
            (Known::Timezone, How::Call, [offset, name @ ..]) => {
                let fits = match self.arena.node(*offset) {
                    Node::Timedelta {
                        days,
                        seconds,
                        microseconds,
                    } => Timedelta {
                        days,
                        seconds,
                        microseconds,
                    }
                    .is_offset(),
                    _ => false,
                };
                let name = match name {
                    [] => Some(None),
                    [name] if matches!(self.arena.node(*name), Node::Str(_)) => Some(Some(*name)),
                    _ => None,
                };
                name.filter(|_| fits).map(|name| Node::Timezone {
                    offset: *offset,
                    name,
                })
            }
            _ => None,
        };
        self.make(node.ok_or(Malformed::Arguments)?)
    }

    /// What may follow the state of a time or datetime: a time zone.
    fn tzinfo(&self, zone: &[NodeId]) -> Step<Option<NodeId>> {
        let [zone] = *zone else {
            return if zone.is_empty() {
                Ok(None)
            } else {
                Err(Malformed::Arguments.into())
            };
        };
        let fits = match self.arena.node(zone) {
            Node::None => return Ok(None),
            Node::Timezone { .. } => true,
            // A class that the policy was told to admit may be one of time zones.
            Node::Object(_) => match self.arena.object(zone) {
                Some(Object::Record(record)) => {
                    let class = record.class.and_then(|class| self.arena.global(class));
                    self.policy.is_inspect() || class.is_some_and(|class| class.known.is_none())
                }
                _ => false,
            },
            _ => false,
        };
        if fits {
            Ok(Some(zone))
        } else {
            Err(Malformed::Arguments.into())
        }
    }
}

/// The state of a date or time: bytes, or text of as many code points below 256: a str of Python 2,
/// or what this crate and CPython read at protocol 2, which has no bytes.
fn state_bytes<const N: usize>(arena: &Arena<'_>, id: NodeId) -> Option<[u8; N]> {
    match arena.node(id) {
        Node::Bytes(bytes) => arena.bytes(bytes).try_into().ok(),
        // Two bytes for each code point at most.
        Node::Str(bytes) if bytes.len as usize <= 2 * N => {
            let text = std::str::from_utf8(arena.bytes(bytes)).ok()?;
            let state: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
            state?.try_into().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        let days = |year, month, day| Date { year, month, day }.unix_days();
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(1969, 12, 31), -1);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(1, 1, 1), -719_162);
        assert_eq!(days(9999, 12, 31), 2_932_896);
        // Each day is one more than the day before. The calendar repeats every 400 years.
        let mut expected = days(1, 1, 1);
        for year in 1..=801 {
            for month in 1..=12 {
                for day in (1..=31).filter(|day| {
                    Date {
                        year,
                        month,
                        day: *day,
                    }
                    .is_valid()
                }) {
                    assert_eq!(days(year, month, day), expected);
                    expected += 1;
                }
            }
        }
        assert_eq!(expected, days(802, 1, 1));
    }

    #[test]
    fn a_datetime_keeps_its_fold_in_the_month() {
        let decoded = |month: u8, hour: u8| {
            let mut stream =
                b"cdatetime\ndatetime\n(C\x0a\x07\xea\x01\x02\x03\x04\x05\0\0\x06tR.".to_vec();
            let start = b"cdatetime\ndatetime\n(C\x0a".len();
            stream[start + 2] = month;
            stream[start + 4] = hour;
            let document = super::super::super::decode(&stream).ok()?;
            let time = document.root().datetime()?.time;
            Some((time.hour, time.fold))
        };
        assert_eq!(decoded(0x01, 3), Some((3, false)));
        assert_eq!(decoded(0x81, 3), Some((3, true)));
        assert_eq!(decoded(0x01, 0x83), None);
        assert_eq!(decoded(0x81, 0x83), None);
    }

    #[test]
    fn timedeltas_have_one_form_and_bounds() {
        let parts = |days, seconds, microseconds| {
            Timedelta::new(days, seconds, microseconds)
                .map(|delta| (delta.days, delta.seconds, delta.microseconds))
        };
        assert_eq!(parts(0, 0, -1), Some((-1, 86_399, 999_999)));
        assert_eq!(parts(1, -86_400, 0), Some((0, 0, 0)));
        assert_eq!(parts(0, 86_400, 1_000_000), Some((1, 1, 0)));
        assert_eq!(parts(-999_999_999, 0, 0), Some((-999_999_999, 0, 0)));
        assert_eq!(parts(-999_999_999, 0, -1), None);
        assert_eq!(
            parts(999_999_999, 86_399, 999_999),
            Some((999_999_999, 86_399, 999_999))
        );
        assert_eq!(parts(999_999_999, 86_399, 1_000_000), None);
        assert_eq!(parts(i64::MAX, i64::MAX, i64::MAX), None);
        assert_eq!(parts(i64::MIN, i64::MIN, i64::MIN), None);
    }

    #[test]
    fn durations_are_not_negative() {
        let duration = |microseconds| Timedelta::new(0, 0, microseconds).unwrap().to_duration();
        assert_eq!(duration(1_500_000), Some(Duration::from_millis(1500)));
        assert_eq!(duration(-1), None);
    }
}
