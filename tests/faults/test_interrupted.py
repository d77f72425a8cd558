"""Programs with a pipeline that are interrupted, or killed, in the middle of it."""

import os
import random
import signal
from pathlib import Path

import pytest

from faults.support import Script, workers_of
from processes.support import alive, wait_for

pytestmark = pytest.mark.slow

PIPELINES = {
    "processes": """
def work(x):
    for _ in range(20_000):
        pass
    return x
ds = fb.Dataset.range(10**9).map(work, num_parallel_calls=2, executor="process").batch(3).unbatch()
plain = fb.Dataset.range(10**9)
""",
    "threads": """
def work(x):
    time.sleep(0.001)
    return x
def files(x):
    return fb.Dataset.range(x * 10, x * 10 + 10).map(work)
ds = fb.Dataset.range(10**8).interleave(files, 4, 2, num_parallel_calls=2).map(
    work, num_parallel_calls=2, executor="thread").prefetch(3)
plain = fb.Dataset.range(10**8).interleave(lambda x: fb.Dataset.range(x * 10, x * 10 + 10), 4, 2)
""",
}

START = """
import itertools, os, signal, sys, threading, time
import forebay as fb

# A shell starts what runs in its background without it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def say(*words):
    # One call into the system, so that an interrupt cannot cut a line in two.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""

GOES_ON = """
got = []
it = iter(ds)
interrupts = 0
after = 0
while after < 100:
    # Python may raise one where a loop goes round, so the steps have a loop of their own within the try. None is sent
    # before another step was made.
    try:
        while after < 100:
            # Nothing of Python's runs between the iterator and the list: what was handed out is there.
            got.extend(itertools.islice(it, 1))
            say("step")
            after += interrupts == 10
    except KeyboardInterrupt:
        interrupts += 1
        say("interrupted")
it.close()
expected = list(plain.take(len(got)))
assert len(got) > 100 and got == expected, (len(got), [(a, b) for a, b in zip(got, expected) if a != b][:5])
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    say("nothing left")
"""


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PIPELINES)
def test_whoever_catches_interrupts_goes_on_with_next(tmp_path: Path, name: str, seed: int) -> None:
    draw = random.Random(seed)
    with Script(tmp_path, START + PIPELINES[name] + GOES_ON) as script:
        for times in range(1, 11):
            steps = script.lines.count("step") + draw.randrange(1, 40)
            script.wait_for_line("step", steps)
            os.killpg(script.process.pid, signal.SIGINT)
            script.wait_for_line("interrupted", times)
        assert script.end() == 0, script.text[-3000:]
        assert script.lines[-1] == "nothing left"
        assert script.errors.read_text() == ""


LETS_IT_FALL = """
for element in ds:
    say("step")
"""


def is_of_an_import(trace: str) -> bool:
    """Whether only Python's own code for imports is in it, which finds out by errors what it has not looked at yet."""
    return all('"<frozen importlib' in line for line in trace.splitlines() if line.startswith("  File "))


@pytest.mark.parametrize("steps", [0, 1, 25])
@pytest.mark.parametrize("name", PIPELINES)
def test_whoever_does_not_ends_with_one_traceback(tmp_path: Path, name: str, steps: int) -> None:
    with Script(tmp_path, START + PIPELINES[name] + 'say("ready")\n' + LETS_IT_FALL) as script:
        script.wait_for_line("ready")
        script.wait_for_line("step", steps)
        workers = workers_of(script.process.pid)
        os.killpg(script.process.pid, signal.SIGINT)
        assert script.end() == -signal.SIGINT, script.text[-3000:]
        errors = script.errors.read_text()
        *before, last = errors.split("\nDuring handling of the above exception, another exception occurred:\n\n")
        assert all(map(is_of_an_import, before)), errors
        assert last.count("Traceback") == 1, errors
        assert errors.endswith("KeyboardInterrupt\n"), errors
        assert "Exception ignored" not in errors
        assert not any(map(alive, workers))


SLEEPS = """
def work(x):
    say("working")
    if x > SLEEPY:
        time.sleep(1000)
    return x
ds = fb.Dataset.range(10**6).map(work, num_parallel_calls=2, executor="process").batch(2).prefetch(2)
for element in ds:
    say("step")
"""


def named_files(pids: set[int]) -> set[str]:
    """The files in memory or among the temporary ones that these processes have open or mapped."""
    found = set()
    for pid in pids:
        paths = {
            line.split(maxsplit=5)[5] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/" in line
        }
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                paths.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
            except FileNotFoundError:
                continue
        found |= {path for path in paths if path.startswith(("/dev/shm/", "/run/shm/")) or "/temporary/" in path}
    return found


@pytest.mark.parametrize("sleepy", [10**6, 5], ids=["moving", "in a call"])
def test_a_killed_parent_leaves_nothing(tmp_path: Path, sleepy: int) -> None:
    with Script(tmp_path, START + SLEEPS.replace("SLEEPY", str(sleepy))) as script:
        script.wait_for_line("step", 2)
        script.wait_for_line("working", 8)
        script.wait_for(lambda: len(workers_of(script.process.pid)) == 2, "both workers")
        workers = workers_of(script.process.pid)
        assert len(workers) == 2
        assert named_files({script.process.pid, *workers}) == set()
        script.process.kill()
        script.process.wait()
        wait_for(lambda: not any(map(alive, workers)), "the workers to die")
        assert os.listdir(script.temporary) == []
