"""Which workers a stage gets."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar, get_args

from forebay.errors import PlanError
from forebay.run.executor import Executor, InlineExecutor, ThreadExecutor

R = TypeVar("R")

ExecutorName = Literal["inline", "thread"]
AUTOTUNE = -1


def check_executor(call: str, executor: str) -> None:
    """PlanError unless it is the name of an executor."""
    if executor not in get_args(ExecutorName):
        allowed = ", ".join(map(repr, get_args(ExecutorName)))
        raise PlanError(f"{call}(executor={executor!r}): executor must be one of {allowed}")


def available_cpus() -> int:
    """The cores that this process may really use: its affinity, and the container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(_cgroup_cpus() or cores)))


def _cgroup_cpus() -> float | None:
    """The CPU quota of the container in cores, for both versions of cgroups; None without one."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        folder = Path("/sys/fs/cgroup/cpu")
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        return quota_us / int((folder / "cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


def start(kind: str, calls: int | None, make: Callable[[], Callable[..., R]], name: str) -> Executor[R]:
    """The workers for a stage that asked for `calls` of them; none at all if it did not ask."""
    if calls is None or kind == "inline":
        return InlineExecutor(make)
    workers = available_cpus() if calls == AUTOTUNE else calls
    return ThreadExecutor(make, workers, name)
