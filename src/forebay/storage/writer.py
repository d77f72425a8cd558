"""A dataset on its way to disk: blocks in, Arrow files and a manifest out."""

import os
from collections.abc import Callable, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from forebay.block import Block, Column, Indices, RowError, Structure, TensorSpec, concat_blocks, flatten
from forebay.errors import DataError, PlanError
from forebay.full_disk import not_written
from forebay.ledger import Ledger
from forebay.storage.arrow import arrow
from forebay.storage.columns import decode
from forebay.storage.file_reader import StoredFile
from forebay.storage.file_writer import FileWriter
from forebay.storage.folder import NewFolder
from forebay.storage.leaf import Leaf, leaf_of_column, leaf_of_spec
from forebay.storage.manifest import FileInfo, Manifest, write_manifest
from forebay.storage.sample import Sample
from forebay.storage.structures import structure_to_json, written_names

BATCH_BYTES = 1 << 20
FILE_BYTES = 1 << 30
# So much is looked at before the columns' types are settled: a leaf whose shapes differ mostly shows that early.
_LOOK_BYTES = 4 << 20
_OPEN_FILES = 64
_WAITING_BYTES = 64 << 20

ShardOf = Callable[[Block, int], "np.ndarray[Any, Any]"]
"""The shard of every row of a block; the number is that of its first row."""


class DatasetWriter:
    """Writes blocks to a new folder. ``finish`` puts it in place; ``close`` without it leaves nothing behind."""

    def __init__(
        self,
        path: str,
        call: str,
        *,
        compression: str | None = None,
        shard_of: ShardOf | None = None,
        spec: Any = None,
        plan: str = "",
        made_of: str | None = None,
        overwrite: bool = True,
        replaces: Callable[[str], bool] = lambda folder: False,
        file_bytes: int = FILE_BYTES,
        ledger: Ledger | None = None,
    ) -> None:
        arrow()
        self._call = call
        self._lease = (ledger or Ledger(1 << 62)).lease(f"{call}({path!r})")
        self._compression = compression
        self._shard_of = shard_of
        self._plan = plan
        self._made_of = made_of
        self._file_bytes = file_bytes
        self._structure: Structure | None = None
        self._leaves: tuple[Leaf, ...] = ()
        if spec is not None:
            specs, self._structure = flatten(spec, (TensorSpec,))
            self._encoded = structure_to_json(self._structure)
            self._names = self._checked_names()
            self._expected = [self._expect(name, leaf) for name, leaf in zip(self._names, specs)]
        self._looked: list[Block] | None = []
        self._looked_bytes = 0
        self._waiting: dict[int, _Waiting] = {}
        self._open: dict[int, FileWriter] = {}
        self._files: list[FileInfo] = []
        self._numbers: dict[int, int] = {}
        self._sample = Sample()
        self.rows = 0
        self._folder = NewFolder(path, call, overwrite, replaces)

    def add(self, block: Block) -> None:
        """Take rows. DataError if they cannot be saved; nothing has then been put in place."""
        if self._structure is None:
            self._structure = block.structure
            self._encoded = structure_to_json(self._structure)
            self._names = self._checked_names()
            self._expected = [None] * len(self._names)
        block = block.ordered_as(self._structure)
        if block.structure != self._structure:
            raise self._error(self.rows, f"has the structure {block.structure}, earlier {self._structure}")
        try:
            if self._looked is not None:
                self._look(block)
            else:
                self._widen([block])
                self._sort(block)
        except RowError as error:
            raise self._error(self.rows + error.row, error.text) from None
        except OSError as error:
            raise self._disk_error(error) from error

    def _checked_names(self) -> list[str]:
        assert self._structure is not None
        if not self._structure.size:
            raise PlanError(f"{self._call}(): elements hold no values, so there is nothing to save")
        return written_names(self._call, self._structure)

    def _expect(self, name: str, spec: TensorSpec) -> Leaf | None:
        try:
            return leaf_of_spec(name, spec)
        except RowError as error:
            raise DataError(f"{self._call}(): {name} {error.text}") from None

    def _error(self, element: int, text: str) -> DataError:
        return DataError(f"{self._call}(), element {element}: {text}")

    def _disk_error(self, error: OSError) -> DataError:
        return DataError(
            f"{self._call}({self._folder.path!r}): writing failed: {not_written(error, self._folder.path)}"
        )

    def _look(self, block: Block) -> None:
        """Keep the first blocks until enough is known of them."""
        assert self._looked is not None
        self._check(block)
        self._looked.append(block)
        self._looked_bytes += block.nbytes
        # Few enough to be kept in any case: how the columns are written must not depend on the budget.
        self._lease.note(self._looked_bytes)
        self.rows += block.rows
        if self._looked_bytes >= _LOOK_BYTES:
            self._settle()

    def _check(self, block: Block) -> None:
        for name, column in zip(self._names, block.columns):
            _found(name, column)

    def _settle(self) -> None:
        """Types for the columns, then all rows that were kept back."""
        looked, self._looked = self._looked or [], None
        self.rows = 0
        leaves = []
        for i, name in enumerate(self._names if looked else []):
            found = [_found(name, block.columns[i]) for block in looked]
            leaf = self._expected[i] or found[0]
            for number, other in enumerate(found):
                try:
                    leaf = leaf.merged(other)
                except RowError as error:
                    first = sum(block.rows for block in looked[:number])
                    raise self._error(first + error.row, f"{name} {error.text}") from None
            leaves.append(leaf.settled())
        if not looked and self._structure is not None:
            leaves = [
                expected or Leaf(name, np.dtype("O"), (), True) for name, expected in zip(self._names, self._expected)
            ]
        self._leaves = tuple(leaves)
        for block in looked:
            self._sort(block)

    def _widen(self, blocks: list[Block]) -> None:
        """See to it that the columns' types hold these rows too. What has been written is written again if not."""
        leaves = self._leaves
        for block in blocks:
            leaves = tuple(leaf.merged(_found(leaf.name, column)) for leaf, column in zip(leaves, block.columns))
        if leaves == self._leaves:
            return
        for shard in list(self._open):
            self._finish_file(shard)
        before, self._leaves = self._leaves, leaves
        files, self._files = self._files, []
        for info in files:
            stored = StoredFile(os.path.join(self._folder.data, info.name), info)
            writer = self._new_file(info.shard)
            for batch in range(len(info.batch_rows)):
                arrays = stored.record_batch(batch).columns
                columns = [decode(leaf, array) for leaf, array in zip(before, arrays)]
                assert self._structure is not None
                writer.write(Block(self._structure, columns, info.batch_rows[batch]))
            self._files.append(writer.finish())
            os.unlink(os.path.join(self._folder.data, info.name))

    def _sort(self, block: Block) -> None:
        """Rows to their shards."""
        self._sample.add(block, self.rows)
        if self._shard_of is None:
            self._enqueue(0, block, range(self.rows, self.rows + block.rows))
        else:
            shards = self._shard_of(block, self.rows)
            for shard in np.unique(shards).tolist():
                mine = np.flatnonzero(shards == shard)
                self._enqueue(shard, block if len(mine) == block.rows else block.take(mine), mine + self.rows)
        self.rows += block.rows

    def _enqueue(self, shard: int, block: Block, numbers: Sequence[int] | Indices) -> None:
        """Small blocks wait for others of their shard; a batch should neither be tiny nor huge."""
        waiting = self._waiting.setdefault(shard, _Waiting())
        waiting.add(block, numbers)
        if waiting.nbytes >= BATCH_BYTES // 2:
            self._flush(shard)
        while self._too_many_wait():
            self._flush(max(self._waiting, key=lambda key: self._waiting[key].nbytes))

    def _too_many_wait(self) -> bool:
        """Whether rows of some shard have to be written, though they make a small batch."""
        held = sum(waiting.nbytes for waiting in self._waiting.values())
        if held <= BATCH_BYTES:
            # Without so much, there would be nothing but tiny batches.
            self._lease.note(held)
            return False
        return held > _WAITING_BYTES or not self._lease.ask(held)

    def _flush(self, shard: int) -> None:
        waiting = self._waiting.pop(shard)
        block = waiting.block()
        pieces = max(1, min(block.rows, round(block.nbytes / BATCH_BYTES)))
        bounds = np.linspace(0, block.rows, pieces + 1).astype(int).tolist()
        for start, stop in pairwise(bounds):
            writer = self._open.pop(shard, None) or self._new_file(shard)
            # The one that was used last is the last.
            self._open[shard] = writer
            try:
                writer.write(block.slice(start, stop))
            except RowError as error:
                raise self._error(waiting.number(start + error.row), error.text) from None
            if writer.size >= self._file_bytes:
                self._finish_file(shard)

    def _new_file(self, shard: int) -> FileWriter:
        while len(self._open) >= _OPEN_FILES:
            self._finish_file(next(iter(self._open)))
        number = self._numbers.get(shard, 0)
        self._numbers[shard] = number + 1
        name = f"shard-{shard:05d}-{number:05d}.arrow"
        return FileWriter(self._folder.data, name, shard, self._leaves, self._compression)

    def _finish_file(self, shard: int) -> None:
        self._files.append(self._open.pop(shard).finish())

    def finish(self) -> Manifest:
        """Write what is left and the manifest, and put the folder in place."""
        try:
            if self._looked is not None:
                self._settle()
            for shard in sorted(self._waiting):
                self._flush(shard)
            if not self._files and not self._open and self._leaves:
                self._open[0] = self._new_file(0)
            for shard in sorted(self._open):
                self._finish_file(shard)
            manifest = Manifest(
                id=self._sample.digest(self.rows, self._plan, [leaf.to_json() for leaf in self._leaves]),
                structure=self._encoded if self._structure is not None else None,
                leaves=self._leaves,
                compression=self._compression,
                plan=self._plan,
                made_of=self._made_of,
                files=tuple(sorted(self._files, key=lambda file: (file.shard, file.name))),
                known=self._structure is not None,
            )
            write_manifest(self._folder.data, manifest)
        except RowError as error:
            raise self._error(self.rows + error.row, error.text) from None
        except OSError as error:
            raise self._disk_error(error) from error
        self._folder.commit()
        return manifest

    def close(self) -> None:
        """Give up what was not finished."""
        self._lease.release()
        for writer in self._open.values():
            writer.close()
        self._open = {}
        self._folder.close()


class _Waiting:
    """Blocks of one shard that are not worth a batch yet, and which elements they hold, for errors."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._numbers: list[Sequence[int] | Indices] = []
        self.nbytes = 0

    def add(self, block: Block, numbers: Sequence[int] | Indices) -> None:
        self._blocks.append(block)
        self._numbers.append(numbers)
        self.nbytes += block.nbytes

    def number(self, row: int) -> int:
        return int(next(islice(chain.from_iterable(self._numbers), row, None)))

    def block(self) -> Block:
        return concat_blocks(self._blocks)


def _found(name: str, column: Column) -> Leaf:
    try:
        return leaf_of_column(name, column)
    except RowError as error:
        raise RowError(error.row, f"{name} {error.text}") from None
