"""NumPy's arrays in files, and archives of them."""

from typing import Any

import forebay as fb
from forebay.formats.format import Facts, Files, Format, Reading
from forebay.formats.head import Head
from forebay.sources.npy import array_layout
from forebay.storage.files import open_file


def _is_archive(head: Head) -> bool:
    """A zip archive whose first member is an array."""
    size = int.from_bytes(head.data[26:28], "little")
    return head.data[:4] == b"PK\x03\x04" and head.data[30 : 30 + size].endswith(b".npy")


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    return fb.Dataset.from_npy(files.paths)


def _facts(files: Files) -> Facts:
    rows = 0
    for path in files.paths:
        file = open_file(path)
        try:
            rows += array_layout(file, None).shape[0]
        finally:
            file.close()
    return Facts(rows)


def _archive_facts(files: Files) -> Facts:
    return Facts(len(_open(files, Reading())))


NPY = Format(
    name="npy",
    title="NumPy array",
    endings=(".npy",),
    begins=lambda head: head.compression is None and head.data[:6] == b"\x93NUMPY",
    open=_open,
    code=lambda files: files.call("fb.Dataset.from_npy"),
    by_number=lambda files: "yes",
    facts=_facts,
)

NPZ = Format(
    name="npz",
    title="NumPy archive",
    endings=(".npz",),
    begins=_is_archive,
    open=_open,
    code=lambda files: files.call("fb.Dataset.from_npy"),
    by_number=lambda files: "yes",
    facts=_archive_facts,
)
