//! Dates, times, numbers, UUIDs and paths made by hand.

use num_bigint::BigInt;

use super::super::arena::NodeId;
use super::super::builder::{BuildError, Builder};
use super::super::error::Malformed;
use super::path::PathClass;
use super::time::{Date, Datetime, Time, Timedelta};
use super::uuid::{Uuid, UuidSafety};

type Built = Result<NodeId, BuildError>;

/// Each is made as a pickler writes it, so that there is one rule for what is valid.
impl Builder {
    /// A complex.
    pub fn complex(&mut self, re: f64, im: f64) -> Built {
        let parts = [self.float(re)?, self.float(im)?];
        self.called("builtins", "complex", &parts)
    }

    /// A Decimal from its text, as `str()` gives it in Python: `-1.50`, `1E+5`, `Infinity`, `NaN`.
    ///
    /// ```
    /// use agentix_protocol::safepickle::Builder;
    /// let mut builder = Builder::new();
    /// let price = builder.decimal("1.50")?;
    /// let document = builder.finish(price)?;
    /// assert_eq!(document.root().decimal().unwrap().exponent(), -2);
    /// # Ok::<(), agentix_protocol::safepickle::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if it is none.
    pub fn decimal(&mut self, text: &str) -> Built {
        let text = self.str(text)?;
        self.called("decimal", "Decimal", &[text])
    }

    /// A Fraction, brought into lowest terms.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if the denominator is zero.
    pub fn fraction(
        &mut self,
        numerator: impl Into<BigInt>,
        denominator: impl Into<BigInt>,
    ) -> Built {
        let parts = [self.int(numerator)?, self.int(denominator)?];
        self.called("fractions", "Fraction", &parts)
    }

    /// A date.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if there is no such day.
    pub fn date(&mut self, date: Date) -> Built {
        let state = self.bytes(&date.raw())?;
        self.called("datetime", "date", &[state])
    }

    /// A time with a time zone of this builder, or without. That of `time` is left aside, since it
    /// belongs to a document.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if no clock may show it, or if `tzinfo` is no time zone.
    pub fn time(&mut self, time: Time<'_>, tzinfo: Option<NodeId>) -> Built {
        valid(time.is_valid())?;
        self.zoned("time", &time.raw(), tzinfo)
    }

    /// A datetime with a time zone of this builder, or without. That of `datetime` is left aside, since
    /// it belongs to a document.
    ///
    /// ```
    /// use agentix_protocol::safepickle::{Builder, Date, Datetime, Time, Timedelta};
    /// let mut builder = Builder::new();
    /// let utc = builder.timezone(Timedelta { days: 0, seconds: 0, microseconds: 0 }, None)?;
    /// let noon = Datetime {
    ///     date: Date { year: 2026, month: 7, day: 24 },
    ///     time: Time { hour: 12, minute: 0, second: 0, microsecond: 0, fold: false, tzinfo: None },
    /// };
    /// let noon = builder.datetime(noon, Some(utc))?;
    /// let document = builder.finish(noon)?;
    /// assert_eq!(document.root().datetime().unwrap().to_string(), "2026-07-24 12:00:00+00:00");
    /// # Ok::<(), agentix_protocol::safepickle::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if there is no such day, if no clock may show the time, or if `tzinfo` is no
    /// time zone.
    pub fn datetime(&mut self, datetime: Datetime<'_>, tzinfo: Option<NodeId>) -> Built {
        valid(datetime.is_valid())?;
        self.zoned("datetime", &datetime.raw(), tzinfo)
    }

    fn zoned(&mut self, class: &str, state: &[u8], tzinfo: Option<NodeId>) -> Built {
        let state = self.bytes(state)?;
        match tzinfo {
            Some(tzinfo) => self.called("datetime", class, &[state, tzinfo]),
            None => self.called("datetime", class, &[state]),
        }
    }

    /// A timedelta. As in Python, seconds and microseconds may be any number; they are brought into
    /// their bounds.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if it comes to more than 999,999,999 days in either direction.
    pub fn timedelta(&mut self, timedelta: Timedelta) -> Built {
        let parts = [
            self.int(timedelta.days)?,
            self.int(timedelta.seconds)?,
            self.int(timedelta.microseconds)?,
        ];
        self.called("datetime", "timedelta", &parts)
    }

    /// A timezone so far ahead of UTC, with a name of its own or without.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if the offset is a day or more in either direction.
    pub fn timezone(&mut self, offset: Timedelta, name: Option<&str>) -> Built {
        let offset = self.timedelta(offset)?;
        match name {
            Some(name) => {
                let name = self.str(name)?;
                self.called("datetime", "timezone", &[offset, name])
            }
            None => self.called("datetime", "timezone", &[offset]),
        }
    }

    /// A UUID.
    pub fn uuid(&mut self, uuid: Uuid) -> Built {
        let class = self.global("uuid", "UUID")?;
        let object = self.new_object(class, &[], &[])?;
        let state = self.dict()?;
        let (name, int) = (self.str("int")?, self.int(uuid.int)?);
        self.insert(state, name, int)?;
        if let Some(safety) = uuid.is_safe {
            let name = self.str("is_safe")?;
            let safety = self.int(match safety {
                UuidSafety::Safe => 0,
                UuidSafety::Unsafe => -1,
            })?;
            self.insert(state, name, safety)?;
        }
        self.build(object, state)?;
        Ok(object)
    }

    /// A path from its parts, or from texts that hold several of them: they are joined and split as
    /// `pathlib` does.
    pub fn path(&mut self, class: PathClass, texts: &[&str]) -> Built {
        let texts: Vec<NodeId> = texts
            .iter()
            .map(|text| self.str(text))
            .collect::<Result<_, _>>()?;
        self.called("pathlib", class.name(), &texts)
    }

    fn called(&mut self, module: &str, qualname: &str, args: &[NodeId]) -> Built {
        let class = self.global(module, qualname)?;
        self.call(class, args)
    }
}

fn valid(valid: bool) -> Result<(), BuildError> {
    if valid {
        Ok(())
    } else {
        Err(BuildError::Rule(Malformed::Arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDNIGHT: Time<'_> = Time {
        hour: 0,
        minute: 0,
        second: 0,
        microsecond: 0,
        fold: false,
        tzinfo: None,
    };
    const DAY: Date = Date {
        year: 2024,
        month: 2,
        day: 29,
    };

    #[test]
    fn what_is_made_tells_what_it_was_made_of() {
        let mut builder = Builder::new();
        let hour = Timedelta {
            days: -1,
            seconds: 90_000,
            microseconds: 0,
        };
        let zone = builder.timezone(hour, Some("X")).unwrap();
        let datetime = Datetime {
            date: DAY,
            time: Time {
                hour: 23,
                minute: 59,
                second: 58,
                microsecond: 999_999,
                fold: true,
                tzinfo: None,
            },
        };
        let uuid = Uuid {
            int: u128::MAX - 1,
            is_safe: Some(UuidSafety::Unsafe),
        };
        let items = [
            builder.complex(1.5, -0.0).unwrap(),
            builder.decimal("-0.00").unwrap(),
            builder.fraction(-4, -6).unwrap(),
            builder.date(DAY).unwrap(),
            builder.time(datetime.time, None).unwrap(),
            builder.datetime(datetime, Some(zone)).unwrap(),
            zone,
            builder.uuid(uuid).unwrap(),
            builder
                .path(PathClass::WindowsPath, &["c:/a", "b\\.\\d"])
                .unwrap(),
        ];
        let tuple = builder.tuple(&items).unwrap();
        let document = builder.finish(tuple).unwrap();
        let at = |index| document.root().tuple().unwrap().at(index).unwrap();
        let complex = at(0).as_complex().unwrap();
        assert_eq!(
            (complex.re, complex.im.to_bits()),
            (1.5, (-0.0_f64).to_bits())
        );
        assert_eq!(at(1).decimal().unwrap().to_string(), "-0.00");
        assert_eq!(at(2).fraction().unwrap().to_string(), "2/3");
        assert_eq!(at(3).date(), Some(DAY));
        assert_eq!(at(4).time(), Some(datetime.time));
        let aware = at(5).datetime().unwrap();
        assert_eq!((aware.date, aware.time.fold), (DAY, true));
        assert_eq!(aware.utc_offset().unwrap().seconds, 3600);
        assert_eq!(at(6).timezone().unwrap().to_string(), "X");
        assert_eq!(at(7).uuid(), Some(uuid));
        let path = at(8).path().unwrap();
        assert_eq!(path.class(), PathClass::WindowsPath);
        assert_eq!(path.to_string(), "c:\\a\\b\\d");
    }

    #[test]
    fn what_python_would_not_make_is_refused() {
        let mut builder = Builder::new();
        let refused = Err(BuildError::Rule(Malformed::Arguments));
        let days = |days| Timedelta {
            days,
            seconds: 0,
            microseconds: 0,
        };
        assert_eq!(builder.fraction(1, 0), refused);
        assert_eq!(builder.decimal("1_0"), refused);
        for (year, month, day) in [
            (2023, 2, 29),
            (1900, 2, 29),
            (0, 1, 1),
            (1, 13, 1),
            (1, 4, 31),
        ] {
            assert_eq!(builder.date(Date { year, month, day }), refused);
        }
        // Bits that would look like a fold or get lost.
        for time in [
            Time {
                hour: 0x81,
                ..MIDNIGHT
            },
            Time {
                microsecond: 1 << 24,
                ..MIDNIGHT
            },
            Time {
                second: 60,
                ..MIDNIGHT
            },
        ] {
            assert_eq!(builder.time(time, None), refused);
        }
        assert_eq!(builder.timedelta(days(1_000_000_000)), refused);
        assert_eq!(builder.timezone(days(1), None), refused);
        let name = builder.str("UTC").unwrap();
        assert_eq!(builder.time(MIDNIGHT, Some(name)), refused);
    }
}
