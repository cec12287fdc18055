"""The worker's msgpack codec: vectors, round trips, hostile bytes, and the `msgpack` package as a second opinion."""

import json
import math
import pathlib
import random
import struct
import unittest

import worker_process  # noqa: F401  (makes the worker importable)
from agentix_worker import MAX_DEPTH, CodecError, ExtType, Timestamp, frame_chunks, pack, pack_chunks, unpack

try:
    import msgpack
except ImportError:
    msgpack = None

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "spec" / "vectors" / "codec" / "codec.jsonl"


def nested_list(depth):
    value = None
    for _ in range(depth):
        value = [value]
    return value


def same(left, right):
    """Equality that tells types apart and takes NaN for equal to itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            same(a, b) and same(left[a], right[b]) for a, b in zip(left, right)
        )
    return left == right


class Forms(unittest.TestCase):
    CASES = [
        (None, "c0"),
        (True, "c3"),
        (False, "c2"),
        (0, "00"),
        (127, "7f"),
        (128, "cc80"),
        (255, "ccff"),
        (256, "cd0100"),
        (65535, "cdffff"),
        (65536, "ce00010000"),
        (2**32 - 1, "ceffffffff"),
        (2**32, "cf0000000100000000"),
        (2**64 - 1, "cfffffffffffffffff"),
        (-1, "ff"),
        (-32, "e0"),
        (-33, "d0df"),
        (-128, "d080"),
        (-129, "d1ff7f"),
        (-32768, "d18000"),
        (-32769, "d2ffff7fff"),
        (-(2**31), "d280000000"),
        (-(2**31) - 1, "d3ffffffff7fffffff"),
        (-(2**63), "d38000000000000000"),
        (1.5, "cb3ff8000000000000"),
        ("", "a0"),
        ("π", "a2cf80"),
        (b"", "c400"),
        (b"k", "c4016b"),
        ([], "90"),
        ({}, "80"),
        ({"a": [1, {b"b": None}]}, "81a1619201" + "81c40162c0"),
        (ExtType(3, b""), "c70003"),
        (ExtType(9, b"Z"), "d4095a"),
        (ExtType(9, b"Z" * 16), "d809" + "5a" * 16),
        (ExtType(9, b"Z" * 17), "c71109" + "5a" * 17),
        (Timestamp(1735689600, 0), "d6ff67748580"),
        (Timestamp(1735689600, 5), "d7ff0000001467748580"),
        (Timestamp(-1, 5), "c70cff00000005ffffffffffffffff"),
    ]

    def test_shortest_form_and_back(self):
        for value, expected in self.CASES:
            with self.subTest(value=value):
                self.assertEqual(pack(value).hex(), expected)
                self.assertTrue(same(unpack(bytes.fromhex(expected)), value))

    def test_header_width_at_each_boundary(self):
        for size, string, binary, array, mapping in (
            (15, "af", "c40f", "9f", "8f"),
            (16, "b0", "c410", "dc0010", "de0010"),
            (31, "bf", "c41f", "dc001f", "de001f"),
            (32, "d920", "c420", "dc0020", "de0020"),
            (255, "d9ff", "c4ff", "dc00ff", "de00ff"),
            (256, "da0100", "c50100", "dc0100", "de0100"),
            (65535, "daffff", "c5ffff", "dcffff", "deffff"),
            (65536, "db00010000", "c600010000", "dd00010000", "df00010000"),
        ):
            for value, header in (
                ("x" * size, string),
                (b"x" * size, binary),
                ([None] * size, array),
                ({"%d" % i: None for i in range(size)}, mapping),
            ):
                with self.subTest(size=size, kind=type(value).__name__):
                    encoded = pack(value)
                    self.assertTrue(encoded.hex().startswith(header))
                    self.assertTrue(same(unpack(encoded), value))

    def test_longer_forms_are_read(self):
        for form, value in (
            ("cc05", 5),
            ("d005", 5),
            ("d30000000000000005", 5),
            ("cf0000000000000000", 0),
            ("ca3fc00000", 1.5),
            ("d90161", "a"),
            ("db0000000161", "a"),
            ("c60000000161", b"a"),
            ("dd00000001c0", [None]),
            ("df00000001a161c0", {"a": None}),
            ("c702036162", ExtType(3, b"ab")),
            ("c900000002036162", ExtType(3, b"ab")),
        ):
            with self.subTest(form=form):
                self.assertTrue(same(unpack(bytes.fromhex(form)), value))

    def test_last_of_repeated_keys_wins_at_the_first_place(self):
        self.assertEqual(list(unpack(bytes.fromhex("83a16101a16209a16102")).items()), [("a", 2), ("b", 9)])
        self.assertEqual(unpack(bytes.fromhex("82a16101c4016102")), {"a": 1, b"a": 2})

    def test_chunks_are_the_encoding_and_share_large_bytes(self):
        large = bytes(100_000)
        value = {"a": 1, "value": large, "z": [large, 2]}
        chunks = pack_chunks(value)
        self.assertEqual(sum(chunk is large for chunk in chunks), 2)
        self.assertEqual(unpack(b"".join(chunks)), value)

    def test_frame_has_a_little_endian_length(self):
        self.assertEqual(b"".join(frame_chunks({"type": "ready"})).hex(), "0c00000081a474797065a57265616479")


class Refusals(unittest.TestCase):
    def test_values_without_a_form(self):
        cycle = []
        cycle.append(cycle)
        for value in (
            2**64,
            -(2**63) - 1,
            "\ud800",
            {"\udfff": 1},
            {1: 2},
            {None: 2},
            {("a",): 2},
            {"a": object()},
            {1, 2},
            1j,
            ExtType(128, b""),
            ExtType(-129, b""),
            Timestamp(0, 10**9),
            Timestamp(0, -1),
            Timestamp(2**63, 0),
            cycle,
        ):
            with self.subTest(value=repr(value)[:40]):
                with self.assertRaises(CodecError):
                    pack(value)

    def test_bytes_that_are_not_one_value(self):
        for encoded in (
            "",
            "c1",
            "91c1",
            "a2fffe",
            "a1c3",
            "a2c080",
            "a3eda080",
            "81a1ffc0",
            "810102",
            "81c002",
            "81c302",
            "81cb3ff800000000000002",
            "81910102",
            "818002",
            "819002",
            "81d4050002",
            "81a161810102",
            "91810102",
            "01c0",
            "010203",
            "8000",
            "81",
            "81a161",
            "a56162",
            "d9",
            "c4056162",
            "cd01",
            "cb00",
            "92c0",
            "c705016162",
            "d8016162",
            "c7",
            "c700",
            "dbffffffff",
            "c6ffffffff6162",
            "ddffffffff",
            "dfffffffff",
            "c9ffffffff01",
            "dc1000c0c0c0",
            "c703ff616263",
            "d7ffee6b280000000001",
            "c70cff3b9aca000000000000000001",
            "d5fe6162",
            "d5806162",
        ):
            with self.subTest(encoded=encoded):
                with self.assertRaises(CodecError):
                    unpack(bytes.fromhex(encoded))

    def test_depth(self):
        deepest = b"\x91" * MAX_DEPTH + b"\xc0"
        self.assertEqual(pack(nested_list(MAX_DEPTH)), deepest)
        self.assertEqual(pack(unpack(deepest)), deepest)
        with self.assertRaises(CodecError):
            pack(nested_list(MAX_DEPTH + 1))
        for opener in (b"\x91", b"\x81\xa1a", b"\xdd\x00\x00\x00\x01", b"\xdf\x00\x00\x00\x01\xc4\x00"):
            with self.subTest(opener=opener):
                unpack(opener * MAX_DEPTH + b"\xc0")
                for depth in (MAX_DEPTH + 1, 100_000):
                    with self.assertRaises(CodecError):
                        unpack(opener * depth + b"\xc0")
        with self.assertRaises(CodecError):
            unpack(b"\x91" * MAX_DEPTH + b"\x90")

    def test_every_truncation_is_refused(self):
        value = {"a": [1, -200, 70000, 1.5, "π" * 20, b"x" * 300], "b": ExtType(5, b"abc"), "c": Timestamp(-1, 5)}
        encoded = pack(value)
        for end in range(len(encoded)):
            with self.assertRaises(CodecError):
                unpack(encoded[:end])
            with self.assertRaises(CodecError):
                unpack(encoded[:end], fields=frozenset())


class Fields(unittest.TestCase):
    def test_other_entries_are_left_out(self):
        value = {"a": [1, {"b": 2}], "b": {"a": {"c": [3]}}, "c": [], "d": "x"}
        self.assertEqual(unpack(pack(value), fields=frozenset("ad")), {"a": [1, {"b": 2}], "d": "x"})
        self.assertEqual(unpack(pack(value), fields=frozenset()), {})
        self.assertEqual(unpack(pack([value]), fields=frozenset()), [value])

    def test_other_entries_are_checked_all_the_same(self):
        for encoded in ("81a178c1", "81a178a1ff", "81a17891810102", "81a178d5fe6162", "81a178" + "91" * 1024 + "c0"):
            with self.subTest(encoded=encoded[:20]):
                with self.assertRaises(CodecError):
                    unpack(bytes.fromhex(encoded), fields=frozenset("a"))

    def test_key_after_a_skipped_one_is_built(self):
        self.assertEqual(unpack(bytes.fromhex("82a1789101a16102")), {"x": [1], "a": 2})
        self.assertEqual(unpack(bytes.fromhex("82a1789101a16102"), fields=frozenset("a")), {"a": 2})
        self.assertEqual(unpack(bytes.fromhex("82a16102a1789101"), fields=frozenset("a")), {"a": 2})


class RandomValues:
    """Values and bytes from a seeded generator."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth=0):
        pick = self.random.randrange(10 if depth < 5 else 7)
        if pick == 0:
            return self.random.choice((None, True, False))
        if pick == 1:
            return self.random.getrandbits(self.random.randrange(1, 65)) - (self.random.getrandbits(1) << 62)
        if pick == 2:
            return struct.unpack(">d", self.random.getrandbits(64).to_bytes(8, "big"))[0]
        if pick in (3, 4):
            return "".join(self.random.choice("aé\0π模😀") for _ in range(self.random.choice((0, 3, 31, 32, 300))))
        if pick == 5:
            return bytes(self.random.getrandbits(8) for _ in range(self.random.choice((0, 3, 255, 256))))
        if pick == 6:
            if self.random.getrandbits(1):
                return ExtType(self.random.randrange(128), bytes(self.random.randrange(20)))
            return Timestamp(self.random.randrange(-(2**63), 2**63), self.random.randrange(10**9))
        if pick == 7:
            return [self.value(depth + 1) for _ in range(self.random.choice((0, 1, 3, 16)))]
        return {self.random.choice(("k%d", "é%d")) % i: self.value(depth + 1) for i in range(self.random.randrange(5))}

    def bytes(self):
        """Random bytes, most of them near to something valid."""
        if self.random.getrandbits(1):
            data = bytearray(pack(self.value()))
            for _ in range(self.random.randrange(1, 4)):
                data[self.random.randrange(len(data))] = self.random.getrandbits(8)
            return bytes(data)
        return bytes(self.random.getrandbits(8) for _ in range(self.random.randrange(60)))


class Randomised(unittest.TestCase):
    def test_round_trip(self):
        source = RandomValues(1)
        for _ in range(2000):
            value = source.value()
            encoded = pack(value)
            self.assertTrue(same(unpack(encoded), value))
            self.assertEqual(pack(unpack(encoded)), encoded)

    def test_arbitrary_bytes_give_a_value_or_a_codec_error(self):
        source = RandomValues(2)
        decoded = 0
        for _ in range(20_000):
            data = source.bytes()
            try:
                value = unpack(data)
            except CodecError:
                with self.assertRaises(CodecError):
                    unpack(data, fields=frozenset())
                continue
            decoded += 1
            self.assertTrue(same(unpack(pack(value)), value))
            unpack(data, fields=frozenset())
        self.assertGreater(decoded, 1000)


@unittest.skipUnless(msgpack, "the msgpack package is not installed")
class AgainstMsgpackPackage(unittest.TestCase):
    def from_package(self, value):
        if isinstance(value, msgpack.ExtType):
            return ExtType(value.code, value.data)
        if isinstance(value, msgpack.Timestamp):
            return Timestamp(value.seconds, value.nanoseconds)
        if isinstance(value, list):
            return [self.from_package(item) for item in value]
        if isinstance(value, dict):
            return {key: self.from_package(item) for key, item in value.items()}
        return value

    def to_package(self, value):
        if isinstance(value, ExtType):
            return msgpack.ExtType(*value)
        if isinstance(value, Timestamp):
            return msgpack.Timestamp(*value)
        if isinstance(value, list):
            return [self.to_package(item) for item in value]
        if isinstance(value, dict):
            return {key: self.to_package(item) for key, item in value.items()}
        return value

    def test_same_bytes(self):
        source = RandomValues(3)
        for _ in range(2000):
            value = source.value()
            self.assertEqual(pack(value), msgpack.packb(self.to_package(value)))

    def test_same_verdict_and_value_on_arbitrary_bytes(self):
        source = RandomValues(4)
        for _ in range(20_000):
            data = source.bytes()
            try:
                ours = unpack(data)
            except CodecError:
                ours = CodecError
            try:
                theirs = self.from_package(msgpack.unpackb(data, strict_map_key=True))
            except Exception:
                theirs = CodecError
            with self.subTest(data=data.hex()):
                self.assertTrue(same(ours, theirs) or ours is theirs is CodecError)


@unittest.skipUnless(VECTORS.exists(), "spec/vectors/codec/codec.jsonl is absent")
class Vectors(unittest.TestCase):
    """The part of the codec vectors that a plain msgpack reader and writer can answer."""

    @classmethod
    def setUpClass(cls):
        with open(VECTORS, encoding="utf-8") as lines:
            cls.vectors = [json.loads(line) for line in lines][1:]

    @staticmethod
    def whole_hex(vector):
        text = vector.get("hex")
        return bytes.fromhex(text) if text is not None and len(text) == 2 * vector.get("len", -1) else None

    def test_read(self):
        """A plain reader's verdict (`wire`), with the stricter rules for keys and extension codes on top."""
        checked = 0
        for vector in self.vectors:
            group = vector["id"].split("/")[0]
            data = self.whole_hex(vector)
            if vector["op"] != "unpack" or data is None or group not in ("unpack", "ext", "depth"):
                continue
            checked += 1
            with self.subTest(id=vector["id"]):
                if "error" in vector:
                    with self.assertRaises(CodecError):
                        unpack(data)
                else:
                    unpack(data)
        self.assertGreater(checked, 50)

    def test_write_what_was_read(self):
        """What upstream packed is in the shortest form already, so reading and writing it gives the same bytes."""
        checked = 0
        for vector in self.vectors:
            data = self.whole_hex(vector)
            if vector["op"] not in ("pack", "pack_frame") or data is None or "error" in vector:
                continue
            if vector["op"] == "pack_frame":
                self.assertEqual(int.from_bytes(data[:4], "little"), len(data) - 4)
                data = data[4:]
            if not data or "unpack_error" in vector:
                continue
            checked += 1
            with self.subTest(id=vector["id"]):
                self.assertEqual(pack(unpack(data)), data)
        self.assertGreater(checked, 100)


if __name__ == "__main__":
    unittest.main()
