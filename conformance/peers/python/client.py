"""The connection, the calls and the decoding of the independent host: what a host of one's own would begin with."""

import asyncio
import collections
import contextlib
import io
import pickle
import re
import socket
import uuid

import aiohttp
import engineio.payload
import msgpack
import socketio

MESSAGE_LIMIT = 268_435_456  # bytes, AGX-LIM-001
TIMEOUT = 30.0  # seconds for any one step; far above what a loaded machine needs, so that no step can hang
CLOSE_TIMEOUT = 2.0  # seconds
ERROR_KEYS = ["type", "message", "traceback", "cancelled", "returncode"]

# python-engineio drops a polling body of more than 16 packets; the protocol has no such bound (AGX-CON-061).
engineio.payload.Payload.max_decode_packets = 1_000_000


class Refused(Exception):
    """A value that the restricted decoder does not accept (AGX-RPC-032)."""


class RemoteError(Exception):
    """An error outcome; `error` is its map, read as AGX-RPC-041 has it."""

    def __init__(self, error):
        self.error = error
        super().__init__("%s: %s" % (error["type"], error["message"]))


class PlainUnpickler(pickle.Unpickler):
    """Decodes plain values and refuses every global, which is stricter than `restricted-decoding.md` asks."""

    def find_class(self, module, name):
        raise Refused("global %s.%s" % (module, name))


def unpickle(value):
    try:
        return PlainUnpickler(io.BytesIO(value)).load()
    except Refused:
        raise
    except Exception as cause:
        raise Refused("not a readable pickle: %r" % (cause,)) from cause


def read_error(error):
    """The five keys with the defaults of AGX-RPC-041."""
    error = error if isinstance(error, dict) else {}
    kinds = {"type": str, "message": str, "traceback": str, "cancelled": bool, "returncode": int}
    defaults = {"type": "Unknown", "message": "", "traceback": None, "cancelled": False, "returncode": None}
    return {key: error[key] if type(error.get(key)) is kind else defaults[key] for key, kind in kinds.items()}


def unwrap(outcome):
    """The value of an outcome, or the error that it holds, raised."""
    if "error" in outcome:
        raise RemoteError(read_error(outcome["error"]))
    return unpickle(outcome["value"])


def check_version(health):
    """AGX-VER-003 to AGX-VER-007; raises ValueError for a peer to which no call may be sent."""
    protocol, version = health.get("protocol"), health.get("version")
    if protocol is not None:
        if not isinstance(protocol, str) or protocol.split(".")[0] != "1":
            raise ValueError("protocol %r is not 1.x" % (protocol,))
        return
    parts = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", version) if isinstance(version, str) else None
    if parts is None or tuple(int(part or 0) for part in parts.groups()) < (0, 2, 7):
        raise ValueError("no protocol stated and version %r is not 0.2.7 or later" % (version,))


def new_id():
    return uuid.uuid4().hex


def call_body(call_id, target, *args, **kwargs):
    return {"call_id": call_id, "callable": target, "arguments": pickle.dumps((args, kwargs), protocol=4)}


class Host:
    """One caller: a Socket.IO connection that may be cut and made again, and the calls that wait on it."""

    def __init__(self, url, transports=None, namespaces=("/rpc", "/trace", "/log")):
        self.url, self.transports, self.namespaces = url, transports, list(namespaces)
        self.client = self.session = None
        self.lost = asyncio.Event()
        self.unacked = {}  # call id -> payload, for calls without a Socket.IO ack
        self.accepted = set()  # ids of accepted calls without an outcome
        self.cursors = {}  # (namespace, stream) -> last _seq
        self.records = []
        self.inbox = collections.defaultdict(asyncio.Queue)  # call id -> outcomes in order of arrival

    async def connect(self):
        """Joins the namespaces, resumes what was accepted and sends again what was not acked."""
        self.lost = asyncio.Event()
        self.session = self.session or aiohttp.ClientSession()
        self.client = socketio.AsyncClient(
            reconnection=False, handle_sigint=False, request_timeout=TIMEOUT, http_session=self.session,
            websocket_extra_options={"max_msg_size": MESSAGE_LIMIT})
        for event, key in (("call:result", "value"), ("call:error", "error")):
            self.client.on(event, self._outcome_handler(key), namespace="/rpc")
        self.client.on("disconnect", lambda *_: self.lost.set(), namespace="/rpc")
        streams = [name for name in self.namespaces if name in ("/log", "/trace")]
        for name in streams:
            self.client.on("*", self._record_handler(name), namespace=name)
        await self.client.connect(
            self.url, transports=self.transports, namespaces=self.namespaces, wait_timeout=TIMEOUT)
        for name in streams:  # AGX-SIDE-010
            known = [(sid, seq) for (space, sid), seq in self.cursors.items() if space == name]
            resume = {"since_seq": known[-1][1], "_sid": known[-1][0]} if known else {"since_seq": 0}
            await self.client.emit("_resume", msgpack.packb(resume), namespace=name)
        if self.accepted:  # AGX-CALL-047
            await self.emit("resume", {"call_ids": sorted(self.accepted)})
        for payload in list(self.unacked.values()):  # AGX-CALL-048
            await self.send_call(payload)

    def _outcome_handler(self, key):
        def handle(raw=None, *_):
            payload = msgpack.unpackb(raw)
            call_id = payload["call_id"]
            self.unacked.pop(call_id, None)
            self.accepted.discard(call_id)
            self.inbox[call_id].put_nowait({key: payload[key]})
        return handle

    def _record_handler(self, namespace):
        async def handle(_event, raw=None, *_):
            record = msgpack.unpackb(raw)
            stream = (namespace, record["_sid"])
            if record["_seq"] > self.cursors.get(stream, 0):  # AGX-SIDE-012
                self.cursors[stream] = record["_seq"]
                self.records.append((namespace, record))
            ack = {"seq": record["_seq"], "_sid": record["_sid"]}
            await self.client.emit("_ack", msgpack.packb(ack), namespace=namespace)
        return handle

    async def cut(self):
        """Breaks the TCP connection without a closing handshake."""
        self.client.eio.ws.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        await asyncio.wait_for(self.lost.wait(), TIMEOUT)

    async def close(self):
        """Leaves. A runtime may let a polling GET wait after that (AGX-CON-024); it is given up here."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.client.disconnect(), CLOSE_TIMEOUT)
        await self.session.close()

    @property
    def sid(self):
        return self.client.get_sid("/rpc")

    async def emit(self, event, payload):
        """Sends an event and waits for its Socket.IO ack, which carries nothing (AGX-RPC-063, AGX-RPC-064)."""
        answer = await self.client.call(event, msgpack.packb(payload), namespace="/rpc", timeout=TIMEOUT)
        expect(answer, None, "contents of the Socket.IO ack of " + event)

    async def emit_raw(self, event, data):
        """Sends any event; the list that it returns gets an entry when a Socket.IO ack comes."""
        acks = []
        await self.client.emit(event, data, namespace="/rpc", callback=lambda *args: acks.append(args))
        return acks

    async def send_call(self, payload):
        self.unacked[payload["call_id"]] = payload
        await self.emit("call", payload)
        if self.unacked.pop(payload["call_id"], None):
            self.accepted.add(payload["call_id"])

    async def submit(self, target, *args, **kwargs):
        call_id = new_id()
        await self.send_call(call_body(call_id, target, *args, **kwargs))
        return call_id

    async def outcome(self, call_id):
        """The next outcome of a call, not acked, so that the runtime still holds it."""
        return await asyncio.wait_for(self.inbox[call_id].get(), TIMEOUT)

    async def finish(self, call_id):
        """Consumes the outcome of a call: `ack` goes out even where the value is refused (AGX-CALL-044)."""
        outcome = await self.outcome(call_id)
        try:
            return unwrap(outcome)
        finally:
            await self.emit("ack", {"call_id": call_id})

    async def call(self, target, *args, **kwargs):
        return await self.finish(await self.submit(target, *args, **kwargs))

    async def resume_answer(self, call_id):
        await self.emit("resume", {"call_ids": [call_id]})
        return await self.outcome(call_id)

    async def quiet(self, *call_ids):
        """Fails if an outcome of these calls has come. The answer to a `resume` of an unknown id is the barrier:
        what the runtime sent before it has arrived too (AGX-CON-060, AGX-PIPE-026)."""
        expect_error(await self.resume_answer(new_id()), "ResultUnavailable")
        for call_id in call_ids:
            expect(self.inbox[call_id].qsize(), 0, "outcomes of %s that were not asked for" % call_id)


def expect(actual, expected, what):
    if actual != expected or type(actual) is not type(expected):
        raise AssertionError("%s: expected %.200r, got %.200r" % (what, expected, actual))


def expect_error(outcome, type_, cancelled=False, returncode=None):
    """Judges an outcome or an HTTP body: an error of this type with all five keys in order (AGX-RPC-040)."""
    error = outcome.get("error")
    if not isinstance(error, dict):
        raise AssertionError("expected an error of type %s, got %.200r" % (type_, outcome))
    expect(list(error), ERROR_KEYS, "keys of the error")
    expect(error["type"], type_, "type (message %r)" % (error["message"],))
    expect(error["cancelled"], cancelled, "cancelled")
    expect(error["returncode"], returncode, "returncode")
    return error
