"""What ``import`` costs, beyond the interpreter's own start and NumPy's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial

from bench.spec import MILLISECONDS, Contender, Empty, Sample, Task, ValueBelow, Workload

HEAVY = ("pyarrow", "torch", "jax", "tensorflow", "ray")
LIMIT_MS = 150


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def cumulative_ms(log: str) -> dict[str, float]:
    """Module name to the time of its import with everything it imported, from ``-X importtime``."""
    times: dict[str, float] = {}
    for line in log.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and len(fields) == 3 and fields[1].strip().isdigit():
            times[fields[2].strip()] = int(fields[1]) / 1000
    return times


def wall_ms(code: str) -> float:
    started = time.perf_counter()
    python("-c", code)
    return (time.perf_counter() - started) * 1000


def measure(_: Task, library: str) -> Sample:
    times = cumulative_ms(python("-X", "importtime", "-c", f"import {library}").stderr)
    loaded = f"import json, sys, {library}; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    return {
        "value": times[library] - (times.get("numpy", 0.0) if library != "numpy" else 0.0),
        "numpy_ms": times.get("numpy"),
        "wall_ms": wall_ms(f"import {library}"),
        "interpreter_ms": wall_ms("pass"),
        "heavy_modules": json.loads(python("-c", loaded).stdout.splitlines()[-1]),
    }


def contender(library: str, name: str, reference: bool = False, note: str = "") -> Contender:
    return Contender(name, library, partial(measure, library=library), note=note, reference=reference)


WORKLOADS = (
    Workload(
        name="import",
        title="import, beyond the interpreter and NumPy",
        unit=MILLISECONDS,
        contenders=(
            contender("forebay", "forebay"),
            contender("tensorflow", "tensorflow"),
            contender("torch", "torch"),
            contender("grain", "grain"),
            contender("datasets", "HF datasets"),
            contender("numpy", "NumPy itself", reference=True, note="already taken off the others"),
        ),
        targets=(
            ValueBelow("forebay", LIMIT_MS, "ms", "import"),
            Empty("forebay", "heavy_modules", f"imports none of {', '.join(HEAVY)}"),
        ),
    ),
)
