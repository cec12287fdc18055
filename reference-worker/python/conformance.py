"""The functions that a Python testee offers to the conformance suite.

What each one does is specified in `spec/prose/functions.md`; the module is imported under the name `conformance`.
"""

import asyncio
import os
import signal as _signal
import subprocess
import sys
import threading
import time

_BLOCK_STEP = 0.01  # seconds; a pending cancellation is raised between two steps
_counters = {}
_counters_lock = threading.Lock()


def echo(value):
    return value


async def echo_async(value):
    return value


def arguments(*args, **kwargs):
    return [list(args), kwargs]


def total(numbers):
    return sum(numbers)


def fail(message):
    raise ValueError(message)


async def fail_async(message):
    await asyncio.sleep(0)
    raise ValueError(message)


def raise_base(kind):
    raise _BASE_EXCEPTIONS[kind]("raised by the target")


async def raise_base_async(kind):
    await asyncio.sleep(0)
    raise _BASE_EXCEPTIONS[kind]("raised by the target")


_BASE_EXCEPTIONS = {
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
}


async def sleep(seconds):
    await asyncio.sleep(seconds)
    return float(seconds)


def block(seconds):
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return float(seconds)
        time.sleep(min(left, _BLOCK_STEP))


async def stubborn(seconds):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        return "swallowed"
    return "slept"


def count(key):
    with _counters_lock:
        _counters[key] = _counters.get(key, 0) + 1
        return _counters[key]


async def count_slow(key, seconds):
    counted_now = count(key)
    await asyncio.sleep(seconds)
    return counted_now


async def sleep_counted(key, seconds):
    count(key)
    try:
        return await sleep(seconds)
    except asyncio.CancelledError:
        count(key)
        raise


def block_counted(key, seconds):
    count(key)
    try:
        return block(seconds)
    except BaseException:
        count(key)
        raise


def counted(key):
    with _counters_lock:
        return _counters.get(key, 0)


def exit(code):
    os._exit(code)


def signal(number):
    os.kill(os.getpid(), number)


def pid():
    return os.getpid()


def blob(size):
    period = bytes(range(251))
    return (period * (size // len(period) + 1))[:size]


def unpicklable():
    return lambda: None


def refused():
    return print


def print_text(text, stream):
    if stream not in ("stdout", "stderr"):
        raise ValueError("stream is %r, neither 'stdout' nor 'stderr'" % (stream,))
    print(text, file=getattr(sys, stream), flush=True)


def print_child(text):
    program = "import os, sys; os.write(1, os.fsencode(sys.argv[1]) + b'\\n')"
    return subprocess.run([sys.executable, "-I", "-c", program, text], check=False).returncode


def unicode():
    return "A\x00\u00e9e\u0301\u03c0\u6a21\u2028\ufeff\U0001f600\U0001d54f\U0010ffff"


def nested(depth):
    value = None
    for _ in range(depth):
        value = [value]
    return value
