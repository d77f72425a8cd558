"""Hostile files for every reader: whatever is in them, rows come out or an error of Forebay's own.

``one_input`` reads one file. The tests feed it for a moment with mutations that are always the same; ``make fuzz`` for
longer, led by coverage where Atheris is installed.
"""

from __future__ import annotations

import gzip
import io
import itertools
import logging
import os
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb

_ROWS = 1000
_FEATURES = {
    "x": fb.io.FixedLenFeature([], np.int64, 0),
    "v": fb.io.VarLenFeature(np.float32),
    "r": fb.io.RaggedFeature(np.int64, "p", [fb.io.RaggedFeature.RowLengths("n")]),
}


def _headers(path: str) -> fb.Dataset[Any]:
    # Claims of more pixels than this are refused unread, so that none of them takes a while to decode.
    data = Path(path).read_bytes()
    return fb.Dataset.from_tensor_slices([data]).map(lambda each: fb.io.decode_image(each, max_pixels=10_000))


READERS: dict[str, Callable[[str], fb.Dataset[Any]]] = {
    "tfrecord": lambda path: fb.TFRecordDataset(path),
    "tfrecord index": lambda path: fb.TFRecordDataset(path, index=True),
    "tfrecord gzip": lambda path: fb.TFRecordDataset(path, "GZIP"),
    "tfrecord skip": lambda path: fb.TFRecordDataset(path, on_error="skip"),
    "example": lambda path: fb.TFRecordDataset(path, on_error="skip").map(
        lambda record: fb.io.parse_single_example(record, _FEATURES), on_error="skip"
    ),
    "tar": lambda path: fb.Dataset.from_webdataset(path),
    "tar skip": lambda path: fb.Dataset.from_webdataset(path, on_error="skip"),
    "csv": lambda path: fb.CsvDataset(path, [np.int64, "x"]),
    "csv inferred": lambda path: fb.Dataset.from_csv(path),
    "json": lambda path: fb.Dataset.from_json(path),
    "npy": lambda path: fb.Dataset.from_npy(path),
    "parquet": lambda path: fb.Dataset.from_parquet(path),
    "image": _headers,
}
SUFFIXES = {"npy": ".npy"}


def _tfrecords() -> bytes:
    from forebay.io.tfrecord import framed

    records = [fb.io.serialize_example({"x": i, "v": [0.5] * i, "p": [i] * 4, "n": [1, 3]}) for i in range(3)]
    offsets = np.cumsum([0, *map(len, records)])
    return framed(np.frombuffer(b"".join(records), np.uint8), offsets).tobytes()


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("a.txt", "a.cls", "b.txt", "b.cls"):
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"hello"))
    return out.getvalue()


def _npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(12.0).reshape(4, 3))
    return out.getvalue()


def _written_parquet() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.parquet")
        fb.Dataset.range(20).map(lambda i: {"i": i, "s": f"row {i}"}).to_parquet(path, progress=False)
        return Path(path).read_bytes()


_parquet_file = cache(_written_parquet)


def _with_footer(data: bytes) -> bytes:
    """The data pages of a Parquet file as given, before its good footer.

    Of damaged footers, Arrow's library throws exceptions that nothing can catch and that end the process.
    """
    good = _parquet_file()
    pages = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    return data[:pages].ljust(pages, b"\0") + good[pages:]


def _png() -> bytes:
    import cv2

    return bytes(cv2.imencode(".png", np.arange(48, dtype=np.uint8).reshape(4, 4, 3))[1])


def seeds() -> dict[str, bytes]:
    """A good file for every reader."""
    records = _tfrecords()
    table = b'id,name\n1,a\n2,"b ""c"",\r\n"\r\n3,\n'
    return {
        "tfrecord": records,
        "tfrecord index": records,
        "tfrecord gzip": gzip.compress(records, mtime=0),
        "tfrecord skip": records,
        "example": records,
        "tar": _tar(),
        "tar skip": _tar(),
        "csv": b"1,a\n2,b\n",
        "csv inferred": table,
        "json": b'{"x": 1, "s": "a"}\n{"x": 2, "s": "b"}\n',
        "npy": _npy(),
        "parquet": _parquet_file(),
        "image": _png(),
    }


def one_input(reader: str, data: bytes, folder: str) -> bool:
    """Read a file with this content; whether all of it was good. Raises what is not an error of Forebay's."""
    if reader == "parquet":
        data = _with_footer(data)
    path = os.path.join(folder, "file" + SUFFIXES.get(reader, ""))
    Path(path).write_bytes(data)
    Path(path + ".fbindex").unlink(missing_ok=True)
    try:
        dataset = READERS[reader](path).with_options(fb.Options(memory="16MiB"))
        with iter(dataset) as it:
            for _ in itertools.islice(it, _ROWS):
                pass
    except fb.ForebayError as error:
        if isinstance(error, fb.errors.InternalError):
            raise
        return False
    return True


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The same with up to four changes."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(changed)) if changed else 0
        kind = chance.randrange(6)
        if kind == 0 and changed:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and changed:
            changed[at] = chance.randrange(256)
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            changed[at:at] = chance.randbytes(chance.randrange(9))
        elif kind == 4:
            changed[at : at + 8] = b"\xff" * 8
        else:
            del changed[at : at + chance.randrange(9)]
    return bytes(changed)


def main(seconds: float) -> None:
    """Inputs until the time is over. Whatever is not an error of Forebay's ends it, with a traceback."""
    good, names = seeds(), list(READERS)
    logging.getLogger("forebay").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        try:
            import atheris
        except ImportError:
            chance, end, count = random.Random(), time.monotonic() + seconds, 0
            while time.monotonic() < end:
                reader = chance.choice(names)
                one_input(reader, mutated(good[reader], chance), folder)
                count += 1
            print(f"{count:,} files")
            return
        corpus = os.path.join(folder, "corpus")
        os.mkdir(corpus)
        for number, name in enumerate(names):
            Path(corpus, str(number)).write_bytes(bytes([number]) + good[name])

        def feed(data: bytes) -> None:
            if data:
                one_input(names[data[0] % len(names)], data[1:], folder)

        atheris.instrument_all()
        limits = [f"-max_total_time={int(seconds)}", f"-artifact_prefix={tempfile.gettempdir()}/forebay-fuzz-"]
        atheris.Setup([sys.argv[0], *limits, corpus], feed)
        atheris.Fuzz()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 300.0)
