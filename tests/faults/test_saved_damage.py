"""Whatever happens to the bytes of a saved dataset is an error that names the file, or changes nothing."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.storage import writer
from forebay.storage.manifest import MANIFEST
from unit.support import until_error

Dataset = fb.Dataset


def element(x: Any) -> Any:
    return {"x": np.full(3, x), "text": f"row {x}", "list": np.arange(x % 5), "flag": x % 2 == 0, "none": None}


@pytest.fixture(params=[None, "zstd", "lz4"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(writer, "BATCH_BYTES", 1000)
    dataset = Dataset.range(200).map(element).with_options(fb.Options(block_bytes=2000))
    dataset.save(tmp_path / "d", request.param, shard_func=lambda e: int(e["x"][0]) % 2)
    return tmp_path / "d"


def read_all(folder: Path) -> None:
    loaded = Dataset.load(folder)
    _ = loaded.element_spec
    for _ in loaded:
        pass


def read_by_number(folder: Path) -> None:
    for _ in Dataset.load(folder).shuffle(seed=1):
        pass


@pytest.mark.parametrize("read", [read_all, read_by_number])
def test_a_flipped_bit_is_found_wherever_it_is(folder: Path, read: Any) -> None:
    generator = random.Random(7)
    files = sorted(folder.iterdir())
    assert {file.name for file in files} >= {MANIFEST, "shard-00000-00000.arrow", "shard-00001-00000.arrow"}
    for file in files:
        good = file.read_bytes()
        # The ends are where formats keep what matters most; the middle is data.
        places = {0, 7, 12, 40, len(good) - 1, len(good) - 12, *(generator.randrange(len(good)) for _ in range(12))}
        for place in sorted(places):
            bad = bytearray(good)
            bad[place] ^= 1 << generator.randrange(8)
            file.write_bytes(bad)
            with pytest.raises((fb.DataError, fb.PlanError), match=file.name):
                read(folder)
        file.write_bytes(good)
    read(folder)


@pytest.mark.parametrize("keep", [0, 1, 8, 100, 0.5, -1])
def test_a_file_cut_short_is_found_by_load(folder: Path, keep: float) -> None:
    for file in sorted(folder.iterdir()):
        good = file.read_bytes()
        length = int(len(good) * keep) if isinstance(keep, float) else keep if keep >= 0 else len(good) - 1
        file.write_bytes(good[:length])
        with pytest.raises((fb.DataError, fb.PlanError), match=file.name):
            Dataset.load(folder)
        file.write_bytes(good)


def test_a_missing_file_is_found_by_load(folder: Path) -> None:
    for file in sorted(folder.glob("*.arrow")):
        good = file.read_bytes()
        file.unlink()
        with pytest.raises(fb.DataError, match=f"{file.name} is missing"):
            Dataset.load(folder)
        file.write_bytes(good)


def test_a_file_cut_short_after_load_is_an_error_not_a_crash(folder: Path) -> None:
    loaded = Dataset.load(folder)
    it = iter(loaded.with_options(fb.Options(block_bytes=1)))
    next(it)
    for file in folder.glob("*.arrow"):
        with open(file, "r+b") as handle:
            handle.truncate(100)
    with pytest.raises(fb.DataError, match="shard-"):
        list(it)


def test_rows_before_a_damaged_batch_come_first(folder: Path) -> None:
    file = folder / "shard-00001-00000.arrow"
    bad = bytearray(file.read_bytes())
    bad[len(bad) * 3 // 4] ^= 1
    file.write_bytes(bad)
    found, error = until_error(Dataset.load(folder))
    assert isinstance(error, fb.DataError)
    assert "checksum of record batch" in str(error)
    assert len(found) > 50
