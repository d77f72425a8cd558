"""Calls in worker processes: functions, results, and what workers know of their parent."""

import os
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from forebay.run.process.wire import Types, encode
from processes.support import alive, run_script, threads, wait_for


def test_closures_and_state_of_their_own(start: Any) -> None:
    step = 10

    def make() -> Callable[[int], tuple[int, int]]:
        calls = []

        def function(x: int) -> tuple[int, int]:
            calls.append(x)
            return x + step, len(calls)

        return function

    executor = start(make)
    assert [executor.submit(x).result() for x in range(3)] == [(10, 1), (11, 2), (12, 3)]


def test_every_job_gets_its_own_result(start: Any) -> None:
    executor = start(lambda: lambda x: (x, np.full(x, x), os.getpid()), workers=3)
    jobs = [executor.submit(x) for x in range(200)]
    results = [job.result() for job in jobs]
    assert [x for x, _, _ in results] == list(range(200))
    assert all(len(array) == x and (array == x).all() for x, array, _ in results)
    assert len({pid for _, _, pid in results}) == 3
    assert os.getpid() not in {pid for _, _, pid in results}
    assert all(job.done and job.seconds > 0 for job in jobs)


def test_seconds_are_those_of_the_worker(start: Any) -> None:
    job = start(lambda: time.sleep).submit(0.05)
    job.result()
    assert job.seconds >= 0.05


def test_nothing_is_started_before_the_first_job(start: Any) -> None:
    before = threads()
    executor = start(lambda: len, workers=4)
    assert threads() == before
    assert executor.workers == 4


def test_workers_agree_on_the_order_of_sets(start: Any, tmp_path: Path) -> None:
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


def test_workers_see_path_and_directory_but_not_the_script(tmp_path: Path) -> None:
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


def test_classes_of_the_script_come_back_as_themselves(tmp_path: Path) -> None:
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


def test_a_class_costs_little_once_it_is_known() -> None:
    point = namedtuple("point", "x y")
    point.__qualname__ = "nowhere.to.be.found"
    types = Types()
    first, second = (sum(map(len, encode(point(1, 2), types))) for _ in range(2))
    assert second < 100 < first


def test_workers_import_no_framework(start: Any) -> None:
    loaded = set(start(lambda: lambda: sorted(sys.modules)).submit().result())
    assert "numpy" in loaded
    heavy = {"torch", "tensorflow", "jax", "pandas", "pyarrow", "rich", "typer", "pytest", "multiprocessing"}
    assert not loaded & heavy


def test_up_and_down(start: Any) -> None:
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


def test_surplus_workers_finish_what_they_have(start: Any, tmp_path: Path) -> None:
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
