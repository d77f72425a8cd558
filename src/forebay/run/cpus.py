"""How many processors there really are for this process."""

import os
from pathlib import Path

from forebay.cgroups import folders


def available_cpus() -> int:
    """The cores that this process may use: its affinity, and the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for folder in folders("cpu") if (quota := _quota(folder)) is not None]
    return max(1, int(min([cores, *quotas])))


def _quota(folder: Path) -> float | None:
    """In cores; None without one."""
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        try:
            quota, _, period = (folder / name).read_text().strip().partition(" ")
            period = period or (folder / "cpu.cfs_period_us").read_text()
            return int(quota) / int(period) if quota not in ("max", "-1") else None
        except (OSError, ValueError):
            continue
    return None
