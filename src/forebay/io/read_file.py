"""Whole files, read inside ``map``."""

import os
from typing import Any

import numpy as np

from forebay.errors import FileError
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
    path = os.fsdecode(filename)
    file = open_file(path)
    try:
        data: Any = np.empty(file.size, np.uint8)
        got = file.read_at(0, data)
    finally:
        file.close()
    if got < file.size:
        raise FileError(path, f"has become shorter: {got:,} bytes of {file.size:,} are there", got)
    return bytes(data.data)
