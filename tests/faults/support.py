"""Datasets on workers, and what can be seen of those workers from outside."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from forebay import Dataset
from processes.support import DEADLINE, wait_for

WORKER = "forebay worker"


foreign: set[int] = set()
"""Worker processes of this one that earlier tests keep, and that are no business of the one that runs."""


def workers_of(pid: int | None = None) -> set[int]:
    """The worker processes of a process, by default of this one."""
    found = set()
    try:
        for child in psutil.Process(pid).children(recursive=True):
            try:
                if any(part.startswith(WORKER) for part in child.cmdline()):
                    found.add(child.pid)
            except psutil.Error:
                continue
    except psutil.NoSuchProcess:
        return set()
    return found - foreign


def forebay_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("forebay")]


def assert_nothing_runs() -> None:
    """Neither a worker nor a thread, and at once: whoever closes something returns when it is gone."""
    assert workers_of() == set()
    assert forebay_threads() == []


def collect(gone: Callable[[], Any], what: str) -> None:
    """Have garbage collected until that is true: a collection is left out while another thread is at one, and finds
    nothing of what a thread that is about to end or to wait still has in hand.
    """

    def is_gone() -> bool:
        gc.collect()
        return bool(gone())

    wait_for(is_gone, what)


def busy(times: int) -> int:
    """Some work that holds the interpreter lock."""
    total = 0
    for i in range(times):
        total += i
    return total


def take_until_error(dataset: Dataset[Any]) -> tuple[list[Any], BaseException]:
    """The elements before the error, and the error."""
    found: list[Any] = []
    with iter(dataset) as it:
        try:
            for element in it:
                found.append(element)  # noqa: PERF402 - a list() would lose them
        except Exception as error:
            return found, error
    raise AssertionError(f"no error, but {len(found)} elements")


class Script:
    """A program in a process group of its own, which writes what it does line by line."""

    def __init__(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "script.py"
        path.write_text(text)
        self.output, self.errors = tmp_path / "output", tmp_path / "errors"
        # Nothing else writes there, so whatever is found in it afterwards was left by the script.
        self.temporary = tmp_path / "temporary"
        self.temporary.mkdir()
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(path)],
                stdout=output,
                stderr=errors,
                start_new_session=True,
                env=os.environ | {"TMPDIR": str(self.temporary)},
            )

    @property
    def lines(self) -> list[str]:
        return self.output.read_text().split("\n")[:-1]

    @property
    def text(self) -> str:
        return self.output.read_text() + self.errors.read_text()

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Until that is so, or the script has ended."""
        wait_for(lambda: condition() or self.process.poll() is not None, what)

    def wait_for_line(self, line: str, times: int = 1) -> None:
        self.wait_for(lambda: self.lines.count(line) >= times, f"{times} lines {line!r}")
        assert self.lines.count(line) >= times, self.text

    def end(self) -> int:
        """Its exit code, once it has ended by itself."""
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "Script":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
