"""Calls in worker processes: what goes there, what comes back, and what is left afterwards."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.block import LEAF, Block, Cursor, Structure, column_from_rows
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from forebay.errors import ClosedError, DataError, FunctionError, PlanError
from forebay.run.process import ProcessExecutor
from forebay.run.process.segment import LARGE, PATIENCE, SMALLEST, Segment
from forebay.run.process.wire import Types, encode

DEADLINE = 60


def wait_for(condition: Callable[[], Any], what: str) -> None:
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, f"waited {DEADLINE} s for: {what}"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "forebay test"]


def run_script(tmp_path: Path, text: str, *, expect: int = 0) -> str:
    script = tmp_path / "script.py"
    script.write_text("from forebay.run.process import ProcessExecutor\n" + text)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == expect, done.stderr
    return done.stdout


@pytest.fixture
def start() -> Iterator[Callable[..., ProcessExecutor[Any]]]:
    made = []

    def make(make: Any, workers: int = 1, **others: Any) -> ProcessExecutor[Any]:
        made.append(ProcessExecutor(make, workers, "test", **others))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


@pytest.fixture(scope="module")
def call() -> Iterator[Callable[..., Any]]:
    """Calls any function in a worker that the tests share."""
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda function, *args: function(*args), 1, "shared")
    yield lambda function, *args: executor.submit(function, *args).result()
    executor.close()


def block_of(*columns: list[Any]) -> Block:
    structure = LEAF if len(columns) == 1 else Structure(tuple, (), (LEAF,) * len(columns))
    return Block(structure, [column_from_rows(column) for column in columns], len(columns[0]), Cursor({"at": 7}, 3))


def assert_same(got: Block, wanted: Block) -> None:
    assert got.structure == wanted.structure
    assert (got.rows, got.cursor) == (wanted.rows, wanted.cursor)
    assert [type(column) for column in got.columns] == [type(column) for column in wanted.columns]
    for mine, theirs in zip(got.columns, wanted.columns):
        for a, b in zip(mine.rows(), theirs.rows(), strict=True):
            assert type(a) is type(b)
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
            np.testing.assert_array_equal(a, b)


class TestCalls:
    def test_closures_and_state_of_their_own(self, start: Any) -> None:
        step = 10

        def make() -> Callable[[int], tuple[int, int]]:
            calls = []

            def function(x: int) -> tuple[int, int]:
                calls.append(x)
                return x + step, len(calls)

            return function

        executor = start(make)
        assert [executor.submit(x).result() for x in range(3)] == [(10, 1), (11, 2), (12, 3)]

    def test_every_job_gets_its_own_result(self, start: Any) -> None:
        executor = start(lambda: lambda x: (x, np.full(x, x), os.getpid()), workers=3)
        jobs = [executor.submit(x) for x in range(200)]
        results = [job.result() for job in jobs]
        assert [x for x, _, _ in results] == list(range(200))
        assert all(len(array) == x and (array == x).all() for x, array, _ in results)
        assert len({pid for _, _, pid in results}) == 3
        assert os.getpid() not in {pid for _, _, pid in results}
        assert all(job.done and job.seconds > 0 for job in jobs)

    def test_seconds_are_those_of_the_worker(self, start: Any) -> None:
        job = start(lambda: time.sleep).submit(0.05)
        job.result()
        assert job.seconds >= 0.05

    def test_nothing_is_started_before_the_first_job(self, start: Any) -> None:
        before = threads()
        executor = start(lambda: len, workers=4)
        assert threads() == before
        assert executor.workers == 4

    def test_workers_agree_on_the_order_of_sets(self, start: Any, tmp_path: Path) -> None:
        def together() -> Callable[[str], tuple[int, list[str]]]:
            return lambda directory: (
                open(f"{directory}/{os.getpid()}", "w").close(),
                [time.sleep(0.01) for _ in iter(lambda: len(os.listdir(directory)), 2)],
                list({f"word {i}" for i in range(100)}),
            )[2]

        executor = start(together, workers=2)
        jobs = [executor.submit(str(tmp_path)) for _ in range(2)]
        first, second = (job.result() for job in jobs)
        assert first == second

    def test_workers_see_path_and_directory_but_not_the_script(self, tmp_path: Path) -> None:
        (tmp_path / "hidden").mkdir()
        (tmp_path / "hidden" / "helper_module.py").write_text("def double(x): return 2 * x\n")
        (tmp_path / "elsewhere").mkdir()
        out = run_script(
            tmp_path,
            "import os, sys\n"
            "print('script runs')\n"
            "sys.path.insert(0, 'hidden'); import helper_module\n"
            "sys.path[0] = os.path.abspath('hidden'); os.chdir('elsewhere')\n"
            "executor = ProcessExecutor(lambda: lambda x: (helper_module.double(x), os.getcwd()), 1, 'x')\n"
            "print(executor.submit(21).result())\n"
            "executor.close()\n",
        )
        assert out == f"script runs\n(42, '{tmp_path}/elsewhere')\n"

    def test_classes_of_the_script_come_back_as_themselves(self, tmp_path: Path) -> None:
        out = run_script(
            tmp_path,
            "import collections, dataclasses\n"
            "Pair = collections.namedtuple('Pair', 'a b')\n"
            "@dataclasses.dataclass\n"
            "class Item:\n"
            "    seen = []\n"
            "    x: int\n"
            "    def shown(self): return counter\n"
            "counter = 0\n"
            "class Bad(Exception): pass\n"
            "def function(pair):\n"
            "    if pair.a < 0: raise Bad(pair)\n"
            "    return Item(pair.a), Pair\n"
            "executor = ProcessExecutor(lambda: function, 1, 'x')\n"
            "item, pair = executor.submit(Pair(1, 2)).result()\n"
            "counter = 5; Item.seen.append(1)\n"
            "again, _ = executor.submit(Pair(2, 2)).result()\n"
            "print(type(item) is Item, pair is Pair, again == Item(2), Item.seen, item.shown())\n"
            "try: executor.submit(Pair(-1, 2)).result()\n"
            "except Bad as error: print(error.args == (Pair(-1, 2),), type(error.args[0]) is Pair)\n"
            "executor.close()\n",
        )
        assert out == "True True True [1] 5\nTrue True\n"

    def test_a_class_costs_little_once_it_is_known(self) -> None:
        point = namedtuple("point", "x y")
        point.__qualname__ = "nowhere.to.be.found"
        types = Types()
        first, second = (sum(map(len, encode(point(1, 2), types))) for _ in range(2))
        assert second < 100 < first

    def test_workers_import_no_framework(self, start: Any) -> None:
        loaded = set(start(lambda: lambda: sorted(sys.modules)).submit().result())
        assert "numpy" in loaded
        heavy = {"torch", "tensorflow", "jax", "pandas", "pyarrow", "rich", "typer", "pytest", "multiprocessing"}
        assert not loaded & heavy


class TestBlocks:
    @pytest.mark.parametrize("rows", [1, 3, 5000])
    @pytest.mark.parametrize(
        "value",
        [
            lambda i: i,
            lambda i: np.float32(i),
            lambda i: np.full((7, 3), i % 256, np.uint8),
            lambda i: np.full((i % 5, 2), i, np.int16),
            lambda i: b"%d" % i * (i % 7),
            lambda i: f"ä{i}\udcff",
            lambda i: np.array([f"{i}", "x"], object),
            lambda i: None if i % 2 else np.arange(i % 4),
            lambda i: np.ones((1,) * (i % 3)),
            lambda i: {i, "any object"},
            lambda i: np.datetime64(i, "s"),
        ],
    )
    def test_every_kind_of_column_crosses(self, call: Any, value: Callable[[int], Any], rows: int) -> None:
        block = block_of([value(i) for i in range(rows)], list(range(rows)))
        assert_same(call(lambda block: block, block), block)

    def test_kinds_are_those_meant(self) -> None:
        columns = [column_from_rows(x) for x in ([1], [np.ones(1), np.ones(2)], ["a"], [None, 1])]
        assert [type(column) for column in columns] == [Dense, Ragged, Strings, Objects]

    def test_slices_send_what_they_show(self) -> None:
        rows = 10_000
        block = block_of(
            [np.full(i % 9, i) for i in range(rows)], [b"%d" % i * 20 for i in range(rows)], list(range(rows))
        ).slice(500, 510)
        assert sum(map(len, encode(block, Types()))) < 4000

    def test_slices_cross(self, call: Any) -> None:
        block = block_of([np.full(i % 9, i) for i in range(100)], [b"%d" % i * 20 for i in range(100)])
        assert_same(call(lambda block: block.slice(5, 17), block.slice(30, 60)), block.slice(35, 47))

    def test_arrays_are_not_in_the_pickle(self) -> None:
        array = np.zeros((1000, 1000))
        for value in (array, array[::2], array[:, ::3], array.T, Dense(array, owned=False)):
            parts = encode(value, Types())
            assert len(parts[0]) < 1000
            assert len(parts) == 2

    def test_arrays_of_all_sorts(self, call: Any) -> None:
        base = np.arange(60_000).reshape(200, 300)
        locked = base.copy()
        locked.flags.writeable = False
        broadcast = np.broadcast_to(np.arange(5000), (3, 5000))
        record = np.zeros(3000, [("a", "i4"), ("b", "f8")])
        empty = np.empty((0, 5), np.float16)
        scalar = np.array(3)
        swapped = base.astype(">i8")
        sent = (base, base.T, base[::3, ::-1], locked, broadcast, record, empty, scalar, swapped)
        for got, wanted in zip(call(lambda *arrays: arrays, *sent), sent, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)

    def test_what_comes_back_belongs_to_the_receiver(self, call: Any) -> None:
        array = np.zeros(100_000)
        first = call(lambda x: x, array)
        first[:] = 1
        second = call(lambda x: x, array)
        assert (first == 1).all()
        assert (second == 0).all()
        assert (array == 0).all()

    def test_columns_that_share_an_array_do_not_share_it_afterwards(self, call: Any) -> None:
        values = np.zeros(10_000)
        twins = [Dense(values, owned=False) for _ in range(2)]
        a, b = call(lambda columns: columns, twins)
        assert a.owned
        assert b.owned
        a.private().values[:] = 1
        assert (b.values == 0).all()

    def test_locked_arrays_are_not_called_owned(self, call: Any) -> None:
        values = np.zeros(10_000)
        values.flags.writeable = False
        column = call(lambda column: column, Dense(values, owned=False))
        column.private().values[:] = 1

    def test_memory_is_anonymous(self, call: Any) -> None:
        maps = call(lambda _: Path("/proc/self/maps").read_text(), np.zeros(1 << 20))
        assert "memfd:forebay" in maps
        assert "/dev/shm" not in maps

    def test_messages_of_any_size(self, call: Any) -> None:
        for size in (0, 1, 1 << 20, 40 << 20, 5, 3 << 20):
            value = np.arange(size, dtype=np.uint8)
            np.testing.assert_array_equal(call(lambda x: x + np.uint8(1), value), value + np.uint8(1))
        text = "x" * (5 << 20)
        assert call(lambda x: x, text) == text


class TestSegment:
    def test_grows_and_shrinks_on_both_sides(self) -> None:
        ours, fd = Segment.create()
        theirs = Segment(fd)
        large = bytes(2 * LARGE)
        (part,) = theirs.read(ours.write([large]))
        assert len(part) == len(large)
        assert len(ours) == len(theirs) > len(large)
        for _ in range(PATIENCE + 1):
            (part,) = theirs.read(ours.write([b"small"]))
            assert bytes(part) == b"small"
        assert len(ours) == len(theirs) == os.fstat(fd).st_size == SMALLEST
        ours.close()
        theirs.close()
        os.close(fd)

    def test_a_large_question_with_a_small_answer_keeps_its_memory(self) -> None:
        ours, fd = Segment.create()
        theirs = Segment(fd)
        os.close(fd)
        large = bytes(2 * LARGE)
        sizes = set()
        for _ in range(PATIENCE):
            theirs.read(ours.write([large]))
            ours.read(theirs.write([b"small"]))
            sizes.add(len(ours))
        assert len(sizes) == 1
        ours.close()
        theirs.close()

    def test_parts_stay_apart(self) -> None:
        ours, fd = Segment.create()
        os.close(fd)
        parts = [bytes([i]) * length for i, length in enumerate((1, 63, 64, 65, 5000, 7))]
        assert [bytes(part) for part in ours.read(ours.write(parts))] == parts
        ours.close()


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class TestErrors:
    def test_traceback_and_cause_arrive(self, call: Any) -> None:
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

    def test_errors_inside_results_keep_their_cause(self, call: Any) -> None:
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

    def test_context_and_circles(self, call: Any) -> None:
        def function() -> None:
            first, second = ValueError("first"), ValueError("second")
            first.__cause__, second.__cause__ = second, first
            raise first

        with pytest.raises(ValueError, match="first") as caught:
            call(function)
        assert str(caught.value.__cause__) == "second"
        assert caught.value.__cause__.__cause__ is caught.value

    def test_groups(self, call: Any) -> None:
        def function() -> None:
            raise ExceptionGroup("both", [ValueError(1), KeyError(2)])

        with pytest.raises(ExceptionGroup) as caught:
            call(function)
        assert [repr(error) for error in caught.value.exceptions] == ["ValueError(1)", "KeyError(2)"]

    def test_exceptions_with_arguments_of_their_own(self, call: Any) -> None:
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

    def test_exceptions_that_cannot_be_pickled(self, call: Any) -> None:
        def the_function() -> None:
            error = ValueError("with a lock")
            error.lock = threading.Lock()  # type: ignore[attr-defined]
            raise error

        with pytest.raises(FunctionError, match=r"ValueError: with a lock .*could not be sent.*lock") as caught:
            call(the_function)
        assert "in the_function" in shown(caught.value)
        assert "Traceback" in caught.value.__notes__[0]

    def test_exceptions_that_cannot_be_read_back(self, call: Any) -> None:
        def the_function() -> None:
            class Trap(Exception):
                def __reduce__(self):  # type: ignore[no-untyped-def]
                    return int, ("not a number",)

            raise Trap("closed")

        with pytest.raises(FunctionError, match=r"Trap: closed .*could not be sent.*invalid literal"):
            call(the_function)

    def test_exceptions_that_cannot_be_printed(self, call: Any) -> None:
        def the_function() -> None:
            class Shy(Exception):
                def __str__(self) -> str:
                    raise RuntimeError

                def __reduce__(self):  # type: ignore[no-untyped-def]
                    raise RuntimeError

            raise Shy

        with pytest.raises(FunctionError, match="Shy"):
            call(the_function)

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, BaseException, StopIteration, MemoryError])
    def test_any_exception_is_an_error_of_the_job(self, call: Any, kind: type[BaseException]) -> None:
        def function() -> None:
            raise kind("of the user")

        with pytest.raises(kind):
            call(function)

    def test_results_that_cannot_be_pickled(self, call: Any) -> None:
        with pytest.raises(DataError, match="the result could not be sent from the worker process.*lock") as caught:
            call(threading.Lock)
        assert "_thread.lock" in shown(caught.value)
        assert call(lambda: 5) == 5

    def test_results_too_deep_to_be_pickled(self, call: Any) -> None:
        def function() -> Any:
            nested: list[Any] = []
            for _ in range(100_000):
                nested = [nested]
            return nested

        with pytest.raises(DataError, match="the result could not be sent"):
            call(function)

    def test_arguments_that_cannot_be_pickled(self, call: Any) -> None:
        with pytest.raises(DataError, match=r"argument 2 cannot be sent to a worker process.*lock") as caught:
            call(len, 1, threading.Lock())
        assert "the argument is" in shown(caught.value)
        assert call(len, "abc") == 3

    def test_arguments_that_cannot_be_read(self, call: Any) -> None:
        class Trap:
            def __reduce__(self):  # type: ignore[no-untyped-def]
                return int, ("not a number",)

        with pytest.raises(DataError, match="the arguments could not be read in the worker process.*invalid literal"):
            call(repr, Trap())

    def test_results_that_cannot_be_read(self, call: Any) -> None:
        def function() -> Any:
            class Trap:
                def __reduce__(self):  # type: ignore[no-untyped-def]
                    return int, ("not a number",)

            return Trap()

        with pytest.raises(DataError, match="the result could not be read from the worker process.*invalid literal"):
            call(function)

    def test_functions_that_cannot_be_pickled(self, start: Any) -> None:
        lock = threading.Lock()
        before = fds()
        with pytest.raises(PlanError, match="test: the function cannot be sent to a worker process.*lock"):
            start(lambda: lambda x: lock)
        assert fds() == before

    def test_functions_that_cannot_be_read(self, start: Any) -> None:
        class Trap:
            def __reduce__(self):  # type: ignore[no-untyped-def]
                return int, ("not a number",)

        trap = Trap()
        executor = start(lambda: lambda: trap)
        for _ in range(2):
            with pytest.raises(DataError, match="the function could not be read in the worker process.*invalid lit"):
                executor.submit().result()

    def test_functions_that_cannot_be_made(self, start: Any) -> None:
        def make_something() -> Any:
            raise ValueError("no function today")

        executor = start(make_something, workers=2)
        for job in [executor.submit(i) for i in range(3)]:
            with pytest.raises(ValueError, match="no function today") as caught:
                job.result()
            assert "in make_something" in shown(caught.value)

    def test_no_workers(self, start: Any) -> None:
        with pytest.raises(PlanError, match="at least 1"):
            start(lambda: len, workers=0)
        with pytest.raises(PlanError, match="at least 1"):
            start(lambda: len).resize(0)


class TestDeaths:
    @pytest.mark.parametrize(
        ("die", "how"),
        [
            (lambda: sys.exit(0), "it exited with code 0"),
            (lambda: os._exit(3), "it exited with code 3"),
            (lambda: os.kill(os.getpid(), signal.SIGKILL), "it was killed by SIGKILL"),
            (lambda: os.kill(os.getpid(), signal.SIGTERM), "it was killed by SIGTERM"),
            (lambda: __import__("ctypes").string_at(1), "it was killed by SIGSEGV"),
        ],
    )
    def test_three_deaths_fail_the_job(self, start: Any, die: Any, how: str, capfd: Any) -> None:
        executor = start(lambda: lambda x: die() if x == 3 else x, describe=lambda x: f"element {x}")
        jobs = [executor.submit(x) for x in range(6)]
        with pytest.raises(FunctionError) as caught:
            jobs[3].result()
        assert str(caught.value).startswith("test: the worker process died 3 times on element 3 (1: ")
        assert str(caught.value).count(how) == 3
        assert [job.result() for job in jobs if job is not jobs[3]] == [0, 1, 2, 4, 5]

    def test_arguments_are_described(self, start: Any) -> None:
        executor = start(lambda: lambda *_: os._exit(1))
        with pytest.raises(FunctionError, match=r"on the call with 5 \(builtins.int\), array\(\[0, 1, 2\]\)"):
            executor.submit(5, np.arange(3)).result()
        executor = start(lambda: lambda *_: os._exit(1), describe=lambda: "takes no argument")
        with pytest.raises(FunctionError, match="could not be described"):
            executor.submit(5).result()

    def test_a_death_in_the_middle_repeats_the_job(self, start: Any, tmp_path: Path) -> None:
        def function(x: int) -> tuple[int, int]:
            marks = tmp_path / str(x)
            with marks.open("a") as file:
                file.write("begun\n")
            if x % 4 == 1 and len(marks.read_text().splitlines()) < 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return x, len(marks.read_text().splitlines())

        executor = start(lambda: function, workers=2)
        jobs = [executor.submit(x) for x in range(12)]
        results = [job.result() for job in jobs]
        assert [x for x, _ in results] == list(range(12))
        assert [times for x, times in results if x % 4 == 1] == [3, 3, 3]

    def test_an_idle_worker_is_replaced(self, start: Any) -> None:
        executor = start(lambda: lambda: os.getpid())
        pid = executor.submit().result()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), "the worker's death")
        assert executor.submit().result() != pid

    def test_a_worker_that_closes_everything_is_a_death(self, start: Any) -> None:
        executor = start(lambda: lambda: (os.closerange(3, 100), time.sleep(1000)))
        with pytest.raises(FunctionError, match="died 3 times"):
            executor.submit().result()

    def test_a_death_is_noticed_though_a_child_of_the_worker_lives(self, start: Any, tmp_path: Path) -> None:
        def function() -> None:
            pid = os.fork()
            if pid == 0:
                time.sleep(1000)
                os._exit(0)
            with (tmp_path / "pids").open("a") as file:
                file.write(f"{pid}\n")
            os._exit(9)

        try:
            with pytest.raises(FunctionError, match="code 9"):
                start(lambda: function).submit().result()
        finally:
            for pid in (tmp_path / "pids").read_text().split():
                os.kill(int(pid), signal.SIGKILL)


class TestResize:
    def test_up_and_down(self, start: Any) -> None:
        executor = start(lambda: lambda: (time.sleep(0.02), os.getpid())[1])

        def pids(count: int) -> set[int]:
            return {job.result() for job in [executor.submit() for _ in range(count)]}

        one = pids(4)
        assert len(one) == 1
        executor.resize(3)
        wait_for(lambda: len(pids(12)) == 3, "three workers")
        executor.resize(1)
        assert executor.workers == 1
        wait_for(lambda: len(pids(4)) == 1, "one worker")
        executor.close()
        assert not any(alive(pid) for pid in one)

    def test_surplus_workers_finish_what_they_have(self, start: Any, tmp_path: Path) -> None:
        def function(x: int) -> int:
            (tmp_path / f"begun {x}").touch()
            while not (tmp_path / "go").exists():
                time.sleep(0.005)
            return os.getpid()

        executor = start(lambda: function, workers=3)
        jobs = [executor.submit(x) for x in range(6)]
        wait_for(lambda: len(os.listdir(tmp_path)) == 3, "three calls")
        executor.resize(1)
        (tmp_path / "go").touch()
        pids = [job.result() for job in jobs]
        assert len(set(pids)) == 3
        wait_for(lambda: sum(map(alive, set(pids))) == 1, "two workers to leave")
        assert alive(executor.submit(7).result())


class TestClose:
    def test_nothing_is_left(self, tmp_path: Path) -> None:
        before = fds()
        for _ in range(3):
            executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda: os.getpid(), 2, "test")
            pid = executor.submit().result()
            executor.close()
            executor.close()
            assert not alive(pid)
            with pytest.raises(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        assert fds() == before
        assert threads() == []

    def test_unused_executors_leave_nothing(self) -> None:
        before = fds()
        for _ in range(100):
            ProcessExecutor(lambda: len, 2, "test").close()
        assert fds() == before

    def test_in_the_middle_of_a_call(self, tmp_path: Path) -> None:
        def function(x: int) -> None:
            if x == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            (tmp_path / f"{os.getpid()}").touch()
            time.sleep(1000)

        executor: ProcessExecutor[Any] = ProcessExecutor(lambda: function, 2, "test")
        jobs = [executor.submit(x) for x in range(5)]
        wait_for(lambda: len(os.listdir(tmp_path)) == 2, "both calls to begin")
        executor.close()
        assert not any(alive(int(pid)) for pid in os.listdir(tmp_path))
        assert threads() == []
        for job in jobs:
            with pytest.raises(ClosedError, match="test is closed"):
                job.result()
        with pytest.raises(ClosedError):
            executor.submit(1)

    def test_while_workers_are_starting(self) -> None:
        before = fds()
        executor: ProcessExecutor[Any] = ProcessExecutor(lambda: len, 3, "test")
        jobs = [executor.submit("abc") for _ in range(3)]
        executor.close()
        assert fds() == before
        assert all(job.done for job in jobs)

    def test_idle_workers_clean_up_after_themselves(self, start: Any, tmp_path: Path) -> None:
        def make() -> Callable[[], None]:
            import atexit

            atexit.register((tmp_path / "cleaned").touch)
            return lambda: None

        executor = start(make)
        executor.submit().result()
        executor.resize(1)
        executor._dispatcher._children[0].hang_up()
        wait_for((tmp_path / "cleaned").exists, "the worker's own clean-up")

    def test_garbage_collection_closes(self, tmp_path: Path) -> None:
        executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda: os.getpid(), 1, "test")
        pid = executor.submit().result()
        circle: list[Any] = [executor]
        circle.append(circle)
        del executor, circle
        gc.collect()
        wait_for(lambda: not alive(pid) and not threads(), "the worker to end")

    def test_a_forked_child_of_the_parent_leaves_the_workers_alone(self, start: Any) -> None:
        executor = start(lambda: lambda: os.getpid())
        pid = executor.submit().result()
        child = os.fork()
        if child == 0:
            executor.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert executor.submit().result() == pid

    @pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "import threading; del executor"])
    def test_interpreter_exit(self, tmp_path: Path, ending: str) -> None:
        out = run_script(
            tmp_path,
            "import os, time\n"
            "executor = ProcessExecutor(lambda: lambda x: (os.getpid(), time.sleep(x))[0], 2, 'x')\n"
            "print(executor.submit(0).result(), flush=True)\n"
            "jobs = [executor.submit(1000) for _ in range(4)]\n" + ending,
        )
        assert not alive(int(out))
