"""Lines that are too long for the budget: an error, and not the memory that they would take."""

import zlib
from pathlib import Path

import pytest

from unit.support import python

MB = 1 << 20

GROWN = """
import sys
import forebay as fb

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

dataset = fb.TextLineDataset(sys.argv[1], sys.argv[2]).with_options(fb.Options(memory=64 << 20))
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
try:
    list(dataset)
except fb.FileError as error:
    print(status("VmHWM") - before, error)
"""


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_a_line_longer_than_the_budget(tmp_path: Path, compression: str) -> None:
    """As long as the window grows, the old one is there as well: half of the budget. What a few bytes unfold to is not
    there a third time."""
    path = tmp_path / "line"
    folder = zlib.compressobj(1, zlib.DEFLATED, 31 if compression == "GZIP" else 15)
    with open(path, "wb") as out:
        for _ in range(128):
            out.write(folder.compress(b"x" * MB) if compression else b"x" * MB)
        out.write(folder.flush() if compression else b"")
    grown, _, error = python(GROWN, 300, str(path), compression).partition(" ")
    assert "bytes have to be read at once, and the budget is 67,108,864" in error
    assert int(grown) <= 112 * MB
