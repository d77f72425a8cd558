"""The control groups that this process is in: what a container may use is written there."""

import functools
from pathlib import Path, PurePosixPath

_ROOT = Path("/sys/fs/cgroup")


def limits(controller: str, *names: str) -> tuple[Path, ...]:
    """The files with the limits of all groups that this process is in, for both versions of cgroups.

    One for each group: the first of these names that is there.
    """
    try:
        groups = Path("/proc/self/cgroup").read_text()
    except OSError:
        return ()
    return _limits(groups, controller, names)


# Every iteration asks, and hardly ever is a process moved to another group.
@functools.lru_cache(maxsize=8)
def _limits(groups: str, controller: str, names: tuple[str, ...]) -> tuple[Path, ...]:
    found = []
    for line in groups.splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _ROOT / controllers if controllers else _ROOT
        # Inside a container the path may be that of the host, which is not to be seen here; the root always is.
        for part in (PurePosixPath(group), *PurePosixPath(group).parents):
            folder = root / str(part).lstrip("/")
            found += [file for name in names if (file := folder / name).exists()][:1]
    return tuple(found)
