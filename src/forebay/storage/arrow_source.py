"""A file as Arrow reads it."""

from typing import Any

import numpy as np

from forebay.storage.arrow import arrow
from forebay.storage.files import InputFile, is_url


def arrow_source(file: InputFile) -> Any:
    """By itself if it is a local one."""
    pa = arrow()
    return pa.PythonFile(_Ranges(file), mode="r") if is_url(file.path) else pa.OSFile(file.path)


class _Ranges:
    """An ``InputFile`` as a Python file, for Arrow to read from."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._position = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        left = max(self._file.size - self._position, 0)
        data = np.empty(left if size is None or size < 0 else min(size, left), np.uint8)
        got = self._file.read_at(self._position, data)
        self._position += got
        return data[:got].tobytes()

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._position, self._file.size)[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        self.closed = True
