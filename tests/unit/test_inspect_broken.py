"""``forebay.formats.inspect`` on what is broken, cut short or made to do harm: told, and never more than that."""

import gzip
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forebay as fb
from forebay._native import crc32c
from forebay.cli import app
from forebay.formats import Inspection, convert, inspect
from images import encoded, picture
from unit.format_files import FILES, ROWS, write


def faults(found: Inspection) -> list[tuple[str, int | None, str]]:
    assert not found.sound
    return [(f.file, f.offset, f.reason) for r in found.reports for f in r.listed_faults] + [
        (f.file, f.offset, f.reason) for f in found.faults
    ]


def test_a_record_with_a_wrong_checksum(tmp_path: Path) -> None:
    path = write(tmp_path, "raw.tfrecord")
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    found = inspect(path, check=True)
    assert faults(found) == [(str(path), 0, "a record's bytes do not match their checksum")]
    assert found.reports[0].rows.count == ROWS - 1


def test_a_length_with_a_wrong_checksum_at_the_start(tmp_path: Path) -> None:
    path = write(tmp_path, "raw.tfrecord")
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    found = inspect(path)
    assert found.reports[0].format == "tfrecord"
    assert len(faults(found)) == 1
    assert found.reports[0].rows.count == ROWS - 1


@pytest.mark.parametrize("name", ["a.tfrecord", "b.tfrecord.gz", "c.tfrecord.z", "a.parquet", "a.arrow", "a.npy"])
def test_files_that_are_cut_short(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    path.write_bytes(path.read_bytes()[:-9])
    found = inspect(path, check=True)
    assert found.reports[0].format == FILES[name][0]
    assert [file for file, _, _ in faults(found)] == [str(path)]


@pytest.mark.parametrize(("name", "compression"), [("b.tfrecord.gz", "GZIP"), ("c.tfrecord.z", "ZLIB")])
def test_compressed_records_before_any_cut_come_out(name: str, compression: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    data = path.read_bytes()
    whole = list(fb.TFRecordDataset(path, compression))
    for cut in range(1, len(data), 7):
        path.write_bytes(data[:-cut])
        found = list(fb.TFRecordDataset(path, compression, on_error="skip"))
        assert found == whole[: len(found)]


def test_compressed_samples_before_any_cut_come_out(tmp_path: Path) -> None:
    data = gzip.compress(write(tmp_path, "a.tar").read_bytes())
    path = tmp_path / "a.tar.gz"
    for cut in range(1, len(data), 7):
        path.write_bytes(data[:-cut])
        found = list(fb.Dataset.from_webdataset(path, ["txt", "cls"], on_error="skip"))
        assert [sample["cls"] for sample in found] == [b"%d" % i for i in range(len(found))]


def test_a_length_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    length = struct.pack("<Q", 1 << 62)
    crc = crc32c(np.frombuffer(length, np.uint8))
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    path.write_bytes(length + struct.pack("<I", masked) + b"some bytes")
    found = inspect(path, check=True)
    assert found.reports[0].format == "tfrecord"
    ((_, offset, reason),) = faults(found)
    assert offset == 0
    assert "4,611,686,018,427,387,904 bytes" in reason


@pytest.mark.parametrize("name", ["a.tfrecord", "a.txt", "a.csv"])
def test_files_of_nothing_that_may_be_empty(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    found = inspect(tmp_path / name)
    assert found.sound
    assert (found.reports[0].told_by, found.reports[0].rows.count) == ("name", 0)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.npy", "a.npz", "a.jsonl"])
def test_files_of_nothing_that_may_not_be(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    found = inspect(tmp_path / name)
    assert len(faults(found)) == 1
    assert found.reports[0].told_by == "name"


def test_one_that_is_missing_does_not_hide_the_others(tmp_path: Path) -> None:
    found = inspect([tmp_path / "missing", write(tmp_path, "a.csv")])
    assert faults(found) == [(str(tmp_path / "missing"), None, "there is no such file")]
    assert found.reports[0].rows.count == ROWS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv")
    path.chmod(0)
    assert faults(inspect(path)) == [(str(path), None, "permission denied")]


def test_an_image_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"nothing of the kind")
    ((file, _, reason),) = faults(inspect(tmp_path, check=True))
    assert file == str(tmp_path / "a.jpg")
    assert "not a JPEG" in reason


def test_rows_that_do_not_fit_are_listed_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n{"x": 2\n{"x": 3}\n')
    ((_, offset, reason),) = faults(inspect(path, check=True))
    assert offset == 9
    assert "not a JSON object" in reason


def test_a_damaged_saved_dataset(tmp_path: Path) -> None:
    folder = write(tmp_path, "kept")
    (file,) = folder.glob("*.arrow")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    found = inspect(folder, check=True)
    assert "damaged" in faults(found)[0][2]
    assert not found.reports[0].checked


def test_strings_that_lie_elsewhere_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    wrong = pa.StringArray.from_buffers(2, pa.py_buffer(struct.pack("<3i", 0, 1 << 30, 3)), pa.py_buffer(b"abc"))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("s", pa.string())])) as writer:
        writer.write_batch(pa.record_batch([wrong], ["s"]))
    ((_, _, reason),) = faults(inspect(path))
    assert "record batch 0 cannot be read" in reason
    with pytest.raises(fb.errors.FileError):
        convert(path, tmp_path / "out.parquet")


@pytest.mark.parametrize("content", [b"\0", b"a"])
def test_a_bomb_stays_within_the_budget(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(128):
            file.write(content * (1 << 20))
    code = f"""
import resource
from forebay.formats import inspect
inspect({str(Path(__file__))!r}, check=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = inspect({str(path)!r}, check=True, memory="16MiB")
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 60 << 10, grown
print(found.reports[0].format, found.sound)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("unknown True\n" if content == b"\0" else "text False\n")


def _damaged(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(damaged) + 1)
        match rng.randrange(4):
            case 0:
                damaged[place : place + 1] = rng.randbytes(1)
            case 1:
                damaged[place : place + 8] = rng.randbytes(8)
            case 2:
                damaged[place:place] = rng.randbytes(rng.randrange(1, 40))
            case _:
                del damaged[place:]
    return bytes(damaged)


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name][0] != "saved"])
def test_any_damage_is_told_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    good = write(tmp_path, name).read_bytes()
    rng = random.Random(name)
    path: Any = tmp_path / name
    for number in range(60):
        path.write_bytes(_damaged(good, rng))
        inspect(path, check=number % 2 == 0).to_json()
        target = tmp_path / rng.choice(("out.parquet", "out.tfrecord", "out.tar", "out.arrow"))
        try:
            convert(path, target, overwrite=True, on_error=("raise", "skip")[number % 2])
        except fb.ForebayError:
            continue
    assert not [entry for entry in os.listdir(tmp_path) if "forebay-" in entry]


def photos(folder: Path, count: int, cut: int, empty: int) -> tuple[Path, list[str]]:
    """Images in two folders, one of which is cut short, and an empty file; and the names of these two."""
    good = encoded(picture(40, 60), "JPEG")
    names = [f"{kind}/{i:02}.jpg" for kind in ("cat", "dog") for i in range(count // 2)]
    for i, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(good[: len(good) // 2] if i == cut else b"" if i == empty else good)
    return folder, [str(folder / names[i]) for i in sorted((cut, empty))]


@pytest.mark.parametrize(("cut", "empty", "seen"), [(3, 5, 2), (40, 20, 1), (20, 47, 1)])
def test_the_same_images_are_looked_at_every_time(cut: int, empty: int, seen: int, tmp_path: Path) -> None:
    folder, broken = photos(tmp_path / "photos", 48, cut, empty)
    looks = [inspect(folder) for _ in range(5)]
    assert len({str(found.to_json()) for found in looks}) == 1
    report = looks[0].reports[0]
    assert not looks[0].sound
    assert [fault.file for fault in report.listed_faults] == (broken if seen == 2 else [str(folder / _name(empty))])
    assert (report.rows.count, report.rows.exact) == (48, False)
    assert "not all can be read" in report.rows.by
    (checked,) = inspect(folder, check=True).reports
    assert [fault.file for fault in checked.listed_faults] == broken
    assert (checked.rows.count, checked.rows.exact) == (46, True)


def _name(number: int) -> str:
    return f"{'cat' if number < 24 else 'dog'}/{number % 24:02}.jpg"


def test_images_that_were_all_looked_at_are_counted(tmp_path: Path) -> None:
    folder, broken = photos(tmp_path / "photos", 12, 1, 7)
    (report,) = inspect(folder).reports
    assert [fault.file for fault in report.listed_faults] == broken
    assert (report.rows.count, report.rows.exact) == (10, True)


def test_the_command_counts_nothing_as_readable_that_it_has_not_read(tmp_path: Path) -> None:
    folder, _ = photos(tmp_path / "photos", 48, 3, 5)
    for more, rows in (([], "at most 48, not all can be read"), (["--check"], "46 that can be read")):
        done = CliRunner().invoke(app, ["inspect", str(folder), *more])
        assert done.exit_code == 1
        assert rows in done.output
