"""Data for the demo: more of it than the memory budget, on disk, with something in it to learn."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

FEATURES = 256
ROW_BYTES = FEATURES * np.dtype(np.float32).itemsize
# The features lie anywhere between 0 and 100, as a sensor may give them, so that the pipeline has work to do.
_TOP = np.float32(100)
MEAN, SCALE = _TOP / 2, _TOP / np.sqrt(np.float32(12))
_STEEPNESS = 5.0  # Of the rule behind the labels; a finite one leaves some of them to chance.
_CHUNK_ROWS = 4096
_DISK_RESERVE = 64_000_000


@dataclass(frozen=True)
class Written:
    """What lies on disk. `best_accuracy` is what the rule that the labels were drawn from would reach."""

    rows: int
    size: int
    best_accuracy: float


def room_missing(folder: Path, rows: int) -> int:
    """Bytes that the file system of `folder` is short of."""
    return max(0, rows * (ROW_BYTES + 1) + _DISK_RESERVE - shutil.disk_usage(folder).free)


def lies_in_memory(folder: Path) -> bool:
    """Whether `folder` is on a file system that is itself memory, as /tmp is on some machines."""
    path = folder.resolve()
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    return next((mounts[place] for place in (path, *path.parents) if place in mounts), "") in ("tmpfs", "ramfs")


def write(folder: Path, rows: int, seed: int, advance: Callable[[int], None]) -> Written:
    """Write x.npy (rows of features) and y.npy (labels), a chunk at a time; `advance` hears of bytes written."""
    rng = np.random.default_rng(seed)
    rule = rng.standard_normal(FEATURES, dtype=np.float32)
    rule *= np.float32(_STEEPNESS) / SCALE / np.linalg.norm(rule)
    chunk = np.empty((_CHUNK_ROWS, FEATURES), np.float32)
    agreeing = 0
    with open(folder / "x.npy", "wb") as features, open(folder / "y.npy", "wb") as labels:
        for file, dtype, shape in ((features, np.float32, (rows, FEATURES)), (labels, np.bool_, (rows,))):
            descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
            np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        for start in range(0, rows, _CHUNK_ROWS):
            x = chunk[: rows - start]
            rng.random(out=x, dtype=np.float32)
            x *= _TOP
            logits = x @ rule - MEAN * rule.sum()
            y = rng.random(len(x)) < 1 / (1 + np.exp(-logits))
            agreeing += int(np.count_nonzero(y == (logits > 0)))
            features.write(x.data)
            labels.write(y.data)
            advance(x.nbytes + y.nbytes)
        size = features.tell() + labels.tell()
    return Written(rows, size, agreeing / rows)
