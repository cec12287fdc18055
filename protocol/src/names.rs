//! Every name that the protocol puts on a wire, spelled once.

/// Socket.IO namespace of calls.
pub const RPC: &str = "/rpc";
/// Socket.IO namespace of log records.
pub const LOG: &str = "/log";
/// Socket.IO namespace of trace spans.
pub const TRACE: &str = "/trace";

/// Version of the protocol that `/health` states (AGX-VER).
pub const PROTOCOL_VERSION: &str = "1.0";

/// Event names on `/rpc`.
pub mod event {
    /// Host to runtime: run a function.
    pub const CALL: &str = "call";
    /// Host to runtime: stop a call.
    pub const CANCEL: &str = "cancel";
    /// Host to runtime: send these outcomes again.
    pub const RESUME: &str = "resume";
    /// Host to runtime: this outcome was consumed.
    pub const ACK: &str = "ack";
    /// Runtime to host: the call returned.
    pub const CALL_RESULT: &str = "call:result";
    /// Runtime to host: the call failed.
    pub const CALL_ERROR: &str = "call:error";
}

/// Event names on reliable streams (`/log`, `/trace`).
pub mod stream {
    /// Receiver to sender: everything up to `seq` was consumed.
    pub const ACK: &str = "_ack";
    /// Receiver to sender: send everything after `since_seq`.
    pub const RESUME: &str = "_resume";
    /// A log record on `/log`.
    pub const RECORD: &str = "record";
    /// Envelope: the stream.
    pub const SID: &str = "_sid";
    /// Envelope: the position in the stream.
    pub const SEQ: &str = "_seq";
    /// Envelope: the record.
    pub const DATA: &str = "data";
    /// Body of an ack: the position.
    pub const ACK_SEQ: &str = "seq";
    /// Body of a resume: the position.
    pub const SINCE_SEQ: &str = "since_seq";
}

/// `type` tags of pipe frames.
pub mod tag {
    /// Runtime to worker: run a function.
    pub const CALL: &str = "call";
    /// Runtime to worker: stop a call.
    pub const CANCEL: &str = "cancel";
    /// Runtime to worker: end orderly.
    pub const SHUTDOWN: &str = "shutdown";
    /// Runtime to worker: a host sent this event.
    pub const SIO_INBOUND: &str = "sio_inbound";
    /// Worker to runtime: calls may come.
    pub const READY: &str = "ready";
    /// Worker to runtime: the worker cannot start.
    pub const BOOT_ERROR: &str = "boot_error";
    /// Worker to runtime: the call returned.
    pub const RESULT: &str = "result";
    /// Worker to runtime: the call failed.
    pub const ERROR: &str = "error";
    /// Worker to runtime: this namespace has handlers now.
    pub const SIO_OPEN: &str = "sio_open";
    /// Worker to runtime: send this event to the hosts.
    pub const SIO_EMIT: &str = "sio_emit";
}

/// Field names of bodies.
pub mod field {
    /// Frame tag, and the class name of an error.
    pub const TYPE: &str = "type";
    /// Id of a call.
    pub const CALL_ID: &str = "call_id";
    /// Ids of calls, in `resume`.
    pub const CALL_IDS: &str = "call_ids";
    /// Target string of a call.
    pub const CALLABLE: &str = "callable";
    /// Pickled `(args, kwargs)`.
    pub const ARGUMENTS: &str = "arguments";
    /// Pickled context variables.
    pub const CONTEXT: &str = "context";
    /// Pickled result.
    pub const VALUE: &str = "value";
    /// Error body.
    pub const ERROR: &str = "error";
    /// HTTP: did the call return?
    pub const OK: &str = "ok";
    /// Human text of an error.
    pub const MESSAGE: &str = "message";
    /// Remote traceback text.
    pub const TRACEBACK: &str = "traceback";
    /// Was the call cancelled?
    pub const CANCELLED: &str = "cancelled";
    /// Exit code of the worker, or minus its signal.
    pub const RETURNCODE: &str = "returncode";
    /// Socket.IO namespace in pipe frames.
    pub const NAMESPACE: &str = "namespace";
    /// Event name in pipe frames.
    pub const EVENT: &str = "event";
    /// Event payload in pipe frames.
    pub const DATA: &str = "data";
}

/// `type` names of errors that the protocol itself makes.
pub mod error_type {
    /// A message that breaks the rules of its kind.
    pub const BAD_REQUEST: &str = "BadRequest";
    /// The call was cancelled.
    pub const CANCELLED: &str = "Cancelled";
    /// The outcome is no longer (or never was) held.
    pub const RESULT_UNAVAILABLE: &str = "ResultUnavailable";
    /// The worker ended while the call ran.
    pub const WORKER_DIED: &str = "WorkerDied";
    /// The worker could not be started.
    pub const WORKER_UNAVAILABLE: &str = "WorkerUnavailable";
    /// Arguments that do not unpickle into `(tuple, dict)`.
    pub const ARGUMENTS_DECODE: &str = "ArgumentsDecodeError";
    /// A result that cannot be pickled.
    pub const RESULT_ENCODE: &str = "ResultEncodeError";
    /// A result above the size limit.
    pub const FRAME_TOO_LARGE: &str = "FrameTooLarge";
    /// A request above the size limit.
    pub const PAYLOAD_TOO_LARGE: &str = "PayloadTooLarge";
}

/// HTTP names.
pub mod http {
    /// Path of the health check.
    pub const HEALTH_PATH: &str = "/health";
    /// Path of the short call.
    pub const CALL_PATH: &str = "/call";
    /// Path of Engine.IO.
    pub const ENGINE_PATH: &str = "/socket.io/";
    /// Media type of `/call` bodies.
    pub const MSGPACK: &str = "application/msgpack";
    /// Header that names the owner's `/rpc` sid.
    pub const SID_HEADER: &str = "agentix-sid";
    /// Header of the wait budget.
    pub const PREFER: &str = "prefer";
    /// Header that says which budget was applied.
    pub const PREFERENCE_APPLIED: &str = "preference-applied";
}
