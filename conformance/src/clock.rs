//! How long the suite waits.

use std::time::Duration;

/// Every wait of the suite, scaled by `--timeout-scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    scale: f64,
}

impl Clock {
    /// A clock whose waits are `scale` times the defaults.
    pub(crate) fn new(scale: f64) -> Self {
        Self { scale }
    }

    /// For an answer that is due at once: 10 s, so that a busy machine is not taken for a silent peer.
    pub(crate) fn answer(self) -> Duration {
        self.scaled(Duration::from_secs(10))
    }

    /// For a testee to listen, or to become ready: 30 s.
    pub(crate) fn start(self) -> Duration {
        self.scaled(Duration::from_secs(30))
    }

    /// For a whole case: 120 s. No case comes near it while its own waits hold.
    pub(crate) fn case(self) -> Duration {
        self.scaled(Duration::from_secs(120))
    }

    /// For a testee to end after it was told to: 15 s; stopping a worker may take 9 of them (AGX-PIPE-042).
    pub(crate) fn stop(self) -> Duration {
        self.scaled(Duration::from_secs(15))
    }

    /// For one vector to be decoded, compared and dropped: 60 s. Few take a millisecond.
    pub(crate) fn vector(self) -> Duration {
        self.scaled(Duration::from_secs(60))
    }

    /// Processor time for decoding one vector: 2 s, whatever else the machine does.
    pub(crate) fn decoding(self) -> Duration {
        self.scaled(Duration::from_secs(2))
    }

    /// `duration`, scaled.
    pub(crate) fn scaled(self, duration: Duration) -> Duration {
        duration.mul_f64(self.scale)
    }
}
