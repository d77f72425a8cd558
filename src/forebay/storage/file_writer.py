"""One Arrow IPC file, with a checksum for every record batch."""

import os
from typing import Any

from forebay.block import Block, RowError
from forebay.errors import InternalError
from forebay.storage.arrow import arrow
from forebay.storage.checked import checksum, checksum_text
from forebay.storage.columns import encode
from forebay.storage.leaf import Leaf
from forebay.storage.manifest import FileInfo

_SMALL = 1 << 16
MAGIC = b"ARROW1\0\0"


def schema_of(leaves: tuple[Leaf, ...]) -> Any:
    """The schema of all files of a dataset."""
    return arrow().schema([leaf.field() for leaf in leaves])


class FileWriter:
    """Writes blocks as record batches. ``finish`` completes the file, ``close`` leaves it as it is."""

    def __init__(self, folder: str, name: str, shard: int, leaves: tuple[Leaf, ...], compression: str | None) -> None:
        pa = arrow()
        self._name = name
        self._shard = shard
        self._leaves = leaves
        self._schema = schema_of(leaves)
        self._head = len(MAGIC) + self._schema.serialize().size
        self._sink = _Sink(os.path.join(folder, name), self._head)
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), self._schema, options=options)
        self._rows: list[int] = []
        self._ends: list[int] = []
        self._checksums: list[str] = []

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._sink.position

    def write(self, block: Block) -> None:
        """One record batch. RowError that names the leaf, if a value does not go in."""
        arrays = []
        for leaf, column in zip(self._leaves, block.columns):
            try:
                arrays.append(encode(leaf, column))
            except RowError as error:
                raise RowError(error.row, f"{leaf.name} {error.text}") from None
        self._writer.write_batch(arrow().RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows.append(block.rows)
        self._ends.append(self._sink.position)
        self._checksums.append(self._sink.cut())

    def finish(self) -> FileInfo:
        """Complete the file, see it on the disk, and say what is in it."""
        self._sink.finishing = True
        self._writer.close()
        self._sink.finish()
        size, frame = self._sink.position, checksum_text(self._sink.frame)
        return FileInfo(self._name, self._shard, size, self._head, frame, self._rows, self._ends, self._checksums)

    def close(self) -> None:
        """Give up the file."""
        self._sink.close()


class _Sink:
    """What pyarrow writes to: takes the checksum of everything on its way to the file. Small pieces go together.

    The frame is what stands before the first batch and after the last one.
    """

    def __init__(self, path: str, head: int) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
        self._small = bytearray()
        self._head = head
        self._sum = 0
        self.frame = 0
        self.finishing = False
        self.position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.closed:
            # pyarrow completes files that it is told to forget.
            return len(view)
        if self.position < self._head < self.position + len(view):
            raise InternalError("a record batch does not begin where the schema ends")
        if self.position < self._head or self.finishing:
            self.frame = checksum(view, before=self.frame)
        else:
            self._sum = checksum(view, before=self._sum)
        self.position += len(view)
        if len(view) < _SMALL:
            self._small += view
            if len(self._small) >= _SMALL:
                self.flush()
        else:
            self.flush()
            self._out(view)
        return len(view)

    def _out(self, view: memoryview) -> None:
        while len(view):
            view = view[self._file.write(view) :]

    def cut(self) -> str:
        """The checksum of what came since the last cut."""
        done, self._sum = self._sum, 0
        return checksum_text(done)

    def flush(self) -> None:
        if self._small:
            self._out(memoryview(bytes(self._small)))
            self._small.clear()

    def finish(self) -> None:
        """Everything on the disk."""
        self.flush()
        os.fsync(self._file.fileno())
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()

    def tell(self) -> int:
        return self.position

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
