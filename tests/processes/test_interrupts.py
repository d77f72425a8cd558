"""Ctrl-C at every moment at which Python may deliver it to the thread that uses an executor.

Python runs signal handlers when a function is entered and after a call of a C function. A profiler is told of exactly
these moments, so one that sends the signal at the k-th of them tries them all. Everything runs in a process of its
own, because what is looked for is a hang.
"""

from pathlib import Path

import pytest

from processes.support import run_script

SCRIPT = """
import itertools, os, signal, sys, threading
from forebay.errors import ClosedError
from forebay.run.executor import ThreadExecutor

class Key:
    def __init__(self, moment):
        self.moment = moment
        self.count = 0

    def __call__(self, frame, event, argument):
        if event in ("call", "c_return"):
            self.count += 1
            if self.count == self.moment:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

def interrupted(moment, function):
    "Whether the moment came before the end."
    key = Key(moment)
    try:
        sys.setprofile(key)
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return key.count >= moment

def moments(function):
    for moment in itertools.count(1):
        if not interrupted(moment, lambda: function(moment)):
            return
        yield moment

def fds():
    return len(os.listdir("/proc/self/fd"))

before = fds()

def start():
    return KIND(lambda: lambda x: x + 1, 2, "test")
"""

USED = """
executor = start()
tried = 0
for tried in moments(lambda moment: executor.submit(moment).result()):
    assert executor.submit(tried).result() == tried + 1
executor.close()
"""

STARTED = """
executors = []
tried = 0
for tried in moments(lambda moment: (executors.append(start()), executors[-1].submit(1))):
    for executor in executors:
        if tried % 5 == 0:
            assert executor.submit(1).result() == 2
        executor.close()
    executors.clear()
for executor in executors:
    executor.close()
"""

CLOSED = """
executor = start()
executor.submit(1).result()
tried = 0
for moment in itertools.count(1):
    came = interrupted(moment, executor.close)
    executor.close()
    try:
        executor.submit(1)
    except ClosedError:
        pass
    else:
        raise AssertionError("not closed")
    if not came:
        break
    tried = moment
    executor = start()
    executor.submit(1).result()
"""

END = """
assert not [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nothing left")
assert tried > 5, tried
assert fds() == before, (before, fds())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ProcessExecutor", "ThreadExecutor"])
@pytest.mark.parametrize("part", [STARTED, USED, CLOSED], ids=["started", "used", "closed"])
def test_interrupts_leave_nothing_locked(tmp_path: Path, kind: str, part: str) -> None:
    assert run_script(tmp_path, SCRIPT.replace("KIND", kind) + part + END) == "nothing left\n"
