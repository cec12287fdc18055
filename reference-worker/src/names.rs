//! Environment variables, each spelled once.

/// Names a worker among those of all runtimes: 8 lower-case hex digits (AGX-PIPE-027).
pub(crate) const WORKER_ID: &str = "AGENTIX_WORKER_ID";
/// How many sync functions a worker runs at a time.
pub(crate) const WORKER_THREADS: &str = "AGENTIX_WORKER_THREADS";
/// Name or address that a runtime listens on, where no flag says.
pub(crate) const BIND_HOST: &str = "AGENTIX_BIND_HOST";
/// Port that a runtime listens on, where no flag says.
pub(crate) const BIND_PORT: &str = "AGENTIX_BIND_PORT";
