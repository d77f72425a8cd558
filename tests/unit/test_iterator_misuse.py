"""Iterators that are pickled, copied, or shared by threads."""

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import BusyError, Dataset


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_iterator_says_how_to_save_it(make: Callable[[Any], Any]) -> None:
    it = iter(Dataset.range(5))
    next(it)
    with pytest.raises(TypeError, match=r"cannot be pickled or copied: save state_dict\(\)"):
        make(it)
    assert list(it) == [1, 2, 3, 4]


def in_thread(work: Callable[[], Any]) -> Any:
    """What a thread of its own makes of it, an error included."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_a_second_thread_is_refused_while_the_first_fetches() -> None:
    seen: list[Any] = []

    def meddle(x: Any) -> Any:
        if x == 2:
            seen.append(in_thread(lambda: next(it)))
        return x

    it = iter(Dataset.range(5).map(meddle).with_options(fb.Options(block_bytes=1)))
    assert [int(x) for x in it] == [0, 1, 2, 3, 4]
    assert isinstance(seen[0], BusyError)
    assert isinstance(seen[0], RuntimeError)
    assert "several threads at once" in str(seen[0])


def test_threads_that_meet_between_two_blocks_are_refused_too() -> None:
    class Pausing:
        """Elements of a block, with another thread going on to the next block as this one sees the end."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __iter__(self) -> Any:
            yield from self.inner
            it._elements = iter(())
            in_thread(lambda: next(it))

    it: Any = iter(Dataset.range(2000))
    first = next(it)
    it._elements = iter(Pausing(it._elements))
    with pytest.raises(BusyError):
        list(it)
    assert first == 0


def test_threads_may_take_turns() -> None:
    it = iter(Dataset.range(2000).map(lambda x: x + 1))
    found = [int(in_thread(lambda: next(it)) if i % 3 else next(it)) for i in range(2000)]
    assert found == list(range(1, 2001))
    with pytest.raises(StopIteration):
        next(it)


def test_threads_that_share_an_iterator_lose_nothing_unnoticed() -> None:
    for build in (lambda: Dataset.range(60_000), lambda: Dataset.from_tensor_slices({"a": np.arange(60_000)})):
        it = iter(build().with_options(fb.Options(block_bytes=400)))
        counts: list[int] = []
        errors: list[Exception] = []

        def work(it: Any = it, counts: list[int] = counts, errors: list[Exception] = errors) -> None:
            count = 0
            try:
                for _ in it:
                    count += 1
            except BusyError as error:
                errors.append(error)
            counts.append(count)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors or sum(counts) == 60_000


def test_an_error_leaves_the_iterator_free() -> None:
    def fail(x: Any) -> Any:
        if x == 1 and not done:
            raise ValueError
        return x

    done: list[bool] = []
    it = iter(Dataset.range(3).map(fail))
    assert next(it) == 0
    with pytest.raises(fb.FunctionError):
        next(it)
    done.append(True)
    assert in_thread(lambda: [int(x) for x in it]) == [1, 2]


def test_an_iterator_from_before_a_fork_says_so_instead_of_waiting_for_threads_that_are_gone(tmp_path: Path) -> None:
    # In a process of its own, because this one may have threads of pytest's.
    script = tmp_path / "script.py"
    script.write_text(_FORK)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "child True True\nparent True\n"), done.stderr


_FORK = """
import os
import forebay as fb
from forebay import ClosedError, Dataset

ds = Dataset.range(9000).map(lambda x: x * 2, num_parallel_calls=2, executor="thread").prefetch(2)
it = iter(ds)
given = [int(next(it)) for _ in range(10)]
child = os.fork()
if child == 0:
    try:
        refused = not list(it)
    except ClosedError as error:
        refused = "before a fork" in str(error)
    with iter(ds) as anew:
        print("child", refused, [int(x) for x in anew] == list(range(0, 18000, 2)), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", given + [int(x) for x in it] == list(range(0, 18000, 2)))
"""
