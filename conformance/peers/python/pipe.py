"""The runtime's end of the pipe (`spec/prose/pipe.md`): starts a worker, sends it calls and reads its frames."""

import asyncio
import collections
import os
import re
import secrets
import signal
import sys

import msgpack

from execute import MESSAGE_LIMIT, error_outcome

NAMESPACE = re.compile(r"/[^\s,?\x00-\x1f\x7f-\x9f]*")  # AGX-CON-044
START_TIMEOUT = 15.0  # seconds, AGX-PIPE-036
EXIT_TIMEOUT = 2.0  # seconds, AGX-PIPE-040
STOP_TIMEOUTS = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 2.0))  # seconds before each signal, AGX-PIPE-042
BACK_OFF, BACK_OFF_LIMIT = 0.5, 30.0  # seconds, AGX-PIPE-038
UNOPENED_EVENTS, UNOPENED_BYTES = 1024, 1_048_576  # AGX-SIDE-036


def log(text):
    print(text, file=sys.stderr, flush=True)


def valid_namespace(name):
    return isinstance(name, str) and NAMESPACE.fullmatch(name) is not None and len(name.encode()) <= 256


def well_formed(raw):
    """Whether bytes are one msgpack value, without building it (AGX-SIDE-034)."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    try:
        unpacker.feed(raw)
        unpacker.skip()
    except Exception:
        return False
    return unpacker.tell() == len(raw)


def read_frame(body):
    """A frame as a dict in which `data` is the bytes of its value, as they stand in the frame."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(body)
    frame = {}
    for _ in range(unpacker.read_map_header()):
        key, start = unpacker.unpack(), unpacker.tell()
        if key == "data":
            unpacker.skip()
            frame[key] = body[start:unpacker.tell()]
        else:
            frame[key] = unpacker.unpack()
    if unpacker.tell() != len(body):
        raise ValueError("bytes after the end of the map")
    return frame


def write_frame(data=None, **fields):
    """A frame with `type` first; `data`, bytes of a value, comes last where it is given."""
    packer = msgpack.Packer()
    body = packer.pack_map_header(len(fields) + (data is not None))
    body += b"".join(packer.pack(part) for item in fields.items() for part in item)
    body += b"" if data is None else packer.pack("data") + data
    return len(body).to_bytes(4, "little") + body


class PipeWorker:
    """Has at most one worker process at a time. `finished(call_id, outcome)` takes outcomes, and
    `emitted(namespace, event, raw)` takes what the worker emits on side channels."""

    def __init__(self, command, finished, emitted):
        self.command, self.finished, self.emitted = command, finished, emitted
        self.loop = asyncio.get_running_loop()
        self.life = None  # task of the present worker
        self.process = None  # set while the worker can take calls
        self.waiting = collections.OrderedDict()  # call id -> frame
        self.sent = {}  # call id -> None, in order
        self.opened = set()
        self.unopened = collections.defaultdict(collections.deque)  # namespace -> (event, raw)
        self.failures, self.retry_at, self.last_failure = 0, 0.0, None
        self.stopping = False

    def start(self, call_id, target, arguments, context):
        frame = write_frame(type="call", call_id=call_id, callable=target, arguments=arguments, context=context)
        if len(frame) - 4 > MESSAGE_LIMIT:
            outcome = error_outcome("FrameTooLarge", "the frame of the call has %d bytes" % (len(frame) - 4))
            self.loop.call_soon(self.finished, call_id, outcome)
        elif self.process is not None:
            self.sent[call_id] = None
            self.process.stdin.write(frame)
        elif self.life is None and self.loop.time() < self.retry_at:  # AGX-CALL-074
            self.loop.call_soon(self.finished, call_id, self.last_failure)
        else:
            self.waiting[call_id] = frame
            self._begin()

    def cancel(self, call_id):
        if self.waiting.pop(call_id, None) is None and call_id in self.sent:  # AGX-CALL-056
            del self.sent[call_id]
            self.process.stdin.write(write_frame(type="cancel", call_id=call_id))

    def inbound(self, namespace, event, raw):
        """Passes an event on, or holds it until the worker opens the namespace."""
        if self.process is not None and namespace in self.opened:
            self.process.stdin.write(write_frame(type="sio_inbound", namespace=namespace, event=event, data=raw))
            return
        held = self.unopened[namespace]
        held.append((event, raw))
        while len(held) > UNOPENED_EVENTS or sum(len(raw) for _, raw in held) > UNOPENED_BYTES:
            held.popleft()
            log("dropped the oldest event for %r, which the worker has not opened" % namespace)

    def _begin(self):
        if self.life is None and not self.stopping:
            self.life = self.loop.create_task(self._live())

    async def _live(self):
        environment = dict(os.environ, AGENTIX_WORKER_ID=secrets.token_hex(4))
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment)
        except OSError as cause:
            self._start_failed(str(cause), None)
        else:
            try:
                await self._supervise(process)
            finally:
                if process.returncode is None:
                    process.kill()
                await self._exit_status(process)
        self.life = None
        if self.waiting:
            self._begin()

    async def _supervise(self, process):
        ready = self.loop.create_future()
        reading = self.loop.create_task(self._read(process, ready))
        await asyncio.wait({reading, ready}, timeout=START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            cause = reading.result() if reading.done() else "not ready within %g s" % START_TIMEOUT
            reading.cancel()
            code = await self._exit_status(process) if cause == "stdout closed" else None
            self._start_failed(cause if code is None else "exit code %d before ready" % code, code)
            return
        cause = await reading
        lost, self.process, self.sent = list(self.sent), None, {}
        self.opened.clear()  # AGX-SIDE-037
        code = await self._exit_status(process)
        if code is not None:
            cause = "killed by signal %d" % -code if code < 0 else "exit code %d" % code
        for call_id in lost:
            self.finished(call_id, error_outcome("WorkerDied", "runtime worker exited: " + cause, returncode=code))

    async def _exit_status(self, process):
        """Bounded, because asyncio waits for the pipes too, which a child of the worker may hold."""
        try:
            return await asyncio.wait_for(process.wait(), EXIT_TIMEOUT)
        except asyncio.TimeoutError:
            return None

    def _start_failed(self, cause, code):
        self.failures += 1
        self.retry_at = self.loop.time() + min(BACK_OFF * 2 ** min(self.failures - 1, 10), BACK_OFF_LIMIT)
        self.last_failure = error_outcome("WorkerUnavailable", "the worker did not start: " + cause, returncode=code)
        waiting, self.waiting = self.waiting, collections.OrderedDict()
        for call_id in waiting:
            self.finished(call_id, self.last_failure)

    async def _read(self, process, ready):
        """Reads frames until the pipe is lost. Returns the cause."""
        while True:
            try:
                length = int.from_bytes(await process.stdout.readexactly(4), "little")
                if length > MESSAGE_LIMIT:
                    return "a frame of %d bytes" % length
                body = await process.stdout.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return "stdout closed"
            if not body:
                continue
            try:
                frame = read_frame(body)
            except Exception as cause:
                log("lost a frame of the worker: %r" % cause)
                continue
            if frame.get("type") == "boot_error" and not ready.done():
                error = frame.get("error") if isinstance(frame.get("error"), dict) else {}
                return "%s: %s" % (error.get("type"), error.get("message"))
            if frame.get("type") == "ready" and not ready.done():
                self._ready(process, ready)
            else:
                self._take(frame)

    def _ready(self, process, ready):
        ready.set_result(None)
        self.failures, self.process = 0, process
        for call_id, frame in self.waiting.items():
            self.sent[call_id] = None
            process.stdin.write(frame)
        self.waiting.clear()
        for namespace in self.opened:
            self._flush(namespace)

    def _take(self, frame):
        kind, call_id, namespace = frame.get("type"), frame.get("call_id"), frame.get("namespace")
        if kind in ("result", "error"):
            key, type_ = ("value", bytes) if kind == "result" else ("error", dict)
            if not isinstance(call_id, str) or call_id not in self.sent:
                log("ignored an outcome of %r, which does not run" % (call_id,))
                return
            del self.sent[call_id]
            if isinstance(frame.get(key), type_):
                self.finished(call_id, {key: frame[key]})
            else:  # AGX-PIPE-024
                self.finished(call_id, error_outcome("ResultEncodeError", "a %s frame without %s" % (kind, key)))
        elif kind in ("sio_open", "sio_emit") and valid_namespace(namespace) and namespace not in ("/", "/rpc"):
            if kind == "sio_open":
                self.opened.add(namespace)
                self._flush(namespace)
            elif isinstance(frame.get("event"), str):
                self.emitted(namespace, frame["event"], frame.get("data", b"\xc0"))
        else:
            log("ignored a frame of the worker: type %r, namespace %r" % (kind, namespace))

    def _flush(self, namespace):
        if self.process is not None:
            for event, raw in self.unopened.pop(namespace, ()):
                self.inbound(namespace, event, raw)

    async def stop(self):
        """Leaves no worker behind (AGX-PIPE-042, AGX-PIPE-044)."""
        self.stopping = True
        if self.life is None:
            return
        if self.process is None:
            self.life.cancel()
        else:
            process = self.process
            process.stdin.write(write_frame(type="shutdown"))
            for number, seconds in STOP_TIMEOUTS:
                await asyncio.wait({self.life}, timeout=seconds)
                if self.life is None or self.life.done():
                    return
                process.send_signal(number)
        await asyncio.wait({self.life}, timeout=EXIT_TIMEOUT)
