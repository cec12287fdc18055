"""Decodes pickles with CPython under the policy of this project, and says what came of each.

Reads requests on stdin, answers on stdout, until stdin ends. The first line of output is a JSON
object about this interpreter. Then, for each batch of requests (a u32, how many) and each request in
it (a u8 of flags, an i64, a u32 and so many bytes of pickle; all little-endian), one line of JSON:

    {"root": V, "nodes": [...]}   accepted, with the value as in spec/vectors/pickle/README.md
    {"opaque": "why"}             accepted, but the value has no such form
    {"error": "TypeError"}        not accepted, with the exception's class

The verdict is that of `pickle.Unpickler`, the one in C. The i64 is where the other decoder stopped, or
-1 if it accepted. If the verdicts differ, or the request has the flag EXPLAIN, the answer has also

    "labels": [[offset, label], ...]   what in the stream no pickler writes, see `Tracer`
    "stopped": [offset, label] or null where the unpickler in Python stopped, if it did

A pickle that takes too long ends the process. One process serves many pickles, so changes that a pickle makes to a class are undone, and reported:

    "changed": ["pathlib.PurePath.exists", ...]
"""

import gc
import io
import json
import os
import pickle
import pickletools
import re
import signal
import struct
import sys
import types

import collections
import copyreg
import dataclasses
import datetime
import decimal
import fractions
import pathlib
import uuid

try:
    import resource
except ImportError:
    resource = None

# The policy: every admitted name, as it stands in the stream.

VALUES = [
    (datetime, "date time datetime timedelta timezone"),
    (decimal, "Decimal"),
    (fractions, "Fraction"),
    (uuid, "UUID"),
    (collections, "OrderedDict defaultdict Counter deque"),
    (pathlib, "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath"),
    (copyreg, "_reconstructor __newobj__ __newobj_ex__"),
]
BUILTINS = "complex range slice bytearray frozenset set list dict tuple bytes str int float bool"
EXCEPTIONS = """
    BaseException BaseExceptionGroup Exception ExceptionGroup ArithmeticError AssertionError AttributeError
    BlockingIOError BrokenPipeError BufferError ChildProcessError ConnectionAbortedError ConnectionError
    ConnectionRefusedError ConnectionResetError EOFError EnvironmentError FileExistsError FileNotFoundError
    FloatingPointError GeneratorExit IOError ImportError IndentationError IndexError InterruptedError
    IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
    NotADirectoryError NotImplementedError OSError OverflowError PermissionError ProcessLookupError
    RecursionError ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError SystemError
    SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
    UnicodeError UnicodeTranslateError ValueError ZeroDivisionError BytesWarning DeprecationWarning
    EncodingWarning FutureWarning ImportWarning PendingDeprecationWarning ResourceWarning RuntimeWarning
    SyntaxWarning UnicodeWarning UserWarning Warning
"""


def record(module, name, fields, slots=False):
    """A stand-in for a result record of the framework."""
    cls = type(name, (), {"__annotations__": dict.fromkeys(fields.split(), object), "__module__": module})
    return dataclasses.dataclass(cls, slots=True) if slots else dataclasses.dataclass(cls)


RECORDS = [
    record("agentix.bridge.proxy", "TunnelHandle", "url port", slots=True),
    record("agentix.bash", "BashResult", "exit_code stdout stderr"),
    record("agentix.files", "UploadResult", "path size"),
    record("agentix.agents.claude_code.agent", "ClaudeCodeResult", "returncode stdout stderr"),
    record("agentix.agents.qwen_code", "Result", "exit_code stdout stderr"),
    record("agentix.plugins.datasets.swe.env", "PrepareEnvResult", "ok head log"),
]

POLICY = {}
MISSING = []
import builtins

for module, names in [*VALUES, (builtins, BUILTINS), (builtins, EXCEPTIONS)]:
    for name in names.split():
        try:
            POLICY[module.__name__, name] = getattr(module, name)
        except AttributeError:
            MISSING.append(f"{module.__name__}.{name}")
for name in VALUES[5][1].split():
    # Where CPython 3.13 keeps them; an admitted name on any version.
    POLICY["pathlib._local", name] = getattr(pathlib, name)
for cls in RECORDS:
    POLICY[cls.__module__, cls.__name__] = cls

try:
    if "--no-numpy" in sys.argv:
        raise ImportError
    import numpy
    from numpy._core.multiarray import _reconstruct
except ImportError:
    numpy = None
else:
    POLICY["numpy", "ndarray"] = numpy.ndarray
    POLICY["numpy", "dtype"] = numpy.dtype
    POLICY["numpy._core.multiarray", "_reconstruct"] = _reconstruct
    POLICY["numpy.core.multiarray", "_reconstruct"] = _reconstruct


def find_class(module, name):
    try:
        return POLICY[module, name]
    except KeyError:
        raise pickle.UnpicklingError(f"refused: {module}.{name}") from None


class Restricted(pickle.Unpickler):
    """CPython's unpickler in C, under the policy."""

    def find_class(self, module, name):
        return find_class(module, name)

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("refused: a persistent id")


# Names as the vectors spell them.

NAMES = {}
for (module, name), value in POLICY.items():
    if module not in ("pathlib._local", "numpy.core.multiarray") and name not in ("IOError", "EnvironmentError"):
        NAMES[value] = [module, name]


def class_name(cls):
    return NAMES.get(cls) or [cls.__module__.replace("pathlib._local", "pathlib"), cls.__qualname__]


# The value as a table.


class Opaque(Exception):
    """The value cannot be told in a table."""


MOST_NODES = 100_000
UNSET = object()
PATHS = pathlib.PurePath
MAPS = (collections.OrderedDict, collections.Counter, collections.defaultdict)

OS_FIELDS = ("errno", "strerror", "filename", "filename2")
FIELDS = [
    (OSError, OS_FIELDS),
    (ImportError, ("msg", "name", "path")),
    (SyntaxError, ("msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset", "print_file_and_line")),
    (UnicodeDecodeError, ("encoding", "object", "start", "end", "reason")),
    (UnicodeEncodeError, ("encoding", "object", "start", "end", "reason")),
    (UnicodeTranslateError, ("object", "start", "end", "reason")),
    (StopIteration, ("value",)),
    (SystemExit, ("code",)),
    (AttributeError, ("name", "obj")),
    (NameError, ("name",)),
]
if sys.version_info >= (3, 11):
    FIELDS.append((BaseExceptionGroup, ("message", "exceptions")))


def float_value(value):
    return {"float": repr(value), "bits": struct.pack(">d", value).hex()}


class Table:
    """Numbers the objects of a value and writes each down. No recursion."""

    def __init__(self, root):
        self.nodes = []
        self.numbers = {}
        self.keep = []
        self.pending = []
        self.root = self.value(root)
        while self.pending:
            node, describe, subject = self.pending.pop()
            describe(self, node, subject)

    def value(self, value):
        if value is None or value is True or value is False:
            return value
        cls = type(value)
        if cls is int:
            return {"int": integer(value)}
        if cls is str:
            if value.isascii():
                return value
            try:
                value.encode()
            except UnicodeEncodeError:
                return {"str": [ord(point) for point in value]}
            return value
        if cls is float:
            return float_value(value)
        if cls is bytes:
            return {"bytes": value.hex()}
        if cls is complex:
            return {"complex": [float_value(value.real), float_value(value.imag)]}
        kind = KINDS.get(cls)
        if kind is None:
            kind = self.kind(value, cls)
            if isinstance(kind, dict):
                return kind
        describe, identity = kind
        if identity and (cls not in (tuple, frozenset) or value):
            number = self.numbers.get(id(value))
            if number is not None:
                return {"ref": number}
            self.numbers[id(value)] = len(self.nodes)
            self.keep.append(value)
        number = len(self.nodes)
        if number >= MOST_NODES:
            raise Opaque("too large")
        node = {}
        self.nodes.append(node)
        self.pending.append((node, describe, value))
        return {"ref": number}

    def kind(self, value, cls):
        """What to do with a value whose class is not in `KINDS`, or the value itself."""
        if isinstance(value, type):
            return {"type": class_name(value)}
        try:
            if value in NAMES:
                return {"function": NAMES[value]}
        except TypeError:
            pass
        if isinstance(value, BaseException):
            return Table.exception, True
        if isinstance(value, PATHS):
            return Table.path, False
        if numpy is not None and isinstance(value, numpy.dtype):
            return Table.dtype, False
        raise Opaque(f"{cls.__module__}.{cls.__qualname__}")

    def items(self, values):
        return [self.value(value) for value in values]

    def entries(self, pairs):
        return [[self.value(key), self.value(value)] for key, value in pairs]

    def attributes(self, node, value):
        attributes = getattr(value, "__dict__", None)
        if attributes:
            node["attrs"] = self.entries(attributes.items())

    def list(self, node, value):
        node.update(t="list", items=self.items(value))

    def tuple(self, node, value):
        node.update(t="tuple", items=self.items(value))

    def dict(self, node, value):
        node.update(t="dict", items=self.entries(value.items()))

    def set(self, node, value):
        node.update(t="set", items=self.items(value))

    def frozenset(self, node, value):
        node.update(t="frozenset", items=self.items(value))

    def bytearray(self, node, value):
        node.update(t="bytearray", hex=value.hex())

    def range(self, node, value):
        node.update(t="range", args=self.items((value.start, value.stop, value.step)))

    def slice(self, node, value):
        node.update(t="slice", args=self.items((value.start, value.stop, value.step)))

    def map(self, node, value):
        # Past whatever attributes the instance has been given.
        items = dict.items(value)
        if type(value) is collections.OrderedDict:
            items = collections.OrderedDict.items(value)
        node.update({"t": "map", "class": class_name(type(value)), "items": self.entries(items)})
        if type(value) is collections.defaultdict:
            node["factory"] = self.value(value.default_factory)
        else:
            self.attributes(node, value)

    def deque(self, node, value):
        node.update(t="deque", maxlen=self.value(value.maxlen), items=self.items(value))

    def object(self, node, cls, *arguments):
        node.update({"t": "object", "class": class_name(cls), "args": self.items(arguments)})

    def date(self, node, value):
        self.object(node, datetime.date, value.year, value.month, value.day)

    def time(self, node, value):
        clock = value.hour, value.minute, value.second, value.microsecond
        self.object(node, datetime.time, *clock, value.tzinfo, value.fold)

    def datetime(self, node, value):
        day = value.year, value.month, value.day
        clock = value.hour, value.minute, value.second, value.microsecond
        self.object(node, datetime.datetime, *day, *clock, value.tzinfo, value.fold)

    def timedelta(self, node, value):
        self.object(node, datetime.timedelta, value.days, value.seconds, value.microseconds)

    def timezone(self, node, value):
        arguments = value.__getinitargs__()
        self.object(node, datetime.timezone, *arguments, *[None] * (2 - len(arguments)))

    def decimal(self, node, value):
        self.object(node, decimal.Decimal, str(value))

    def fraction(self, node, value):
        self.object(node, fractions.Fraction, value.numerator, value.denominator)

    def uuid(self, node, value):
        try:
            self.object(node, uuid.UUID, value.int)
        except AttributeError:
            raise Opaque("a UUID without a number") from None
        known = getattr(value, "is_safe", uuid.SafeUUID.unknown)
        if known is not uuid.SafeUUID.unknown:
            node["is_safe"] = self.value(known.value)

    def path(self, node, value):
        self.object(node, type(value), *value.parts)

    def exception(self, node, value):
        node.update({"t": "exception", "class": class_name(type(value)), "args": self.items(value.args)})
        fields = []
        for cls, names in FIELDS:
            if isinstance(value, cls):
                fields += [(name, getattr(value, name)) for name in names]
        if isinstance(value, OSError):
            try:
                fields.append(("characters_written", value.characters_written))
            except AttributeError:
                pass
        for name in ("__cause__", "__context__", "__suppress_context__"):
            field = getattr(value, name)
            if field is not None and field is not False:
                fields.append((name, field))
        if fields:
            node["fields"] = self.entries(fields)
        self.attributes(node, value)

    def record(self, node, value):
        names = getattr(value, "__slots__", None)
        if names is None:
            attributes = list(value.__dict__.items())
        else:
            found = [(name, getattr(value, name, UNSET)) for name in names]
            attributes = [(name, field) for name, field in found if field is not UNSET]
        node.update({"t": "record", "class": class_name(type(value)), "attrs": self.entries(attributes)})

    def dtype(self, node, value):
        node.update(t="dtype", dtype=dtype_value(value))

    def ndarray(self, node, value):
        fortran = bool(value.flags.f_contiguous and not value.flags.c_contiguous)
        node.update(t="ndarray", shape=list(value.shape), fortran=fortran, dtype=dtype_value(value.dtype))
        if value.size > MOST_NODES:
            raise Opaque("too large")
        if value.dtype.hasobject:
            if value.dtype.kind != "O":
                raise Opaque("objects inside items")
            node["items"] = self.items(value.ravel(order="C").tolist())
        else:
            node["hex"] = value.tobytes(order="C").hex()


KINDS = {
    list: (Table.list, True),
    tuple: (Table.tuple, True),
    dict: (Table.dict, True),
    set: (Table.set, True),
    frozenset: (Table.frozenset, True),
    bytearray: (Table.bytearray, True),
    range: (Table.range, False),
    slice: (Table.slice, True),
    collections.OrderedDict: (Table.map, True),
    collections.Counter: (Table.map, True),
    collections.defaultdict: (Table.map, True),
    collections.deque: (Table.deque, True),
    datetime.date: (Table.date, False),
    datetime.time: (Table.time, False),
    datetime.datetime: (Table.datetime, False),
    datetime.timedelta: (Table.timedelta, False),
    datetime.timezone: (Table.timezone, False),
    decimal.Decimal: (Table.decimal, False),
    fractions.Fraction: (Table.fraction, False),
    uuid.UUID: (Table.uuid, False),
    **{cls: (Table.record, True) for cls in RECORDS},
}
if numpy is not None:
    KINDS[numpy.ndarray] = (Table.ndarray, True)


def integer(value):
    """An int in decimal, without the limit on its digits."""
    try:
        return str(value)
    except ValueError:
        sys.set_int_max_str_digits(0)
        try:
            return str(value)
        finally:
            sys.set_int_max_str_digits(DIGITS)


DIGITS = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0


def dtype_value(dtype, depth=0):
    if depth > 40:
        raise Opaque("a dtype of great depth")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": dtype_value(base, depth + 1), "shape": list(shape)}
    if dtype.names is not None:
        fields = []
        for name in dtype.names:
            field = dtype.fields[name]
            title = field[2] if len(field) > 2 else None
            fields.append([name, title, field[1], dtype_value(field[0], depth + 1)])
        return {"kind": "V", "fields": fields, "itemsize": dtype.itemsize, "aligned": dtype.isalignedstruct}
    value = {"kind": dtype.kind, "str": dtype.str, "itemsize": dtype.itemsize}
    if dtype.kind in "mM":
        value["unit"] = list(numpy.datetime_data(dtype))
    if dtype.metadata:
        value["metadata"] = True
    return value


# What no pickler writes.

INT = re.compile(rb"0|-?[1-9][0-9]*|00|01")
LONG = re.compile(rb"-?(0|[1-9][0-9]*)L?")
INDEX = re.compile(rb"0|[1-9][0-9]*")
CLOCK = (24, 60, 60)


def dotted(value):
    return ".".join(class_name(value) if isinstance(value, type) else NAMES.get(value, ["?", "?"]))


def valid_day(year, month, day):
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def valid_date(state):
    return len(state) == 4 and valid_day(int.from_bytes(state[:2], "big"), state[2], state[3])


def valid_clock(state):
    return (
        len(state) == 6
        and all(part < most for part, most in zip((state[0] & 0x7F, state[1], state[2]), CLOCK))
        and int.from_bytes(state[3:], "big") < 1_000_000
    )


def kinds(arguments, *classes):
    return len(arguments) == len(classes) and all(
        type(argument) is cls for argument, cls in zip(arguments, classes)
    )


def regular_call(cls, arguments):
    """Whether some pickler writes this call with REDUCE."""
    if cls is complex:
        return kinds(arguments, float, float)
    if cls is range:
        return kinds(arguments, int, int, int) and arguments[2] != 0
    if cls is slice:
        return len(arguments) == 3
    if cls is bytearray:
        return arguments == () or kinds(arguments, bytes)
    if cls in (set, frozenset):
        return kinds(arguments, list)
    if cls is datetime.date:
        return kinds(arguments, bytes) and valid_date(arguments[0])
    if cls in (datetime.time, datetime.datetime):
        if not (kinds(arguments, bytes) or kinds(arguments, bytes, datetime.timezone)):
            return False
        state = arguments[0]
        if cls is datetime.time:
            return valid_clock(state)
        day = state[:2] + bytes([state[2] & 0x7F]) + state[3:4] if len(state) == 10 else b""
        return valid_date(day) and state[4] < 24 and valid_clock(state[4:])
    if cls is datetime.timedelta:
        if not kinds(arguments, int, int, int):
            return False
        days, seconds, micros = arguments
        return abs(days) < 10**9 and 0 <= seconds < 86_400 and 0 <= micros < 10**6
    if cls is datetime.timezone:
        return kinds(arguments, datetime.timedelta) or kinds(arguments, datetime.timedelta, str)
    if cls is decimal.Decimal:
        return kinds(arguments, str) and str(decimal.Decimal(arguments[0])) == arguments[0]
    if cls is fractions.Fraction:
        if kinds(arguments, str):
            return bool(re.fullmatch("-?(0|[1-9][0-9]*)(/[1-9][0-9]*)?", arguments[0]))
        if not kinds(arguments, int, int) or arguments[1] < 1:
            return False
        return fractions.Fraction(*arguments).denominator == arguments[1]
    if cls is collections.OrderedDict:
        return arguments == () or (
            kinds(arguments, list) and all(type(pair) is list and len(pair) == 2 for pair in arguments[0])
        )
    if cls is collections.Counter:
        return kinds(arguments, dict)
    if cls is collections.defaultdict:
        return arguments == () or (len(arguments) == 1 and isinstance(arguments[0], type))
    if cls is collections.deque:
        if kinds(arguments, list):
            return True
        return arguments == () or (
            len(arguments) == 2
            and type(arguments[0]) in (tuple, list)
            and (type(arguments[0]) is list or arguments[0] == ())
            and type(arguments[1]) is int
            and 0 <= arguments[1] < 2**63
        )
    if isinstance(cls, type) and issubclass(cls, PATHS):
        return cls not in (pathlib.PurePath, pathlib.Path) and all(type(part) is str for part in arguments)
    if isinstance(cls, type) and issubclass(cls, BaseException):
        # Whatever the class takes: a pickler writes the arguments that made the exception. It names
        # the class that came of them. (A syntax error takes any sequence of details, a str too.)
        if issubclass(cls, SyntaxError) and len(arguments) == 2 and type(arguments[1]) not in (tuple, list):
            return False
        return type(cls(*arguments)) is cls
    if numpy is not None and cls is numpy.dtype:
        return kinds(arguments, str, bool, bool) and arguments[1:] == (False, True)
    if numpy is not None and cls is _reconstruct:
        return arguments == (numpy.ndarray, (0,), b"b")
    return False


# What the pickler has of an exception's state beside its `__dict__`; of some since CPython 3.12.
EXCEPTION_STATE = [(ImportError, ("name", "path", "name_from")), (AttributeError, ("name", "args"))]


def regular_attribute(cls, name, value):
    """Whether some pickler writes this attribute for an instance of a class."""
    if type(name) is not str:
        return False
    # What is in a `__dict__` is no slot of the class, or only past its setter.
    if not issubclass(cls, BaseException) or not hasattr(cls, name):
        return True
    known = any(issubclass(cls, base) and name in names for base, names in EXCEPTION_STATE)
    return known and (name != "args" or type(value) is tuple)


def regular_state(instance, state):
    """Whether some pickler writes this state with BUILD."""
    cls = type(instance)
    if cls is uuid.UUID:
        return (
            bare(instance)
            and type(state) is dict
            and type(state.get("int")) is int
            and 0 <= state["int"] < 1 << 128
            and (set(state) == {"int"} or (set(state) == {"int", "is_safe"} and state["is_safe"] in (0, -1, None)))
        )
    if cls in RECORDS:
        if hasattr(cls, "__slots__"):
            if not (type(state) is tuple and len(state) == 2 and state[0] is None):
                return False
            state = state[1]
        return type(state) is dict and list(state) == [field.name for field in dataclasses.fields(cls)]
    if cls in MAPS[:2] or isinstance(instance, BaseException):
        return type(state) is dict and all(regular_attribute(cls, *item) for item in state.items())
    if numpy is not None and cls is numpy.ndarray:
        return kinds(state, int, tuple, numpy.dtype, bool, bytes) or kinds(state, int, tuple, numpy.dtype, bool, list)
    if numpy is not None and isinstance(instance, numpy.dtype):
        return type(state) is tuple and len(state) in (8, 9)
    return False


def key_label(keys):
    """What is out of the ordinary about keys, or nothing."""
    for key in keys:
        pending, steps = [(key, 0)], 0
        while pending:
            part, depth = pending.pop()
            steps += 1
            if depth > 500:
                return "key:deep"
            if steps > 60_000:
                return "key:wide"
            if type(part) in (tuple, frozenset):
                pending += [(item, depth + 1) for item in part]
            elif type(part) is decimal.Decimal and part.is_snan():
                return "key:signalling-nan"
            elif type(part) is slice:
                return "key:slice"
            elif type(part) is uuid.UUID and not hasattr(part, "int"):
                return "key:half-built-uuid"
    return None


UNBUILT = (uuid.UUID, *RECORDS)
MAKING = (pickle.REDUCE, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.OBJ, pickle.INST)


def bare(instance):
    """Whether an object has no state at all."""
    names = getattr(type(instance), "__slots__", None)
    if names is None:
        return not instance.__dict__
    return not any(hasattr(instance, name) for name in names if name != "__weakref__")


class Refused(Exception):
    pass


class Tracer(pickle._Unpickler):
    """CPython's unpickler in Python, which notes by offset what no pickler writes.

    | label | |
    | --- | --- |
    | `int-text`, `long-text`, `memo-text` | a number in text that is not plain decimal |
    | `float-text` | a NUL in the text of a float |
    | `frame` | an instruction or frame that does not end with or inside its frame |
    | `call:NAME`, `newobj:NAME`, `newobj-ex:NAME`, `obj:NAME`, `inst:NAME` | an object made in another way than picklers do |
    | `build:NAME` | a state that picklers do not write; `build-class`: against a class or function |
    | `append:NAME`, `setitem:NAME`, `additems:NAME` | a container's opcode applied to another |
    | `key:...` | keys that are costly or cannot be compared |
    | `windows-path` | a path that only Windows can have |
    | `unbuilt` | the end, before an object was given the state without which it is none |
    | `buffer:NAME` | a read-only view of something |
    | `memo-index` | an index far beyond the number of entries |
    """

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.data = data
        self.labels = []
        self.stopped = None
        # Made by NEWOBJ, by identity, and not yet given a state.
        self.unbuilt = {}

    find_class = staticmethod(find_class)

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("refused: a persistent id")

    def run(self):
        file = self._file = io.BytesIO(self.data)
        self.read, self.readline, self.readinto = file.read, file.readline, file.readinto
        self.metastack, self.stack, self.memo, self.proto = [], [], {}, 0
        self.append = self.stack.append
        frame_end, label, at = 0, None, 0
        try:
            while True:
                at, label = file.tell(), None
                opcode = file.read(1)
                if not opcode:
                    raise EOFError
                label = self.label(opcode[0])
                if at < frame_end and (opcode == pickle.FRAME or frame_end < self.end(opcode)):
                    label = "frame"
                if opcode == pickle.FRAME:
                    (size,) = struct.unpack("<Q", file.read(8))
                    end = file.tell() + size
                    if end > len(self.data):
                        raise EOFError
                    frame_end = max(end, frame_end)
                else:
                    self.dispatch[opcode[0]](self)
                if opcode in MAKING and type(self.stack[-1]) in UNBUILT and bare(self.stack[-1]):
                    self.unbuilt[id(self.stack[-1])] = self.stack[-1]
                if label:
                    self.labels.append([at, label])
                if len(self.stack) and type(self.stack[-1]) in (list, bytearray, bytes, str) and len(self.stack[-1]) > 10**6:
                    raise Refused
        except pickle._Stop:
            if self.unbuilt:
                label = "unbuilt"
            if label:
                self.labels.append([at, label])
        except Exception as error:  # noqa: BLE001
            name = opcode[:1].decode("latin-1") if opcode else ""
            self.stopped = [at, label or f"regular:{name}", type(error).__name__]
        return self

    def end(self, opcode):
        """Where the instruction ends whose argument comes next."""
        code = pickletools.code2op.get(opcode.decode("latin-1"))
        at = self._file.tell()
        if code is None or code.arg is None:
            return at
        try:
            code.arg.reader(self._file)
        except (ValueError, UnicodeError):
            # A line that is no number is a line nonetheless.
            if code.arg.n == pickletools.UP_TO_NEWLINE:
                self._file.seek(at)
                self._file.readline()
        end = self._file.tell()
        self._file.seek(at)
        return end

    def line(self):
        at = self._file.tell()
        end = self.data.find(b"\n", at)
        return self.data[at:end] if end >= 0 else b""

    def label(self, opcode):
        stack = self.stack
        if opcode == pickle.INT[0]:
            return None if INT.fullmatch(self.line()) else "int-text"
        if opcode == pickle.LONG[0]:
            return None if LONG.fullmatch(self.line()) else "long-text"
        if opcode == pickle.FLOAT[0]:
            return "float-text" if b"\0" in self.line() else None
        if opcode in (pickle.GET[0], pickle.PUT[0]):
            line = self.line()
            if not INDEX.fullmatch(line):
                return "memo-text"
            return "memo-index" if len(line) > 6 else None
        if opcode in (pickle.LONG_BINPUT[0],):
            (index,) = struct.unpack("<I", self.data[self._file.tell() :][:4].ljust(4, b"\0"))
            return "memo-index" if index > 10**6 else None
        if opcode == pickle.READONLY_BUFFER[0] and stack:
            return None if type(stack[-1]) is bytes else f"buffer:{type(stack[-1]).__name__}"
        if opcode == pickle.APPEND[0] and len(stack) > 1:
            return self.container("append", stack[-2], (list, collections.deque))
        if opcode == pickle.APPENDS[0] and self.metastack and self.metastack[-1]:
            return self.container("append", self.metastack[-1][-1], (list, collections.deque))
        if opcode == pickle.SETITEM[0] and len(stack) > 2:
            return self.container("setitem", stack[-3], (dict, *MAPS)) or key_label([stack[-2]])
        if opcode == pickle.SETITEMS[0] and self.metastack and self.metastack[-1]:
            return self.container("setitem", self.metastack[-1][-1], (dict, *MAPS)) or key_label(stack[::2])
        if opcode == pickle.DICT[0]:
            return key_label(stack[::2])
        if opcode == pickle.ADDITEMS[0] and self.metastack and self.metastack[-1]:
            return self.container("additems", self.metastack[-1][-1], (set,)) or key_label(stack)
        if opcode == pickle.FROZENSET[0]:
            return key_label(stack)
        if opcode == pickle.REDUCE[0] and len(stack) > 1:
            cls, arguments = stack[-2:]
            if type(arguments) is not tuple:
                return "arguments:not-a-tuple"
            if not callable(cls):
                return None
            if cls is pathlib.WindowsPath and os.name != "nt":
                return "windows-path"
            if not self.judged(regular_call, cls, arguments):
                return f"call:{dotted(cls)}"
            return self.keys_of(cls, arguments)
        if opcode == pickle.NEWOBJ[0] and len(stack) > 1:
            cls, arguments = stack[-2:]
            if not isinstance(cls, type):
                return None
            made = arguments == () and cls in UNBUILT
            return None if made else f"newobj:{dotted(cls)}"
        if opcode == pickle.NEWOBJ_EX[0] and len(stack) > 2:
            return f"newobj-ex:{dotted(stack[-3])}" if isinstance(stack[-3], type) else None
        if opcode == pickle.OBJ[0] and stack:
            return f"obj:{dotted(stack[0])}" if callable(stack[0]) else None
        if opcode == pickle.INST[0]:
            at = self._file.tell()
            names = self.data[at:].split(b"\n", 2)[:2]
            return "inst:" + b".".join(names).decode("latin-1")
        if opcode == pickle.BUILD[0] and len(stack) > 1:
            instance, state = stack[-2:]
            if callable(instance) and not isinstance(instance, PATHS):
                return "build-class"
            if not self.judged(regular_state, instance, state):
                return f"build:{dotted(type(instance))}"
        return None

    def container(self, opcode, target, classes):
        return None if type(target) in classes else f"{opcode}:{type(target).__name__}"

    def keys_of(self, cls, arguments):
        if cls in (set, frozenset, collections.Counter) and arguments:
            return key_label(arguments[0])
        return None

    @staticmethod
    def judged(judge, *what):
        try:
            return judge(*what)
        except Exception:  # noqa: BLE001
            return False

    # Against classes and functions BUILD would change this process, and is not carried out.
    dispatch = dict(pickle._Unpickler.dispatch)

    def load_build(self):
        if callable(self.stack[-2]):
            raise Refused
        instance = self.stack[-2]
        super().load_build()
        self.unbuilt.pop(id(instance), None)

    dispatch[pickle.BUILD[0]] = load_build



# Classes and functions that a stream might have changed.

HEAP, IMMUTABLE = 1 << 9, 1 << 8
CHANGEABLE = [
    value
    for value in NAMES
    if isinstance(value, types.FunctionType)
    or (isinstance(value, type) and value.__flags__ & HEAP and not value.__flags__ & IMMUTABLE)
]
FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__module__", "__doc__")


def parts(value):
    found = dict(getattr(value, "__dict__", {}))
    if not isinstance(value, type):
        found.update((name, getattr(value, name)) for name in FUNCTION_PARTS)
    return found


ORIGINAL = [(value, parts(value)) for value in CHANGEABLE]


def undo_changes():
    """Puts classes and functions back as they were; says what was not."""
    changed = []
    for value, original in ORIGINAL:
        found = parts(value)
        if len(found) == len(original) and all(found.get(name, UNSET) is part for name, part in original.items()):
            continue
        for name in {**found, **original}:
            if found.get(name, UNSET) is original.get(name, UNSET):
                continue
            if name in original:
                setattr(value, name, original[name])
            else:
                delattr(value, name)
            # What CPython itself adds when a class is first used is no change of the stream's.
            if name not in ("__abstractmethods__", "_abc_impl", "__weakref__", "__dict__"):
                changed.append(f"{dotted(value)}.{name}")
    return changed


EXPLAIN, HAS_BUILD = 1, 2


# CPU seconds that one pickle may take. Then the process ends: code in C sees no exception.
MOST_SECONDS = 1.0


def answer(flags, stopped, data):
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        value = Restricted(io.BytesIO(data)).load()
        try:
            table = Table(value)
            reply = {"root": table.root, "nodes": table.nodes}
        except Opaque as why:
            reply = {"opaque": str(why)}
        except Exception as error:  # noqa: BLE001
            reply = {"opaque": f"{type(error).__name__} while looking at it"}
        accepted = True
    except Exception as error:  # noqa: BLE001
        reply = {"error": type(error).__name__}
        accepted = False
    value = None
    if flags & HAS_BUILD and (changed := undo_changes()):
        reply["changed"] = changed
    if flags & EXPLAIN or accepted != (stopped < 0):
        tracer = Tracer(data).run()
        reply["labels"] = tracer.labels
        reply["stopped"] = tracer.stopped
    return reply


def main():
    if resource is not None and os.path.exists("/proc/self/statm"):
        # More than any pickle here needs; a stream that asks for more gets a MemoryError.
        with open("/proc/self/statm") as statm:
            most = int(statm.read().split()[0]) * resource.getpagesize() + (256 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    gc.freeze()
    gc.set_threshold(20_000)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer

    def say(what):
        answers.write(json.dumps(what, separators=(",", ":")).encode())
        answers.write(b"\n")

    say(
        {
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": numpy.__version__ if numpy is not None else None,
            "admitted": [list(name) for name in POLICY],
            "missing": MISSING,
        }
    )
    answers.flush()
    while head := requests.read(4):
        (count,) = struct.unpack("<I", head)
        for _ in range(count):
            flags, stopped, size = struct.unpack("<BqI", requests.read(13))
            say(answer(flags, stopped, requests.read(size)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.flush()


if __name__ == "__main__":
    main()
