"""Exceptions, and values that cannot travel, in functions that run on workers."""

import io
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.support import assert_nothing_runs, busy, take_until_error
from faults.test_pipelines import settle_on_processes
from forebay import Dataset

WORKERS = ["thread", "process", "auto"]


class CustomError(Exception):
    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"code {code}")
        self.hint = hint


def innermost(x: Any) -> Any:
    return {0: "zero"}[int(x)]


def fails_at_33(x: Any) -> Any:
    if x == 33:
        try:
            innermost(x)
        except KeyError as error:
            raise CustomError(33, hint="look here") from error
    return x


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("executor", WORKERS)
def test_an_exception_comes_with_all_that_is_known(executor: Any) -> None:
    dataset = Dataset.range(100).map(fails_at_33, num_parallel_calls=2, executor=executor, name="risky")
    found, error = take_until_error(dataset)
    assert found == list(range(33))
    assert isinstance(error, fb.FunctionError)
    assert "map 'risky' at test_worker_errors.py:" in str(error)
    assert "element 33: fails_at_33 raised CustomError: code 33" in str(error)
    assert isinstance(error.__cause__, CustomError)
    assert error.__cause__.hint == "look here"
    text = shown(error)
    for part in ("in fails_at_33", 'raise CustomError(33, hint="look here")', "in innermost", "KeyError: 33"):
        assert part in text
    assert_nothing_runs()


@pytest.mark.parametrize("executor", WORKERS)
@pytest.mark.parametrize("step", ["filter", "batched map", "fused maps", "map of batches"])
def test_every_step_names_its_element(executor: Any, step: str) -> None:
    def at_33(x: Any) -> Any:
        if np.any(x == 33):
            raise ValueError("of the user")
        return x >= 0

    numbers = Dataset.range(100)
    how: dict[str, Any] = {"num_parallel_calls": 2, "executor": executor}
    dataset, element = {
        "filter": (numbers.filter(at_33, **how), 33),
        "batched map": (numbers.map(at_33, batched=True, **how), 33),
        "fused maps": (numbers.map(lambda x: x + 30, **how).map(at_33, **how), 3),
        "map of batches": (numbers.batch(10).map(at_33, **how), 3),
    }[step]
    found, error = take_until_error(dataset)
    assert isinstance(error, fb.FunctionError)
    assert f"element {element}: " in str(error)
    assert "at_33 raised ValueError: of the user" in str(error)
    assert len(found) == element
    assert "in at_33" in shown(error)


@pytest.mark.parametrize("executor", WORKERS)
def test_next_tries_again(executor: Any, tmp_path: Path) -> None:
    def unlucky(x: Any) -> Any:
        if x == 21 and len(list(tmp_path.iterdir())) < 2:
            (tmp_path / str(len(list(tmp_path.iterdir())))).touch()
            raise OSError("not now")
        return x

    with iter(Dataset.range(50).map(unlucky, num_parallel_calls=2, executor=executor)) as it:
        assert [next(it) for _ in range(21)] == list(range(21))
        for _ in range(2):
            with pytest.raises(fb.FunctionError, match="element 21: unlucky raised OSError: not now"):
                next(it)
            assert it.state_dict()["position"] == 21
        assert list(it) == list(range(21, 50))


@pytest.mark.parametrize("executor", WORKERS)
def test_an_error_of_the_input_comes_behind_its_elements(executor: Any) -> None:
    def numbers() -> Any:
        yield from range(40)
        raise OSError("the disk is gone")

    found, error = take_until_error(
        Dataset.from_generator(numbers).map(lambda x: x + 1, num_parallel_calls=2, executor=executor)
    )
    assert found == list(range(1, 41))
    assert "from_generator" in str(error)
    assert "the disk is gone" in str(error)


@pytest.fixture(params=["lock", "file"])
def unpicklable(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "lock":
        yield threading.Lock()
    else:
        with (tmp_path / "open").open("w+b") as file:
            yield file


def test_a_function_that_cannot_travel_is_refused(unpicklable: Any) -> None:
    dataset = Dataset.range(5).map(lambda x: (unpicklable, x)[1], num_parallel_calls=2, executor="process")
    with pytest.raises(fb.PlanError) as caught:
        list(dataset)
    text = str(caught.value)
    assert text.startswith("map at test_worker_errors.py:")
    assert "cannot be sent to a worker process" in text
    assert 'executor="thread"' in text, "it should say what to do"
    assert_nothing_runs()


def test_a_function_that_cannot_travel_stays_on_threads(unpicklable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settle_on_processes(monkeypatch)

    def function(x: Any) -> Any:
        busy(2000)
        return (unpicklable, x)[1]

    dataset = Dataset.range(500).map(function, num_parallel_calls=2, executor="auto")
    dataset = dataset.with_options(fb.Options(block_bytes=1))
    for _ in range(2):
        assert list(dataset) == list(range(500))
    out = io.StringIO()
    dataset.explain(out)
    assert "thread: it holds the interpreter lock, but processes are no way out" in out.getvalue()
    assert "cannot be sent to a worker process" in out.getvalue()


UNSENDABLE = {
    "lock": (lambda: threading.Lock(), "lock"),
    "generator": (lambda: (i for i in range(3)), "generator"),
    "nested": (lambda: {"a": 1, "b": [threading.Lock()]}, "lock"),
}


@pytest.mark.parametrize("name", UNSENDABLE)
def test_results_that_cannot_travel(name: str) -> None:
    make, word = UNSENDABLE[name]
    dataset = Dataset.range(30).map(lambda x: make(), num_parallel_calls=2, executor="process", name="odd")
    found, error = take_until_error(dataset)
    assert found == []
    assert isinstance(error, fb.errors.TransferError)
    assert "map 'odd' at test_worker_errors.py:" in str(error)
    assert "element" in str(error)
    assert "the result could not be sent" in str(error)
    assert word in str(error)
    assert 'executor="thread"' in str(error), "it should say what to do"
    assert_nothing_runs()


def test_elements_that_cannot_travel() -> None:
    dataset = (
        Dataset.range(30)
        .map(lambda x: threading.Lock())
        .map(lambda lock: 1, num_parallel_calls=2, executor="process", name="odd")
    )
    found, error = take_until_error(dataset.with_options(fb.Options(optimize=False)))
    assert found == []
    assert isinstance(error, fb.errors.TransferError)
    assert "map 'odd' at test_worker_errors.py:" in str(error)
    assert "cannot be sent to a worker process" in str(error)


def test_results_that_cannot_travel_stay_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    settle_on_processes(monkeypatch)
    counted = []

    def function(x: Any) -> Any:
        busy(2000)
        return {"x": x, "lock": threading.Lock()}

    dataset = Dataset.range(10**6).map(function, num_parallel_calls=2, executor="auto")
    with iter(dataset) as it:
        for number, element in enumerate(it):
            assert element["x"] == number
            choice = dataset._parking.choices.get(dataset.plan.site.key)
            if choice is not None and choice.kind == "thread":
                counted.append(number)
                if len(counted) > 200:
                    break
    assert len(counted) > 200
    out = io.StringIO()
    dataset.explain(out)
    assert "processes are no way out" in out.getvalue()
    assert "lock" in out.getvalue()
    assert_nothing_runs()


@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("kind", ["with a lock", "shy", "local", "group"])
def test_exceptions_of_all_sorts(executor: Any, kind: str) -> None:
    def function(x: Any) -> Any:
        if x < 12:
            return x
        if kind == "with a lock":
            error = ValueError("with a lock")
            error.lock = threading.Lock()  # type: ignore[attr-defined]
            raise error
        if kind == "shy":

            class Shy(Exception):
                def __str__(self) -> str:
                    raise RuntimeError("no text")

                def __reduce__(self):  # type: ignore[no-untyped-def]
                    raise RuntimeError("no pickle")

            raise Shy
        if kind == "local":

            class LocalError(Exception):
                pass

            raise LocalError("made here")
        raise ExceptionGroup("several", [ValueError("one"), CustomError(2, hint="two")])

    found, error = take_until_error(Dataset.range(30).map(function, num_parallel_calls=2, executor=executor))
    assert found == list(range(12))
    assert isinstance(error, fb.FunctionError)
    assert "element 12: " in str(error)
    words = {"with a lock": "with a lock", "shy": "Shy", "local": "LocalError: made here", "group": "several"}
    assert words[kind] in str(error)
    assert "in function" in shown(error)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_results_of_another_kind_name_their_element(executor: Any) -> None:
    dataset = Dataset.range(60).map(
        lambda x: x if x < 47 else {"x": x}, num_parallel_calls=2, executor=executor, name="mixed"
    )
    found, error = take_until_error(dataset)
    assert isinstance(error, fb.DataError)
    assert "map 'mixed' at test_worker_errors.py:" in str(error)
    assert found == list(range(47)), str(error)
    assert "element 47: " in str(error)
