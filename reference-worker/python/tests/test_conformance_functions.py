"""The functions offered to the conformance suite, on a real worker, as `spec/prose/functions.md` has them."""

import pathlib
import re
import unittest

import conformance
from worker_process import WorkerProcess

PROSE = pathlib.Path(__file__).resolve().parents[3] / "spec" / "prose" / "functions.md"


class Functions(unittest.TestCase):
    def setUp(self):
        self.worker = WorkerProcess()
        self.addCleanup(self.worker.close)
        self.assertEqual(self.worker.receive(), {"type": "ready"})

    def result(self, name, *args, **kwargs):
        self.number = getattr(self, "number", 0) + 1
        return self.worker.result_of("%d" % self.number, "conformance::" + name, *args, **kwargs)

    def error(self, name, *args, **kwargs):
        self.number = getattr(self, "number", 0) + 1
        return self.worker.error_of("%d" % self.number, "conformance::" + name, *args, **kwargs)

    def test_values(self):
        value = {"z": [1, (2.5, None)], "a": b"x", "π": True, "big": -(2**200)}
        for name in ("echo", "echo_async"):
            echoed = self.result(name, value)
            self.assertEqual(echoed, value)
            self.assertEqual(list(echoed), list(value))
            self.assertIsInstance(echoed["z"][1], tuple)
        self.assertEqual(self.result("arguments"), [[], {}])
        self.assertEqual(self.result("arguments", 1, (2,), b=3, a=4), [[1, (2,)], {"b": 3, "a": 4}])
        self.assertEqual(self.result("total", [1, -2, 2**40]), 2**40 - 1)
        self.assertEqual(self.result("total", []), 0)
        for size in (0, 1, 250, 251, 252, 1000):
            self.assertEqual(self.result("blob", size), bytes(i % 251 for i in range(size)))
        for depth, expected in ((0, None), (1, [None]), (3, [[[None]]])):
            self.assertEqual(self.result("nested", depth), expected)
        self.assertEqual(self.result("pid"), self.worker.pid)
        for name in ("sleep", "block"):
            slept = self.result(name, 0)
            self.assertEqual((slept, type(slept)), (0.0, float))
            self.assertEqual(self.result(name, 0.02), 0.02)

    def test_unicode(self):
        text = self.result("unicode")
        self.assertEqual(len(text), 12)
        self.assertEqual(text.encode("utf-8").hex(), "4100c3a965cc81cf80e6a8a1e280a8efbbbff09f9880f09d958ff48fbfbf")

    def test_counters(self):
        self.assertEqual(self.result("counted", "k"), 0)
        self.assertEqual(self.result("count", "k"), 1)
        self.assertEqual(self.result("count_slow", "k", 0.01), 2)
        self.assertEqual(self.result("count", "other"), 1)
        self.assertEqual(self.result("counted", "k"), 2)

    def test_errors(self):
        for name in ("fail", "fail_async"):
            error = self.error(name, "text")
            self.assertEqual((error["type"], error["message"]), ("ValueError", "text"))
            self.assertIn("fail", error["traceback"])
        for name in ("raise_base", "raise_base_async"):
            error = self.error(name, "SystemExit")
            self.assertEqual((error["type"], error["message"]), ("SystemExit", "raised by the target"))
        self.assertEqual(self.error("unpicklable")["type"], "ResultEncodeError")
        self.assertEqual(self.error("print_text", "x", "nowhere")["type"], "ValueError")

    def test_refused_names_the_global(self):
        self.worker.call("r", "conformance::refused")
        value = self.worker.receive()["value"]
        self.assertEqual(value.hex(), "80049516000000000000008c086275696c74696e73948c057072696e749493942e")

    def test_output(self):
        self.assertIsNone(self.result("print_text", "one", "stdout"))
        self.assertIsNone(self.result("print_text", "two", "stderr"))
        self.assertEqual(self.result("print_child", "three é"), 0)
        for line in ("one", "two", "three é"):
            self.worker.wait_for_line(line)

    @unittest.skipUnless(PROSE.exists(), "spec/prose/functions.md is absent")
    def test_prose_and_module_name_the_same_functions(self):
        named = re.findall(r"^\| `(\w+)` \|", PROSE.read_text(encoding="utf-8"), re.MULTILINE)
        offered = [
            name for name, item in vars(conformance).items()
            if callable(item) and item.__module__ == "conformance" and not name.startswith("_")
        ]
        self.assertEqual(sorted(named), sorted(offered))


if __name__ == "__main__":
    unittest.main()
