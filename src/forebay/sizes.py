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
# Limits that a process has for itself, and what counts in them, in pages, by its place in /proc/self/statm.
_OWN = {"Max address space": 0, "Max data size": 5}
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_FRACTION = re.compile(r"\s*0?\.\d*[1-9]\d*\s*")
_NOTHING = re.compile(r"\s*0+(?:\.0+)?\s*[A-Za-z]*\s*")
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
        f"0 and 1 of what is left{_instead(size)}"
    )


def _instead(size: Any) -> str:
    """What to write for a size that is plainly meant, or what is wrong with it."""
    if isinstance(size, str) and (percent := _PERCENT.fullmatch(size)) and 0 < float(percent[1]) < 100:
        return f". For {size.strip()} write {float(percent[1]) / 100:.6g}"
    if isinstance(size, str) and _FRACTION.fullmatch(size):
        return f". For a fraction write {size.strip()} without quotes"
    if isinstance(size, (float, np.floating)) and 1 < size < _MOST:
        return f". For {size:g} bytes write {int(size)}"
    number = isinstance(size, (int, float, np.number)) and not isinstance(size, bool)
    if (number and size == 0) or (isinstance(size, str) and _NOTHING.fullmatch(size)):
        return ". Of 0 bytes nothing fits: it must be more"
    return ""


def size_text(count: float) -> str:
    """Bytes as reports say them.

    >>> size_text(512), size_text(1.5 * 2**20), size_text(2**29), size_text(3 * 2**30)
    ('512 B', '1.5 MiB', '512 MiB', '3 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            # No more digits than tell it apart, and none that are 0.
            return (
                f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f}".removesuffix(".0") + f" {unit}"
            )
        count /= 1024
    raise AssertionError


def larger_unit(size: Any) -> str:
    """A question to whoever gave a size of some bytes only, which perhaps was meant in MiB; nothing if it was not."""
    found = _SIZE.fullmatch(str(size))
    if found is None or isinstance(size, (float, np.floating)):
        return ""
    plain = "" if found[2] else "A whole number means bytes: "
    question = f"{plain}was '{found[1]}MiB' meant?"
    return question[0].upper() + question[1:]


def memory_left() -> int:
    """Bytes that this process may still use: what its own limits leave, its container, or the host."""
    return max(1, min([system_left(), *_own()]))


def system_left() -> int:
    """The same without its own limits, in which the system's page cache does not count."""
    groups = [left for file in limits("memory", *_USED) if (left := _left(file)) is not None]
    return max(1, min([_host(), *groups]))


def _own() -> list[int]:
    """What each leaves. Read from files: to import what asks for limits takes longer."""
    try:
        lines = read_text("/proc/self/limits").splitlines()
        soft = {name: line[len(name) :].split()[0] for line in lines for name in _OWN if line.startswith(name)}
        most = {name: int(bound) for name, bound in soft.items() if bound != "unlimited"}
        used = read_text("/proc/self/statm").split() if most else []
    except (OSError, ValueError):
        return []
    page = os.sysconf("SC_PAGESIZE")
    return [bound - int(used[_OWN[name]]) * page for name, bound in most.items()]


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
