"""``executor="auto"``: going over from threads to something else loses no call."""

import threading
from types import SimpleNamespace

from forebay.run.auto import AutoExecutor
from forebay.run.crew import Choice
from forebay.run.executor import Executor, InlineExecutor, Job, ThreadExecutor


class Warm(Executor):
    """Stands for processes: there at once, and as quick."""

    kind = "process"
    workers = 2

    def submit(self, *arguments):
        job = Job(arguments, self.bell)
        job.finish("process", None)
        return job

    def resize(self, workers):
        self.workers = workers

    def close(self):
        pass


def test_calls_that_wait_for_a_thread_are_made_after_the_processes_have_taken_over():
    gate = threading.Event()

    def make():
        def call(*arguments):
            gate.wait()
            return "thread"

        return call

    threads = ThreadExecutor(make, 2, "map")
    auto = AutoExecutor(2, threads, lambda: InlineExecutor(make), Warm, lambda choice: None, None)
    try:
        waiting = [auto.submit(SimpleNamespace(rows=1)) for _ in range(4)]
        auto._settle(Choice("process", "told to"))
        after = auto.submit(SimpleNamespace(rows=1))
        assert after.result() == "process"
        gate.set()
        assert [job.result() for job in waiting] == ["thread"] * 4
        assert auto.submit(SimpleNamespace(rows=1)).result() == "process"
        assert threads.workers == 0
    finally:
        gate.set()
        auto.close()
