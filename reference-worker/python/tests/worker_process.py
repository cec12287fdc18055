"""A real worker process, driven over its pipes."""

import os
import pathlib
import pickle
import queue
import struct
import subprocess
import sys
import threading

PYTHON_DIR = pathlib.Path(__file__).resolve().parent.parent
WORKER = PYTHON_DIR / "agentix_worker.py"
sys.path.insert(0, str(PYTHON_DIR))

from agentix_worker import pack, unpack  # noqa: E402

TIMEOUT = 20  # seconds; a bound on hanging, not a measure of anything


class WorkerProcess:
    """Starts the worker; frames arrive in a queue, standard error line by line."""

    def __init__(self, *paths, env=None, own_group=False, script=WORKER, stderr=subprocess.PIPE):
        options = [option for path in (PYTHON_DIR, *paths) for option in ("--path", str(path))]
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("AGENTIX_", "PYTHON"))
        }  # PYTHONUNBUFFERED, for one, would hide that output stays in a buffer
        environment.update(env or {})
        self.process = subprocess.Popen(
            [sys.executable, str(script), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            preexec_fn=os.setpgrp if own_group else None,
        )
        self._frames = queue.Queue()
        self._lines = []
        self._lines_changed = threading.Condition()
        self._threads = [threading.Thread(target=self._read_frames, daemon=True)]
        if stderr == subprocess.PIPE:
            self._threads.append(threading.Thread(target=self._read_lines, daemon=True))
        for thread in self._threads:
            thread.start()

    # Frames

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_body(self, body):
        self.send_bytes(struct.pack("<I", len(body)) + body)

    def send(self, **frame):
        self.send_body(pack(frame))

    def call(self, call_id, target, *args, **kwargs):
        self.send(
            type="call",
            call_id=call_id,
            callable=target,
            arguments=pickle.dumps((args, kwargs), protocol=4),
            context=None,
        )

    def cancel(self, call_id):
        self.send(type="cancel", call_id=call_id)

    def receive(self):
        """The next frame; None at the end of output."""
        return self._frames.get(timeout=TIMEOUT)

    def receive_outcomes(self, count):
        """The next `count` frames by call id; fails on two for one id."""
        outcomes = {}
        for _ in range(count):
            frame = self.receive()
            assert frame is not None, "output ended early"
            assert frame["call_id"] not in outcomes, "second outcome for %r" % frame["call_id"]
            outcomes[frame["call_id"]] = frame
        return outcomes

    def result_of(self, call_id, target, *args, **kwargs):
        """Calls and returns the unpickled result; the outcome must be the next frame."""
        self.call(call_id, target, *args, **kwargs)
        frame = self.receive()
        assert frame is not None and frame["type"] == "result", frame
        assert frame["call_id"] == call_id, frame
        return pickle.loads(frame["value"])

    def error_of(self, call_id, target, *args, **kwargs):
        """Calls and returns the error map; the outcome must be the next frame."""
        self.call(call_id, target, *args, **kwargs)
        frame = self.receive()
        assert frame is not None and frame["type"] == "error", frame
        assert frame["call_id"] == call_id, frame
        return frame["error"]

    def _read_frames(self):
        while True:
            header = self.process.stdout.read(4)
            if len(header) < 4:
                break
            body = self.process.stdout.read(struct.unpack("<I", header)[0])
            self._frames.put(unpack(body))
        self._frames.put(None)

    # Standard error

    def wait_for_line(self, *parts):
        """The first line of standard error, past or to come, that holds all `parts`."""

        def found():
            return next((line for line in self._lines if all(part in line for part in parts)), None)

        with self._lines_changed:
            line = self._lines_changed.wait_for(found, TIMEOUT)
        assert line is not None, "no line with %r in %r" % (parts, self._lines)
        return line

    def lines(self):
        with self._lines_changed:
            return list(self._lines)

    def _read_lines(self):
        for line in self.process.stderr:
            with self._lines_changed:
                self._lines.append(line.decode("utf-8").rstrip("\n"))
                self._lines_changed.notify_all()

    # The process

    @property
    def pid(self):
        return self.process.pid

    def end_input(self):
        self.process.stdin.close()

    def wait(self):
        """The exit status, after all output has been read."""
        status = self.process.wait(TIMEOUT)
        for thread in self._threads:
            thread.join(TIMEOUT)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)
        for thread in self._threads:
            thread.join(TIMEOUT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
