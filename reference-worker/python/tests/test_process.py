"""Life and death of the worker process: descriptors, captured output, children, shutdown, signals."""

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from worker_process import TIMEOUT, WORKER, WorkerProcess, pack

USER_MODULE = '''
    import asyncio, atexit, ctypes, hashlib, logging, multiprocessing, os, signal, subprocess, sys, threading, time

    def print_and_wait(text, path):
        print(text)
        deadline = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.005)
        return os.path.exists(path)
    def print_partial(text):
        sys.stdout.write(text)
    def write_fd(fd, data):
        return os.write(fd, data)
    def print_in_c(text):
        ctypes.CDLL(None).puts(text)
    async def shell_async(command):
        process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return [out, process.returncode]
    signals = []
    async def handle_signal(number):
        signal.signal(number, lambda number, frame: signals.append(number))
    def received(): return signals
    async def default_signal(number):
        signal.signal(number, signal.SIG_DFL)
    def break_writing():
        os.write = None
    def read_stdin():
        return [sys.stdin.read(), os.read(0, 10)]
    def shell(command):
        return subprocess.run(["sh", "-c", command]).returncode
    def log_warning(text):
        logging.getLogger("user").warning(text)

    def pipes():
        """The descriptors of this process that are pipes, beyond the standard ones."""
        return sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and _is_pipe(fd))
    def _is_pipe(fd):
        try:
            return os.readlink("/proc/self/fd/%d" % fd).startswith("pipe:")
        except OSError:
            return False
    def pipes_of_child():
        program = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd') if int(f) > 2))"
        fds = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, close_fds=False).stdout
        return eval(fds)
    def pipes_of_fork(queue_end=None):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, repr(pipes()).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        found = eval(os.read(read, 10000))
        os.close(read), os.close(write)
        return [fd for fd in found if fd not in (read, write)]

    def fork_twice():
        """The child opens files, which get the numbers of the descriptors it gave up, and its child uses them."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            files = [open(os.devnull, "rb", buffering=0) for _ in range(20)]
            grandchild = os.fork()
            if grandchild == 0:
                os.write(write, repr([file.read() for file in files]).encode())
                os._exit(0)
            os._exit(os.WEXITSTATUS(os.waitpid(grandchild, 0)[1]))
        status = os.waitpid(pid, 0)[1]
        os.close(write)
        with open(read, "rb") as pipe:
            return [pipe.read(), status]

    def fork_and_return(code):
        pid = os.fork()
        if pid == 0:
            if code is None:
                return "child"
            if code < 0:
                raise ValueError("child")
            sys.exit(code)
        return os.WEXITSTATUS(os.waitpid(pid, 0)[1])
    async def fork_in_async(code):
        return fork_and_return(code)
    def fork_sleeper():
        """A forked child that is ended by SIGTERM, as a child without handlers is."""
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(3)
        os.kill(pid, 15)
        return os.WTERMSIG(os.waitpid(pid, 0)[1])

    def _square(queue, n):
        print("in the child")
        queue.put(n * n)
    def in_process(method, n):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=_square, args=(queue, n))
        process.start()
        value = queue.get(timeout=20)
        process.join(20)
        return [value, process.exitcode]

    def leave_child(seconds):
        return subprocess.Popen(["sleep", str(seconds)]).pid

    def ignore_interrupts(path):
        while True:
            try:
                open(path, "w").close()
                while True:
                    time.sleep(0.005)
            except BaseException:
                pass
    async def swallow_forever(path):
        while True:
            try:
                open(path, "w").close()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
    async def block_loop(path):
        print("no end of line", end="")
        open(path, "w").close()
        time.sleep(60)
    async def block_loop_natively(path):
        """In one C function that gives up the interpreter lock and looks at no signal."""
        open(path, "w").close()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
    async def returns_when_cancelled(started):
        open(started, "w").close()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "anyway"
    async def cleans_up(started, path):
        open(started, "w").close()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            open(path, "w").close()
    def sync_cleans_up(started, path):
        try:
            open(started, "w").close()
            while True:
                time.sleep(0.005)
        finally:
            open(path, "w").close()
    def at_exit(path):
        atexit.register(lambda: open(path, "w").close())
    def non_daemon_thread():
        threading.Thread(target=time.sleep, args=(60,)).start()
    def start_daemon_printer():
        def run():
            while True:
                print("noise")
        threading.Thread(target=run, daemon=True).start()
'''


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "user.py").write_text(textwrap.dedent(USER_MODULE), encoding="utf-8")

    def start(self, **options):
        worker = WorkerProcess(self.folder, **options)
        self.addCleanup(worker.close)
        self.assertEqual(worker.receive(), {"type": "ready"})
        return worker

    def path(self, name):
        return str(self.folder / name)

    def wait_for_file(self, name):
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(self.path(name)):
            self.assertLess(time.monotonic(), deadline, "no file %s" % name)
            time.sleep(0.005)

    def assert_ended(self, pid):
        """That a process which is no child of this one ends (or is a zombie that nobody has waited for)."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                state = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return
            if state == "Z":
                return
            self.assertLess(time.monotonic(), deadline, "process %d lives on" % pid)
            time.sleep(0.01)


class Descriptors(Case):
    def test_all_output_goes_to_standard_error_and_none_to_the_pipe(self):
        worker = self.start()
        worker.result_of("a", "conformance::print_text", "to stdout π😀", "stdout")
        worker.result_of("b", "conformance::print_text", "to stderr", "stderr")
        self.assertEqual(worker.result_of("c", "conformance::print_child", "from a child"), 0)
        self.assertEqual(worker.result_of("d", "user::write_fd", 1, b"\x10\x00\x00\x00 to fd 1\n"), 13)
        worker.result_of("e", "user::log_warning", "a warning")
        worker.result_of("f", "conformance::print_text", "lone \ud800 surrogate", "stdout")
        for part in ("to stdout π😀", "to stderr", "from a child", " to fd 1", "a warning", "lone \\ud800 surrogate"):
            worker.wait_for_line(part)

    def test_printed_lines_come_out_before_the_call_ends(self):
        worker = self.start()
        worker.call("a", "user::print_and_wait", "promptly", self.path("go on"))
        worker.wait_for_line("promptly")
        open(self.path("go on"), "w").close()
        self.assertEqual(pickle.loads(worker.receive()["value"]), True)

    def test_output_is_utf_8_in_a_posix_locale(self):
        worker = self.start(env={"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
        worker.result_of("a", "conformance::print_text", "π😀", "stdout")
        worker.wait_for_line("π😀")

    def test_partial_line_comes_out_at_the_end(self):
        worker = self.start()
        worker.result_of("a", "user::print_partial", "no newline")
        worker.end_input()
        self.assertEqual(worker.wait(), 0)
        worker.wait_for_line("no newline")

    def test_partial_line_of_a_blocked_main_thread_comes_out_at_the_end(self):
        worker = self.start()
        worker.call("a", "user::block_loop", self.path("in"))
        self.wait_for_file("in")
        worker.end_input()
        self.assertEqual(worker.wait(), 0)
        worker.wait_for_line("no end of line")

    def test_output_of_c_code_comes_out_at_the_end(self):
        worker = self.start()
        worker.result_of("a", "user::print_in_c", b"from C")
        worker.end_input()
        self.assertEqual(worker.wait(), 0)
        worker.wait_for_line("from C")

    def test_a_worker_that_cannot_write_ends_instead_of_staying_mute(self):
        worker = self.start()
        worker.call("a", "user::break_writing")
        self.assertEqual(worker.wait(), 1)

    def test_standard_input_is_empty(self):
        worker = self.start()
        self.assertEqual(worker.result_of("a", "user::read_stdin"), ["", b""])
        self.assertEqual(worker.result_of("b", "user::shell", "read line && exit 1; exit 7"), 7)

    @unittest.skipUnless(os.path.isdir("/proc/self/fd"), "no /proc")
    def test_children_get_no_control_descriptor(self):
        worker = self.start()
        self.assertGreaterEqual(len(worker.result_of("own", "user::pipes")), 2)
        listing_descriptor = 1  # the child's own view of its directory of descriptors
        self.assertLessEqual(len(worker.result_of("a", "user::pipes_of_child")), listing_descriptor)
        self.assertEqual(worker.result_of("b", "user::pipes_of_fork"), [])

    def test_pipes_that_do_not_block(self):
        """Such as a runtime may hand over by mistake: the flag belongs to the pipe, not to the process."""
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        for fd in (read_in, write_out):
            os.set_blocking(fd, False)
        process = subprocess.Popen([sys.executable, str(WORKER)], stdin=read_in, stdout=write_out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(read_in)
        os.close(write_out)
        with open(write_in, "wb") as to_worker, open(read_out, "rb") as from_worker:
            self.assertEqual(len(from_worker.read(16)), 16)
            arguments = pickle.dumps(((b"x" * 1_000_000, 3), {}))
            body = pack({"type": "call", "call_id": "a", "callable": "operator::mul", "arguments": arguments})
            to_worker.write(len(body).to_bytes(4, "little") + body)
            to_worker.flush()
            length = int.from_bytes(from_worker.read(4), "little")
            self.assertGreater(length, 3_000_000)
            self.assertEqual(len(from_worker.read(length)), length)
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_started_without_standard_error(self):
        done = subprocess.run(
            ["sh", "-c", 'exec "$0" "$1" 2>&-', sys.executable, str(WORKER)],
            input=b"",
            stdout=subprocess.PIPE,
            timeout=TIMEOUT,
        )
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.hex(), "0c00000081a474797065a57265616479")

    def test_started_without_standard_output(self):
        done = subprocess.run(
            ["sh", "-c", 'exec "$0" "$1" >&-', sys.executable, str(WORKER)],
            input=b"",
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_wrong_command_line(self):
        done = subprocess.run([sys.executable, str(WORKER), "--nonsense"], input=b"", stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)


class Children(Case):
    def test_forked_child_that_comes_back_is_no_second_worker(self):
        worker = self.start()
        for function in ("fork_and_return", "fork_in_async"):
            for code, status in ((None, 0), (5, 5), (-1, 1)):
                with self.subTest(function=function, code=code):
                    self.assertEqual(worker.result_of("%s %s" % (function, code), "user::" + function, code), status)
        self.assertEqual(worker.result_of("alive", "conformance::echo", 1), 1)

    def test_child_of_a_forked_child_keeps_its_descriptors(self):
        worker = self.start()
        self.assertEqual(worker.result_of("a", "user::fork_twice"), [repr([b""] * 20).encode(), 0])

    def test_signal_to_a_forked_child_ends_the_child_alone(self):
        worker = self.start()
        self.assertEqual(worker.result_of("a", "user::fork_sleeper"), signal.SIGTERM)
        self.assertEqual(worker.result_of("alive", "conformance::echo", 1), 1)

    def test_multiprocessing(self):
        worker = self.start()
        for method in ("spawn", "fork", "forkserver"):
            with self.subTest(method=method):
                self.assertEqual(worker.result_of(method, "user::in_process", method, 7), [49, 0])
        worker.wait_for_line("in the child")

    def test_subprocess_of_asyncio(self):
        worker = self.start()
        self.assertEqual(worker.result_of("a", "user::shell_async", "echo out; exit 3"), [b"out\n", 3])

    def test_signals_that_the_user_handles_do_not_stop_the_worker(self):
        worker = self.start()
        self.assertIsNone(worker.result_of("a", "user::handle_signal", int(signal.SIGUSR1)))
        self.assertIsNone(worker.result_of("b", "conformance::signal", int(signal.SIGUSR1)))
        self.assertEqual(worker.result_of("c", "user::received"), [signal.SIGUSR1])

    @unittest.skipUnless(os.path.isdir("/proc/self"), "no /proc")
    def test_group_leader_ends_the_children_it_leaves(self):
        for end in ("end_input", "SIGTERM", "shutdown"):
            with self.subTest(end=end):
                worker = self.start(own_group=True, stderr=subprocess.DEVNULL)
                child = worker.result_of("a", "user::leave_child", 600)
                if end == "end_input":
                    worker.end_input()
                elif end == "SIGTERM":
                    os.kill(worker.pid, signal.SIGTERM)
                else:
                    worker.send(type="shutdown")
                self.assertEqual(worker.wait(), 0)
                self.assert_ended(child)

    def test_group_leader_survives_its_own_signal_to_the_group(self):
        worker = self.start(own_group=True)
        self.assertIsNone(worker.result_of("a", "user::default_signal", int(signal.SIGTERM)))
        worker.end_input()
        self.assertEqual(worker.wait(), 0)

    def test_worker_in_a_foreign_group_signals_nobody(self):
        worker = self.start(stderr=subprocess.DEVNULL)
        child = worker.result_of("a", "user::leave_child", 600)
        worker.end_input()
        self.assertEqual(worker.wait(), 0)
        os.kill(child, signal.SIGKILL)  # raises if it were gone


class Stop(Case):
    def stop(self, worker, how):
        if how == "end of input":
            worker.end_input()
        elif how == "shutdown":
            worker.send(type="shutdown")
        else:
            os.kill(worker.pid, getattr(signal, how))

    WAYS = ("end of input", "shutdown", "SIGTERM", "SIGINT")

    def assert_stops(self, worker, how, seconds=8.0):
        begin = time.monotonic()
        self.stop(worker, how)
        self.assertEqual(worker.wait(), 0)
        self.assertLess(time.monotonic() - begin, seconds)

    def test_idle(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                worker = self.start()
                self.assert_stops(worker, how)
                self.assertIsNone(worker.receive())
                self.assertEqual(worker.lines(), [])

    def test_running_calls_are_ended_without_a_frame(self):
        for number, how in enumerate(self.WAYS):
            with self.subTest(how=how):
                worker = self.start()
                started, ended = ["started%d" % number, "in%d" % number], ["ended%d" % number, "out%d" % number]
                worker.call("a", "user::cleans_up", self.path(started[0]), self.path(ended[0]))
                worker.call("b", "user::sync_cleans_up", self.path(started[1]), self.path(ended[1]))
                for name in started:
                    self.wait_for_file(name)
                self.assert_stops(worker, how)
                self.assertIsNone(worker.receive())
                for name in ended:
                    self.assertTrue(os.path.exists(self.path(name)), name)

    def test_result_of_a_call_that_returns_nevertheless_is_sent(self):
        worker = self.start()
        worker.call("a", "user::returns_when_cancelled", self.path("started"))
        self.wait_for_file("started")
        self.assert_stops(worker, "shutdown")
        self.assertEqual(pickle.loads(worker.receive()["value"]), "anyway")
        self.assertIsNone(worker.receive())

    def test_calls_that_will_not_end_are_left_behind(self):
        for target in ("ignore_interrupts", "swallow_forever", "block_loop", "block_loop_natively"):
            workers = [(how, self.start()) for how in self.WAYS]
            for how, worker in workers:
                worker.call("a", "user::" + target, self.path(target + how))
            for how, worker in workers:
                self.wait_for_file(target + how)
                self.stop(worker, how)
            begin = time.monotonic()
            for how, worker in workers:
                with self.subTest(target=target, how=how):
                    self.assertEqual(worker.wait(), 0)
            self.assertLess(time.monotonic() - begin, 8.0)

    def test_frames_after_shutdown_are_ignored(self):
        worker = self.start()
        arguments = pickle.dumps(((), {}))
        late = pack({"type": "call", "call_id": "late", "callable": "conformance::pid", "arguments": arguments})
        shutdown = pack({"type": "shutdown"})
        worker.send_bytes(b"".join(len(body).to_bytes(4, "little") + body for body in (shutdown, late)))
        self.assertEqual(worker.wait(), 0)
        self.assertIsNone(worker.receive())

    def test_results_sent_before_the_shutdown_all_arrive(self):
        worker = self.start()
        for number in range(50):
            worker.call("%d" % number, "conformance::blob", 100_000)
        outcomes = worker.receive_outcomes(50)
        self.assert_stops(worker, "shutdown")
        self.assertEqual({len(pickle.loads(frame["value"])) for frame in outcomes.values()}, {100_000})

    def test_exit_handlers_run_and_threads_do_not_hold_the_exit_up(self):
        for number, how in enumerate(self.WAYS):
            with self.subTest(how=how):
                worker = self.start()
                worker.result_of("a", "user::at_exit", self.path("exit%d" % number))
                worker.result_of("b", "user::non_daemon_thread")
                self.assert_stops(worker, how)
                self.assertTrue(os.path.exists(self.path("exit%d" % number)))

    def test_background_threads_that_print_do_not_crash_the_exit(self):
        worker = self.start(stderr=subprocess.DEVNULL)
        worker.result_of("a", "user::start_daemon_printer")
        self.assert_stops(worker, "end of input")

    def test_input_ends_inside_a_frame(self):
        worker = self.start()
        worker.send_bytes(b"\x10\x00\x00\x00\x81")
        worker.end_input()
        self.assertEqual(worker.wait(), 0)
        worker.wait_for_line("inside a frame")

    def test_length_over_the_limit_is_a_lost_pipe(self):
        for length in (268_435_457, 2**32 - 1):
            with self.subTest(length=length):
                worker = self.start()
                worker.call("a", "conformance::sleep", 60)
                worker.send_bytes(length.to_bytes(4, "little"))
                self.assertEqual(worker.wait(), 1)
                worker.wait_for_line(str(length))
                self.assertIsNone(worker.receive())

    def test_declared_length_alone_takes_no_memory(self):
        worker = self.start()
        before = self.resident_bytes(worker.pid)
        worker.send_bytes((268_435_456).to_bytes(4, "little") + bytes(1000))
        worker.send_bytes(bytes(100_000))
        self.assertLess(self.resident_bytes(worker.pid) - before, 30_000_000)
        worker.end_input()
        self.assertEqual(worker.wait(), 0)

    @staticmethod
    def resident_bytes(pid):
        return int(pathlib.Path("/proc/%d/statm" % pid).read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_reader_of_the_output_gone(self):
        process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        process.stdout.read(16)
        process.stdout.close()
        body = pack({"type": "call", "call_id": "a", "callable": "os::getpid", "arguments": pickle.dumps(((), {}))})
        process.stdin.write(len(body).to_bytes(4, "little") + body)
        process.stdin.flush()
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_reader_of_the_output_stalled(self):
        """Results that nobody reads hold up neither other calls nor the end."""
        process = subprocess.Popen(
            [sys.executable, str(WORKER), "--path", str(WORKER.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        calls = [("big%d" % n, "conformance::blob", (1_000_000,)) for n in range(5)]
        calls.append(("last", "conformance::print_text", ("ran all the same", "stderr")))
        for call_id, target, args in calls:
            body = pack({"type": "call", "call_id": call_id, "callable": target, "arguments": pickle.dumps((args, {}))})
            process.stdin.write(len(body).to_bytes(4, "little") + body)
        process.stdin.flush()
        self.assertEqual(process.stderr.readline(), b"ran all the same\n")
        process.stdin.close()
        self.assertEqual(process.wait(TIMEOUT), 0)


class Death(Case):
    def test_exit_and_signal_end_the_process_at_once(self):
        worker = self.start()
        worker.call("a", "conformance::exit", 3)
        self.assertEqual(worker.wait(), 3)
        self.assertIsNone(worker.receive())
        worker = self.start()
        worker.call("a", "conformance::signal", int(signal.SIGKILL))
        self.assertEqual(worker.wait(), -signal.SIGKILL)
        worker = self.start()
        self.assertIsNone(worker.result_of("a", "conformance::signal", 0))
        worker.call("b", "conformance::signal", int(signal.SIGTERM))
        self.assertEqual(worker.wait(), 0)


if __name__ == "__main__":
    unittest.main()
