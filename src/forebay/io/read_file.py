"""Whole files, read inside ``map``."""

import os

from forebay.storage.files import open_file


def read_file(filename: str | bytes | os.PathLike[str]) -> bytes:
    """All bytes of a file, by path or by any URL that fsspec knows. FileError if it cannot be read.

    >>> import tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/greeting"
    >>> with open(path, "w") as file:
    ...     _ = file.write("hello")
    >>> list(fb.Dataset.from_tensor_slices([path]).map(fb.io.read_file))
    [b'hello']
    """
    file = open_file(os.fsdecode(filename))
    try:
        return file.read()
    finally:
        file.close()
