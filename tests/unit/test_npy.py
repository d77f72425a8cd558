"""Arrays in .npy and .npz files: what they may hold, and what is broken, too large or refused."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay.formats import inspect
from forebay.storage import zip_members
from unit.support import assert_same, few, outcome, until_error, written


def _npy(array: Any, **how: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **how)
    return out.getvalue()


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _compressed(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _method(number: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", number) as archive:
        archive.writestr("x.npy", _npy(np.arange(9)))
    return out.getvalue()


def _zip_without_arrays() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme", "nothing")
    return out.getvalue()


BROKEN_ARRAYS = {
    "pickled objects": (".npy", _npy(np.array([{}], object), allow_pickle=True)),
    "is not a .npy file": (".npy", b"something else"),
    "does not begin as one": (".npy", b""),
    "cut short": (".npy", _npy(np.arange(100))[:-1]),
    "which it is not": (".npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
    "header cannot be read": (".npy", b"\x93NUMPY\x01\x00\x08\x00" + b"((((((((" + bytes(8)),
    "which is not known": (".npy", b"\x93NUMPY\x09\x00\x08\x00{}      "),
    "no rows": (".npy", _npy(np.float32(3))),
    "column by column": (".npy", _npy(np.asfortranarray(np.ones((3, 2))))),
    "named fields": (".npy", _npy(np.zeros(3, [("a", "i4")]))),
    "compressed by method 12": (".npz", _method(zipfile.ZIP_BZIP2)),
    "not a zip archive": (".npz", b"PK but not really"),
    "no array in it": (".npz", _zip_without_arrays()),
    "different numbers of rows": (".npz", _npz(a=np.zeros(2), b=np.zeros(3))),
}


@pytest.mark.parametrize("reason", BROKEN_ARRAYS)
def test_arrays_that_cannot_be_read(reason: str, tmp_path: Path) -> None:
    suffix, data = BROKEN_ARRAYS[reason]
    path = written(tmp_path / f"a{suffix}", data)
    with pytest.raises((fb.FileError, fb.PlanError), match=reason):
        fb.Dataset.from_npy(path)


@few
@given(place=st.integers(0, 127), value=st.integers(0, 255))
def test_damaged_headers_of_arrays_never_get_through(tmp_path_factory: Any, place: int, value: int) -> None:
    data = bytearray(_npy(np.arange(12, dtype=np.int32).reshape(4, 3)))
    data[place] = value
    path = written(tmp_path_factory.mktemp("npy") / "a.npy", bytes(data))
    found, error = outcome(lambda: fb.Dataset.from_npy(path))
    assert error is None or isinstance(error, fb.FileError)
    assert sum(np.asarray(row).nbytes for row in found) <= len(data)


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_every_kind(tmp_path: Path, packed: bool) -> None:
    arrays = {
        "f": np.arange(12.0).reshape(4, 3),
        "big": np.arange(4, dtype=">i4"),
        "b": np.array([True, False, True, True]),
        "t": np.array(["a", "bc", "", "é"]),
        "none": np.zeros((4, 0), np.float32),
        "d": np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]"),
    }
    path = written(tmp_path / "a.npz", (_compressed if packed else _npz)(**arrays))
    dataset = fb.Dataset.from_npy(path)
    expected = list(fb.Dataset.from_tensor_slices(arrays))
    assert_same(list(dataset), expected)
    assert len(dataset.skip(1)) == 3
    assert_same(sorted(map(str, dataset.shuffle(seed=3))), sorted(map(str, expected)))
    memory = "memory://forebay-test/a.npy"
    import fsspec

    fsspec.filesystem("memory").pipe("/forebay-test/a.npy", _npy(arrays["f"]))
    assert_same(list(fb.Dataset.from_npy([memory, memory]).skip(3).take(2)), [arrays["f"][3], arrays["f"][0]])


def test_compressed_arrays_resume_at_every_row(tmp_path: Path) -> None:
    arrays = {"x": np.arange(90).reshape(30, 3), "y": np.arange(30.0)}
    path = written(tmp_path / "a.npz", _compressed(**arrays))
    dataset = fb.Dataset.from_npy(path).with_options(fb.Options(block_bytes=100))
    expected = list(fb.Dataset.from_tensor_slices(arrays))
    with iter(dataset) as it:
        for row in range(len(expected)):
            with iter(fb.Dataset.from_npy(path)) as other:
                other.load_state_dict(json.loads(json.dumps(it.state_dict())))
                assert_same(list(other), expected[row:])
            assert_same(next(it), expected[row])


def test_plain_and_compressed_archives_together(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / "a.npz", _npz(x=np.arange(5))),
        written(tmp_path / "b.npz", _compressed(x=np.arange(5, 9))),
        written(tmp_path / "c.npz", _npz(x=np.arange(9, 11))),
    ]
    dataset = fb.Dataset.from_npy(paths)
    assert len(dataset) == 11
    assert [int(row["x"]) for row in dataset] == list(range(11))


def _damage(data: bytes, how: str) -> bytes:
    """Another compressed byte, another checksum, or a larger size; the directory at the end tells the last two."""
    changed = bytearray(data)
    entry = data.rindex(b"PK\x01\x02")
    if how == "byte":
        changed[len(data) // 2] ^= 0xFF
    elif how == "checksum":
        changed[entry + 16] ^= 1
    else:
        changed[entry + 24 : entry + 28] = (90000).to_bytes(4, "little")
    return bytes(changed)


@pytest.mark.parametrize(
    ("how", "reason"), [("byte", "damaged"), ("checksum", "checksum is wrong"), ("size", "size or checksum")]
)
def test_damaged_archives(tmp_path: Path, how: str, reason: str) -> None:
    chance = np.random.default_rng(1)
    array = chance.integers(0, 50, (1000, 4))
    path = written(tmp_path / "a.npz", _damage(_compressed(x=array), how))
    found, error = until_error(fb.Dataset.from_npy(path).with_options(fb.Options(block_bytes=999)))
    assert isinstance(error, fb.FileError)
    assert reason in error.reason
    if how != "byte":
        assert len(found) > 250
        np.testing.assert_array_equal([row["x"] for row in found], array[: len(found)])


def test_an_archive_that_unfolds_to_much_stays_within_the_budget(tmp_path: Path) -> None:
    path = written(tmp_path / "a.npz", _compressed(x=np.zeros((64, 1 << 18), np.uint8)))
    options = fb.Options(memory="4MiB")
    with iter(fb.Dataset.from_npy(path).with_options(options)) as it:
        assert sum(1 for _ in it) == 64
        assert it.ledger.peak <= 4 << 20
    with pytest.raises(fb.DataError, match="budget"):
        list(fb.Dataset.from_npy(path).with_options(fb.Options(memory="100KiB")))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("{'descr': '|V0', 'fortran_order': False, 'shape': (99999999999,)}", "no bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999, 0)}", "9,999,999,999,999 rows of no bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 0, 99999999999999999999)}", "header cannot be read"),
        (f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'0, ' * 65})}}", "header cannot be read"),
        ("{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (0,)}", "values are arrays themselves"),
    ],
)
def test_rows_that_cannot_be_are_not_believed(tmp_path: Path, header: str, reason: str) -> None:
    text = header.ljust(117).encode() + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(fb.errors.FileError, match=reason):
        list(fb.Dataset.from_npy(tmp_path / "a.npy"))


def _flipped(array: Any, **how: Any) -> bytes:
    """An archive with a bit of the last row of its array flipped."""
    data = bytearray(_npz(x=array, **how))
    data[data.index(array.tobytes()) + array.nbytes - 1] ^= 1
    return bytes(data)


def test_a_flipped_bit_is_an_error_of_the_array(tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 99, (1000, 5))
    path = written(tmp_path / "a.npz", _flipped(array, y=np.arange(1000)))
    for read in (list, lambda dataset: list(dataset.shuffle(seed=1).take(1)), lambda dataset: list(dataset.skip(999))):
        with pytest.raises(fb.FileError, match=r"a\.npz.*member 'x.npy' is damaged: its checksum is wrong"):
            read(fb.Dataset.from_npy(path))
    mixed = fb.Dataset.from_npy(
        [written(tmp_path / "b.npz", _compressed(x=array)), written(tmp_path / "c.npz", _flipped(array))]
    )
    with pytest.raises(fb.FileError, match=r"c\.npz.*checksum is wrong"):
        list(mixed)


def test_a_flipped_bit_of_a_large_array_is_found_by_reading_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_members, "_MOST_COMPARED", 0)
    array = np.random.default_rng(1).integers(0, 99, (600, 1000))
    dataset = fb.Dataset.from_npy(written(tmp_path / "a.npz", _flipped(array)))
    assert len(list(dataset.shuffle(seed=1))) == 600
    with iter(dataset) as first, iter(dataset) as second:
        # Neither is in the other's way, and one that was left early is in nobody's.
        next(first), next(second), next(first)
    for _ in range(2):
        with pytest.raises(fb.FileError, match="checksum is wrong"):
            list(dataset)
    found = inspect([str(tmp_path / "a.npz")], check=True)
    assert "checksum is wrong" in str(found.reports[0].listed_faults)


def test_checksums_that_are_right_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(300_000).reshape(600, 500)
    dataset = fb.Dataset.from_npy(written(tmp_path / "a.npz", _npz(x=array)))
    for _ in range(2):
        assert_same(np.stack([row["x"] for row in dataset]), array)
        monkeypatch.setattr(zip_members, "zlib", None)


def test_rows_that_are_denied_are_no_empty_array(tmp_path: Path) -> None:
    data = _npz(x=np.arange(3, dtype=np.int8)).replace(b"'shape': (3,)", b"'shape': (0,)")
    with pytest.raises(fb.FileError, match="checksum is wrong"):
        fb.Dataset.from_npy(written(tmp_path / "a.npz", data))


@pytest.mark.parametrize("shuffled", [False, True])
def test_text_that_is_no_text(tmp_path: Path, shuffled: bool) -> None:
    path = tmp_path / "text.npy"
    path.write_bytes(_npy(np.array(["ab", "cd"])).replace("d".encode("utf-32-le"), b"\0\0\x11\0"))
    dataset = fb.Dataset.from_npy(str(path))
    with pytest.raises(fb.FileError, match="text of type <U2 holds 0x110000, which is no character"):
        list(dataset.shuffle() if shuffled else dataset)
