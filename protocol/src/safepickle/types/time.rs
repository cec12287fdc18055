//! Dates, times, durations and time zones.
