"""Errands where the system has no more threads: whoever asks does them, and nobody works on memory that has gone."""

import pytest

from unit.support import python

# Address space for no further thread's stack. Control groups that count threads refuse them in the same way.
PROGRAM = """
import resource, tempfile
import numpy as np
from forebay._native import Errands, crc32c

MIB = 1 << 20
errands = Errands()
data = np.random.default_rng(1).integers(0, 256, 4 * MIB, np.uint8)
file = tempfile.TemporaryFile()
file.write(data)
file.flush()

def no_more_threads():
    with open("/proc/self/statm") as sizes:
        taken = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 4 * MIB, before))

def as_many_threads_as_before():
    resource.setrlimit(resource.RLIMIT_AS, (before, before))

before = resource.getrlimit(resource.RLIMIT_AS)[1]
"""

DROPPED = """
out = np.zeros(len(data), np.uint8)
no_more_threads()
coming = errands.read_checked(file.fileno(), 0, out)
del coming, out
as_many_threads_as_before()
# In the place of what was dropped, and beside a thread that there is now.
others = [np.zeros(len(data), np.uint8) for _ in range(4)]
assert errands.read_checked(file.fileno(), 0, np.zeros(MIB, np.uint8)).wait() == crc32c(data[:MIB])
errands.settle()
print(sum(int(each.any()) for each in others))
"""

WAITED_FOR = """
out = np.zeros(len(data), np.uint8)
no_more_threads()
assert errands.read_checked(file.fileno(), 0, out).wait() == crc32c(data)
errands.settle()
as_many_threads_as_before()
print(int((out != data).sum()))
"""

# The one thread that there is asks for others to help.
ALONE = """
rows = 64
words = np.arange(rows, dtype=np.uint64)[::-1].copy()
piece = np.concatenate([words.view(np.uint8), data[: 1024 * rows]])
file.seek(0)
file.write(piece.tobytes() * 20)
file.flush()
errands.read_checked(file.fileno(), 0, np.zeros(10, np.uint8)).wait()
errands.allow(8)
starts = np.arange(20) * len(piece)
found, block = np.zeros(20, np.int64), np.zeros(20 * rows * 1024, np.uint8)
counts = np.full(20, rows)
no_more_threads()
arranging = errands.read_arranged(
    file.fileno(), file.fileno(), 0, starts, counts, np.array([1024]), np.array([0]), 0, 0, [block], 20 * rows, found
)
errands.settle()
arranging.wait()
as_many_threads_as_before()
assert found.tolist() == [crc32c(piece)] * 20
expected = np.repeat(data[: 1024 * rows].reshape(rows, 1024)[::-1], 20, axis=0)
print(int((block.reshape(-1, 1024) != expected).sum()))
"""


@pytest.mark.parametrize("use", [DROPPED, WAITED_FOR, ALONE])
def test_without_threads(use: str) -> None:
    assert python(PROGRAM + use, 60) == "0\n"
