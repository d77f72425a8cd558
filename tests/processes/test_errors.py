"""Everything that can go wrong in a call, short of a death."""

import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from forebay import Dataset
from forebay.errors import DataError, FunctionError, PlanError, TransferError
from processes.support import fds


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_traceback_and_cause_arrive(call: Any) -> None:
    def inner_function(x: int) -> float:
        return 1 / x

    def outer_function(x: int) -> float:
        try:
            return inner_function(x)
        except ZeroDivisionError as error:
            error.add_note("a note")
            raise KeyError("wrapped") from error

    with pytest.raises(KeyError, match="wrapped") as caught:
        call(outer_function, 0)
    text = shown(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    for expected in (
        "in outer_function",
        'raise KeyError("wrapped") from error',
        "in inner_function",
        "return 1 / x",
        "a note",
        "direct cause",
        f'File "{__file__}"',
    ):
        assert expected in text
    names = [frame.name for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)]
    assert names == ["outer_function", "inner_function"]


def test_errors_inside_results_keep_their_cause(call: Any) -> None:
    def function() -> tuple[None, FunctionError]:
        try:
            raise ValueError("of the user")
        except ValueError as raised:
            error = FunctionError("map at line 3")
            error.__cause__ = raised
            return None, error

    _, error = call(function)
    assert type(error) is FunctionError
    assert repr(error.__cause__) == "ValueError('of the user')"
    assert 'raise ValueError("of the user")' in shown(error)


def test_context_and_circles(call: Any) -> None:
    def function() -> None:
        first, second = ValueError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first

    with pytest.raises(ValueError, match="first") as caught:
        call(function)
    assert str(caught.value.__cause__) == "second"
    assert caught.value.__cause__.__cause__ is caught.value


def test_groups(call: Any) -> None:
    def function() -> None:
        raise ExceptionGroup("both", [ValueError(1), KeyError(2)])

    with pytest.raises(ExceptionGroup) as caught:
        call(function)
    assert [repr(error) for error in caught.value.exceptions] == ["ValueError(1)", "KeyError(2)"]


def test_exceptions_with_arguments_of_their_own(call: Any) -> None:
    def function() -> None:
        class Odd(Exception):
            def __init__(self, code: int, *, name: str) -> None:
                super().__init__(f"{name} failed")
                self.code = code

        raise Odd(7, name="it")

    with pytest.raises(Exception, match="it failed") as caught:
        call(function)
    assert type(caught.value).__name__ == "Odd"
    assert caught.value.code == 7  # type: ignore[attr-defined]


def test_exceptions_that_cannot_be_pickled(call: Any) -> None:
    def the_function() -> None:
        error = ValueError("with a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(FunctionError, match=r"ValueError: with a lock .*could not be sent.*lock") as caught:
        call(the_function)
    assert "in the_function" in shown(caught.value)
    assert "Traceback" in caught.value.__notes__[0]


def test_exceptions_that_cannot_be_read_back(call: Any) -> None:
    def the_function() -> None:
        class Trap(Exception):
            def __reduce__(self):  # type: ignore[no-untyped-def]
                return int, ("not a number",)

        raise Trap("closed")

    with pytest.raises(FunctionError, match=r"Trap: closed .*could not be sent.*invalid literal"):
        call(the_function)


class Ending:
    """Ends the program of whoever reads it; unread, it can be sent."""

    def __reduce__(self) -> Any:
        return sys.exit, ("on the way",)


def test_results_that_end_whoever_reads_them(call: Any) -> None:
    with pytest.raises(TransferError, match=r"the result could not be read from the worker process.* on the way"):
        call(Ending)
    assert call(len, "abc") == 3


class Unsendable:
    """Ends the program of whoever sends it."""

    def __reduce__(self) -> Any:
        sys.exit("before the way")


def test_arguments_that_end_whoever_sends_them(call: Any) -> None:
    with pytest.raises(TransferError, match=r"argument 1 cannot be sent to a worker process.* before the way"):
        call(len, Unsendable())
    assert call(len, "abc") == 3


def test_exceptions_that_cannot_be_printed(call: Any) -> None:
    def the_function() -> None:
        class Shy(Exception):
            def __str__(self) -> str:
                raise RuntimeError

            def __reduce__(self):  # type: ignore[no-untyped-def]
                raise RuntimeError

        raise Shy

    with pytest.raises(FunctionError, match="Shy"):
        call(the_function)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException, StopIteration])
def test_any_exception_is_an_error_of_the_job(call: Any, kind: type[BaseException]) -> None:
    def function() -> None:
        raise kind("of the user")

    with pytest.raises(kind):
        call(function)


def test_results_that_cannot_be_pickled(call: Any) -> None:
    with pytest.raises(DataError, match=r"the result could not be sent from the worker process.*lock") as caught:
        call(threading.Lock)
    assert "_thread.lock" in shown(caught.value)
    assert call(lambda: 5) == 5


def test_results_too_deep_to_be_pickled(call: Any) -> None:
    def function() -> Any:
        nested: list[Any] = []
        for _ in range(100_000):
            nested = [nested]
        return nested

    with pytest.raises(DataError, match="the result could not be sent"):
        call(function)


def test_arguments_that_cannot_be_pickled(call: Any) -> None:
    with pytest.raises(DataError, match=r"argument 2 cannot be sent to a worker process.*lock") as caught:
        call(len, 1, threading.Lock())
    assert "the argument is" in shown(caught.value)
    assert call(len, "abc") == 3


def test_arguments_that_cannot_be_read(call: Any) -> None:
    class Trap:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return int, ("not a number",)

    with pytest.raises(DataError, match=r"the arguments could not be read in the worker process.*invalid literal"):
        call(repr, Trap())


def test_results_that_cannot_be_read(call: Any) -> None:
    def function() -> Any:
        class Trap:
            def __reduce__(self):  # type: ignore[no-untyped-def]
                return int, ("not a number",)

        return Trap()

    with pytest.raises(DataError, match=r"the result could not be read from the worker process.*invalid literal"):
        call(function)


def test_functions_that_cannot_be_pickled(start: Any) -> None:
    lock = threading.Lock()
    before = fds()
    with pytest.raises(PlanError, match=r"test: the function cannot be sent to a worker process.*lock"):
        start(lambda: lambda x: lock)
    assert fds() == before


def test_functions_that_cannot_be_read(start: Any) -> None:
    class Trap:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return int, ("not a number",)

    trap = Trap()
    executor = start(lambda: lambda: trap)
    for _ in range(2):
        with pytest.raises(DataError, match=r"the function could not be read in the worker process.*invalid lit"):
            executor.submit().result()


def test_functions_that_cannot_be_made(start: Any) -> None:
    def make_something() -> Any:
        raise ValueError("no function today")

    executor = start(make_something, workers=2)
    for job in [executor.submit(i) for i in range(3)]:
        with pytest.raises(ValueError, match="no function today") as caught:
            job.result()
        assert "in make_something" in shown(caught.value)


def test_no_workers(start: Any) -> None:
    with pytest.raises(PlanError, match="at least 1"):
        start(lambda: len, workers=0)
    with pytest.raises(PlanError, match="at least 1"):
        start(lambda: len).resize(0)


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_who_ends_the_program_ends_that_of_the_consumer(executor: str) -> None:
    def function(i: int) -> int:
        if i == 3:
            sys.exit(5)
        return i

    with iter(Dataset.range(9).map(function, 2, executor=executor)) as it, pytest.raises(SystemExit) as caught:
        list(it)
    assert caught.value.code == 5


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_the_traceback_of_who_ends_the_program(executor: str) -> None:
    def the_function(i: int) -> int:
        sys.exit("no more today")

    with iter(Dataset.range(9).map(the_function, 2, executor=executor)) as it, pytest.raises(SystemExit) as caught:
        next(it)
    assert caught.value.code == "no more today"
    assert "in the_function" in shown(caught.value)


class Exits:
    """Ends the program of whoever reads it, as a module does that parses a command line when it is imported."""

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return sys.exit, (3,)


def test_what_ends_the_program_while_it_is_read(start: Any, call: Any) -> None:
    ends = Exits()
    with pytest.raises(DataError, match=r"the function could not be read in the worker process: SystemExit: 3"):
        start(lambda: lambda: ends).submit().result()
    with pytest.raises(DataError, match=r"the arguments could not be read in the worker process: SystemExit: 3"):
        call(repr, Exits())


def test_what_ends_the_program_while_a_function_is_made(start: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        start(lambda: sys.exit(4)).submit().result()
    assert caught.value.code == 4


LIMITED = """
import resource, sys
import numpy as np
import forebay as fb

if __name__ == "__main__":
    wide = fb.Dataset.from_tensor_slices(np.zeros((3, 8 << 20), np.uint8))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
    for dataset, function in (
        (fb.Dataset.range(3), lambda i: np.zeros(8 << 20, np.uint8)),
        (wide, lambda row: row.sum()),
    ):
        try:
            list(dataset.map(function, 2, executor="process"))
        except fb.ForebayError as error:
            print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("limit", "kind"), [(4 << 20, "TransferError"), (1 << 16, "PlanError")])
def test_shared_memory_that_may_not_grow(tmp_path: Path, limit: int, kind: str) -> None:
    program = tmp_path / "limited.py"
    program.write_text(LIMITED)
    run = subprocess.run([sys.executable, program, str(limit)], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == 2, run.stderr
    for line in lines:
        assert line.startswith(f"{kind} map at limited.py:")
        assert "bytes of shared memory cannot be had" in line
        assert "ulimit -f" in line
