"""How many processors there really are for this process."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")


def available_cpus() -> int:
    """The cores that this process may use: its affinity, and the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([cores, *_quotas()])))


def _quotas() -> Iterator[float]:
    """The CPU quotas in cores of all control groups that this process is in, for both versions of cgroups."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers if controllers else _CGROUPS
        # Inside a container the path may be that of the host, which is not to be seen here; the root always is.
        for part in (PurePosixPath(group), *PurePosixPath(group).parents):
            quota = _quota(root / str(part).lstrip("/"))
            if quota is not None:
                yield quota


def _quota(folder: Path) -> float | None:
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        try:
            quota, _, period = (folder / name).read_text().strip().partition(" ")
            period = period or (folder / "cpu.cfs_period_us").read_text()
            return int(quota) / int(period) if quota not in ("max", "-1") else None
        except (OSError, ValueError):
            continue
    return None
