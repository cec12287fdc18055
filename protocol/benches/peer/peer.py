"""Makes the payloads of the benchmarks and times CPython on them.

Arguments: the folder that the payloads are written to. One JSON line on standard output tells which
there are; after that each line `NAME LOADER COUNT` on standard input is answered by the nanoseconds
of processor time that COUNT calls took, of LOADER `c` (`pickle.loads`) or `restricted` (the loader below).

The collector is off while a loader runs, as `timeit` has it, and values are freed outside of the
time taken: both in favour of CPython.
"""

import gc
import io
import json
import pathlib
import pickle
import pickletools
import random
import struct
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

try:
    import numpy
except ImportError:
    numpy = None

# What the wire carries.
PROTOCOL = 4


def ints():
    return list(range(1_000_000))


def json_tree():
    """Records as an API returns them, a pickle of 3 MB."""
    rng = random.Random(1)
    return [
        {
            "id": i,
            "name": f"user {i}",
            "email": f"user.{i}@example.org",
            "active": rng.random() < 0.5,
            "score": rng.random() * 100,
            "tags": [rng.choice(("red", "green", "blue", "new", "old")) for _ in range(3)],
            "address": {"street": f"{i} High Street", "zip": rng.randrange(10_000, 99_999), "extra": None},
            "points": [[rng.randrange(1_000), rng.randrange(1_000)] for _ in range(4)],
        }
        for i in range(19_500)
    ]


def strings():
    return [f"string number {i}" for i in range(200_000)]


def long_strings():
    """10 MB of text, some of it beyond ASCII."""
    rng = random.Random(2)
    words = "the quick brown fox jumps over a lazy dog über straße 東京 naïve".split()
    return [" ".join(rng.choices(words, k=rng.randrange(1, 20))) for _ in range(180_000)]


def datetimes():
    start = datetime(2024, 1, 1)
    return [start + timedelta(seconds=61 * i, microseconds=i) for i in range(20_000)]


def large_bytes():
    return random.Random(3).randbytes(32 * 1024 * 1024)


def small_dict():
    return {"a": True, "b": None, "n": 1}


def deep():
    """Lists and dicts in turn, one inside the other."""
    value = None
    for level in range(100_000):
        value = [value, level] if level % 2 else {"next": value}
    return value


def array_pickle():
    """An array of a million floats, with or without numpy: what numpy 2 writes."""
    data = struct.pack("<1000000d", *range(1_000_000))
    text = lambda value: b"\x8c" + bytes([len(value)]) + value.encode() + b"\x94"
    parts = [
        text("numpy._core.multiarray"), text("_reconstruct"), b"\x93\x94",
        text("numpy"), text("ndarray"), b"\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94",
        b"(K\x01J", struct.pack("<i", 1_000_000), b"\x85\x94",
        b"h\x03", text("dtype"), b"\x93\x94", text("f8"), b"\x89\x88\x87\x94R\x94",
        b"(K\x03", text("<"), b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\x89",
    ]
    head, tail = b"".join(parts), b"\x94t\x94b."
    # A pickler puts a large argument outside of any frame.
    frame = lambda part: b"\x95" + struct.pack("<Q", len(part)) + part
    return b"\x80\x04" + frame(head) + b"B" + struct.pack("<I", len(data)) + data + frame(tail)


def array():
    if numpy is None:
        return None
    return numpy.arange(1_000_000, dtype="float64")


MAKERS = {
    "ints": ints,
    "json": json_tree,
    "strings": strings,
    "datetimes": datetimes,
    "bytes": large_bytes,
    "array": array,
    "dict": small_dict,
    "text": long_strings,
    "deep": deep,
}

ALLOWED = {
    ("datetime", name) for name in ("date", "time", "datetime", "timedelta", "timezone")
} | {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "_reconstruct"),
}


class Restricted(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return super().find_class(module, name)


def restricted(data):
    """Looks for extension codes first, since those bypass `find_class`; then decodes."""
    for opcode, _argument, _at in pickletools.genops(data):
        if opcode.code in ("\x82", "\x83", "\x84"):
            raise pickle.UnpicklingError("extension codes are not allowed")
    return Restricted(io.BytesIO(data)).load()


LOADERS = {"c": pickle.loads, "restricted": restricted}


def make(folder):
    """Writes every payload."""
    streams = {}
    for name, maker in MAKERS.items():
        value = maker()
        stream = array_pickle() if value is None else pickle.dumps(value, PROTOCOL)
        if name == "array":
            assert stream == array_pickle(), "this numpy writes arrays in another way"
        (folder / name).write_bytes(stream)
        streams[name] = stream
    return streams


def serve():
    streams = make(pathlib.Path(sys.argv[1]))
    untimed = [] if numpy else ["array"]
    version = f"CPython {sys.version.split()[0]}, " + (
        f"numpy {numpy.__version__}" if numpy else "no numpy"
    )
    print(json.dumps({"version": version, "payloads": list(streams), "untimed": untimed}), flush=True)
    gc.disable()
    for line in sys.stdin:
        name, loader, count = line.split()
        load, data, rounds = LOADERS[loader], streams[name], range(int(count))
        start = time.thread_time_ns()
        values = [load(data) for _ in rounds]
        taken = time.thread_time_ns() - start
        del values
        print(taken, flush=True)


# The deep payload needs a deep stack, to be written and to be freed.
sys.setrecursionlimit(1_000_000)
threading.stack_size(512 * 1024 * 1024)
thread = threading.Thread(target=serve)
thread.start()
thread.join()
