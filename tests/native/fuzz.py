"""Builds the fuzzing target of the kernels and feeds it: in the tests for a moment, with ``make fuzz`` for longer."""

from __future__ import annotations

import io
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import forebay as fb
from forebay.io.tfrecord import framed
from images import jpeg

ROOT = Path(__file__).parents[2]
NAMES = (
    *("crc32c", "csv", "csv_columns", "csv_marks", "example", "example_template", "example_write", "huffman", "idct"),
    *("jpeg", "jpeg_frame", "jpeg_resize", "lines", "memory", "numbers", "parquet_footer", "records", "resize"),
)
KERNELS = [ROOT / "native/kernels" / f"{name}.cpp" for name in NAMES]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


def compiler() -> str | None:
    return shutil.which("g++") or shutil.which("clang++")


def build(folder: Path, libfuzzer: bool = False, portable: bool = False) -> Path:
    """The target, with AddressSanitizer and UBSan in it; with `portable`, as for other processors than x86-64."""
    target = folder / "kernels"
    found = shutil.which("clang++") if libfuzzer else compiler()
    assert found is not None
    own = ["-fsanitize=fuzzer"] if libfuzzer else ["-DFOREBAY_STANDALONE"]
    own += ["-U__SSE2__"] * portable
    sources = [ROOT / "native/fuzz/kernels.cpp", *KERNELS]
    command = [found, "-std=c++17", *SANITIZERS, *own, f"-I{ROOT / 'native/kernels'}", *map(str, sources), "-o", target]
    subprocess.run(command, check=True)
    return target


def footer() -> bytes:
    """Of a Parquet file of two row groups, lists and a struct."""
    rows = [{"x": i, "l": [i] * i, "s": {"t": str(i)}} for i in range(4)]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, row_group_size=2)
    data = out.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def corpus(folder: Path) -> list[str]:
    """Files to begin with: records, Examples, both in one another, CSV, JPEG images, and the footer of a table."""
    chance = random.Random(1)
    examples = [
        fb.io.serialize_example(
            {
                "x": chance.randrange(-5, 1 << 40),
                "f": np.arange(4, dtype=np.float32),
                "s": b"text",
                "v": list(range(i)),
                "vf": [0.5] * i,
                "vs": [b"q" * i] * i,
                "other": [1, 2],
            }
        )
        for i in range(4)
    ]
    steps = bytes.fromhex("0a0c0a0a0a017812051a030a0107120f0a0d0a016c12080a061a040a020102")
    offsets = np.cumsum([0, *map(len, examples)])
    everything = framed(np.frombuffer(b"".join(examples), np.uint8), offsets).tobytes()
    table = b'1,2,3.5,1e-7,"a ""b"",\r\n"\r\n-4,,NA,123456789012345678901234567890.5e-300,x\r7,8,0x1p3,inf,\n'
    plain = b"".join(b"%d,-%d,%d.%d,0.%017d,name %d\r\n" % (i, 7**i, i, 3**i, 11**i, i) for i in range(16))
    names = []
    tables = [table, table[:40] + b"\n", plain, re.sub(rb"(name \d+)\r", rb'"\1"', plain)]
    images = [jpeg(70, 90), jpeg(33, 20, subsampling="4:4:4", restart_marker_blocks=2), jpeg(9, 30, mode="L")]
    inputs = [*examples, steps, examples[3] + examples[1], everything, *tables, b"", *images, footer()]
    for i, data in enumerate(inputs):
        path = folder / f"seed-{i}"
        path.write_bytes(data)
        names.append(str(path))
    return names


def main(seconds: float) -> None:
    """Round after round until the time is over. A crash ends it, with its report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if shutil.which("clang++"):
            (folder / "corpus").mkdir()
            corpus(folder / "corpus")
            target = build(folder, libfuzzer=True)
            subprocess.run([target, f"-max_total_time={int(seconds)}", folder / "corpus"], check=True)
            return
        target, seeds, end = build(folder), corpus(folder), time.monotonic() + seconds
        while time.monotonic() < end:
            subprocess.run([target, str(random.randrange(1 << 60)), "200000", *seeds], check=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
