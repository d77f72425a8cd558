"""``to_webdataset``: all rows of a dataset as samples in tar archives."""

import io
from typing import Any

import numpy as np

from forebay.block import Block
from forebay.errors import DataError
from forebay.sinks.files import FilesWriter
from forebay.storage.output import OutputFile
from forebay.storage.tar import END, member_bytes, padding

KEY = "__key__"


class ArchiveWriter(FilesWriter):
    """A member for each field of each sample."""

    def __init__(self, pattern: str, rows_per_file: int | None) -> None:
        super().__init__("to_webdataset", pattern, rows_per_file)
        self._archive: OutputFile | None = None

    def begin(self, output: OutputFile) -> None:
        """Nothing stands before the first member."""
        self._archive = output

    def write(self, block: Block) -> None:
        """Sample by sample."""
        assert self._archive is not None
        if block.structure.kind is not dict or not all(child.is_leaf for child in block.structure.children):
            raise DataError(
                f"to_webdataset(), element {self.rows}: is {block.structure}; elements must be dicts from endings to "
                "values, as {'jpg': ..., 'cls': ...}"
            )
        for row, sample in enumerate(block.elements()):
            key = sample.get(KEY, f"{self.rows + row:09d}")
            if isinstance(key, bytes):
                key = key.decode("utf-8", "surrogateescape")
            if not isinstance(key, str) or not key or "." in key.rpartition("/")[2]:
                raise self._error(row, f"has the key {key!r}; it must be text without a dot in its last part")
            for name, value in sample.items():
                if name != KEY and value is not None:
                    data = self._bytes(row, str(name), value)
                    self._archive.write(member_bytes(f"{key}.{name}", len(data)) + data + padding(len(data)))

    def _bytes(self, row: int, name: str, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if name.endswith("npy"):
            file = io.BytesIO()
            np.save(file, np.asarray(value), allow_pickle=False)
            return file.getvalue()
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return str(value.item()).encode()
        raise self._error(
            row, f"{name} is {type(value).__name__}; give bytes, str, a number, or an array under a key ending in npy"
        )

    def end(self) -> None:
        """Two blocks of zeros."""
        assert self._archive is not None
        self._archive.write(END)
        self._archive = None

    def _error(self, row: int, text: str) -> DataError:
        return DataError(f"to_webdataset(), element {self.rows + row}: {text}")
