"""``to_webdataset``: all rows of a dataset as samples in tar archives."""

import io
from typing import Any

import numpy as np

from forebay.block import Block
from forebay.errors import DataError
from forebay.sinks.files import FilesWriter
from forebay.storage.output import OutputFile
from forebay.storage.tar import END, KEY, member_bytes, padding, split_name


class ArchiveWriter(FilesWriter):
    """A member for each field of each sample."""

    def __init__(self, pattern: str, rows_per_file: int | None) -> None:
        super().__init__("to_webdataset", pattern, rows_per_file)
        self._archive: OutputFile | None = None
        self._last: str | None = None  # The key of the sample before, in the same archive.

    def begin(self, output: OutputFile) -> None:
        """Nothing stands before the first member."""
        self._archive = output
        self._last = None

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
            if key == self._last:
                raise self._error(
                    row, f"has the key {key!r}, as the one before: readers would take both for one sample"
                )
            self._last = key
            values = {str(name): value for name, value in sample.items() if name != KEY and value is not None}
            self._check_names(row, key, list(values))
            for name, value in values.items():
                data = self._bytes(row, name, value)
                self._archive.write(member_bytes(f"{key}.{name}", len(data)) + data + padding(len(data)))

    def _check_names(self, row: int, key: str, names: list[str]) -> None:
        """Readers have nothing but names to put samples together by, and pass over what says nothing to them."""
        if not names:
            raise self._error(row, f"has nothing but None, so that no sample {key!r} would be there")
        if len({name.lower() for name in names}) < len(names):
            raise self._error(row, f"has fields that differ in case alone, which does not count: {sorted(names)}")
        for name in names:
            member = f"{key}.{name}"
            try:
                understood = split_name(member.encode("utf-8", "surrogateescape")) == (key, name.lower())
            except UnicodeEncodeError:
                understood = False
            if not understood or "\0" in member:
                raise self._error(
                    row, f"would be the member {member!r}, which readers would not take for {name!r} of {key!r}"
                )

    def _bytes(self, row: int, name: str, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if name.endswith("npy") and not np.asarray(value).dtype.hasobject:
            file = io.BytesIO()
            np.save(file, np.asarray(value), allow_pickle=False)
            return file.getvalue()
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return str(value.item()).encode()
        raise self._error(
            row,
            f"{name} is {type(value).__name__}; give bytes, str, a number, or an array of numbers under a key that "
            "ends in npy",
        )

    def end(self) -> None:
        """Two blocks of zeros."""
        assert self._archive is not None
        self._archive.write(END)
        self._archive = None

    def _error(self, row: int, text: str) -> DataError:
        return DataError(f"to_webdataset(), element {self.rows + row}: {text}")
