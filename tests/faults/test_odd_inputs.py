"""Settings that cannot be meant, and data of unusual kinds and sizes, on every kind of workers."""

import threading
import time
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.support import assert_nothing_runs
from forebay import Dataset
from forebay.options import Autotune, Threading
from processes.support import DEADLINE

EXECUTORS = ["inline", "thread", "process", "auto"]


@pytest.mark.parametrize("calls", [0, -2, True, 1.5, "2", [2], np.float64(2)])
@pytest.mark.parametrize("step", ["map", "filter", "flat_map", "interleave"])
def test_wrong_numbers_of_calls(calls: Any, step: str) -> None:
    with pytest.raises(fb.PlanError, match=rf"{step}\(num_parallel_calls=.*num_parallel_calls must be"):
        getattr(Dataset.range(3), step)(lambda x: x, num_parallel_calls=calls)


@pytest.mark.parametrize("calls", [2, np.int64(2), np.uint8(2), fb.AUTOTUNE])
@pytest.mark.parametrize("executor", ["thread", "auto", "inline"])
def test_right_numbers_of_calls(calls: Any, executor: Any) -> None:
    assert list(Dataset.range(3).map(lambda x: x, num_parallel_calls=calls, executor=executor)) == [0, 1, 2]


@pytest.mark.parametrize("executor", ["auto", "inline"])
def test_no_number_of_calls(executor: Any) -> None:
    assert list(Dataset.range(3).map(lambda x: x, num_parallel_calls=None, executor=executor)) == [0, 1, 2]


@pytest.mark.parametrize("executor", ["gpu", "", "Thread", None, 3, True, ["thread"], {}])
@pytest.mark.parametrize("step", ["map", "filter", "flat_map", "interleave"])
def test_wrong_executors(executor: Any, step: str) -> None:
    with pytest.raises(fb.PlanError, match=rf"{step}\(executor=.*executor must be one of 'inline', 'thread'"):
        getattr(Dataset.range(3), step)(lambda x: x, num_parallel_calls=2, executor=executor)


@pytest.mark.parametrize("deterministic", ["no", 0, 1.0, []])
def test_wrong_determinism(deterministic: Any) -> None:
    with pytest.raises(fb.PlanError, match="deterministic must be True or False"):
        Dataset.range(3).map(lambda x: x, num_parallel_calls=2, deterministic=deterministic)
    with pytest.raises(fb.PlanError, match=r"Options\.deterministic must be"):
        fb.Options(deterministic=deterministic)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2", [1]])
def test_wrong_options(value: Any) -> None:
    for made, name in (
        ({"threading": Threading(private_threadpool_size=value)}, "threading.private_threadpool_size"),
        ({"threading": Threading(max_intra_op_parallelism=value)}, "threading.max_intra_op_parallelism"),
        ({"autotune": Autotune(cpu_budget=value)}, "autotune.cpu_budget"),
    ):
        with pytest.raises(fb.PlanError, match=rf"Options\.{name} must be a whole number"):
            fb.Options(**made)
    for kind in ("threading", "autotune"):
        with pytest.raises(fb.PlanError, match=rf"Options\.{kind} must be a"):
            fb.Options(**{kind: value})
    options = fb.Options()
    options.threading.private_threadpool_size = value
    with pytest.raises(fb.PlanError, match="private_threadpool_size"):
        Dataset.range(3).with_options(options)
    options = fb.Options()
    options.autotune.enabled = "yes"  # type: ignore[assignment]
    with pytest.raises(fb.PlanError, match=r"autotune\.enabled"):
        Dataset.range(3).with_options(options)


class AtOnce:
    """Counts how many calls are under way at the same time."""

    def __init__(self) -> None:
        self.most = self._now = 0
        self._lock = threading.Lock()

    def __call__(self, x: Any) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        # Lets another thread in, if there is one.
        time.sleep(0.002)
        with self._lock:
            self._now -= 1
        return x


ONE = fb.Options(threading=Threading(private_threadpool_size=1))


@pytest.mark.parametrize("executor", ["thread", "auto"])
@pytest.mark.parametrize("calls", [8, fb.AUTOTUNE])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_pool_of_one_thread_calls_one_at_a_time(executor: Any, calls: int, deterministic: bool) -> None:
    function = AtOnce()
    mapped = Dataset.range(150).map(function, calls, deterministic, executor=executor)
    assert sorted(mapped.with_options(ONE)) == list(range(150))
    assert function.most == 1


@pytest.mark.parametrize("calls", [8, fb.AUTOTUNE])
@pytest.mark.parametrize("step", ["interleave", "flat_map"])
def test_a_pool_of_one_thread_reads_one_dataset_at_a_time(step: str, calls: int) -> None:
    function = AtOnce()

    def inner(x: Any) -> Dataset[Any]:
        return Dataset.range(x * 5, x * 5 + 5).map(function)

    how = {"cycle_length": 8} if step == "interleave" else {}
    made = getattr(Dataset.range(30), step)(inner, num_parallel_calls=calls, **how)
    assert sorted(made.with_options(ONE)) == list(range(150))
    assert function.most == 1


def test_a_pool_of_eight_threads_does_call_several_at_a_time() -> None:
    meeting = threading.Barrier(2, timeout=DEADLINE)

    def function(x: Any) -> Any:
        if x < 2:
            # Passes only with another call under way at the same time.
            meeting.wait()
        return x

    mapped = Dataset.range(200).map(function, 8, executor="thread").with_options(fb.Options(block_bytes=1))
    assert list(mapped) == list(range(200))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("size", [0, 1])
def test_nearly_nothing(executor: Any, size: int) -> None:
    numbers = Dataset.range(size)
    mapped = numbers.map(lambda x: x + 1, num_parallel_calls=3, executor=executor)
    for _ in range(2):
        assert list(mapped) == [1] * size
    assert list(mapped.filter(lambda x: x < 0, num_parallel_calls=2, executor=executor)) == []
    assert [list(batch) for batch in mapped.batch(5)] == [[1]] * size
    del mapped
    assert_nothing_runs()


def ragged(x: Any) -> Any:
    return {"row": np.arange(x % 7, dtype=np.int16), "rows": np.ones((int(x) % 3, 2)), "text": "ä" * (int(x) % 5)}


KINDS = {
    "none": lambda x: None,
    "some none": lambda x: (x, None if x % 2 else "text"),
    "ragged": ragged,
    "strings": lambda x: (f"text {x}", b"bytes" * int(x % 3), ""),
    "objects": lambda x: {"set": {int(x)}, "complex": complex(x, 1)},
    "empty arrays": lambda x: np.empty((0, 3), np.float32),
    "empty tuple": lambda x: (x, ()),
    "dates": lambda x: np.datetime64("2001-01-01") + np.timedelta64(int(x), "D"),
}


def flat(value: Any) -> Any:
    """The value with arrays and NumPy scalars written so that == and the type say all."""
    if isinstance(value, dict):
        return {key: flat(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(flat(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist()
    return type(value), value


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_results_of_all_kinds(executor: Any, name: str) -> None:
    function = KINDS[name]
    expected = [flat(element) for element in Dataset.range(200).map(function)]
    mapped = Dataset.range(200).map(function, num_parallel_calls=2, executor=executor)
    assert [flat(element) for element in mapped] == expected


def test_large_arrays_go_through_processes() -> None:
    """10 MB each, more than blocks are meant to have, there and back."""
    rows = 1_250_000
    large = Dataset.range(12).map(lambda x: np.full(rows, x, np.float64))
    mapped = large.map(lambda array: array + 0.5, num_parallel_calls=2, executor="process")
    count = 0
    for number, array in enumerate(mapped.with_options(fb.Options(optimize=False))):
        assert array.shape == (rows,)
        assert (array == number + 0.5).all()
        count += 1
    assert count == 12


@pytest.mark.parametrize("deterministic", [True, False])
def test_many_small_elements_go_through_processes(deterministic: bool) -> None:
    mapped = Dataset.range(100_000).map(lambda x: x * 3, 2, deterministic, executor="process")
    found = np.concatenate(list(mapped.batch(1000)))
    np.testing.assert_array_equal(np.sort(found), np.arange(100_000) * 3)
    if deterministic:
        np.testing.assert_array_equal(found, np.arange(100_000) * 3)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["flat_map", "interleave", "interleave on threads"])
def test_processes_inside_other_steps(step: str) -> None:
    def inner(x: Any) -> Dataset[Any]:
        return Dataset.range(x * 10, x * 10 + 5).map(lambda y: y + 1, num_parallel_calls=2, executor="process")

    def plain(x: Any) -> Dataset[Any]:
        return Dataset.range(x * 10 + 1, x * 10 + 6)

    numbers = Dataset.range(3)
    if step == "flat_map":
        made, expected = numbers.flat_map(inner), numbers.flat_map(plain)
    elif step == "interleave":
        made, expected = numbers.interleave(inner, 2), numbers.interleave(plain, 2)
    else:
        made, expected = numbers.interleave(inner, 2, 1, 2), numbers.interleave(plain, 2)
    assert list(made) == list(expected)
    with iter(made) as it:
        assert next(it) == 1
    del made
    assert_nothing_runs()
