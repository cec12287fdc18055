//! How a client behaves.

use std::time::Duration;

use agentix_protocol::http::Prefer;
use agentix_protocol::safepickle::{Limits, Policy};

/// How a [`RuntimeClient`](crate::RuntimeClient) behaves.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use agentix_reference_host::ClientConfig;
///
/// // Calls go over `/rpc` alone, and none may take longer than a minute.
/// let config = ClientConfig {
///     http_wait: None,
///     call_deadline: Some(Duration::from_secs(60)),
///     ..ClientConfig::default()
/// };
/// # let _ = config;
/// ```
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// How long the runtime may hold a `POST /call` before it answers that the call runs on; `None`
    /// sends every call on `/rpc`. Default 1 s: a call that ends within it takes one round trip,
    /// and a lost response costs no more than that.
    pub http_wait: Option<Duration>,
    /// How long one attempt to connect may take, from the first byte to the last joined namespace.
    /// Default 10 s.
    pub connect_timeout: Duration,
    /// What happens when the connection is lost.
    pub reconnect: Reconnect,
    /// How long any call of this client may take before it is cancelled and ends with
    /// [`CallError::DeadlineExceeded`](crate::CallError::DeadlineExceeded). Default `None`: no limit.
    /// For one call, put `tokio::time::timeout` around its future; dropping it cancels the call.
    pub call_deadline: Option<Duration>,
    /// Which classes and functions a result may name. Default [`Policy::agentix`]; add one exact class
    /// with [`Policy::allow`], or numpy's newer forms with [`Policy::with_numpy`].
    pub decode_policy: Policy,
    /// What decoding one result may cost. The defaults fit the protocol: 256 MiB of input,
    /// 16,777,216 objects.
    pub decode_limits: Limits,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            http_wait: Some(Prefer::DEFAULT_WAIT),
            connect_timeout: Duration::from_secs(10),
            reconnect: Reconnect::default(),
            call_deadline: None,
            decode_policy: Policy::agentix(),
            decode_limits: Limits::default(),
        }
    }
}

/// What a client does when its connection is lost (AGX-CON-083).
///
/// Calls under way stay pending meanwhile, and are resumed, or sent again where that is safe, on
/// the next connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// How many attempts in a row may fail before pending calls end with
    /// [`CallError::Disconnected`](crate::CallError::Disconnected); 0 switches reconnects off.
    /// The count begins anew once a connection has proved itself by a packet. Default 30: some two
    /// minutes where nothing listens, so that a call to a runtime that is gone ends.
    pub attempts: u32,
    /// Time before the first attempt. Default 1 s.
    pub delay: Duration,
    /// The longest time between attempts; it doubles from `delay` up to this. Default 5 s.
    pub max_delay: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            attempts: 30,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(5),
        }
    }
}

impl Reconnect {
    /// A lost connection fails pending calls at once.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            attempts: 0,
            delay: Duration::ZERO,
            max_delay: Duration::ZERO,
        }
    }
}

/// Counts attempts and says how long to wait before each.
#[derive(Debug)]
pub(crate) struct Backoff {
    config: Reconnect,
    made: u32,
}

impl Backoff {
    pub(crate) fn new(config: Reconnect) -> Self {
        Self { config, made: 0 }
    }

    /// Time before the next attempt, `None` when there is none. `spread` in 0..1 varies the time
    /// between half of it and one and a half.
    pub(crate) fn next(&mut self, spread: f64) -> Option<Duration> {
        if self.made >= self.config.attempts {
            return None;
        }
        let doubled = self
            .config
            .delay
            .saturating_mul(1_u32.checked_shl(self.made).unwrap_or(u32::MAX));
        self.made += 1;
        let delay = doubled.min(self.config.max_delay);
        Some(delay.mul_f64(0.5 + spread.clamp(0.0, 1.0)))
    }

    pub(crate) fn reset(&mut self) {
        self.made = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agx_con_083_delays_double_up_to_the_longest() {
        let config = Reconnect {
            attempts: 5,
            ..Reconnect::default()
        };
        let mut backoff = Backoff::new(config);
        let mut delays = Vec::new();
        while let Some(delay) = backoff.next(0.5) {
            delays.push(delay.as_millis());
        }
        assert_eq!(delays, [1000, 2000, 4000, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.next(0.0), Some(Duration::from_millis(500)));
        assert_eq!(backoff.next(1.0), Some(Duration::from_millis(3000)));
    }

    #[test]
    fn attempts_never_overflow() {
        let mut backoff = Backoff::new(Reconnect {
            attempts: u32::MAX,
            ..Reconnect::default()
        });
        backoff.made = 40;
        assert_eq!(backoff.next(0.5), Some(Duration::from_secs(5)));
        assert_eq!(Backoff::new(Reconnect::off()).next(0.5), None);
    }
}
