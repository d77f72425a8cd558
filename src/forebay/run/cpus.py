"""How many processors there really are for this process."""

import functools
import os

from forebay.cgroups import limits
from forebay.heaps import limit_heaps
from forebay.system import read_text

_FILES = ("cpu.max", "cpu.cfs_quota_us")


def available_cpus() -> int:
    """The cores that this process may use: its affinity, and the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for file in limits("cpu", *_FILES) if (quota := _quota(file)) is not None]
    return max(1, int(min([cores, *quotas])))


@functools.cache
def share_heaps() -> None:
    """Before threads are started that make rows: no more heaps than processors."""
    limit_heaps(max(2, available_cpus()))


def _quota(limit: str) -> float | None:
    """In cores; None without one."""
    try:
        quota, _, period = read_text(limit).strip().partition(" ")
        if quota in ("max", "-1"):
            return None
        return int(quota) / int(period or read_text(os.path.dirname(limit), "cpu.cfs_period_us"))
    except (OSError, ValueError):
        return None
