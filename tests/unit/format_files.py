"""A small file of every format, for tests of ``inspect`` and ``convert``."""

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

import forebay as fb

ROWS = 30


def rows() -> list[dict[str, Any]]:
    return [{"x": i, "name": f"row {i}", "v": np.arange(i % 4, dtype=np.float32)} for i in range(ROWS)]


def dataset() -> "fb.Dataset[Any]":
    made = rows()
    return fb.Dataset.range(ROWS).map(lambda i: made[i])


def examples(path: Path) -> None:
    dataset().write_tfrecord(path)


def examples_gzip(path: Path) -> None:
    dataset().write_tfrecord(path, compression_type="GZIP")


def examples_zlib(path: Path) -> None:
    dataset().write_tfrecord(path, compression_type="ZLIB")


def records(path: Path) -> None:
    fb.Dataset.range(ROWS).map(lambda i: f"record {i}").write_tfrecord(path)


def sequences(path: Path) -> None:
    """tf.train.SequenceExamples of a feature `a` and a list `s` of steps of three values."""
    record = bytes.fromhex("0a0c0a0a0a016112051a030a010712100a0e0a017312090a071a050a03010203")
    with fb.io.TFRecordWriter(path) as writer:
        for _ in range(ROWS):
            writer.write(record)


def parquet(path: Path) -> None:
    pa.parquet.write_table(_table(), path, row_group_size=10)


def arrow(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _table().schema) as writer:
        writer.write_table(_table())


def arrow_stream(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _table().schema) as writer:
        writer.write_table(_table())


def _table() -> Any:
    return pa.table({name: [row[name] for row in rows()] for name in ("x", "name", "v")})


def webdataset(path: Path) -> None:
    dataset().map(lambda row: {"txt": row["name"], "cls": row["x"]}).to_webdataset(path)


def csv(path: Path) -> None:
    lines = ["x,name,y", *(f'{i},"a, {i}",{i / 2}' for i in range(ROWS))]
    path.write_text("\n".join(lines) + "\n")


def tsv(path: Path) -> None:
    path.write_text("".join(f"{i}\ttext {i}\n" for i in range(ROWS)))


def json_lines(path: Path) -> None:
    path.write_text("".join(json.dumps({"x": i, "in": {"tags": ["a"] * (i % 3)}}) + "\n" for i in range(ROWS)))


def text(path: Path) -> None:
    path.write_text("".join(f"line {i} and more\n" for i in range(ROWS)))


def text_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % i for i in range(ROWS))))


def text_zlib(path: Path) -> None:
    path.write_bytes(zlib.compress(b"".join(b"line %d\n" % i for i in range(ROWS))))


def npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(ROWS * 6, dtype=np.float64).reshape(ROWS, 2, 3))


def npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.arange(ROWS), y=np.zeros((ROWS, 2), np.float32))


def sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, name TEXT, size REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", [(i, f"n{i}", i / 2) for i in range(ROWS)])
    connection.close()


def saved(path: Path) -> None:
    dataset().save(path)


Make = Callable[[Path], None]

FILES: dict[str, tuple[str, Make]] = {
    # By the name of the file: its format, and what writes it.
    "a.tfrecord": ("tfrecord", examples),
    "b.tfrecord.gz": ("tfrecord", examples_gzip),
    "c.tfrecord.z": ("tfrecord", examples_zlib),
    "raw.tfrecord": ("tfrecord", records),
    "seq.tfrecord": ("tfrecord", sequences),
    "a.parquet": ("parquet", parquet),
    "a.arrow": ("arrow", arrow),
    "s.arrows": ("arrow", arrow_stream),
    "a.tar": ("webdataset", webdataset),
    "a.csv": ("csv", csv),
    "a.tsv": ("csv", tsv),
    "a.jsonl": ("json", json_lines),
    "a.txt": ("text", text),
    "b.txt.gz": ("text", text_gzip),
    "c.txt.z": ("text", text_zlib),
    "a.npy": ("npy", npy),
    "a.npz": ("npz", npz),
    "a.db": ("sqlite", sqlite),
    "kept": ("saved", saved),
}


def write(folder: Path, name: str) -> Path:
    path = folder / name
    FILES[name][1](path)
    return path
