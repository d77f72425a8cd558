"""How much of a saved dataset is read: every batch once in the first epoch, to be checked and to be given out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.storage import file_reader
from forebay.storage.store import Store

ROWS = 6_000


def element(x: Any) -> Any:
    return {"x": np.full(100, x), "text": "t" * int(x % 50), "list": np.arange(x % 20)}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that were read from files, by read."""
    found: list[int] = []
    checked, rows = file_reader.read_checked, file_reader.StoredFile.read_rows
    monkeypatch.setattr(
        file_reader, "read_checked", lambda file, at, out: (found.append(len(out)), checked(file, at, out))[1]
    )
    monkeypatch.setattr(
        file_reader.StoredFile, "read_rows", lambda file, at, out: (found.append(len(out)), rows(file, at, out))[1]
    )
    return found


@pytest.mark.parametrize("block_bytes", [1 << 14, 1 << 18, 3 << 20])
def test_the_first_epoch_reads_nothing_twice(tmp_path: Path, read: list[int], block_bytes: int) -> None:
    Dataset.range(ROWS).map(element).save(tmp_path / "d")
    stored = sum(file.stat().st_size for file in (tmp_path / "d").glob("*.arrow"))
    assert stored > 4 << 20
    dataset = Dataset.load(tmp_path / "d").with_options(fb.Options(block_bytes=block_bytes))
    read.clear()
    first = [(int(e["x"][99]), e["text"], len(e["list"])) for e in dataset]
    assert sum(read) < 1.02 * stored
    assert first == [(x, "t" * (x % 50), x % 20) for x in range(ROWS)]
    read.clear()
    assert [(int(e["x"][99]), e["text"], len(e["list"])) for e in dataset] == first
    assert sum(read) < 1.02 * stored


def test_a_batch_is_not_held_once_it_has_been_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[Store] = []
    init = Store.__init__
    monkeypatch.setattr(Store, "__init__", lambda store, *args: (stores.append(store), init(store, *args))[1])
    Dataset.range(ROWS).map(element).save(tmp_path / "d")
    assert sum(1 for _ in Dataset.load(tmp_path / "d")) == ROWS
    assert [store._latest for store in stores] == [None]
