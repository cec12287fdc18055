"""What target strings resolve to: the recorded vectors, with the grammar of the specification on top."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from worker_process import PYTHON_DIR, WORKER, WorkerProcess

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "spec" / "vectors" / "target" / "target.jsonl"

# Vectors that hold for the process in which they were recorded only.
NOT_HERE = {"resolve/178": "a function of the recording program"}

MODULES = {
    "app.py": '''
        import functools, math, os
        from math import sqrt
        CONST = 5
        def add(a, b=10): return a + b
        async def add_async(a, b): return a + b
        def gen(): yield 1
        async def agen(n): yield n
        lam = lambda x: x
        class Cls:
            def method(self): return 1
            def __call__(self): return 0
            @staticmethod
            def smeth(): return 2
            @classmethod
            def cmeth(cls): return 3
            class Inner:
                @staticmethod
                def deep(): return 4
        instance = Cls()
        partial_add = functools.partial(add, 1)
        @functools.lru_cache(maxsize=None)
        def cached(): return 5
        alias = add
        def make_nested():
            def nested(): return 6
            return nested
        nested = make_nested()
        def unicode_id_π(): return 7
    ''',
    "pkg/__init__.py": "CONST = 1\ndef top(): pass",
    "pkg/sub.py": '''
        def f(): pass
        class C:
            @staticmethod
            def g(): pass
    ''',
    "boom_import.py": "raise RuntimeError('import-time failure')",
}

# Runs in a process of its own: reads targets as JSON, writes what each resolves to.
RESOLVER = '''
    import importlib, json, sys
    sys.path[:0] = sys.argv[1:]
    from agentix_worker import resolve
    importlib.import_module("pkg.sub")
    def outcome(target):
        try:
            found = resolve(target)
        except Exception as error:
            return {"error": type(error).__name__}
        kind, module = type(found).__name__, getattr(found, "__module__", None)
        return {"kind": kind, "module": module, "qualname": getattr(found, "__qualname__", None)}
    print(json.dumps([outcome(target) for target in json.load(sys.stdin)]))
'''


def breaks_grammar(target):
    parts = target.split("::")
    return len(parts) != 2 or not all(name.isidentifier() for part in parts for name in part.split("."))


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path.parent


class Resolve(Folder):
    def outcomes(self, targets):
        for name, text in MODULES.items():
            self.write(name, text)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(RESOLVER), str(self.folder), str(PYTHON_DIR)],
            input=json.dumps(targets),
            stdout=subprocess.PIPE,
            universal_newlines=True,
            check=True,
        )
        return json.loads(done.stdout)

    @unittest.skipUnless(VECTORS.exists(), "spec/vectors/target/target.jsonl is absent")
    def test_vectors(self):
        with open(VECTORS, encoding="utf-8") as lines:
            vectors = [json.loads(line) for line in lines]
        vectors = [v for v in vectors if v.get("op") == "resolve" and v["id"] not in NOT_HERE]
        self.assertGreater(len(vectors), 80)
        for vector, outcome in zip(vectors, self.outcomes([vector["target"] for vector in vectors])):
            with self.subTest(id=vector["id"], target=vector["target"]):
                if breaks_grammar(vector["target"]):
                    self.assertEqual(outcome, {"error": "ValueError"})
                elif "error" in vector:
                    self.assertEqual(outcome, {"error": vector["error"]["type"]})
                elif vector["resolved"]["kind"] == "partial":  # its __module__ depends on the version of Python
                    self.assertEqual(outcome["kind"], "partial")
                else:
                    self.assertEqual(outcome, vector["resolved"])

    def test_broken_texts(self):
        texts = ["", "app", "::", "app::", "::add", "app::a::b", "app:::add", "app:add", ".pkg::top", "app::add."]
        texts += [" app::add", "app::add\n", "app\0::add", "5::f", "a/b::c"]
        texts += ["app::<lambda>", "app::make_nested.<locals>.nested"]
        self.assertEqual(self.outcomes(texts), [{"error": "ValueError"}] * len(texts))

    def test_length(self):
        fits = "app::" + "x" * (1024 - len("app::"))
        self.assertEqual(self.outcomes([fits, fits + "x"]), [{"error": "AttributeError"}, {"error": "ValueError"}])


class OverThePipe(Folder):
    def start(self, *paths, **options):
        worker = WorkerProcess(*paths, **options)
        self.addCleanup(worker.close)
        self.assertEqual(worker.receive(), {"type": "ready"})
        return worker

    def test_errors_carry_type_and_traceback(self):
        self.write("boom_import.py", "def deep():\n    raise RuntimeError('x')\ndeep()")
        worker = self.start(self.folder)
        for target, kind, trace in (
            ("boom_import::f", "RuntimeError", "in deep\n"),
            ("nowhere::f", "ModuleNotFoundError", "Traceback"),
            ("conformance::nothing", "AttributeError", "Traceback"),
            ("conformance::_counters", "TypeError", "Traceback"),
            ("conformance", "ValueError", "Traceback"),
        ):
            with self.subTest(target=target):
                error = worker.error_of(target, target)
                self.assertEqual((error["type"], error["cancelled"], error["returncode"]), (kind, False, None))
                self.assertIn(trace, error["traceback"])

    def test_module_written_after_the_start_is_found(self):
        worker = self.start(self.folder)
        self.assertEqual(worker.error_of("a", "late::f")["type"], "ModuleNotFoundError")
        self.write("late.py", "def f(): return 1")
        self.assertEqual(worker.result_of("b", "late::f"), 1)

    def test_order_of_the_import_path(self):
        folders = [self.write("%s/where.py" % name, "def f(): return %r" % name) for name in "abcd"]
        env = {"AGENTIX_PATH": ":%s::%s" % (folders[2], folders[3]), "PYTHONPATH": str(folders[3])}
        self.assertEqual(self.start(folders[0], folders[1], env=env).result_of("a", "where::f"), "a")
        self.assertEqual(self.start(folders[1], folders[0], env=env).result_of("a", "where::f"), "b")
        self.assertEqual(self.start(env=env).result_of("a", "where::f"), "c")
        self.assertEqual(self.start(env={"PYTHONPATH": str(folders[3])}).result_of("a", "where::f"), "d")

    def test_shadowing_a_module_of_the_interpreter(self):
        folder = self.write("colorsys.py", "def f(): return 'mine'")
        self.assertEqual(self.start(folder).result_of("a", "colorsys::f"), "mine")

    def test_relative_folder_outlives_a_change_of_directory(self):
        folder = self.write("here/where.py", "def f(): return 1")
        worker = self.start(os.path.relpath(folder))
        self.assertIsNone(worker.result_of("a", "os::chdir", "/"))
        self.assertEqual(worker.result_of("b", "where::f"), 1)

    def test_folder_of_the_script_is_not_searched(self):
        """The harness names that folder with --path; here only its copy in another place runs."""
        copy = self.folder / "agentix_worker.py"
        shutil.copy(WORKER, copy)
        self.write("beside.py", "def f(): return 1")
        worker = self.start(script=copy)
        self.assertEqual(worker.error_of("a", "beside::f")["type"], "ModuleNotFoundError")

    def test_missing_folder_is_reported(self):
        worker = self.start(self.folder / "missing")
        worker.wait_for_line("missing", "does not exist")


if __name__ == "__main__":
    unittest.main()
