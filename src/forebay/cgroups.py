"""The control groups that this process is in: what a container may use is written there."""

import functools
import os

from forebay.system import read_text

_ROOT = "/sys/fs/cgroup"


def limits(controller: str, *names: str) -> tuple[str, ...]:
    """The files with the limits of all groups that this process is in, for both versions of cgroups.

    One for each group: the first of these names that is there.
    """
    try:
        groups = read_text("/proc/self/cgroup")
    except OSError:
        return ()
    return _limits(groups, controller, names)


# Every iteration asks, and hardly ever is a process moved to another group.
@functools.lru_cache(maxsize=8)
def _limits(groups: str, controller: str, names: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for line in groups.splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        parts = group.strip("/").split("/") if group.strip("/") else []
        # Inside a container the path may be that of the host, which is not to be seen here; the root always is.
        for depth in range(len(parts), -1, -1):
            folder = os.path.join(_ROOT, controllers, *parts[:depth])
            found += [file for name in names if os.path.exists(file := os.path.join(folder, name))][:1]
    return tuple(found)
