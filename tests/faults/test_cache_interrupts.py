"""Ctrl-C at every point where Python may deliver it, while a cache fills: later iterations get what they should."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from unit.interrupting import Key, interrupted_next
from unit.support import assert_same

ROWS = 16
# A prime number of moments, so that the steps of one round after another are met at different places.
EVERY = 23
KINDS = ["in memory", "on disk", "in a folder"]


def rows(uneven: bool) -> Dataset[Any]:
    def row(i: int) -> Any:
        return np.full(1 + i % 5 if uneven else 3, i)

    return Dataset.range(ROWS).map(row)


def whole_run(dataset: Dataset[Any], key: Key, anew: bool) -> list[Any]:
    """All elements, of the iteration that was interrupted or of another one."""
    it, found = iter(dataset), []
    while True:
        try:
            found.append(interrupted_next(it, key))
        except StopIteration:
            return found
        except KeyboardInterrupt:
            if anew:
                it, found = iter(dataset), []


# A key that is pressed while Python drops something is swallowed there, with no more than a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("anew", [False, True], ids=["go on", "begin anew"])
@pytest.mark.parametrize("uneven", [False, True], ids=["alike", "uneven"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_while_a_cache_fills(kind: str, uneven: bool, anew: bool, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    options = fb.Options(block_bytes=100, memory="64MiB" if kind == "in memory" else "8KiB")

    def cached() -> Dataset[Any]:
        shutil.rmtree(folder, ignore_errors=True)
        return rows(uneven).cache(folder if kind == "in a folder" else "").with_options(options)

    expected = list(rows(uneven))
    whole = Key()
    whole_run(cached(), whole, anew)
    pressed = 0
    for moment in range(1, whole.count, EVERY):
        dataset, key = cached(), Key(moment)
        assert_same(whole_run(dataset, key, anew), expected, f"interrupted at moment {moment}")
        assert_same(list(dataset), expected, f"the epoch after an interrupt at moment {moment}")
        pressed += key.count >= moment
    assert pressed > 40
