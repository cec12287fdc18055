#!/usr/bin/env python3
"""The Python worker: executes the functions that a runtime asks for over a private pipe.

One file, Python 3.9 or newer, standard library only, so that it runs in any image that has `python3`:

    python3 agentix_worker.py [--path DIR]...

Standard input carries frames from the runtime, standard output frames to it: a little-endian u32 length, then one
msgpack map. Both are taken over before any user code runs. What the functions print, and what their child processes
print, goes to standard error instead.

Environment:
    AGENTIX_PATH            colon-separated folders to import from, after every --path and ahead of the interpreter's
                            own path; the folder of this script is not searched
    AGENTIX_WORKER_THREADS  how many synchronous calls run at a time; 32 where it is absent or no positive number

Exit status: 0 after a `shutdown` frame, end of input, SIGTERM or SIGINT; 1 when the pipe can no longer be understood;
2 for a wrong command line.

Threads: the *reader* reads frames and keeps the table of calls, so that a call that blocks the event loop delays
neither `cancel` nor `shutdown`; *prepare* threads import modules and unpickle arguments; *call* threads run synchronous
functions; the main thread runs the event loop for the asynchronous ones; the *writer* sends frames; the *closer* ends
the process.

Cancelling an asynchronous call cancels its task. In a synchronous one an exception is raised in its thread, which stops
Python code; what blocks in native code runs on, its thread stays occupied, and a line on standard error says so.
"""

import argparse
import asyncio
import atexit
import collections
import contextvars
import fcntl
import functools
import hashlib
import importlib
import inspect
import mmap
import os
import pickle
import signal
import struct
import sys
import threading
import time
import traceback

try:
    import ctypes
except ImportError:  # an interpreter built without libffi: synchronous calls cannot be interrupted
    ctypes = None

# --- Limits and names ----------------------------------------------------------------------------------------------

MAX_FRAME_BYTES = 268_435_456
MAX_DEPTH = 1024
MAX_VALUES = 16_777_216  # in one message
MAX_CALL_ID_BYTES = 128
MAX_TARGET_BYTES = 1024
DEFAULT_CALL_THREADS = 32
PREPARE_THREADS = 32

CALLS_GRACE = 1.0  # seconds that running calls get to end once the worker is told to stop
EXIT_HANDLERS_GRACE = 0.5  # seconds for `atexit` handlers
FLUSH_GRACE = 2.0  # seconds for frames that still wait to be written
CANCEL_NOTICE = 2.0  # seconds after which a cancelled call that still runs is reported

# Protocol 4 is read by every Python from 3.4 on. Protocol 5 would add nothing here (there are no out-of-band buffers),
# and at 5 numpy writes arrays through a helper that hosts' allowlists do not admit.
RESULT_PICKLE_PROTOCOL = 4

FRAME_FIELDS = frozenset(("type", "call_id", "callable", "arguments", "context", "namespace", "event"))


def say(level, text):
    """Writes one line about the worker itself on standard error, past every buffer."""
    line = "agentix-worker: %s: %s" % (level, text)
    data = line.replace("\r", "\\r").replace("\n", "\\n").encode("utf-8", "backslashreplace") + b"\n"
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        pass  # nobody is left to read it


# --- Codec: msgpack ------------------------------------------------------------------------------------------------

ExtType = collections.namedtuple("ExtType", ("code", "data"))
Timestamp = collections.namedtuple("Timestamp", ("seconds", "nanoseconds"))


class CodecError(ValueError):
    """The bytes are not one msgpack value, or the value has no msgpack form."""


_LARGE = 65_536  # bytes; a longer `bin` becomes a chunk of its own instead of being copied
_SCALARS = {
    tag: struct.Struct(form)
    for tag, form in ((0xCA, ">f"), (0xCB, ">d"), (0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"))
    + ((0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZED = {0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4), 0xC7: ("ext", 1), 0xC8: ("ext", 2), 0xC9: ("ext", 4)}
_SIZED.update({0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4)})
_SIZED.update({0xDC: ("array", 2), 0xDD: ("array", 4), 0xDE: ("map", 2), 0xDF: ("map", 4)})


def pack(value):
    """The msgpack form of `value`, every header in its shortest form, floats as float 64."""
    return b"".join(pack_chunks(value))


def pack_chunks(value):
    """`pack` as a list of chunks whose concatenation is the encoding; large byte strings are not copied."""
    chunks = []
    out = bytearray()
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if item is None:
                out.append(0xC0)
            elif item is True:
                out.append(0xC3)
            elif item is False:
                out.append(0xC2)
            elif isinstance(item, int):
                out += _pack_int(item)
            elif isinstance(item, float):
                out += struct.pack(">Bd", 0xCB, item)
            elif isinstance(item, str):
                out += _pack_str(item)
            elif isinstance(item, (bytes, bytearray, memoryview)):
                if not isinstance(item, bytes):
                    item = bytes(item)
                out += _header(len(item), None, (0xC4, 0xC5, 0xC6), "bin")
                if len(item) >= _LARGE:
                    chunks += (out, item)
                    out = bytearray()
                else:
                    out += item
            elif isinstance(item, ExtType):
                out += _pack_ext(item.code, bytes(item.data))
            elif isinstance(item, Timestamp):
                out += _pack_ext(-1, _timestamp_data(item))
            elif isinstance(item, (list, tuple, dict)):
                if len(stack) > MAX_DEPTH:
                    raise CodecError("nested more than %d deep" % MAX_DEPTH)
                if isinstance(item, dict):
                    out += _header(len(item), (0x80, 15), (None, 0xDE, 0xDF), "map")
                    stack.append(_keys_and_values(item))
                else:
                    out += _header(len(item), (0x90, 15), (None, 0xDC, 0xDD), "array")
                    stack.append(iter(item))
                break
            else:
                raise CodecError("%s has no msgpack form" % type(item).__name__)
        else:
            stack.pop()
    chunks.append(out)
    return chunks


def _keys_and_values(mapping):
    for key, value in mapping.items():
        if not isinstance(key, (str, bytes)):
            raise CodecError("map key is %s, not str or bin" % type(key).__name__)
        yield key
        yield value


def _header(size, fixed, tags, what):
    if fixed is not None and size <= fixed[1]:
        return bytes((fixed[0] | size,))
    for tag, form, limit in zip(tags, (">BB", ">BH", ">BI"), (0xFF, 0xFFFF, 0xFFFF_FFFF)):
        if tag is not None and size <= limit:
            return struct.pack(form, tag, size)
    raise CodecError("%s of %d is too long for msgpack" % (what, size))


def _pack_str(text):
    try:
        data = str.encode(text, "utf-8")
    except UnicodeEncodeError as error:
        raise CodecError("str has no UTF-8 form: %s" % error) from None
    return _header(len(data), (0xA0, 31), (0xD9, 0xDA, 0xDB), "str") + data


def _pack_int(number):
    number = int(number)
    if -32 <= number <= 127:
        return struct.pack(">b", number)
    forms = (0xCC, 0xCD, 0xCE, 0xCF) if number > 0 else (0xD0, 0xD1, 0xD2, 0xD3)
    for tag in forms:
        try:
            return bytes((tag,)) + _SCALARS[tag].pack(number)
        except struct.error:
            continue  # does not fit: the next wider form
    raise CodecError("integer outside 64 bits")


def _pack_ext(code, data):
    if not -128 <= code <= 127:
        raise CodecError("extension code %r is not a signed byte" % (code,))
    if len(data) in (1, 2, 4, 8, 16):
        header = bytes((0xD3 + len(data).bit_length(),))
    else:
        header = _header(len(data), None, (0xC7, 0xC8, 0xC9), "ext")
    return header + struct.pack(">b", code) + data


def _timestamp_data(stamp):
    if not 0 <= stamp.nanoseconds < 1_000_000_000:
        raise CodecError("timestamp with %d nanoseconds" % stamp.nanoseconds)
    if not -(2**63) <= stamp.seconds < 2**63:
        raise CodecError("timestamp outside 64 bits")
    if not 0 <= stamp.seconds < 2**34:
        return struct.pack(">Iq", stamp.nanoseconds, stamp.seconds)
    if stamp.nanoseconds or stamp.seconds >= 2**32:
        return struct.pack(">Q", stamp.nanoseconds << 34 | stamp.seconds)
    return struct.pack(">I", stamp.seconds)


def _timestamp(data):
    if len(data) == 4:
        stamp = Timestamp(struct.unpack(">I", data)[0], 0)
    elif len(data) == 8:
        packed = struct.unpack(">Q", data)[0]
        stamp = Timestamp(packed & (2**34 - 1), packed >> 34)
    elif len(data) == 12:
        nanoseconds, seconds = struct.unpack(">Iq", data)
        stamp = Timestamp(seconds, nanoseconds)
    else:
        raise CodecError("timestamp of %d bytes" % len(data))
    if stamp.nanoseconds >= 1_000_000_000:
        raise CodecError("timestamp with %d nanoseconds" % stamp.nanoseconds)
    return stamp


def unpack(data, fields=None):
    """The one msgpack value that `data` holds: nothing before it, nothing after it.

    With `fields`, where the value is a map, entries under other keys are checked but not built.
    Memory and time are linear in the length of `data`, whatever lengths the bytes declare.
    """
    reader = _Reader(data)
    stack = []  # the open containers, outermost first
    values = 0
    while True:
        values += 1
        if values > MAX_VALUES:
            raise CodecError("more than %d values in one message" % MAX_VALUES)
        kind, value = reader.item()
        top = stack[-1] if stack else None
        if top is not None and top.wants_key:
            if kind not in ("str", "bin"):
                raise CodecError("map key is %s, not str or bin, before offset %d" % (kind, reader.at))
            top.key = value
            top.wants_key = False
            top.skip = len(stack) == 1 and fields is not None and value not in fields
            continue
        if kind in ("array", "map"):
            if len(stack) >= MAX_DEPTH:
                raise CodecError("nested more than %d deep at offset %d" % (MAX_DEPTH, reader.at))
            opened = _Open(kind, value, built=top is None or not (top.skip or top.into is None))
            if value:
                stack.append(opened)
                continue
            value = opened.into
        while stack:  # the value is complete: put it in place, and close what it completes
            top = stack[-1]
            top.add(value)
            if top.left:
                break
            value = stack.pop().into
        else:
            if reader.at != len(reader.data):
                raise CodecError("%d bytes after the value" % (len(reader.data) - reader.at))
            return value


class _Open:
    """An array or map whose elements are being read; `into` is None where it is not built."""

    __slots__ = ("into", "left", "is_map", "wants_key", "key", "skip")

    def __init__(self, kind, count, built):
        self.is_map = self.wants_key = kind == "map"
        self.into = ({} if self.is_map else []) if built else None
        self.left = count
        self.key = None
        self.skip = False

    def add(self, value):
        if self.into is not None and not self.skip:
            if self.is_map:
                self.into[self.key] = value
            else:
                self.into.append(value)
        self.wants_key = self.is_map
        self.left -= 1


class _Reader:
    """Reads one header at a time, with the scalar or string that follows it."""

    __slots__ = ("data", "at")

    def __init__(self, data):
        self.data = memoryview(data)
        self.at = 0

    def item(self):
        """(kind, value); for `array` and `map` the value is the number of entries."""
        tag = self.take(1)[0]
        if tag <= 0x7F:
            return "int", tag
        if tag >= 0xE0:
            return "int", tag - 256
        if tag <= 0x8F:
            return "map", self.count(tag & 15, 2)
        if tag <= 0x9F:
            return "array", self.count(tag & 15, 1)
        if tag <= 0xBF:
            return "str", self.text(tag & 31)
        if tag in _CONSTANTS:
            return "nil" if tag == 0xC0 else "bool", _CONSTANTS[tag]
        if tag in _SCALARS:
            form = _SCALARS[tag]
            return "float" if tag <= 0xCB else "int", form.unpack(self.take(form.size))[0]
        if 0xD4 <= tag <= 0xD8:
            return "ext", self.extension(1 << (tag - 0xD4))
        if tag not in _SIZED:
            raise CodecError("reserved byte 0x%02x at offset %d" % (tag, self.at - 1))
        kind, width = _SIZED[tag]
        size = int.from_bytes(self.take(width), "big")
        if kind == "bin":
            return kind, bytes(self.take(size))
        if kind == "str":
            return kind, self.text(size)
        if kind == "ext":
            return kind, self.extension(size)
        return kind, self.count(size, 2 if kind == "map" else 1)

    def take(self, size):
        end = self.at + size
        if end > len(self.data):
            raise CodecError("truncated: %d bytes wanted at offset %d of %d" % (size, self.at, len(self.data)))
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def count(self, entries, bytes_each):
        if entries * bytes_each > len(self.data) - self.at:
            raise CodecError("truncated: %d entries declared at offset %d of %d" % (entries, self.at, len(self.data)))
        return entries

    def text(self, size):
        start = self.at
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise CodecError("invalid UTF-8 at offset %d" % (start + error.start)) from None

    def extension(self, size):
        code = struct.unpack(">b", self.take(1))[0]
        data = bytes(self.take(size))
        if code == -1:
            return _timestamp(data)
        if code < 0:
            raise CodecError("extension code %d is reserved" % code)
        return ExtType(code, data)


# --- Framing -------------------------------------------------------------------------------------------------------


class FrameTooLarge(ValueError):
    """A frame above MAX_FRAME_BYTES."""

    def __init__(self, size):
        super().__init__("frame of %d bytes, the limit is %d" % (size, MAX_FRAME_BYTES))


def frame_chunks(message):
    """The whole frame of `message` as chunks of bytes."""
    chunks = pack_chunks(message)
    size = sum(len(chunk) for chunk in chunks)
    if size > MAX_FRAME_BYTES:
        raise FrameTooLarge(size)
    return [struct.pack("<I", size), *chunks]


class FrameReader:
    """Takes frame bodies off a blocking descriptor."""

    READ_BYTES = 1 << 20

    def __init__(self, fd):
        self._fd = fd
        self._buffer = bytearray()

    def read(self):
        """The next body, or None at end of input. Raises FrameTooLarge for a length that cannot be meant."""
        header = self._take(4)
        if header is None:
            return None
        size = int.from_bytes(header, "little")
        if size > MAX_FRAME_BYTES:
            raise FrameTooLarge(size)
        return self._take(size)

    def _take(self, size):
        """The next `size` bytes; None if the input ends before. Grows with what arrives, not with `size`."""
        taken = self._buffer[:size]
        del self._buffer[:size]
        while len(taken) < size:
            chunk = os.read(self._fd, self.READ_BYTES)
            if not chunk:
                if taken:
                    say("warning", "input ended inside a frame; %d bytes dropped" % len(taken))
                return None
            missing = size - len(taken)
            taken += chunk[:missing]
            self._buffer += chunk[missing:]
        return taken


class FrameWriter:
    """Sends frames in the order in which they are given, from a thread of its own, so that no caller waits."""

    def __init__(self, fd, on_broken):
        self._fd = fd
        self._on_broken = on_broken
        self._queue = collections.deque()
        self._changed = threading.Condition()
        self._unwritten = 0
        self._broken = False

    def start(self):
        threading.Thread(target=self._write_frames, name="agentix-writer", daemon=True).start()

    def send(self, chunks):
        with self._changed:
            if not self._broken:
                self._queue.append(chunks)
                self._unwritten += 1
                self._changed.notify_all()

    def flush(self, timeout):
        """Waits until everything given so far is written, at most `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._broken or not self._unwritten, timeout)

    def _write_frames(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                chunks = self._queue.popleft()
            try:
                for chunk in chunks:
                    rest = memoryview(chunk)
                    while rest:
                        rest = rest[os.write(self._fd, rest) :]
            except BaseException as error:
                if not isinstance(error, OSError):
                    # User code broke what this thread needs: a mute worker would hang every call.
                    os._exit(1)
                with self._changed:
                    self._broken = True
                    self._queue.clear()
                    self._changed.notify_all()
                self._on_broken(error)
                return
            del chunks, chunk, rest  # do not hold a large frame until the next one
            with self._changed:
                self._unwritten -= 1
                self._changed.notify_all()


# --- Descriptors and captured output -------------------------------------------------------------------------------


class OutputCapture:
    """Takes descriptors 0 and 1 for control frames and gives user code harmless ones in their place.

    Reading standard input gives end of file. Standard output and standard error, with those of child processes, are
    the standard error that the worker was started with.
    """

    def __init__(self):
        self.control_in = self._private_copy(0)
        self.control_out = self._private_copy(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        try:
            os.fstat(2)
        except OSError:  # started without a standard error
            os.dup2(null, 2)
        if null > 2:
            os.close(null)
        os.dup2(2, 1)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="replace", closefd=False)
        sys.stdout = sys.__stdout__ = self._text_stream(sys.stdout, 1)
        sys.stderr = sys.__stderr__ = self._text_stream(sys.stderr, 2)

    def flush(self):
        """Writes out what the text streams and those of C code still hold."""
        if ctypes is not None:
            ctypes.CDLL(None).fflush(None)
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except Exception:  # whatever user code put in the place of a stream
                pass

    @staticmethod
    def _private_copy(fd):
        copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
        os.set_blocking(copy, True)
        return copy

    @staticmethod
    def _text_stream(stream, fd):
        options = {"encoding": "utf-8", "errors": "backslashreplace", "line_buffering": True}
        if stream is None:
            return open(fd, "w", closefd=False, buffering=1, encoding="utf-8", errors="backslashreplace")
        stream.reconfigure(**options)
        return stream


# --- Calls: from target and arguments to outcome -------------------------------------------------------------------


class Call:
    """One accepted call."""

    __slots__ = ("id", "target", "arguments", "cancelled", "on_thread", "section", "task")

    def __init__(self, call_id, target, arguments):
        self.id = call_id
        self.target = target
        self.arguments = arguments
        self.cancelled = False
        self.on_thread = False
        self.section = None  # where a synchronous target runs
        self.task = None  # where an asynchronous one is awaited

    def is_running(self):
        return self.on_thread or (self.task is not None and not self.task.done())


class ArgumentsDecodeError(Exception):
    """The argument bytes do not unpickle to `(args tuple, kwargs dict)`."""


def resolve(target):
    """The callable that `module::qualname` names. Raises ValueError for a text that can name none."""
    if len(target) > MAX_TARGET_BYTES or len(target.encode("utf-8")) > MAX_TARGET_BYTES:
        raise ValueError("target is longer than %d bytes" % MAX_TARGET_BYTES)
    parts = target.split("::")
    names = [part.split(".") for part in parts]
    if len(parts) != 2 or not all(name.isidentifier() for part in names for name in part):
        raise ValueError("target %r is not of the form module::qualname with dotted identifiers" % target)
    found = importlib.import_module(parts[0])
    for name in names[1]:
        found = getattr(found, name)
    if not callable(found):
        raise TypeError("target %r is not callable, it is %s" % (target, type(found).__name__))
    return found


def load_arguments(data):
    """(args, kwargs) from their pickle."""
    try:
        loaded = pickle.loads(data)
    except BaseException as error:  # user classes may raise anything while they are rebuilt
        raise ArgumentsDecodeError("failed to unpickle arguments: %s" % message_of(error)) from None
    if not (isinstance(loaded, tuple) and len(loaded) == 2):
        raise ArgumentsDecodeError("failed to unpickle arguments: not a pair of args and kwargs")
    args, kwargs = loaded
    if not isinstance(args, tuple):
        raise ArgumentsDecodeError("failed to unpickle arguments: args is %s, not a tuple" % type(args).__name__)
    if not (isinstance(kwargs, dict) and all(isinstance(key, str) for key in kwargs)):
        raise ArgumentsDecodeError("failed to unpickle arguments: kwargs is not a dict with str keys")
    return args, kwargs


def result_frame(call_id, value):
    """The frame for a returned value; an error frame where the value cannot be sent."""
    try:
        data = pickle.dumps(value, protocol=RESULT_PICKLE_PROTOCOL)
    except CallCancelled:
        raise
    except BaseException as error:
        text = "failed to pickle return value: %s" % message_of(error)
        return error_frame(call_id, "ResultEncodeError", text)
    return _outcome_frame({"type": "result", "call_id": call_id, "value": data})


def exception_frame(call_id, error):
    """The frame for an exception that a target raised, or that finding it raised."""
    message = message_of(error)
    if len(message) >= MAX_FRAME_BYTES:  # before the traceback copies it
        return _too_large_frame(call_id, FrameTooLarge(len(message)))
    trace = None if isinstance(error, ArgumentsDecodeError) else traceback_of(error)
    return error_frame(call_id, class_name(error), message, trace)


def error_frame(call_id, kind, message, trace=None, cancelled=False):
    error = {
        "type": encodable(kind),
        "message": encodable(message),
        "traceback": None if trace is None else encodable(trace),
        "cancelled": cancelled,
        "returncode": None,
    }
    return _outcome_frame({"type": "error", "call_id": call_id, "error": error})


def _outcome_frame(message):
    try:
        return frame_chunks(message)
    except (FrameTooLarge, CodecError) as error:  # CodecError: a bin or str of 4 GiB or more
        return _too_large_frame(message["call_id"], error)


def _too_large_frame(call_id, error):
    return error_frame(call_id, "FrameTooLarge", "remote call result could not be delivered: %s" % error)


def encodable(text):
    """`text` with what UTF-8 cannot carry (lone surrogates) written as escapes."""
    return str.encode(text, "utf-8", "backslashreplace").decode("utf-8")


def class_name(error):
    return type.__dict__["__name__"].__get__(type(error))  # whatever a metaclass of the user answers


def message_of(error):
    try:
        return str(error)
    except BaseException:  # its __str__ is user code
        return "<the message of this %s could not be made>" % class_name(error)


_OWN_FILE = message_of.__code__.co_filename


def traceback_of(error):
    """The traceback text, beginning at the first frame that is not the worker's own."""
    try:
        start = error.__traceback__
        while start is not None and start.tb_frame.f_code.co_filename == _OWN_FILE:
            start = start.tb_next
        return "".join(traceback.format_exception(type(error), error, start or error.__traceback__))
    except BaseException:
        return "The traceback of this %s could not be formatted\n" % class_name(error)


# --- Interrupting a thread -----------------------------------------------------------------------------------------


class CallCancelled(BaseException):
    """Raised inside a synchronous target whose call was cancelled."""


def _raise_in_thread(thread_id, exception):
    """Makes `exception` (a class) pending in a thread; None clears what is pending there."""
    argument = ctypes.py_object() if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), argument)


class InterruptibleSection:
    """A stretch of work on one thread that another thread may interrupt, once.

    The exception never strikes after `run` has returned, so it cannot hit the next call on that thread. There is no
    lock, since an exception that strikes at any instruction could leave one held. Instead each side writes its flag
    before it reads the other's (`active` and `requested`), and the thread waits until an interruption is `settled`.
    """

    __slots__ = ("active", "_requested", "_settled", "_thread_id")

    def __init__(self):
        self.active = False
        self._requested = False
        self._settled = False
        self._thread_id = threading.get_ident()

    def run(self, work):
        """What `work` returns; None if it was interrupted."""
        outcome = None
        try:
            self.active = True
            if not self._requested:
                outcome = work()
            self._leave()
        except CallCancelled:
            self._leave()  # the one exception has struck: nothing can interrupt this any more
        return outcome

    def _leave(self):
        self.active = False
        if self._requested:
            while not self._settled:
                time.sleep(0.001)
            if ctypes is not None:
                _raise_in_thread(self._thread_id, None)

    def interrupt(self):
        if self._requested:
            return
        self._requested = True
        if self.active and ctypes is not None:
            _raise_in_thread(self._thread_id, CallCancelled)
        self._settled = True


# --- Running calls -------------------------------------------------------------------------------------------------


class ThreadPool:
    """Up to `size` daemon threads, started as work comes in.

    `concurrent.futures` has no daemon threads, and a process that is forked on one of its threads cannot end well: it
    tries to join the thread it runs on.
    """

    def __init__(self, size, name, set_up=None):
        self._size = size
        self._name = name
        self._set_up = set_up
        lock = threading.Lock()
        self._work_came = threading.Condition(lock)
        self._work_ended = threading.Condition(lock)
        self._work = collections.deque()
        self._threads = self._idle = self._busy = 0
        self._closed = False

    def submit(self, work):
        """Raises RuntimeError if there is no thread and none can be started."""
        with self._work_came:
            if self._closed:
                return
            if len(self._work) >= self._idle and self._threads < self._size:
                try:
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                    self._threads += 1
                except RuntimeError:
                    if not self._threads:
                        raise
            self._work.append(work)
            self._work_came.notify()

    def close(self):
        """Drops work that no thread has begun."""
        with self._work_came:
            self._closed = True
            self._work.clear()

    def wait(self, timeout):
        """Waits until no thread is at work, at most `timeout` seconds."""
        with self._work_ended:
            self._work_ended.wait_for(lambda: not self._busy, timeout)

    def _run(self):
        if self._set_up is not None:
            self._set_up()
        while True:
            with self._work_came:
                self._idle += 1
                self._work_came.wait_for(lambda: self._work)
                self._idle -= 1
                self._busy += 1
                work = self._work.popleft()
            try:
                work()
            except BaseException as error:
                say("error", "%s in a worker thread: %s" % (class_name(error), message_of(error)))
            del work  # do not hold arguments until the next call
            with self._work_ended:
                self._busy -= 1
                self._work_ended.notify_all()


class CallRunner:
    """Runs accepted calls and sends exactly one outcome for each.

    Whoever takes a call out of `_running` sends its outcome; all others find it gone and send nothing.
    """

    def __init__(self, loop, send, call_threads):
        self._loop = loop
        self._send = send
        self._pid = os.getpid()
        self._stopping = False
        self._running = {}
        self._tasks = set()
        self._sections = set()
        # Apart from the call threads, so that blocked synchronous calls do not hold up asynchronous ones. They know the
        # event loop, to which a lock or queue made while a module is imported belongs on Python 3.9.
        self._prepare_threads = ThreadPool(
            PREPARE_THREADS, "agentix-prepare", functools.partial(asyncio.set_event_loop, loop)
        )
        self._call_threads = ThreadPool(call_threads, "agentix-call")

    # Reader thread

    def accept(self, call):
        self._running[call.id] = call
        self._submit(self._prepare_threads, call, self._prepare)

    def cancel(self, call_id):
        call = self._running.pop(call_id, None)
        if call is None:
            return
        call.cancelled = True
        self._send(error_frame(call.id, "Cancelled", "remote call cancelled", cancelled=True))
        section = call.section
        if section is not None:
            section.interrupt()
        self._loop.call_soon_threadsafe(self._cancel_task, call)

    # Closer thread

    def stop_starting(self):
        """From now on no call starts, and a call that is cancelled sends nothing."""
        self._stopping = True

    def stop_threads(self, grace):
        """Asks the calls on threads to end and waits for them, at most `grace` seconds."""
        deadline = time.monotonic() + grace
        self._prepare_threads.close()
        self._call_threads.close()
        for section in list(self._sections):
            section.interrupt()
        self._prepare_threads.wait(deadline - time.monotonic())
        self._call_threads.wait(deadline - time.monotonic())

    # Prepare and call threads

    def _submit(self, threads, call, work):
        try:
            threads.submit(functools.partial(self._run_on_thread, call, work))
        except RuntimeError as error:
            self._finish(call, exception_frame(call.id, error))

    def _run_on_thread(self, call, work):
        if call.cancelled or self._stopping:
            return
        call.on_thread = True
        try:
            work(call)
        except BaseException as error:  # of the target's making, or out of memory: the call must end all the same
            self._check_still_parent(error)
            self._finish(call, exception_frame(call.id, error))
        finally:
            call.on_thread = False

    def _prepare(self, call):
        """Finds the target, unpickles its arguments and passes the call on.

        Not interrupted by a cancel: that could leave the lock of a half imported module held for ever.
        """
        function = resolve(call.target)
        args, kwargs = load_arguments(call.arguments)
        call.arguments = None
        self._check_still_parent(None)
        invoke = functools.partial(function, *args, **kwargs)
        context = contextvars.copy_context()
        if inspect.iscoroutinefunction(function):
            self._loop.call_soon_threadsafe(self._start_task, call, context, invoke)
        else:
            self._submit(self._call_threads, call, functools.partial(self._call_sync, context=context, invoke=invoke))

    def _call_sync(self, call, context, invoke):
        section = InterruptibleSection()
        self._sections.add(section)
        call.section = section
        try:
            if not (call.cancelled or self._stopping):
                go_on = section.run(functools.partial(self._invoke, call, context, invoke))
                if go_on is not None:
                    go_on()
        finally:
            self._sections.discard(section)

    def _invoke(self, call, context, invoke):
        """Calls a synchronous target; returns how to go on, None if the call was interrupted."""
        try:
            value = context.run(invoke)
            self._check_still_parent(None)
            if inspect.isawaitable(value):
                start = functools.partial(self._start_task, call, context, lambda: value)
                return functools.partial(self._loop.call_soon_threadsafe, start)
            frame = result_frame(call.id, value)
        except CallCancelled:
            return None
        except BaseException as error:
            self._check_still_parent(error)
            frame = exception_frame(call.id, error)
        return functools.partial(self._finish, call, frame)

    # Event loop

    def _start_task(self, call, context, invoke):
        if call.cancelled or self._stopping:
            return
        call.task = context.run(self._loop.create_task, self._await(call, invoke))
        self._tasks.add(call.task)
        call.task.add_done_callback(self._tasks.discard)

    async def _await(self, call, invoke):
        try:
            value = await invoke()
            self._check_still_parent(None)
            frame = result_frame(call.id, value)
        except BaseException as error:
            self._check_still_parent(error)
            if isinstance(error, asyncio.CancelledError) and (call.cancelled or self._stopping):
                return
            frame = exception_frame(call.id, error)
        self._finish(call, frame)

    def _cancel_task(self, call):
        if call.task is not None:
            call.task.cancel()
        self._loop.call_later(CANCEL_NOTICE, self._report_if_running, call)

    def _report_if_running(self, call):
        if call.is_running():
            shown = (call.id, call.target[:200])
            say("warning", "cancelled call %r of %r still runs; its result will be dropped" % shown)

    # Any thread

    def _finish(self, call, frame):
        if self._running.pop(call.id, None) is not None:
            self._send(frame)

    def _check_still_parent(self, error):
        """Ends a process that a target forked and that came back from the target: there is one worker."""
        if os.getpid() == self._pid:
            return
        status = 0
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            say("error", "a forked child ended with an exception\n" + traceback_of(error))
        try:
            sys.stdout.flush()
        finally:
            os._exit(status & 0xFF)


# --- Dispatching frames --------------------------------------------------------------------------------------------


class SeenIds:
    """The ids of calls that came in: at least the last 1,000,000, in 20 MiB that fill as ids come.

    Keyed 64-bit fingerprints in 65,536 buckets, each of which keeps its last 40; 1,000,000 ids put 15 into each on
    average. That a new id is taken for one of 1,000,000 others has a probability of 5e-14.
    """

    BYTES = 8
    SLOTS = 40
    BUCKETS = 65_536

    def __init__(self):
        self._key = os.urandom(16)
        size = self.BUCKETS * self.SLOTS * self.BYTES
        self._marks = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # takes memory where written
        self._next_slots = bytearray(self.BUCKETS)

    def add(self, call_id):
        mark, bucket = self._mark(call_id)
        slot = self._next_slots[bucket]
        start = (bucket * self.SLOTS + slot) * self.BYTES
        self._marks[start : start + self.BYTES] = mark
        self._next_slots[bucket] = (slot + 1) % self.SLOTS

    def __contains__(self, call_id):
        mark, bucket = self._mark(call_id)
        start = bucket * self.SLOTS * self.BYTES
        end = start + self.SLOTS * self.BYTES
        at = self._marks.find(mark, start, end)
        while at >= 0 and at % self.BYTES:  # across two marks
            at = self._marks.find(mark, at + 1, end)
        return at >= 0

    def _mark(self, call_id):
        digest = hashlib.blake2b(call_id.encode("utf-8"), digest_size=self.BYTES + 2, key=self._key).digest()
        return digest[2:], digest[0] << 8 | digest[1]


class Dispatcher:
    """What each frame from the runtime means."""

    def __init__(self, runner, send, on_shutdown):
        self._runner = runner
        self._send = send
        self._on_shutdown = on_shutdown
        self._seen = SeenIds()
        self._handlers = {
            "call": self._call,
            "cancel": self._cancel,
            "shutdown": self._shutdown,
            "sio_inbound": self._inbound,
        }

    def handle(self, body):
        if not body:
            return  # stands for an empty map
        try:
            frame = unpack(body, FRAME_FIELDS)
        except (CodecError, MemoryError) as error:
            say("warning", "a frame of %d bytes is lost: %s %s" % (len(body), class_name(error), error))
            return
        if not isinstance(frame, dict):
            say("warning", "a frame of %d bytes is lost: %s where a map is due" % (len(body), type(frame).__name__))
            return
        kind = frame.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(frame)
        elif isinstance(kind, str):
            say("warning", "frame of unknown type %r ignored" % kind[:100])
        else:
            say("warning", "frame without a type ignored")

    def _call(self, frame):
        call_id = self._call_id(frame)
        if call_id is None:
            say("warning", "call without a valid call_id refused")
            self._send(error_frame("", "BadRequest", "missing or invalid call_id"))
            return
        if call_id in self._seen:
            say("warning", "call %r ignored: its id was used before" % call_id)
            return
        problem = self._problem_with(frame)
        if problem is not None:
            self._send(error_frame(call_id, "BadRequest", problem))
            return
        self._seen.add(call_id)
        self._runner.accept(Call(call_id, frame["callable"], frame["arguments"]))

    def _cancel(self, frame):
        call_id = self._call_id(frame)
        if call_id is None:
            say("warning", "cancel without a valid call_id ignored")
        else:
            self._runner.cancel(call_id)

    def _shutdown(self, _frame):
        self._on_shutdown()

    def _inbound(self, frame):
        namespace = frame.get("namespace")
        shown = repr(namespace[:100]) if isinstance(namespace, str) else "no namespace"
        say("debug", "event for %s ignored: it is not open" % shown)

    @staticmethod
    def _call_id(frame):
        call_id = frame.get("call_id")
        if isinstance(call_id, str) and 1 <= len(call_id.encode("utf-8")) <= MAX_CALL_ID_BYTES:
            return call_id
        return None

    @staticmethod
    def _problem_with(frame):
        for field, wanted in (("callable", str), ("arguments", bytes)):
            if field not in frame:
                return "%s is missing" % field
            if not isinstance(frame[field], wanted):
                return "%s is %s, not %s" % (field, type(frame[field]).__name__, wanted.__name__)
        if not isinstance(frame.get("context"), (bytes, type(None))):
            return "context is %s, not bytes or nil" % type(frame["context"]).__name__
        return None


# --- The process ---------------------------------------------------------------------------------------------------


class StopRequest:
    """A pipe on which anyone asks the worker to end: it takes no lock, so that a signal handler may use it."""

    ORDERLY = 0
    PIPE_LOST = 255

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)

    def ask(self, code):
        try:
            os.write(self.write_end, bytes((code,)))
        except OSError:
            pass  # full: it has been asked often enough

    def wait(self):
        """The first request. Signals arrive by number, since this is also the interpreter's wake-up descriptor."""
        wanted = (self.ORDERLY, self.PIPE_LOST, signal.SIGTERM, signal.SIGINT)
        while True:
            code = os.read(self.read_end, 1)[0]
            if code in wanted:
                return code


class Worker:
    def __init__(self, capture, call_threads):
        self._pid = os.getpid()  # None in a forked child
        self._capture = capture
        self._stop = StopRequest()
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._writer = FrameWriter(self._capture.control_out, self._lost_output)
        self._runner = CallRunner(self._loop, self._writer.send, call_threads)
        self._dispatcher = Dispatcher(self._runner, self._writer.send, self._shut_down)
        self._stopping = False
        self._loop_ended = False
        self._main_ended = threading.Event()
        self._fork_masks = threading.local()

    def run(self):
        """Serves until told to stop, then ends the process."""
        os.register_at_fork(
            before=self._hold_signals, after_in_parent=self._release_signals, after_in_child=self._leave_to_parent
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._stop.write_end, warn_on_full_buffer=False)
        self._writer.start()
        closer = threading.Thread(target=self._close, name="agentix-closer", daemon=True)
        closer.start()
        self._writer.send(frame_chunks({"type": "ready"}))
        threading.Thread(target=self._read_frames, name="agentix-reader", daemon=True).start()
        self._run_loop()
        self._run_exit_handlers()
        self._main_ended.set()
        closer.join()

    # Main thread

    def _run_loop(self):
        while not self._loop_ended:
            try:
                self._loop.run_forever()  # also returns when user code stops the loop
            except BaseException as error:  # SystemExit and KeyboardInterrupt of a task that user code started
                say("warning", "%s in a background task of a target ignored" % class_name(error))

    def _run_exit_handlers(self):
        try:
            atexit._run_exitfuncs()  # the interpreter's own way out would wait for threads that never end
        except BaseException as error:
            say("warning", "an exit handler raised %s" % class_name(error))
        self._capture.flush()

    def _on_signal(self, number, _frame):
        self._stop.ask(number)

    def _begin_wind_down(self):
        self._loop.create_task(self._wind_down())

    async def _wind_down(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CALLS_GRACE)
        self._loop_ended = True
        self._loop.stop()

    # Reader thread

    def _read_frames(self):
        reader = FrameReader(self._capture.control_in)
        code = StopRequest.ORDERLY
        try:
            while True:
                body = reader.read()
                if body is None:
                    break
                if not self._stopping:
                    self._dispatcher.handle(body)
                body = None  # do not hold a large frame until the next one
        except FrameTooLarge as error:
            say("error", "the pipe cannot be understood any more: %s" % error)
            code = StopRequest.PIPE_LOST
        except BaseException as error:  # a read error, or no memory left: without a reader there is no worker
            say("error", "the pipe cannot be read: %s: %s" % (class_name(error), message_of(error)))
            code = StopRequest.PIPE_LOST
        self._stop.ask(code)

    def _shut_down(self):
        self._stopping = True
        self._stop.ask(StopRequest.ORDERLY)

    # Writer thread

    def _lost_output(self, error):
        say("error", "the pipe cannot be written: %s" % error)
        self._stop.ask(StopRequest.ORDERLY)

    # Closer thread

    def _close(self):
        code = self._stop.wait()
        self._stopping = True
        self._runner.stop_starting()
        self._loop.call_soon_threadsafe(self._begin_wind_down)
        deadline = time.monotonic() + CALLS_GRACE
        self._runner.stop_threads(CALLS_GRACE)
        if not self._main_ended.wait(max(0.0, deadline - time.monotonic()) + EXIT_HANDLERS_GRACE):
            flusher = threading.Thread(target=self._capture.flush, daemon=True)  # whoever holds a stream may be stuck
            flusher.start()
            flusher.join(EXIT_HANDLERS_GRACE)
        self._writer.flush(FLUSH_GRACE)
        end_process_group()
        os._exit(1 if code == StopRequest.PIPE_LOST else 0)

    # When user code forks

    def _hold_signals(self):
        """Before the fork: a signal to the child must wait until it cannot reach the worker's wake-up descriptor."""
        self._fork_masks.mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))

    def _release_signals(self):
        signal.pthread_sigmask(signal.SIG_SETMASK, self._fork_masks.mask)

    def _leave_to_parent(self):
        """In the child: gives up what belongs to the worker, the pipe and what signals mean."""
        if self._pid is None:
            self._release_signals()
            return  # a child of the child: these descriptors are others by now
        self._pid = None
        signal.set_wakeup_fd(-1)
        for number, default in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, default)
        self._release_signals()
        for fd in (self._capture.control_in, self._capture.control_out, self._stop.read_end, self._stop.write_end):
            os.close(fd)


def end_process_group():
    """Where the worker leads a process group, ends the children in it that calls left behind."""
    if os.getpgrp() != os.getpid():
        return
    if ctypes is not None:  # `signal.signal` works on the main thread only, which may be blocked
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(int(signal.SIG_IGN)))
    try:
        os.killpg(os.getpgrp(), signal.SIGTERM)
    except OSError:
        pass


def set_import_path(directories):
    """Puts `directories`, then those of AGENTIX_PATH, ahead of the interpreter's own path."""
    wanted = list(directories) + os.environ.get("AGENTIX_PATH", "").split(":")
    wanted = [os.path.abspath(directory) for directory in wanted if directory]
    for directory in wanted:
        if not os.path.isdir(directory):
            say("warning", "%s, a folder to import from, does not exist" % directory)
    script = globals().get("__file__")
    if script is not None and sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(script)):
        del sys.path[0]  # where this script lies is no place that the user named
    sys.path[:0] = wanted


def call_threads():
    try:
        count = int(os.environ.get("AGENTIX_WORKER_THREADS", ""))
    except ValueError:
        return DEFAULT_CALL_THREADS
    return count if count > 0 else DEFAULT_CALL_THREADS


def main():
    if sys.version_info < (3, 9):
        sys.exit("agentix-worker: Python 3.9 or newer is needed, this is %s" % sys.version.split()[0])
    parser = argparse.ArgumentParser(prog="agentix_worker.py", description="Executes calls of an Agentix runtime.")
    parser.add_argument("--path", metavar="DIR", action="append", default=[], help="folder to import from; repeatable")
    options = parser.parse_args()
    set_import_path(options.path)
    try:
        capture = OutputCapture()
    except OSError as error:
        sys.exit("agentix-worker: standard input and output must be open for control frames: %s" % error)
    Worker(capture, call_threads()).run()


if __name__ == "__main__":
    main()
