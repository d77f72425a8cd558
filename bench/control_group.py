"""A control group with a limit on memory for one process: unlike RLIMIT_DATA, it counts the page cache too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "forebay-bench-"


class NoControlGroup(RuntimeError):
    """None can be made here."""


def enter(nbytes: int) -> None:
    """Move this process to a group of its own that may have so many bytes. What it has already is not counted."""
    parent, limit = _parent()
    # Those of processes that have ended.
    for left in parent.glob(_PREFIX + "*"):
        with suppress(OSError):
            left.rmdir()
    group = parent / f"{_PREFIX}{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(nbytes))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        raise NoControlGroup(f"no control group can be made in {parent}: {error}; run this as root") from error


def _parent() -> tuple[Path, str]:
    """Where groups can be made, and the name of the file with their limit, for both versions of control groups."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            own = _ROOT / "memory" / path.strip("/")
            return (own if own.is_dir() else _ROOT / "memory"), "memory.limit_in_bytes"
    if (_ROOT / "cgroup.subtree_control").is_file():
        with suppress(OSError):
            (_ROOT / "cgroup.subtree_control").write_text("+memory")
        return _ROOT, "memory.max"
    raise NoControlGroup("there are no control groups for memory here")
