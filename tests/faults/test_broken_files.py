"""Files that are not what they should be: every fault is named, nothing is allocated for it, and others go on."""

import gc
import gzip
import logging
import os
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay._native import OpenedFile, crc32c, frame_records
from forebay.storage import files

RECORDS = [b"record %d " % i * (i % 7 + 1) for i in range(40)]


def masked(data: bytes) -> bytes:
    crc = crc32c(np.frombuffer(data, np.uint8))
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def header(length: int) -> bytes:
    data = length.to_bytes(8, "little")
    return data + masked(data)


def framed(records: list[bytes]) -> bytes:
    data = b"".join(records)
    offsets = np.cumsum([0, *map(len, records)])
    out = np.empty(len(data) + 16 * len(records), np.uint8)
    frame_records(np.frombuffer(data, np.uint8), offsets, out)
    return out.tobytes()


def start_of(record: int) -> int:
    return len(framed(RECORDS[:record]))


def file(folder: Path, contents: bytes) -> str:
    path = folder / "broken.tfrecord"
    path.write_bytes(contents)
    return str(path)


def read_until_error(dataset: fb.Dataset[Any]) -> tuple[list[Any], fb.FileError]:
    got = []
    try:
        for record in dataset:
            got.append(record)  # noqa: PERF402 - what came before the error is looked at
    except fb.FileError as error:
        return got, error
    raise AssertionError("there was no error")


GOOD = framed(RECORDS)
FLIPPED = bytearray(GOOD)
FLIPPED[start_of(20) + 14] ^= 1
BAD_LENGTH = bytearray(GOOD)
BAD_LENGTH[start_of(20)] ^= 1
BAD_LENGTH_CHECKSUM = bytearray(GOOD)
BAD_LENGTH_CHECKSUM[start_of(20) + 9] ^= 1

# What the file holds, at which record it is at fault, why, and which records are left if that is passed over.
FAULTS: dict[str, tuple[bytes, int, str, list[bytes]]] = {
    "wrong checksum": (bytes(FLIPPED), 20, "do not match their checksum", RECORDS[:20] + RECORDS[21:]),
    "wrong length": (bytes(BAD_LENGTH), 20, "length does not match its checksum", RECORDS[:20] + RECORDS[21:]),
    "wrong checksum of a length": (bytes(BAD_LENGTH_CHECKSUM), 20, "length does not", RECORDS[:20] + RECORDS[21:]),
    "cut in a record": (GOOD[: start_of(20) + 15], 20, "ends in the middle of a record of 70 bytes", RECORDS[:20]),
    "cut in a header": (GOOD[: start_of(20) + 5], 20, "ends in the middle of a record: 5 bytes are left", RECORDS[:20]),
    "absurd length": (framed(RECORDS[:3]) + header(1 << 62) + b"x" * 50, 3, "4,611,686,018,427,387,904", RECORDS[:3]),
    "length beyond all": (framed(RECORDS[:3]) + header((1 << 64) - 1) + b"x" * 50, 3, "the middle", RECORDS[:3]),
    "no TFRecord file": (b"something else altogether", 0, "is no TFRecord file", []),
    "bytes in between": (framed(RECORDS[:3]) + b"garbage, 24 bytes of it." + framed(RECORDS[3:]), 3, "", RECORDS),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("index", [False, True])
def test_a_fault_is_named_after_the_records_before_it(tmp_path: Path, name: str, index: bool) -> None:
    contents, record, reason, _ = FAULTS[name]
    path = file(tmp_path, contents)
    got, error = read_until_error(fb.TFRecordDataset(path, index=index))
    assert got == RECORDS[:record]
    assert (error.path, error.offset) == (path, start_of(record))
    assert reason in error.reason
    assert str(error).startswith("TFRecordDataset at test_broken_files.py:")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_passed_over_and_logged(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    contents, record, reason, left = FAULTS[name]
    path = file(tmp_path, contents)
    dataset = fb.TFRecordDataset(path, on_error="skip")
    with caplog.at_level(logging.WARNING, "forebay"):
        assert list(dataset) == left
    (line,) = [each.getMessage() for each in caplog.records]
    assert path in line
    assert f"byte {start_of(record):,}" in line
    assert reason in line
    assert list(fb.TFRecordDataset(path, on_error="skip", index=True)) == left
    # Any state leads to the same rest.
    for taken in {0, record, min(record + 1, len(left)), len(left)}:
        it = iter(dataset)
        for _ in range(taken):
            next(it)
        state = it.state_dict()
        again = iter(fb.TFRecordDataset(path, on_error="skip"))
        again.load_state_dict(state)
        assert list(again) == left[taken:]


def test_the_limit_counts_for_each_file_and_falls_on_the_same_record_after_a_resume(tmp_path: Path) -> None:
    contents = bytearray(GOOD)
    for record in (5, 15, 25, 35):
        contents[start_of(record) + 13] ^= 1
    path = file(tmp_path, bytes(contents))
    options = fb.Options(block_bytes=256)
    for limit, before in [(0, 5), (3, 32), (4, None)]:
        dataset = fb.TFRecordDataset([path, path], on_error="skip", max_errors=limit).with_options(options)
        if before is None:
            assert len(list(dataset)) == 72
            continue
        got, error = read_until_error(dataset)
        assert len(got) == before
        assert "max_errors" in error.reason or limit == 0
        it = iter(dataset)
        for _ in range(before - 2):
            next(it)
        again = iter(dataset)
        again.load_state_dict(it.state_dict())
        assert [next(again), next(again)] == got[-2:]
        with pytest.raises(fb.FileError):
            next(again)
    with pytest.raises(fb.FileError):
        list(fb.TFRecordDataset(path, on_error="skip", max_errors=3, index=True))


def test_files_that_are_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = file(tmp_path, GOOD)
    missing, folder = str(tmp_path / "missing"), str(tmp_path)
    got, error = read_until_error(fb.TFRecordDataset([path, missing]))
    assert (got, error.reason) == (RECORDS, "there is no such file")
    assert read_until_error(fb.TFRecordDataset(folder))[1].reason == "is a folder"
    assert list(fb.TFRecordDataset([missing, path, folder], on_error="skip")) == RECORDS
    assert len(caplog.records) == 2
    with pytest.raises(fb.FileError, match="there is no such file"):
        len(fb.TFRecordDataset(missing, index=True))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, GOOD)

    def refuse(name: bytes) -> OpenedFile:
        if name == os.fsencode(path):
            raise PermissionError(13, "Permission denied")
        return OpenedFile(name)

    # Not by its mode: whoever may read everything would read it.
    monkeypatch.setattr(files, "OpenedFile", refuse)
    assert read_until_error(fb.TFRecordDataset(path))[1].reason == "permission denied"


def test_empty_files_have_no_records(tmp_path: Path) -> None:
    path = file(tmp_path, b"")
    for how in ({}, {"index": True}, {"compression_type": "GZIP"}, {"num_parallel_reads": 2}):
        assert list(fb.TFRecordDataset([path, path], **how)) == []


@pytest.mark.parametrize("cut", [5, 40, -6])
def test_compressed_files_that_end_too_early(tmp_path: Path, cut: int) -> None:
    path = file(tmp_path, gzip.compress(framed([os.urandom(90) for _ in range(40)]))[:cut])
    _, error = read_until_error(fb.TFRecordDataset(path, "GZIP"))
    assert "ends in the middle of" in error.reason
    assert len(list(fb.TFRecordDataset(path, "GZIP", on_error="skip"))) < 41


def test_compressed_files_that_are_damaged(tmp_path: Path) -> None:
    data = bytearray(zlib.compress(framed([os.urandom(90) for _ in range(40)])))
    data[9] ^= 0xFF
    error = read_until_error(fb.TFRecordDataset(file(tmp_path, bytes(data)), "ZLIB"))[1]
    assert "its compressed data is damaged" in error.reason


def bomb(record: int) -> bytes:
    """A gzip file of one record of so many zeros."""
    out = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [out.compress(header(record))]
    parts += [out.compress(bytes(1 << 20)) for _ in range(record >> 20)]
    return b"".join(parts) + out.flush()


def test_a_compressed_bomb_stays_within_the_budget(tmp_path: Path) -> None:
    path = file(tmp_path, bomb(64 << 20))
    assert os.path.getsize(path) < 1 << 17
    small = fb.Options(memory="4MiB")
    tracemalloc.start()
    try:
        _, error = read_until_error(fb.TFRecordDataset(path, "GZIP").with_options(small))
        assert "the budget is 4,194,304" in error.reason
        assert list(fb.TFRecordDataset(path, "GZIP", on_error="skip").with_options(small)) == []
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_an_absurd_length_allocates_nothing(tmp_path: Path) -> None:
    # Of a compressed file nobody knows how much is to come, so the budget is all that is left to go by.
    for length in (1 << 62, 1 << 40):
        path = file(tmp_path, gzip.compress(header(length) + b"x" * 100))
        assert "the budget is" in read_until_error(fb.TFRecordDataset(path, "GZIP"))[1].reason
        assert list(fb.TFRecordDataset(path, "GZIP", on_error="skip")) == []


def test_a_record_that_the_budget_has_no_room_for(tmp_path: Path) -> None:
    path = file(tmp_path, framed([b"small", bytes(5 << 20), b"last"]))
    small = fb.Options(memory="2MiB")
    got, error = read_until_error(fb.TFRecordDataset(path).with_options(small))
    assert got == [b"small"]
    assert "the budget is 2,097,152" in error.reason
    assert list(fb.TFRecordDataset(path, on_error="skip").with_options(small)) == [b"small", b"last"]


def test_a_file_that_has_changed(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    dataset = fb.TFRecordDataset(path).with_options(fb.Options(block_bytes=256))
    it = iter(dataset)
    for _ in range(30):
        next(it)
    state = it.state_dict()
    file(tmp_path, GOOD[: start_of(4)])
    again = iter(dataset)
    again.load_state_dict(state)
    with pytest.raises(fb.FileError, match="has become shorter"):
        next(again)
    indexed = fb.TFRecordDataset(path, index=True)
    assert len(indexed) == 4
    file(tmp_path, GOOD[: start_of(2)])
    with pytest.raises(fb.FileError, match=r"has become shorter|has changed"):
        list(indexed)


def test_nothing_is_held_afterwards(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD)
    ledger = fb.Ledger("4MiB")
    gc.collect()  # Files of earlier tests, which errors that were caught still lead to.
    open_before = len(os.listdir("/proc/self/fd"))
    it = iter(fb.TFRecordDataset([path] * 3).with_options(fb.Options(memory=ledger)))
    next(it)
    assert ledger.held > 0
    it.close()
    assert ledger.held == 0
    assert len(os.listdir("/proc/self/fd")) == open_before
