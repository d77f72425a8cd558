"""The control groups that this process is in: what a container may use is written there."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/sys/fs/cgroup")


def folders(controller: str) -> Iterator[Path]:
    """The folders of all groups that limit this process in that respect, for both versions of cgroups."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _ROOT / controllers if controllers else _ROOT
        # Inside a container the path may be that of the host, which is not to be seen here; the root always is.
        for part in (PurePosixPath(group), *PurePosixPath(group).parents):
            yield root / str(part).lstrip("/")
