"""WebDataset's tar archives."""

import io
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import numpy as np

import forebay as fb
from forebay.block import Column
from forebay.block.objects import Objects
from forebay.errors import FileError
from forebay.formats.format import Facts, Files, Format, Reading, Writer, Writing, unless_compressed
from forebay.formats.head import Head
from forebay.ledger import Ledger
from forebay.storage.files import open_file
from forebay.storage.streams import Window, open_stream
from forebay.storage.tar import TarFault, read_member

_SAMPLES = 1000
_PIECE = 1 << 18


def _begins(head: Head) -> bool:
    """The mark of a header; older archives have none."""
    return head.data[257:262] == b"ustar" or (head.name.endswith((".tar", ".tgz")) and len(head.data) >= 512)


def _fields(files: Files) -> dict[str, int]:
    """How many of the first samples have which field. Contents are passed over."""
    ledger = Ledger(64 << 20)
    lease = ledger.lease("fields")
    found: dict[str, int] = {}
    # Whoever reads the samples says what is wrong with them.
    with suppress(TarFault, FileError), closing(open_file(files.paths[0])) as file:
        stream = open_stream(file, files.compression, lease)
        with closing(Window(stream, file.path, lease, _PIECE, ledger.budget)) as window:
            _count_fields(window, found)
    return found


def _count_fields(window: Window, found: dict[str, int]) -> None:
    def have(least: int) -> Any:
        window.fill(least)
        return window.data

    keys = 0
    last = None
    while keys <= _SAMPLES and (member := read_member(have, 0, window.left)) is not None:
        if member.key is not None and member.field is not None:
            keys += member.key != last
            last = member.key
            found[member.field] = found.get(member.field, 0) + 1
        window.move(member.end)


def _differing(files: Files) -> list[str] | None:
    """The fields to name, where samples do not have the same ones."""
    found = _fields(files)
    return list(found) if len(set(found.values())) > 1 else None


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    return fb.Dataset.from_webdataset(
        files.paths, _differing(files), compression_type=files.compression, **reading.faults
    )


def _convert(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    """Arrays as arrays; everything else as the bytes that it is."""
    fields = _fields(files)
    decode: dict[str, Callable[[bytes], Any]] = {
        name: _array for name in fields if name == "npy" or name.endswith(".npy")
    }
    named = list(fields) if len(set(fields.values())) > 1 else None
    return fb.Dataset.from_webdataset(
        files.paths, named, decode=decode or None, compression_type=files.compression, **reading.faults
    )


def _array(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False)


def _code(files: Files) -> str:
    fields = _differing(files)
    return files.call("fb.Dataset.from_webdataset", *([] if fields is None else [repr(fields)]), *files.compressed())


def _facts(files: Files) -> Facts:
    found = _fields(files)
    if not found:
        return Facts(None, {"samples": "none found: members have to be called key.field"})
    most = max(found.values())
    rare = [f"{name} ({count / most:.0%})" for name, count in found.items() if count < most]
    return Facts(None, {"not in every sample": ", ".join(rare)} if rare else {})


def _rename(name: str, column: Column) -> str:
    """Endings as WebDataset has them: no slashes, and arrays say what they are."""
    plain = name.replace("/", ".").lower() if name != "__key__" else name
    return f"{plain}.npy" if _holds_arrays(column) and not plain.endswith("npy") else plain


def _holds_arrays(column: Column) -> bool:
    if isinstance(column, Objects):
        return any(isinstance(value, np.ndarray) and not value.dtype.hasobject for value in column.rows())
    return column.dtype.kind not in "SU" and column.spec.shape != ()


def _write(dataset: "fb.Dataset[Any]", writing: Writing) -> None:
    dataset.to_webdataset(writing.path, rows_per_file=writing.rows_per_file, progress=False)


FORMAT = Format(
    name="webdataset",
    title="WebDataset (tar)",
    endings=(".tar", ".tgz"),
    begins=_begins,
    open=_open,
    code=_code,
    by_number=unless_compressed("index=True"),
    facts=_facts,
    write=Writer(_write, flat=True, raw=False, rename=_rename),
    convert=_convert,
)
