"""Writes cases about dates, times, numbers, UUIDs and paths, one JSON object a line.

Run by `safepickle_scalars.rs`. Each line has a pickle and what CPython makes of it.
"""

import json
import pickle
import random
import sys
import uuid
from collections import OrderedDict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import PurePath, PurePosixPath, PureWindowsPath

rng = random.Random(int(sys.argv[1]))
old_paths = sys.version_info < (3, 12)  # How Windows paths are split changed with 3.12.


class Call:
    """Pickled as a call of a class."""

    def __init__(self, callee, *args):
        self.call = callee, args

    def __reduce__(self):
        return self.call


def readable(text):
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def a_timedelta():
    return rng.choice([
        lambda: timedelta(rng.randint(-3, 3), rng.randint(-10, 90000), rng.choice([0, 5, 999999])),
        lambda: timedelta(rng.randint(-999999998, 999999998), rng.randrange(86400), rng.randrange(10**6)),
        lambda: rng.choice([timedelta.min, timedelta.max, timedelta(0)]),
    ])()


def a_timezone():
    offset = timedelta(seconds=rng.choice([
        0, 3600, -3600, 5400, -86399, 86399, 1, -1, rng.randint(-86399, 86399),
    ]), microseconds=rng.choice([0, 0, 0, 1, 999999]))
    return rng.choice([lambda: timezone(offset), lambda: timezone(offset, rng.choice("XY"))])() \
        if abs(offset) < timedelta(1) else timezone.utc


def zone():
    return rng.choice([None, a_timezone()])


def a_date():
    return date.fromordinal(rng.choice([1, date.max.toordinal(), 719163, rng.randint(1, 3652059)]))


def a_time():
    return time(rng.choice([0, 23, rng.randrange(24)]), rng.choice([0, 59]), rng.choice([0, 30]),
                rng.choice([0, 1, 999999]), zone(), fold=rng.randrange(2))


def a_datetime():
    day, clock = a_date(), a_time()
    return datetime.combine(day, clock)


def some_digits(most):
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, most)))


def decimal_text():
    return rng.choice([
        lambda: str(Decimal(int(some_digits(30))).scaleb(rng.randint(-40, 20))),
        lambda: rng.choice(["", "-"]) + some_digits(8) + rng.choice(["", "." + some_digits(8)])
        + rng.choice(["", "", "E", "e"]) + rng.choice(["", "+", "-"]) + rng.choice(["", some_digits(3)]),
        lambda: rng.choice(["", "-"]) + rng.choice(["NaN", "sNaN", "Infinity", "nan", "SNAN", "inf", "infinit"])
        + rng.choice(["", "", "0", "007", some_digits(5)]),
        lambda: rng.choice(["0", "1", "12345", "0.001", "-0.0"]) + "E" + str(rng.choice([
            10**18 - 1, 10**18, 10**18 - 5, 10**18 - 4, -2 * 10**18 + 3, -2 * 10**18 + 2,
            -2 * 10**18 + 6, -2 * 10**18 + 5, 10**19, -(10**19),
        ]) + rng.randint(-1, 1)),
    ])()


def a_decimal():
    while True:
        try:
            return Decimal(decimal_text())
        except InvalidOperation:
            pass


def an_int():
    return rng.choice([0, 1, -1, 7, 2**63 - 1, -(2**63), 2**63, 2**64, 2**61 - 1, 2**61, 10**40, rng.getrandbits(200)])


def a_fraction():
    return Fraction(an_int(), an_int() or 3)


def a_uuid():
    made = uuid.UUID(int=rng.choice([0, 2**128 - 1, 7, rng.getrandbits(128)]))
    object.__setattr__(made, "is_safe", rng.choice(list(uuid.SafeUUID)))
    return made


def raw_path():
    """A path of raw arguments, which only newer versions pickle."""
    cls = rng.choice([PurePosixPath, PureWindowsPath] if old_paths else [PurePosixPath])
    pieces = ["/", "/", "a", "b", ".", "..", "\u03bb", "\udcff", "A"]
    if cls is PureWindowsPath:
        pieces += ["\\", "\\", "c:", "C:", "?", "UNC", "\\\\?\\", "\\\\", ":", "\u0130"]
    return cls, ["".join(rng.choice(pieces) for _ in range(rng.randint(0, 6))) for _ in range(rng.randint(0, 4))]


def a_path():
    cls, args = raw_path()
    return cls(*args)


def told(value):
    """What the other side is asked to tell of a value."""
    facts = {"str": readable(str(value))}
    if isinstance(value, datetime):
        facts["iso"] = value.isoformat()
        if value.tzinfo:
            epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
            naive, offset = value.replace(tzinfo=timezone.utc), value.utcoffset()
            facts["number"] = str((naive - epoch - offset) // timedelta(microseconds=1))
    if isinstance(value, timedelta):
        facts["number"] = str(value // timedelta(microseconds=1))
    if isinstance(value, PurePath):
        facts["parts"] = [[ord(c) for c in part] for part in value.parts]
        if value.parts and not value.anchor and type(value)(value.parts[0]).drive == value.parts[0]:
            # `./c:` has the parts of `c:` and is equal to it, but reads otherwise.
            facts["str"] = None
    return facts


def worth():
    """Numbers that are often worth the same."""
    base = rng.choice([0, 1, -1, 2, 10, 255, 2**53, 2**61 - 1, 2**63, 10**20, 10**22, 10**25, 2**1000])
    low = rng.choice([1, 1, 1, 2, 5, 8, 10, 1000, 3, 2**61 - 1, 2**70, 10**30])
    value = Fraction(base + rng.choice([0, 0, 0, 1]), low)
    ways = [lambda: value]
    if value.denominator == 1:
        ways += [lambda: int(value), lambda: int(value)]
        if value in (0, 1):
            ways.append(lambda: bool(value))
    try:
        ways += [lambda: float(value), lambda: complex(float(value), rng.choice([0.0, -0.0, 1.0]))]
    except OverflowError:
        pass
    two, five, rest = 0, 0, value.denominator
    while rest % 2 == 0:
        two, rest = two + 1, rest // 2
    while rest % 5 == 0:
        five, rest = five + 1, rest // 5
    if rest == 1:
        places = max(two, five) + rng.choice([0, 0, 3])
        number = Decimal(int(value * 10**places)).as_tuple()
        decimal = Decimal(number._replace(exponent=-places))
        digits = decimal.as_tuple()
        while digits.exponent < 0 and digits.digits[-1] == 0 and len(digits.digits) > 1 and rng.random() < 0.7:
            digits = digits._replace(digits=digits.digits[:-1], exponent=digits.exponent + 1)
        ways += [lambda: Decimal(digits), lambda: Decimal(digits)]
    else:
        ways += [lambda: float(value), lambda: Decimal(float(value))]
    return rng.choice(ways)()


def odd_number():
    return rng.choice([
        float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"),
        complex(float("nan"), 0), complex(0, float("inf")), complex(float("inf"), 0), -0.0, Decimal("-0E+7"),
        Decimal("1E+400"), 10**400, Decimal("1E-400"), Fraction(1, 10**400), 5e-324, Decimal(5e-324),
        Fraction(5e-324), Decimal("1E+999999"), Decimal("10E+999998"), 1.7976931348623157e308, int(1.7976931348623157e308),
        Decimal(1.7976931348623157e308), Decimal("1.5"), 1.5, Fraction(3, 2),
    ])


def moment():
    """Times that are often the same."""
    at = datetime(2026, 3, rng.randint(1, 2), rng.randrange(3), rng.choice([0, 30]))
    offset = rng.choice([None, 0, 30, 60, -60, 1439])
    tz = offset if offset is None else timezone(timedelta(minutes=offset), *rng.choice([(), ("X",)]))
    return rng.choice([
        lambda: at.replace(tzinfo=tz, fold=rng.randrange(2)),
        lambda: at.time().replace(tzinfo=tz, fold=rng.randrange(2)),
        lambda: at.date(),
        lambda: tz,
        lambda: timedelta(hours=rng.randrange(3)),
    ])()


def other_key():
    return rng.choice([
        lambda: range(rng.randint(0, 2), rng.randint(0, 5), rng.choice([1, 2, 3, -1])),
        lambda: range(2**64, 2**64 + rng.choice([0, 1, 2**70]), rng.choice([1, 2**69, 2**69 + 1])),
        lambda: uuid.UUID(int=rng.randrange(3)),
        lambda: rng.choice([PurePosixPath, PureWindowsPath])(rng.choice(["a", "A", "a/b", "a//B", "/a", "\u03a3", "\u03c3"])),
        lambda: rng.choice(["a", b"a", None, True, "", b"", ()]),
        lambda: (worth(), rng.choice([(), moment()])),
        lambda: frozenset([worth(), worth()]),
        lambda: rng.choice([int, Decimal, datetime, IOError, OSError, ValueError]),
    ])()


def main():
    kinds = [a_timedelta, a_timezone, a_date, a_time, a_datetime, a_decimal, a_fraction, a_uuid, a_path]
    for _ in range(150):
        values = [make() for make in kinds]
        stream = pickle.dumps(values, rng.randint(3, 5))
        # What is read counts: some odd paths are not what was written.
        print(json.dumps({"told": list(map(told, pickle.loads(stream))), "pickle": stream.hex()}))
    for _ in range(600):
        cls, args = raw_path()
        print(json.dumps({"told": [told(cls(*args))], "pickle": pickle.dumps([Call(cls, *args)]).hex()}))
    for _ in range(1500):
        text = decimal_text()
        try:
            found = str(Decimal(text))
        except InvalidOperation:
            found = None
        stream = pickle.dumps(Call(Decimal, text), 4)
        print(json.dumps({"decimal": text, "found": found, "pickle": stream.hex()}))
    for number in range(400):
        keys = rng.choice([[worth, odd_number], [worth], [moment], [moment, other_key], [worth, other_key]])
        count = rng.choice([2, 5, 10, 40, 150])
        pairs = [[rng.choice(keys)(), at] for at in range(count)]
        stream = pickle.dumps(Call(OrderedDict, pairs), 4)
        print(json.dumps({"values": list(pickle.loads(stream).values()), "pickle": stream.hex()}))


main()
