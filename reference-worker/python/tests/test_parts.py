"""Parts of the worker by themselves, where the process as a whole cannot force the case."""

import threading
import unittest
from unittest import mock

import worker_process  # noqa: F401  (makes the worker importable)
import agentix_worker
from agentix_worker import CallCancelled, FrameTooLarge, InterruptibleSection, SeenIds, ThreadPool, frame_chunks


class Interrupting(unittest.TestCase):
    def in_thread(self, function):
        """Runs `function` on a thread of its own; returns the thread and the list that gets its outcome."""
        outcome = []

        def run():
            try:
                outcome.append(function())
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, outcome

    def test_work_that_runs_is_interrupted(self):
        running, sections = threading.Event(), []

        def work():
            running.set()
            while True:
                running.is_set()

        def body():
            sections.append(InterruptibleSection())
            return sections[0].run(work)

        thread, outcome = self.in_thread(body)
        self.assertTrue(running.wait(20))
        sections[0].interrupt()
        thread.join(20)
        self.assertEqual(outcome, [None])
        self.assertFalse(sections[0].active)

    def test_before_and_after_nothing_is_interrupted(self):
        section = InterruptibleSection()
        section.interrupt()
        self.assertIsNone(section.run(lambda: self.fail("ran")))
        section = InterruptibleSection()
        self.assertEqual(section.run(lambda: 5), 5)
        section.interrupt()
        section.interrupt()
        self.assertEqual([n for n in range(1000)][-1], 999)

    def test_exception_on_its_way_while_the_work_ends_never_leaves_the_section(self):
        """The interrupting thread is held between seeing the section active and raising, while the work returns."""
        real, may_end, left, sections = agentix_worker._raise_in_thread, threading.Event(), threading.Event(), []

        def held_up(thread_id, exception):
            if exception is not None:
                may_end.set()
                left.wait(0.3)  # times out where the section does wait for this thread
            real(thread_id, exception)

        def body():
            sections.append(InterruptibleSection())
            started.set()
            result = sections[0].run(lambda: may_end.wait(20))
            left.set()
            for _ in range(2_000_000):  # the next call on this thread
                pass
            return result

        started = threading.Event()
        with mock.patch.object(agentix_worker, "_raise_in_thread", held_up):
            thread, outcome = self.in_thread(body)
            started.wait(20)
            while not sections[0].active:
                pass
            sections[0].interrupt()
            thread.join(20)
        self.assertEqual(len(outcome), 1)
        self.assertNotIsInstance(outcome[0], CallCancelled)

    def test_exception_of_the_work_passes_through(self):
        with self.assertRaises(KeyError):
            InterruptibleSection().run(lambda: {}["x"])


class Threads(unittest.TestCase):
    def test_no_more_threads_than_allowed_and_none_idle_while_work_waits(self):
        pool, barrier, names = ThreadPool(3, "pool"), threading.Barrier(4), []

        def work():
            names.append(threading.get_ident())
            barrier.wait(20)

        for _ in range(6):
            pool.submit(work)
        barrier.wait(20)
        barrier.wait(20)
        pool.wait(20)
        self.assertEqual((len(names), len(set(names))), (6, 3))

    def test_thread_outlives_work_that_raises(self):
        pool, done = ThreadPool(1, "pool"), threading.Event()

        def fail():
            raise SystemExit

        with mock.patch.object(agentix_worker, "say"):
            pool.submit(fail)
            pool.submit(done.set)
            self.assertTrue(done.wait(20))

    def test_closed_pool_drops_what_waits(self):
        pool, begun, go, ran = ThreadPool(1, "pool"), threading.Event(), threading.Event(), []
        pool.submit(lambda: (begun.set(), go.wait(20)))
        pool.submit(lambda: ran.append(1))
        self.assertTrue(begun.wait(20))
        pool.close()
        pool.submit(lambda: ran.append(2))
        go.set()
        pool.wait(20)
        self.assertEqual(ran, [])

    def test_no_thread_can_be_started(self):
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError):
            with self.assertRaises(RuntimeError):
                ThreadPool(1, "pool").submit(self.fail)


class Ids(unittest.TestCase):
    def test_recent_ids_are_known_and_others_not(self):
        seen = SeenIds()
        for number in range(100_000):
            seen.add("id %d" % number)
        self.assertTrue(all("id %d" % number in seen for number in range(100_000)))
        self.assertFalse(any("other %d" % number in seen for number in range(100_000)))

    def test_full_bucket_forgets_the_oldest_and_nothing_else(self):
        seen = SeenIds()
        seen.add("elsewhere")
        with mock.patch.object(SeenIds, "_mark", lambda self, call_id: ((int(call_id) + 1).to_bytes(8, "big"), 7)):
            for number in range(1000):
                seen.add(str(number))
            known = [number for number in range(1000) if str(number) in seen]
        self.assertEqual(known, list(range(1000 - SeenIds.SLOTS, 1000)))
        self.assertIn("elsewhere", seen)

    def test_match_across_two_marks_is_none(self):
        seen = SeenIds()
        marks = {"a": b"xxxxyyyy", "b": b"zzzzzzzz", "shifted": b"yyyyzzzz"}
        with mock.patch.object(SeenIds, "_mark", lambda self, call_id: (marks[call_id], 0)):
            seen.add("a")
            seen.add("b")
            self.assertNotIn("shifted", seen)
            self.assertIn("b", seen)


class FrameLimit(unittest.TestCase):
    def test_largest_frame_and_one_byte_more(self):
        overhead = sum(map(len, frame_chunks({"value": bytes(70_000)}))) - 70_000
        longest = 268_435_456 - (overhead - 4)
        chunks = frame_chunks({"value": bytes(longest)})
        self.assertEqual(bytes(chunks[0]), (268_435_456).to_bytes(4, "little"))
        with self.assertRaises(FrameTooLarge):
            frame_chunks({"value": bytes(longest + 1)})


class ManyValues(unittest.TestCase):
    def test_more_values_than_allowed(self):
        with mock.patch.object(agentix_worker, "MAX_VALUES", 1000):
            self.assertEqual(len(agentix_worker.unpack(b"\xdc\x03\xe7" + b"\xc0" * 999)), 999)
            with self.assertRaises(agentix_worker.CodecError):
                agentix_worker.unpack(b"\xdc\x03\xe8" + b"\xc0" * 1000)


if __name__ == "__main__":
    unittest.main()
