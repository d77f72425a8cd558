"""How much memory this process takes, as the system counts it, and how much is left, at little cost."""

import os
import sys
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]

from forebay.system import read_text

_PAGE = os.sysconf("SC_PAGE_SIZE")


class ResidentMemory:
    """Resident memory of this process. The file that tells it is opened once, which makes a reading a few µs.

    >>> with ResidentMemory() as memory:
    ...     memory.read() > 1 << 20
    True
    """

    def __init__(self) -> None:
        self._file = -1
        self.shared = 0
        """What of the last reading are files, and memory that is shared with other processes; 0 where nobody tells."""
        self.read: Callable[[], int]
        if sys.platform == "linux":
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            self.read = self._from_file
        else:
            process = psutil.Process()
            self.read = lambda: int(process.memory_info().rss)

    def _from_file(self) -> int:
        _, resident, shared, _ = os.pread(self._file, 128, 0).split(None, 3)
        self.shared = int(shared) * _PAGE
        return int(resident) * _PAGE

    def shared_memory(self) -> int:
        """What of it is no file: memory that is shared with other processes, or files that are only in memory."""
        lines = _text("/proc/self/status").splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssShmem:"))

    def close(self) -> None:
        """Close the file; ``read`` is over."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "ResidentMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def free_memory() -> int:
    """What can still be taken before the machine, or the container this runs in, has no more."""
    free = int(psutil.virtual_memory().available)
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most, now = _text(limit).strip(), _text(used).strip()
        if most.isdigit() and now.isdigit():
            free = min(free, max(0, int(most) - int(now)))
    return free


def _text(path: str) -> str:
    try:
        return read_text(path)
    except OSError:
        return ""
