"""Measures one contender, once: ``python -m bench.child WORKLOAD CONTENDER ROWS [--verify] [--folder=PATH]``.

Whatever a library prints goes to standard error; standard output carries one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from bench.spec import Task
from bench.workloads import find


def main(arguments: list[str]) -> None:
    workload_name, contender_name, rows, *flags = arguments
    answer = os.dup(1)
    os.dup2(2, 1)
    folder = next((Path(flag.partition("=")[2]) for flag in flags if flag.startswith("--folder=")), None)
    task = Task(rows=int(rows), verify="--verify" in flags, folder=folder)
    sample = find(workload_name).contender(contender_name).measure(task)
    with os.fdopen(answer, "w") as out:
        json.dump(sample, out)


if __name__ == "__main__":
    main(sys.argv[1:])
