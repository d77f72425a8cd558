"""Programs in processes of their own that need not import anything first.

A process that has imported everything forks one for each program. What becomes of files and locks when that is killed
is the same as for any other process, and a hundred of them start in the time of ten.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Done:
    """How a program ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Nursery:
    """Runs programs, several at once if need be."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A process with threads must not be forked.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._outputs: dict[int, list[Any]] = {}

    def start(self, code: str, *arguments: object) -> int:
        """The process that runs it."""
        files = [tempfile.NamedTemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed when it has ended
        names = [file.name for file in files]
        pid: int = self._ask(("start", code, [str(argument) for argument in arguments], names))
        self._outputs[pid] = files
        return pid

    def wait(self, pid: int) -> Done:
        """Until it has ended."""
        code = self._ask(("wait", pid))
        texts = []
        for file in self._outputs.pop(pid):
            with file:
                texts.append(file.read().decode())
        return Done(code, *texts)

    def run(self, code: str, *arguments: object) -> Done:
        return self.wait(self.start(code, *arguments))

    def _ask(self, request: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        pickle.dump(request, self._server.stdin)
        self._server.stdin.flush()
        return pickle.load(self._server.stdout)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # At the end of its input the server ends.
        self._server.__exit__(kind, error, trace)
        assert self._server.returncode == 0


def _serve() -> str | None:
    """Returns in the children, with the program to run."""
    answers = os.fdopen(os.dup(1), "wb")
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return None
        if request[0] == "wait":
            _, status = os.waitpid(request[1], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            _, code, arguments, names = request
            answer = os.fork()
            if answer == 0:
                answers.close()
                for number, name in enumerate(names, 1):
                    to = os.open(name, os.O_WRONLY)
                    os.dup2(to, number)
                    os.close(to)
                sys.argv[:] = ["-c", *arguments]
                return str(code)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    # What any of the programs may want.
    for name in ("pyarrow.ipc", "forebay.storage.store"):
        importlib.import_module(name)
    program = _serve()
    if program is not None:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
