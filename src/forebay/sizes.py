"""Amounts of memory: as people write them, and as the machine really has them."""

import re
from pathlib import Path

from forebay.cgroups import folders
from forebay.errors import PlanError

_UNITS = {"": 1, "B": 1}
for power, letter in enumerate("KMGT", 1):
    _UNITS |= {f"{letter}B": 1000**power, f"{letter}IB": 1024**power, letter: 1024**power}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_size(name: str, size: "str | int | float", whole: int) -> int:
    """Bytes: `size` may be a number of them, a text such as "2GiB" or "500MB", or a fraction of the `whole`."""
    if isinstance(size, bool):
        raise PlanError(f"{name}={size!r}: a size is a number of bytes, a text such as '2GiB', or a fraction")
    if isinstance(size, int) and size > 0:
        return size
    if isinstance(size, float) and 0 < size < 1:
        return int(size * whole)
    if isinstance(size, str) and (found := _SIZE.fullmatch(size)) and found[2].upper() in _UNITS:
        count = int(float(found[1]) * _UNITS[found[2].upper()])
        if count > 0:
            return count
    raise PlanError(
        f"{name}={size!r}: a size is a whole number of bytes, a text such as '2GiB' or '500MB', or a fraction between "
        "0 and 1 of the memory that is left"
    )


def memory_left() -> int:
    """Bytes that this process may still use: what its container leaves, or the host."""
    groups = [left for folder in folders("memory") if (left := _left(folder)) is not None]
    return max(1, min([_host(), *groups]))


def _host() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 1 << 62


def _left(folder: Path) -> int | None:
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        try:
            most = (folder / limit).read_text().strip()
            if most == "max":
                return None
            return max(0, int(most) - int((folder / used).read_text()) + _reclaimable(folder))
        except (OSError, ValueError):
            continue
    return None


def _reclaimable(folder: Path) -> int:
    """Page cache counts as used, but gives way."""
    for line in (folder / "memory.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0
