"""Amounts of memory: as people write them, and as the machine really has them."""

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from forebay.cgroups import limits
from forebay.errors import PlanError
from forebay.system import read_text

_UNITS = {"": 1, "B": 1}
for power, letter in enumerate("KMGT", 1):
    _UNITS |= {f"{letter}B": 1000**power, f"{letter}IB": 1024**power, letter: 1024**power}
# Where a control group says how much it may use, and how much it does.
_USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
# What stands there in the first version of cgroups without a limit is the largest number of whole pages.
_UNLIMITED = 1 << 62
_MOST = 1 << 62
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_size(name: str, size: Any, whole: Callable[[], int]) -> int:
    """Bytes: `size` may be a number of them, a text such as "2GiB" or "500MB", or a fraction of the `whole`.

    The whole is asked for only then: finding out what memory is left takes a good part of a millisecond.
    """
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 0 < size <= _MOST:
        return int(size)
    if isinstance(size, (float, np.floating)) and 0 < size < 1:
        return max(int(float(size) * whole()), 1)
    if isinstance(size, str) and (found := _SIZE.fullmatch(size)) and found[2].upper() in _UNITS:
        count = float(found[1]) * _UNITS[found[2].upper()]
        if 1 <= count <= _MOST:
            return int(count)
    raise PlanError(
        f"{name}={size!r}: a size is a whole number of bytes, a text such as '2GiB' or '500MB', or a fraction between "
        "0 and 1 of what is left"
    )


def memory_left() -> int:
    """Bytes that this process may still use: what its container leaves, or the host."""
    groups = [left for file in limits("memory", *_USED) if (left := _left(file)) is not None]
    return max(1, min([_host(), *groups]))


def _host() -> int:
    try:
        for line in read_text("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return _UNLIMITED


def _left(limit: str) -> int | None:
    folder, name = os.path.split(limit)
    try:
        most = read_text(limit).strip()
        if most == "max" or int(most) >= _UNLIMITED:
            return None
        used = read_text(folder, _USED[name])
        return max(0, int(most) - int(used) + _reclaimable(folder))
    except (OSError, ValueError):
        return None


def _reclaimable(folder: str) -> int:
    """Page cache counts as used, but gives way."""
    for line in read_text(folder, "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0
