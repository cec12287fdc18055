"""Loads pickles with CPython and says where two values differ.

One JSON object a line comes in: an id, a stream, and other streams by name, in hex. For each, one
comes out: what is wrong with which stream, or why CPython has no value for the first one.
"""

import collections
import copyreg
import datetime
import decimal
import fractions
import json
import math
import pathlib
import pickle
import re
import struct
import sys
import types
import uuid

try:
    import numpy
except ImportError:
    numpy = None

# The modules and classes that the streams name and this Python lacks.
RECORDS = {
    "agentix.bridge.proxy": ("TunnelHandle", ("url", "port")),
    "agentix.bash": ("BashResult", None),
    "agentix.files": ("UploadResult", None),
    "agentix.agents.claude_code.agent": ("ClaudeCodeResult", None),
    "agentix.agents.qwen_code": ("Result", None),
    "agentix.plugins.datasets.swe.env": ("PrepareEnvResult", None),
}


def set_slots(self, state):
    for name, value in state[1].items():
        setattr(self, name, value)


def install():
    for module, (name, slots) in RECORDS.items():
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            path = ".".join(parts[:end])
            sys.modules.setdefault(path, types.ModuleType(path))
        body = {"__module__": module, "__qualname__": name}
        if slots:
            body |= {"__slots__": slots, "__setstate__": set_slots}
        setattr(sys.modules[module], name, type(name, (), body))
    sys.modules.setdefault("pathlib._local", pathlib)
    app = types.ModuleType("app")
    sys.modules["app"] = app

    class Point:
        def __new__(cls, *args, **kwargs):
            self = super().__new__(cls)
            self.made_with = (args, kwargs)
            return self

    Point.__module__, Point.__qualname__ = "app", "Point"
    app.Point = Point

    class Items(list):
        def __setitem__(self, key, value):
            self.__dict__.setdefault("set", []).append((key, value))

        def __setstate__(self, state):
            if isinstance(state, dict):
                self.__dict__.update(state)
            else:
                self.state = state

    Items.__module__, Items.__qualname__ = "app", "Items"
    app.Items = Items


EXCEPTION_FIELDS = """errno strerror filename filename2 characters_written name name_from path msg value code
    lineno offset text end_lineno end_offset print_file_and_line encoding object start end reason obj
    message exceptions __cause__ __context__ __suppress_context__ __traceback__""".split()


class Differ(Exception):
    pass


def bits(value):
    return struct.pack("<d", value)


def canonical(value):
    """A text to bring the elements of two equal sets into one order by."""
    if isinstance(value, (set, frozenset)):
        return type(value).__name__ + repr(sorted(map(canonical, value)))
    if isinstance(value, tuple):
        return repr(list(map(canonical, value)))
    if isinstance(value, float) and math.isnan(value):
        return "nan " + bits(value).hex()
    return type(value).__name__ + re.sub(" at 0x[0-9a-f]+", "", repr(value))


def array_parts(a, b):
    if a.dtype != b.dtype or a.dtype.metadata != b.dtype.metadata or a.shape != b.shape:
        raise Differ(f"{a!r} and {b!r}")
    if a.flags.f_contiguous != b.flags.f_contiguous or a.flags.c_contiguous != b.flags.c_contiguous:
        raise Differ(f"order of {a!r} and {b!r}")
    if a.dtype.hasobject:
        yield a.tolist(), b.tolist(), False
    elif a.tobytes() != b.tobytes():
        raise Differ(f"{a!r} and {b!r}")


def parts(a, b):
    """Pairs of parts that must be the same, and whether their identity counts."""
    if isinstance(a, (float, complex)):
        numbers = [a, b] if isinstance(a, float) else [a.real, a.imag, b.real, b.imag]
        half = len(numbers) // 2
        if list(map(bits, numbers[:half])) != list(map(bits, numbers[half:])):
            raise Differ(f"{a!r} and {b!r}")
    elif a is None or isinstance(a, (bool, int, str, bytes, bytearray, type, types.FunctionType, types.BuiltinFunctionType)):
        if a != b:
            raise Differ(f"{a!r:.200} and {b!r:.200}")
    elif isinstance(a, (list, tuple, collections.deque)):
        if len(a) != len(b) or getattr(a, "maxlen", None) != getattr(b, "maxlen", None):
            raise Differ(f"{a!r:.200} and {b!r:.200}")
        yield from ((x, y, True) for x, y in zip(a, b))
    elif isinstance(a, dict):
        if len(a) != len(b):
            raise Differ(f"{a!r:.200} and {b!r:.200}")
        for (key_a, value_a), (key_b, value_b) in zip(a.items(), b.items()):
            yield key_a, key_b, True
            yield value_a, value_b, True
        yield getattr(a, "default_factory", None), getattr(b, "default_factory", None), True
    elif isinstance(a, (set, frozenset)):
        if len(a) != len(b):
            raise Differ(f"{a!r:.200} and {b!r:.200}")
        for x, y in zip(sorted(a, key=canonical), sorted(b, key=canonical)):
            yield x, y, True
    elif isinstance(a, (range, slice)):
        yield from ((getattr(a, name), getattr(b, name), True) for name in ("start", "stop", "step"))
    elif isinstance(a, BaseException):
        yield a.args, b.args, True
        for name in EXCEPTION_FIELDS:
            # What a class computes anew has no identity.
            yield getattr(a, name, None), getattr(b, name, None), False
    elif isinstance(a, decimal.Decimal):
        yield a.as_tuple()[:], b.as_tuple()[:], False
    elif isinstance(a, fractions.Fraction):
        yield (a.numerator, a.denominator), (b.numerator, b.denominator), False
    elif isinstance(a, uuid.UUID):
        yield (a.int, a.is_safe.value), (b.int, b.is_safe.value), False
    elif isinstance(a, pathlib.PurePath):
        yield (a.parts, str(a)), (b.parts, str(b)), False
    elif isinstance(a, (datetime.date, datetime.time, datetime.timedelta)):
        yield getattr(a, "tzinfo", None), getattr(b, "tzinfo", None), False
        if repr(a) != repr(b):
            raise Differ(f"{a!r} and {b!r}")
    elif isinstance(a, datetime.timezone):
        yield a.__getinitargs__(), b.__getinitargs__(), False
    elif numpy is not None and isinstance(a, numpy.ndarray):
        yield from array_parts(a, b)
    elif numpy is not None and isinstance(a, numpy.dtype):
        if a != b or a.metadata != b.metadata:
            raise Differ(f"{a!r} and {b!r}")
    elif numpy is not None and isinstance(a, numpy.generic):
        yield a.dtype, b.dtype, False
        if a.tobytes() != b.tobytes():
            raise Differ(f"{a!r} and {b!r}")
    elif type(a).__module__.split(".")[0] not in ("agentix", "app"):
        raise Differ(f"this script cannot compare a {type(a)}")
    slots = getattr(type(a), "__slots__", ())
    if slots and type(a).__module__.startswith("agentix"):
        attrs = [{name: getattr(x, name) for name in slots if hasattr(x, name)} for x in (a, b)]
        yield *attrs, False
    if hasattr(a, "__dict__") and not isinstance(a, (type, types.FunctionType)):
        yield vars(a), vars(b), False


# Types whose sharing means nothing: CPython makes and keeps such objects as it likes.
ATOMS = (
    type(None), bool, int, float, complex, str, bytes, type, range, types.FunctionType,
    types.BuiltinFunctionType, datetime.date, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath,
)


def same(a, b):
    """Raises unless the two have equal content of the same types, shared in the same way."""
    to_b, to_a, seen, keep = {}, {}, set(), []
    pending = [(a, b, True)]
    while pending:
        a, b, identity = pending.pop()
        if type(a) is not type(b):
            raise Differ(f"{type(a)} and {type(b)}")
        keep.append((a, b))
        empty = isinstance(a, (tuple, frozenset)) and not a
        if not isinstance(a, ATOMS) and not empty and (numpy is None or not isinstance(a, (numpy.dtype, numpy.generic))):
            if identity and (to_b.setdefault(id(a), id(b)), to_a.setdefault(id(b), id(a))) != (id(b), id(a)):
                raise Differ(f"sharing of {a!r:.200}")
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
        pending.extend(parts(a, b))


def main():
    install()
    # These classes refuse to be made on other systems.
    for name in ("PosixPath", "WindowsPath"):
        flavour = getattr(getattr(pathlib, name), "_flavour", None)
        if hasattr(flavour, "is_supported"):
            flavour.is_supported = True
    for line in sys.stdin:
        case = json.loads(line)
        answer = {"wrong": [], "no_value": None}
        try:
            value = pickle.loads(bytes.fromhex(case["stream"]))
        except Exception as error:
            answer["no_value"] = f"{type(error).__name__}: {error}"
        else:
            for name, stream in case["others"].items():
                try:
                    same(value, pickle.loads(bytes.fromhex(stream)))
                except Exception as error:
                    answer["wrong"].append(f"{name}: {type(error).__name__}: {error!s:.500}")
        print(json.dumps(answer), flush=False)
    print(json.dumps({"numpy": numpy is not None}))


main()
