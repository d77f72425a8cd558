"""TFRecord files, written record by record."""

import os
from types import TracebackType
from typing import Any

import numpy as np

from forebay._native import frame_records
from forebay.block import Indices
from forebay.errors import PlanError
from forebay.storage.files import Bytes
from forebay.storage.output import OutputFile
from forebay.storage.streams import compression_of

_FRAMING = 16
# Small records are framed and written together.
_BUFFER = 1 << 18


class TFRecordOptions:
    """How a TFRecord file is written.

    Args:
        compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
        compression_level: from 0, none, to 9, smallest; by default zlib's own.

    >>> TFRecordOptions("GZIP").compression_type
    'GZIP'
    """

    def __init__(self, compression_type: str | None = None, *, compression_level: int | None = None) -> None:
        self.compression_type = compression_of("TFRecordOptions", compression_type)
        if compression_level is not None and compression_level not in range(-1, 10):
            raise PlanError(f"TFRecordOptions(compression_level={compression_level!r}): it must be from -1 to 9")
        self.compression_level = -1 if compression_level is None else compression_level


class TFRecordWriter:
    """Writes a TFRecord file, which TensorFlow reads as well.

    Args:
        path: a path, or a URL that fsspec knows. A file that is there is replaced.
        options: a compression, or a ``TFRecordOptions``.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.tfrecord.gz"
    >>> with TFRecordWriter(path, "GZIP") as writer:
    ...     writer.write(b"one")
    >>> import forebay as fb
    >>> list(fb.TFRecordDataset(path, "GZIP"))
    [b'one']
    """

    def __init__(self, path: "str | os.PathLike[str]", options: "str | TFRecordOptions | None" = None) -> None:
        chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._file = OutputFile(os.fsdecode(path), chosen.compression_type, chosen.compression_level)
        self._waiting: list[bytes] = []
        self._bytes = 0

    def write(self, record: "bytes | bytearray | memoryview | str") -> None:
        """Add a record. Text is written in UTF-8."""
        data = record.encode() if isinstance(record, str) else bytes(memoryview(record))
        if self._file.closed:
            raise PlanError("TFRecordWriter.write(): the writer is closed")
        self._waiting.append(data)
        self._bytes += len(data)
        if self._bytes >= _BUFFER:
            self._write_out()

    def flush(self) -> None:
        """Have everything that was written so far in the file."""
        self._write_out()
        self._file.flush()

    def close(self) -> None:
        """Write what is left. May be called again."""
        if not self._file.closed:
            self._write_out()
        self._file.close()

    def _write_out(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if waiting:
            offsets = np.zeros(len(waiting) + 1, np.int64)
            np.cumsum([len(data) for data in waiting], out=offsets[1:])
            self._file.write(framed(np.frombuffer(b"".join(waiting), np.uint8), offsets))

    def __enter__(self) -> "TFRecordWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def framed(data: Bytes, offsets: Indices) -> Any:
    """The strings ``data[offsets[i]:offsets[i + 1]]`` as TFRecords, one behind another."""
    out = np.empty(int(offsets[-1] - offsets[0]) + _FRAMING * (len(offsets) - 1), np.uint8)
    frame_records(data, np.ascontiguousarray(offsets), out)
    return out
