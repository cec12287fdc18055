"""Runs Python functions in the process of the runtime: sync ones in threads of their own, async ones on the loop."""

import asyncio
import importlib
import inspect
import pickle
import sys
import threading
import traceback

MESSAGE_LIMIT = 268_435_456  # bytes, AGX-LIM-001
FRAME_OVERHEAD = 1024  # bytes; more than the keys and the longest call id of a message take


class Raised(Exception):
    """An error of the worker's own making, with its type and message from the table in `messages-rpc.md`."""

    def __init__(self, type_, message):
        super().__init__(message)
        self.type = type_


def error_outcome(type_, message, trace=None, cancelled=False, returncode=None):
    """An outcome with all five keys of an error, in order (AGX-RPC-040)."""
    text = message.encode("utf-8", "backslashreplace").decode()  # msgpack holds no lone surrogates
    trace = trace and trace.encode("utf-8", "backslashreplace").decode()
    return {"error": {"type": type_, "message": text, "traceback": trace, "cancelled": cancelled,
                      "returncode": returncode}}


def resolve(target):
    """The callable that a target names, by the table of `targets.md`."""
    parts = target.split("::")
    names = [name for part in parts for name in part.split(".")]
    if len(parts) != 2 or not all(name.isidentifier() for name in names) or len(target.encode()) > 1024:
        raise Raised("ValueError", "%r is not of the form module::qualname" % target)
    found = importlib.import_module(parts[0])
    for name in parts[1].split("."):
        found = getattr(found, name)
    if not callable(found):
        raise Raised("TypeError", "%r is not callable" % target)
    return found


def unpickle_arguments(raw):
    try:
        pair = pickle.loads(raw)
    except BaseException as cause:
        raise Raised("ArgumentsDecodeError", "failed to unpickle arguments: %s" % cause) from None
    if type(pair) is tuple and len(pair) == 2 and type(pair[0]) is tuple and type(pair[1]) is dict:
        if all(type(key) is str for key in pair[1]):
            return pair
    raise Raised("ArgumentsDecodeError", "failed to unpickle arguments: not a pair of a tuple and a dict of str keys")


def pickle_value(value):
    try:
        raw = pickle.dumps(value, protocol=4)
    except BaseException as cause:
        raise Raised("ResultEncodeError", "failed to pickle return value: %s" % cause) from None
    if len(raw) + FRAME_OVERHEAD > MESSAGE_LIMIT:
        raise Raised("FrameTooLarge", "remote call result could not be delivered: %d bytes" % len(raw))
    return {"value": raw}


def raised_outcome(cause):
    """Whatever a function raises is an ordinary error of its own call (AGX-WRK-030)."""
    if isinstance(cause, Raised):
        return error_outcome(cause.type, str(cause))
    try:
        message = str(cause)
    except BaseException:
        message = "<no text>"
    lines = traceback.format_exception(type(cause), cause, cause.__traceback__)
    return error_outcome(type(cause).__name__, message, "".join(lines))


class InProcess:
    """Executes calls and hands each outcome to `finished(call_id, outcome)` on the event loop."""

    def __init__(self, finished):
        self.finished = finished
        self.tasks = {}  # call id -> task of an async function
        self.loop = asyncio.get_running_loop()

    def start(self, call_id, target, arguments, _context):
        threading.Thread(target=self._thread, args=(call_id, target, arguments), daemon=True).start()

    def cancel(self, call_id):
        """Best effort: a sync function runs on, and the table drops what it returns."""
        task = self.tasks.get(call_id)
        if task is not None:
            task.cancel()

    def inbound(self, namespace, event, raw):
        """Nothing in this process listens on a side channel."""

    async def stop(self):
        for task in list(self.tasks.values()):
            task.cancel()

    def _thread(self, call_id, target, arguments):
        try:
            args, kwargs = unpickle_arguments(arguments)
            function = resolve(target)
            if inspect.iscoroutinefunction(function):
                self._post(self._start_task, call_id, function, args, kwargs)
                return
            outcome = pickle_value(function(*args, **kwargs))
        except BaseException as cause:
            outcome = raised_outcome(cause)
        self._post(self.finished, call_id, outcome)

    def _post(self, function, *args):
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed: the runtime ends
            print("outcome lost at the end of the runtime", file=sys.stderr)

    def _start_task(self, call_id, function, args, kwargs):
        self.tasks[call_id] = self.loop.create_task(self._await(call_id, function, args, kwargs))

    async def _await(self, call_id, function, args, kwargs):
        try:
            outcome = pickle_value(await function(*args, **kwargs))
        except BaseException as cause:
            outcome = raised_outcome(cause)
        del self.tasks[call_id]
        self.finished(call_id, outcome)
