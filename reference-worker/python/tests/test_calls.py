"""Calls on a real worker process: results, errors, cancel, concurrency, malformed frames."""

import os
import pathlib
import pickle
import random
import sys
import tempfile
import textwrap
import types
import unittest

from worker_process import WorkerProcess, pack, unpack
from agentix_worker import CodecError, ExtType

CANCELLED = {
    "type": "Cancelled",
    "message": "remote call cancelled",
    "traceback": None,
    "cancelled": True,
    "returncode": None,
}

USER_MODULE = '''
    import asyncio, contextvars, functools, os, threading, time

    barrier = threading.Barrier(4)
    entered = threading.Event()
    stopped = threading.Event()
    released = threading.Event()
    variable = contextvars.ContextVar("variable", default=0)
    lock = asyncio.Lock()
    loop_at_import = asyncio.get_event_loop()
    meeting = {}

    class Point:
        def __init__(self, x, y=0):
            self.x, self.y = x, y
        def __eq__(self, other):
            return (self.x, self.y) == (other.x, other.y)
        def method(self):
            return self.x
        async def __call__(self):
            return self.y

    class Evil(Exception):
        def __str__(self):
            raise SystemExit("no text")

    class Meta(type):
        @property
        def __name__(self):
            raise SystemExit("no name")
    class Nameless(Exception, metaclass=Meta):
        pass

    class Surrogate(Exception):
        def __str__(self):
            return "lone \\ud800 surrogate"

    class RaisesOnLoad:
        def __reduce__(self):
            return (_interrupt, ())

    class RaisesOnDump:
        def __reduce__(self):
            raise SystemExit(3)

    def _interrupt():
        raise KeyboardInterrupt("while loading")

    instance = Point(1, 2)
    named_lambda = lambda: "lambda"
    async def async_add(a, b):
        return a + b
    partial_async = functools.partial(async_add, 1)

    def returns_awaitable(value):
        return async_add(value, 1)

    def raises_evil(): raise Evil
    def raises_surrogate(): raise Surrogate
    def raises_nameless(): raise Nameless("text")
    async def raises_nameless_async(): raise Nameless("text")
    def raises_chained():
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error
    def raises_stop_iteration(): raise StopIteration("x")
    def raises_on_dump(): return RaisesOnDump()
    def recurse(n=0): return recurse(n + 1)
    def generator(): yield 1
    async def async_generator(): yield 1
    async def raises_in_async(): raise LookupError("async")
    def set_variable():
        seen = variable.get()
        variable.set(seen + 1)
        return seen
    async def set_variable_async():
        return set_variable()

    def all_four():
        return barrier.wait(timeout=20) >= 0

    async def meet(name, other):
        """Returns only when both calls run at the same time."""
        meeting.setdefault(name, asyncio.Event()).set()
        await asyncio.wait_for(meeting.setdefault(other, asyncio.Event()).wait(), 20)
        return name

    def loop_until_stopped():
        entered.set()
        try:
            while True:
                time.sleep(0.005)
        finally:
            stopped.set()
    def wait_entered(): return entered.wait(20)
    def wait_stopped(): return stopped.wait(20)

    def block_natively():
        """In one C function, which no exception can interrupt, until released."""
        entered.set()
        released.wait(60)
        return "late"
    def release(): released.set()

    async def use_lock():
        async with lock:
            return True

    async def knows_loop():
        return loop_at_import is asyncio.get_running_loop()

    async def wait_until_cancelled():
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async def stop_loop():
        asyncio.get_running_loop().stop()
        return "stopped"

    async def background_exit():
        async def quit():
            raise SystemExit(9)
        task = asyncio.ensure_future(quit())
        try:
            await task
        except SystemExit:
            pass
        return "alive"

    async def cancels_itself():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async def block_loop(path):
        open(path + ".in", "w").close()
        deadline = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.005)
        return os.path.exists(path)

    def thread_name(): return threading.current_thread().name
    def big(size): return bytes(size)
    def raises_big(size): raise ValueError("m" * size)
'''


class Case(unittest.TestCase):
    """One worker for each test; the user's module is in a folder of its own."""

    env = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "user.py").write_text(textwrap.dedent(USER_MODULE), encoding="utf-8")
        self.worker = WorkerProcess(self.folder, env=self.env)
        self.addCleanup(self.worker.close)
        self.assertEqual(self.worker.receive(), {"type": "ready"})

    def assert_alive(self):
        self.assertEqual(self.worker.result_of("alive", "conformance::echo", 1), 1)

    def assert_error(self, error, kind, trace):
        self.assertEqual(list(error), ["type", "message", "traceback", "cancelled", "returncode"])
        self.assertEqual(error["type"], kind)
        self.assertIs(error["cancelled"], False)
        self.assertIsNone(error["returncode"])
        self.assertIsInstance(error["message"], str)
        self.assertIsInstance(error["traceback"], str if trace else type(None))


class Results(Case):
    def test_sync_and_async_with_positional_and_keyword_arguments(self):
        arguments = self.worker.result_of("a", "conformance::arguments", 1, "b", x=[None])
        self.assertEqual(arguments, [[1, "b"], {"x": [None]}])
        self.assertEqual(self.worker.result_of("b", "conformance::echo_async", value=(1, 2)), (1, 2))
        self.assertEqual(self.worker.result_of("c", "user::async_add", 1, b=2), 3)

    def test_call_and_result_frames_as_recorded(self):
        (self.folder / "app.py").write_text("def add(a, b=10): return a + b", encoding="utf-8")
        self.worker.send_bytes(
            bytes.fromhex(
                "5200000085a474797065a463616c6ca763616c6c5f6964a161a863616c6c61626c65a86170703a3a616464"
                "a9617267756d656e7473c4168004950b000000000000004b014b0286947d9486942ea7636f6e74657874c0"
            )
        )
        self.assertEqual(
            pack(self.worker.receive()).hex(),
            "83a474797065a6726573756c74a763616c6c5f6964a161a576616c7565c40580044b032e",
        )

    def test_classes_travel_both_ways(self):
        self.assertEqual(self.worker.result_of("load", "user::Point.method", self.point(7)), 7)
        self.worker.call("dump", "user::Point", 3, y=4)
        value = self.worker.receive()["value"]
        self.assertIn(b"user", value)
        self.assertIn(b"Point", value)

    def point(self, x):
        """Pickles as an instance of the worker's class `user.Point`, which this process does not have."""

        class Reduced:
            def __reduce__(self):
                return (_named("user", "Point"), (x,))

        return Reduced()

    def test_async_by_any_route(self):
        self.assertEqual(self.worker.result_of("a", "user::partial_async", 2), 3)
        self.assertEqual(self.worker.result_of("b", "user::returns_awaitable", 2), 3)
        self.assertEqual(self.worker.result_of("c", "user::instance"), 2)

    def test_large_argument_and_result(self):
        data = bytes(range(256)) * 80_000
        self.assertEqual(self.worker.result_of("a", "conformance::echo", data), data)

    def test_module_level_asyncio_lock_belongs_to_the_loop(self):
        self.assertTrue(self.worker.result_of("a", "user::use_lock"))
        self.assertTrue(self.worker.result_of("b", "user::knows_loop"))

    def test_each_call_has_its_own_context(self):
        for call_id in "abc":
            self.assertEqual(self.worker.result_of(call_id, "user::set_variable"), 0)
            self.assertEqual(self.worker.result_of(call_id + "2", "user::set_variable_async"), 0)


def _named(module, name):
    """A class that pickles by the given name, whatever can be imported here."""
    holder = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(holder, name):
        setattr(holder, name, type(name, (), {"__module__": module}))
    return getattr(holder, name)


class Errors(Case):
    def test_raised_exception(self):
        error = self.worker.error_of("a", "conformance::fail", "boom")
        self.assert_error(error, "ValueError", trace=True)
        self.assertEqual(error["message"], "boom")
        self.assertIn("in fail\n", error["traceback"])
        self.assertNotIn("agentix_worker.py", error["traceback"])
        error = self.worker.error_of("b", "user::raises_in_async")
        self.assert_error(error, "LookupError", trace=True)
        self.assertIn("in raises_in_async\n", error["traceback"])
        self.assertNotIn("agentix_worker.py", error["traceback"])

    def test_cause_is_in_the_traceback(self):
        trace = self.worker.error_of("a", "user::raises_chained")["traceback"]
        self.assertIn("KeyError: 'first'", trace)
        self.assertIn("ValueError: second", trace)

    def test_base_exceptions_end_only_their_own_call(self):
        for kind in ("SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit"):
            for function in ("raise_base", "raise_base_async"):
                with self.subTest(kind=kind, function=function):
                    error = self.worker.error_of(kind + function, "conformance::" + function, kind)
                    self.assert_error(error, kind, trace=True)
        error = self.worker.error_of("self", "user::cancels_itself")
        self.assert_error(error, "CancelledError", trace=True)
        error = self.worker.error_of("stop", "user::raises_stop_iteration")
        self.assert_error(error, "StopIteration", trace=True)
        self.assert_alive()

    def test_message_that_cannot_be_made_or_encoded(self):
        self.assert_error(self.worker.error_of("a", "user::raises_evil"), "Evil", trace=True)
        error = self.worker.error_of("b", "user::raises_surrogate")
        self.assert_error(error, "Surrogate", trace=True)
        self.assertIn("\\ud800", error["message"])
        self.assert_error(self.worker.error_of("c", "user::raises_nameless"), "Nameless", trace=True)
        self.assert_error(self.worker.error_of("d", "user::raises_nameless_async"), "Nameless", trace=True)

    def test_endless_recursion(self):
        self.assert_error(self.worker.error_of("a", "user::recurse"), "RecursionError", trace=True)

    def test_results_without_a_pickle(self):
        for target in (
            "conformance::unpicklable",
            "user::generator",
            "user::async_generator",
            "user::raises_on_dump",
        ):
            with self.subTest(target=target):
                self.assert_error(self.worker.error_of(target, target), "ResultEncodeError", trace=False)

    def test_arguments_that_are_no_pair_of_args_and_kwargs(self):
        raises_on_load = b"\x80\x04cuser\n_interrupt\n)R."
        for number, arguments in enumerate(
            (
                b"",
                b"\x80",
                b"not a pickle",
                pickle.dumps(((1, 2), {}))[:-3],
                pickle.dumps(((1,), {}, 3)),
                pickle.dumps(((1,),)),
                pickle.dumps(((1, 2), None)),
                pickle.dumps(([1], {})),
                pickle.dumps((5, {})),
                pickle.dumps(((), {1: 2})),
                pickle.dumps([(), {}]),
                pickle.dumps(None),
                b"\x80\x04cno_such_module\nClass\n)R.",
                raises_on_load,
                b"\x80\x04]" + b"\x94]" * 100_000 + b".",
            )
        ):
            with self.subTest(number=number):
                self.worker.send(type="call", call_id="%d" % number, callable="user::thread_name", arguments=arguments)
                frame = self.worker.receive()
                self.assertEqual((frame["type"], frame["call_id"]), ("error", "%d" % number))
                self.assert_error(frame["error"], "ArgumentsDecodeError", trace=False)
                self.assertTrue(frame["error"]["message"].startswith("failed to unpickle arguments: "))

    def test_wrong_arguments_for_the_function(self):
        self.assert_error(self.worker.error_of("a", "conformance::pid", 1), "TypeError", trace=True)
        self.assert_error(self.worker.error_of("b", "conformance::sleep"), "TypeError", trace=True)

    def test_outcome_over_the_limit_fails_alone(self):
        self.worker.call("other", "user::meet", "left", "right")
        error = self.worker.error_of("a", "user::big", 268_435_456)
        self.assert_error(error, "FrameTooLarge", trace=False)
        error = self.worker.error_of("b", "user::raises_big", 268_435_456)
        self.assert_error(error, "FrameTooLarge", trace=False)
        self.worker.call("c", "user::meet", "right", "left")
        self.assertEqual(set(self.worker.receive_outcomes(2)), {"other", "c"})

    def test_loop_survives_what_background_tasks_do(self):
        self.assertEqual(self.worker.result_of("a", "user::background_exit"), "alive")
        self.assertEqual(self.worker.result_of("b", "user::stop_loop"), "stopped")
        self.assertEqual(self.worker.result_of("c", "conformance::echo_async", 2), 2)


class Concurrency(Case):
    env = {"AGENTIX_WORKER_THREADS": "4"}

    def test_sync_calls_run_at_the_same_time(self):
        for call_id in "abcd":
            self.worker.call(call_id, "user::all_four")
        self.assertEqual(set(self.worker.receive_outcomes(4)), set("abcd"))

    def test_async_calls_run_at_the_same_time_while_all_threads_are_blocked(self):
        for call_id in "wxyz":
            self.worker.call(call_id, "conformance::block", 60)
        self.worker.call("a", "user::meet", "a", "b")
        self.worker.call("b", "user::meet", "b", "a")
        self.assertEqual(set(self.worker.receive_outcomes(2)), {"a", "b"})
        self.worker.call("queued", "conformance::count", "queued")
        self.worker.cancel("queued")
        self.assertEqual(self.worker.receive()["error"], CANCELLED)
        for call_id in "wxyz":
            self.worker.cancel(call_id)
        self.assertEqual(set(self.worker.receive_outcomes(4)), set("wxyz"))
        self.assertEqual(self.worker.result_of("after", "conformance::counted", "queued"), 0)

    def test_blocked_event_loop_delays_neither_sync_calls_nor_cancel(self):
        release = str(self.folder / "release")
        self.worker.call("blocks", "user::block_loop", release)
        while not os.path.exists(release + ".in"):
            self.assertEqual(self.worker.result_of(os.urandom(8).hex(), "conformance::echo", 1), 1)
        self.worker.call("never starts", "conformance::sleep", 60)
        self.worker.cancel("never starts")
        self.assertEqual(self.worker.receive()["error"], CANCELLED)
        open(release, "w").close()
        self.assertEqual(pickle.loads(self.worker.receive()["value"]), True)

    def test_many_calls_each_get_one_outcome(self):
        for number in range(1000):
            self.worker.call("%d" % number, "conformance::" + ("echo", "echo_async")[number % 2], number)
        for call_id, frame in self.worker.receive_outcomes(1000).items():
            self.assertEqual(pickle.loads(frame["value"]), int(call_id))


class ThreadCount(unittest.TestCase):
    def test_default_where_the_setting_is_no_positive_number(self):
        for setting in ("", "0", "-3", "many", "1.5"):
            with self.subTest(setting=setting), WorkerProcess(env={"AGENTIX_WORKER_THREADS": setting}) as worker:
                worker.receive()
                for number in range(32):
                    worker.call("%d" % number, "conformance::count", "all")
                worker.receive_outcomes(32)
                self.assertEqual(worker.result_of("a", "conformance::counted", "all"), 32)


class Cancel(Case):
    def test_async(self):
        self.worker.call("a", "conformance::sleep", 60)
        self.worker.cancel("a")
        self.assertEqual(self.worker.receive(), {"type": "error", "call_id": "a", "error": CANCELLED})
        self.assert_alive()

    def test_cancelled_frame_as_recorded(self):
        """Byte for byte, by the length and the order of keys."""
        self.worker.call("a", "conformance::sleep", 60)
        self.worker.cancel("a")
        frame = self.worker.receive()
        self.assertEqual(
            pack(frame).hex(),
            "83a474797065a56572726f72a763616c6c5f6964a161a56572726f7285a474797065a943616e63656c6c6564"
            "a76d657373616765b572656d6f74652063616c6c2063616e63656c6c6564"
            "a974726163656261636bc0a963616e63656c6c6564c3aa72657475726e636f6465c0",
        )

    def assert_stopped_by_cancel(self, target):
        self.worker.call("a", target)
        self.assertTrue(self.worker.result_of("b", "user::wait_entered"))
        self.worker.cancel("a")
        self.assertEqual(self.worker.receive(), {"type": "error", "call_id": "a", "error": CANCELLED})
        self.assertTrue(self.worker.result_of("c", "user::wait_stopped"))

    def test_async_target_is_stopped_and_cleans_up(self):
        self.assert_stopped_by_cancel("user::wait_until_cancelled")

    def test_sync_python_loop_is_stopped_and_cleans_up(self):
        self.assert_stopped_by_cancel("user::loop_until_stopped")

    def test_what_cannot_be_stopped_is_reported_and_its_result_dropped(self):
        self.worker.call("a", "user::block_natively")
        self.assertTrue(self.worker.result_of("b", "user::wait_entered"))
        self.worker.cancel("a")
        self.assertEqual(self.worker.receive(), {"type": "error", "call_id": "a", "error": CANCELLED})
        self.worker.wait_for_line("'a'", "still runs")
        self.assertIsNone(self.worker.result_of("c", "user::release"))
        for number in range(100):  # no late frame between, and the thread is sound
            self.assertEqual(self.worker.result_of("%d" % number, "conformance::echo", number), number)

    def test_one_terminal_frame_from_a_target_that_swallows_cancellation(self):
        self.worker.call("a", "conformance::stubborn", 60)
        self.worker.cancel("a")
        self.worker.cancel("a")
        self.assertEqual(self.worker.receive(), {"type": "error", "call_id": "a", "error": CANCELLED})
        self.assert_alive()

    def test_unknown_and_finished_ids_are_silence(self):
        self.worker.cancel("never")
        self.assertEqual(self.worker.result_of("a", "conformance::echo", 1), 1)
        self.worker.cancel("a")
        self.worker.cancel("")
        self.worker.send(type="cancel")
        self.worker.send(type="cancel", call_id=5)
        self.assert_alive()

    def test_cancel_before_the_call_cancels_nothing(self):
        self.worker.cancel("a")
        self.assertEqual(self.worker.result_of("a", "conformance::echo", 1), 1)

    def test_cancel_at_any_moment_hits_no_other_call(self):
        """Races of cancel with the end of a call: one outcome each, and the threads stay sound."""
        expected = set()
        for number in range(600):
            self.worker.call("r%d" % number, "conformance::block", (number % 5) / 2000)
            self.worker.call("k%d" % number, "conformance::echo", number)
            self.worker.cancel("r%d" % number)
            expected |= {"r%d" % number, "k%d" % number}
        outcomes = self.worker.receive_outcomes(1200)
        self.assertEqual(set(outcomes), expected)
        for number in range(600):
            kept = outcomes["k%d" % number]
            self.assertEqual(kept["type"], "result", kept)
            self.assertEqual(pickle.loads(kept["value"]), number)
            raced = outcomes["r%d" % number]
            self.assertTrue(raced["type"] == "result" or raced["error"] == CANCELLED, raced)
        for number in range(64):
            self.assertEqual(self.worker.result_of("after%d" % number, "conformance::echo", number), number)


class Frames(Case):
    def test_repeated_id_never_runs(self):
        self.assertEqual(self.worker.result_of("a", "conformance::count", "k"), 1)
        self.worker.call("a", "conformance::count", "k")
        self.worker.call("slow", "conformance::count_slow", "k", 0.01)
        self.worker.call("slow", "conformance::count_slow", "k", 0.01)
        self.assertEqual(self.worker.receive()["call_id"], "slow")
        self.worker.call("x", "conformance::sleep", 60)
        self.worker.cancel("x")
        self.assertEqual(self.worker.receive()["error"], CANCELLED)
        self.worker.call("x", "conformance::count", "k")
        self.worker.wait_for_line("'x'", "used before")
        self.assertEqual(self.worker.result_of("b", "conformance::counted", "k"), 2)

    def test_malformed_repeat_of_a_running_call_gives_no_outcome(self):
        self.worker.call("a", "user::meet", "a", "b")
        self.worker.send(type="call", call_id="a")
        self.worker.call("b", "user::meet", "b", "a")
        for frame in self.worker.receive_outcomes(2).values():
            self.assertEqual(frame["type"], "result")

    def test_malformed_fields(self):
        good = {"type": "call", "callable": "conformance::pid", "arguments": pickle.dumps(((), {})), "context": None}
        for number, (field, value) in enumerate(
            [("callable", missing) for missing in (None, 5, b"conformance::pid", [], ...)]
            + [("arguments", missing) for missing in (None, 5, "text", {}, ...)]
            + [("context", wrong) for wrong in (5, "text", [], {})]
        ):
            frame = dict(good, call_id="%d" % number)
            if value is ...:
                del frame[field]
            else:
                frame[field] = value
            with self.subTest(field=field, value=value):
                self.worker.send(**frame)
                answer = self.worker.receive()
                self.assertEqual((answer["type"], answer["call_id"]), ("error", "%d" % number))
                self.assert_error(answer["error"], "BadRequest", trace=False)
                self.assertIn(field, answer["error"]["message"])

    def test_context_and_unknown_keys_are_accepted(self):
        for number, context in enumerate((None, b"", b"anything")):
            self.worker.send(
                type="call",
                call_id="%d" % number,
                callable="conformance::echo",
                arguments=pickle.dumps(((1,), {})),
                context=context,
                more=[{"a": 1}],
            )
            self.assertEqual(self.worker.receive()["type"], "result")

    def test_invalid_call_id(self):
        for call_id in (..., None, 5, b"bytes", "", "x" * 129, "π" * 65, []):
            frame = {"type": "call", "callable": "conformance::pid", "arguments": pickle.dumps(((), {}))}
            if call_id is not ...:
                frame["call_id"] = call_id
            with self.subTest(call_id=call_id):
                self.worker.send(**frame)
                answer = self.worker.receive()
                self.assertEqual((answer["type"], answer["call_id"]), ("error", ""))
                self.assert_error(answer["error"], "BadRequest", trace=False)
        for call_id in ("x" * 128, "π" * 64, "\0\n ☃"):
            self.assertEqual(self.worker.result_of(call_id, "conformance::echo", 1), 1)

    def test_bodies_that_are_lost_alone(self):
        for body in ("90", "c0", "05", "c1", "8000", "810102", "a161", "81a1ff01", "91" * 100_000, "dfffffffff"):
            with self.subTest(body=body[:20]):
                self.worker.send_body(bytes.fromhex(body))
        self.assert_alive()
        lost = [line for line in self.worker.lines() if "is lost" in line]
        self.assertEqual(len(lost), 10)

    def test_frames_without_meaning_here(self):
        self.worker.send_bytes(bytes(4))
        self.worker.send(type="nonsense", x=1)
        self.worker.send(type="nonsense\nforged line")
        self.worker.send(call_id="x")
        self.worker.send(type=5)
        self.worker.send(type=["call"])
        self.worker.send()
        self.worker.send(type="ready")
        self.worker.send(type="sio_inbound", namespace="/nowhere", event="x", data=1)
        self.worker.send(type="sio_inbound", namespace=5)
        deep = b"\x82\xa4type\xabsio_inbound\xa9namespace" + b"\x91" * 1023 + b"\xc0"
        self.worker.send_body(deep)
        self.worker.send(type="x" * 1_000_000)
        self.assert_alive()
        lines = self.worker.lines()
        self.assertEqual(sum("unknown type" in line for line in lines), 4)
        self.assertEqual(sum("without a type" in line for line in lines), 4)
        self.assertEqual(sum("it is not open" in line for line in lines), 3)
        self.assertTrue(all(line.startswith("agentix-worker: ") and len(line) < 300 for line in lines), lines)

    def test_random_frames(self):
        """Whatever comes: the worker lives, and each call that was whole gets its one outcome."""
        source = random.Random(5)
        good = {"callable": "conformance::echo", "arguments": pickle.dumps(((1,), {})), "context": None}
        valid = set()
        for number in range(3000):
            frame = {"type": source.choice(("call", "cancel", "sio_inbound", "ready")), "call_id": "r%d" % number}
            frame.update((key, good[key]) for key in good if source.random() < 0.9)
            for key in source.sample(sorted(frame), source.choice((0, 0, 1))):
                frame[key] = source.choice((None, 1.5, [], {"a": [{}]}, b"\xff", "", "x" * 300, ExtType(5, b""), -1))
            body = bytearray(pack(frame))
            if source.random() < 0.5:
                body[source.randrange(len(body))] = source.getrandbits(8)
            try:
                meant = unpack(body)
            except CodecError:
                meant = None
            if isinstance(meant, dict) and meant.get("arguments", good["arguments"]) != good["arguments"]:
                continue  # a damaged pickle may name anything
            self.worker.send_body(bytes(body))
            if number % 50 == 0:
                valid.add("v%d" % number)
                self.worker.call("v%d" % number, "conformance::echo", number)
        self.worker.call("last", "conformance::echo", 0)
        outcomes = []
        while not valid <= set(outcomes) or "last" not in outcomes:
            outcomes.append(self.worker.receive()["call_id"])
        self.worker.end_input()
        self.assertEqual(self.worker.wait(), 0)
        outcomes += [frame["call_id"] for frame in iter(self.worker.receive, None)]
        named = [call_id for call_id in outcomes if call_id]  # "" answers calls without a valid id
        self.assertEqual(len(named), len(set(named)))

    def test_frames_split_anywhere(self):
        body = pack(
            {
                "type": "call",
                "call_id": "split",
                "callable": "conformance::echo",
                "arguments": pickle.dumps(((1,), {})),
                "context": None,
            }
        )
        for byte in len(body).to_bytes(4, "little") + body:
            self.worker.send_bytes(bytes((byte,)))
        self.assertEqual(self.worker.receive()["call_id"], "split")


if __name__ == "__main__":
    unittest.main()
