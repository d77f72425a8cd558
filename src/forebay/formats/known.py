"""All formats, and which of them a file or a folder is."""

import os

from forebay.formats.format import Format, UsageError
from forebay.formats.head import Head
from forebay.formats.kinds import csv, images, npy, others, saved, sqlite, tables, text, tfrecord, webdataset

FORMATS: tuple[Format, ...] = (
    # Those that begin with a mark of their own.
    tables.PARQUET,
    tables.ARROW,
    npy.NPY,
    npy.NPZ,
    sqlite.FORMAT,
    images.IMAGE,
    # Checksums are as good a mark.
    tfrecord.FORMAT,
    webdataset.FORMAT,
    others.COMPRESSED,
    # Text of all kinds, the most particular first.
    text.JSON_LINES,
    text.JSON_DOCUMENT,
    csv.FORMAT,
    text.LINES,
    # Folders.
    saved.SAVED,
    saved.CACHE,
    images.IMAGES,
)
"""In the order in which they are asked."""

_FILES = tuple(each for each in FORMATS if not each.folder)


def format_of(head: Head) -> tuple[Format, str]:
    """The format of a file, and what told: "content" or "name"."""
    for each in _FILES if head.data else ():
        if each.begins(head):
            return each, "content"
    named = next((each for each in _FILES if each.named(head.name)), None)
    if named is not None:
        return named, "name"
    return (others.EMPTY if head.size == 0 else others.UNKNOWN), "content"


def folder_format(path: str) -> Format | None:
    """The format of a local folder that is one by itself."""
    if not os.path.isdir(path):
        return None
    head = Head(path, 0, b"")
    return next((each for each in FORMATS if each.folder and each.begins(head)), None)


def writable(name: str) -> Format:
    """The format of that name, if Forebay writes it."""
    found = next((each for each in FORMATS if each.name == name), None)
    if found is None or found.write is None:
        known = ", ".join(each.name for each in FORMATS if each.write is not None)
        what = "is only read" if found is not None else "is not known"
        raise UsageError(f"the format {name!r} {what}; those that are written: {known}")
    return found
