"""Where the rows of a file are, kept in a small file beside it."""

import contextlib
import json
import os
from dataclasses import dataclass

import numpy as np

from forebay._native import crc32c
from forebay.block import Indices
from forebay.storage.files import InputFile, is_url
from forebay.storage.side_files import index_of

_FORMAT = "forebay row index 3"


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Row i is in the bytes ``starts[i]`` to ``stops[i]``.

    `checked` says by what every row has been read and found good; it is None if none has been read. `faults` were
    passed over on the way.
    """

    starts: Indices
    stops: Indices
    checked: str | None
    faults: int = 0


def load_index(file: InputFile, checked: str | None) -> RowIndex | None:
    """The index beside a file, if there is one that belongs to the file as it is now and was `checked` like that."""
    if is_url(file.path) or file.version is None:
        return None
    try:
        with open(index_of(file.path), "rb") as saved:
            head = json.loads(saved.readline(1 << 12))
            data = np.frombuffer(saved.read(), np.uint8)
    except (OSError, ValueError):
        # Not there, or not an index: it is made again.
        return None
    if not isinstance(head, dict) or head.get("format") != _FORMAT or head.get("file") != file.version:
        return None
    rows, faults = head.get("rows"), head.get("faults")
    if (
        not isinstance(faults, int)
        or not isinstance(rows, int)
        or len(data) != 16 * rows
        or head.get("crc32c") != crc32c(data)
    ):
        return None
    if head.get("checked") != checked:
        return None
    places = data.view(np.int64)
    return RowIndex(places[:rows], places[rows:], checked, faults)


def save_index(file: InputFile, index: RowIndex) -> None:
    """Put it beside the file, in one step. Where that is not allowed, the next run makes it again."""
    if is_url(file.path) or file.version is None:
        return
    data = np.concatenate([index.starts, index.stops]).astype(np.int64).view(np.uint8)
    head = {
        "format": _FORMAT,
        "file": file.version,
        "rows": len(index.starts),
        "checked": index.checked,
        "faults": index.faults,
        "crc32c": crc32c(data),
    }
    path = index_of(file.path)
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "wb") as out:
            out.write(json.dumps(head).encode() + b"\n")
            out.write(data.data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
