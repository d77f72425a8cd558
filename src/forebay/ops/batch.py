"""``batch``: consecutive rows stacked into one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Cursor, Indices, MissingError, RowError, Structure, concat_blocks, fold
from forebay.block.pile import Pile
from forebay.errors import DataError
from forebay.plan.check import flag, keep_whole
from forebay.plan.node import Build, Holding, Node, Sizes
from forebay.plan.spec import map_spec
from forebay.run import Access, Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch(Node):
    """``Dataset.batch``."""

    batch_size: int
    drop_remainder: bool

    kind = "batch"

    def __post_init__(self) -> None:
        keep_whole(self, "batch_size", 1)
        flag("batch", "drop_remainder", self.drop_remainder)

    def cardinality(self) -> int:
        """Whole batches, and the rest unless it is dropped."""
        rows = self.input.cardinality()
        if rows < 0:
            return rows
        return rows // self.batch_size if self.drop_remainder else -(-rows // self.batch_size)

    def spec(self, *inputs: Any) -> Any | None:
        """A leading axis, of known size if all batches are full."""
        size = self.batch_size if self.drop_remainder else None
        return map_spec(lambda leaf: leaf.with_leading(size), inputs[0])

    def access(self) -> Access | None:
        """By number, if the input is."""
        inner = self.input.access()
        return None if inner is None else _Batches(self, inner)

    def element_bytes(self, *inputs: int) -> int | None:
        """As many elements."""
        return inputs[0] * self.batch_size

    def holds(self, sizes: Sizes) -> Holding:
        """Views of its input's blocks, or a batch that is put together from several."""
        if sizes.element <= sizes.setup.block_bytes:
            return super().holds(sizes)
        return Holding(3 * sizes.element, "a batch in hand and one in the making, twice unless its rows are alike")

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Ask the input for blocks that hold whole batches, which then are views of them."""
        unit = setup.unit * self.batch_size if setup.rules else 1
        return _Batch(self, setup, build(self.input, setup.with_unit(unit)))


class _Batch(Operator):
    """State: the number of the next input element."""

    makes_rows = True

    def __init__(self, node: Batch, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._node = node
        self._lease = setup.ledger.lease(str(node.site))
        self._reader = Reader(source)
        self._size = node.batch_size
        self._drop_remainder = node.drop_remainder
        self._index = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """All batches but the last are full, so rows to skip are batches times their size."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        rows = cursor.skip * self._size
        self._reader.seek(Cursor.from_json(state["in"]).after(rows), epoch)
        self._index = state["index"] + rows
        return 0

    def pull(self) -> Block | None:
        """The whole batches of a block as views; one that spans blocks is put together."""
        self.raise_pending()
        parts = self._whole_batches()
        if not parts:
            return None
        try:
            return self._folded(parts)
        finally:
            self._lease.release()

    def _folded(self, parts: list[Block]) -> Block:
        rows = sum(part.rows for part in parts)
        try:
            folded = fold_block(parts, min(self._size, rows))
        except RowError as fault:
            good = fault.row // self._size * self._size
            error = _unequal(self._node, self._index, fault)
            if good == 0:
                raise error from None
            self.fail_next(error)
            rows, folded = good, fold_block([concat_blocks(parts).slice(0, good)], self._size)
        state = {"index": self._index, "in": parts[0].cursor.to_json()}
        self._index += rows
        return folded.at(Cursor(state))

    def close(self) -> None:
        """Let go of what waits for the rest of a batch."""
        self._lease.release()
        super().close()

    def _whole_batches(self) -> list[Block]:
        """Blocks that together hold whole batches, or at the end what is left; empty once nothing is."""
        block = self._reader.next()
        if block is None:
            return []
        if block.rows >= self._size:
            whole = block.rows // self._size * self._size
            if whole < block.rows:
                self._reader.unread(block.slice(whole, block.rows))
            return [block.slice(0, whole)]
        missing, size = self._size - block.rows, block.nbytes
        # Rows that are not alike are there twice for a moment.
        self._lease.note(2 * (size // block.rows) * self._size)
        pile = Pile(block, self._size, self.most_bytes)
        while missing:
            # Before it is put together: then it is too late.
            if size > self.most_bytes:
                raise self.too_large(size // (self._size - missing) * self._size)
            block = self._reader.read(missing)
            if block is None:
                return [] if self._drop_remainder else pile.blocks()
            pile.add(block)
            missing -= block.rows
            size += block.nbytes
        return pile.blocks()


class _Batches(Access):
    def __init__(self, node: Batch, inner: Access) -> None:
        super().__init__(node.cardinality())
        self._inner = inner
        self._size = node.batch_size
        self._node = node

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Full batches all at once; the short one at the end by itself, then put in its place."""
        short = indices == self._inner.length // self._size
        full = self._full(indices[~short], epoch)
        if not short.any():
            return full[0]
        begin = self.length * self._size - self._size
        last = self._fold(self._inner.read(begin, self._inner.length, epoch), self._inner.length - begin, begin)
        blocks = full + [last] * int(short.sum())
        order = np.argsort(np.concatenate([np.flatnonzero(~short), np.flatnonzero(short)]))
        return concat_blocks(blocks).take(order)

    def _full(self, batches: Indices, epoch: int) -> list[Block]:
        if not len(batches):
            return []
        rows = (batches[:, None] * self._size + np.arange(self._size)).reshape(-1)
        return [self._fold(self._inner.gather(rows, epoch), self._size, int(rows[0]))]

    def _fold(self, block: Block, size: int, index: int) -> Block:
        try:
            return fold_block([block], size)
        except RowError as fault:
            raise _unequal(self._node, index, fault) from None


def fold_block(parts: Sequence[Block], size: int) -> Block:
    """Blocks as one of batches. RowError names the leaf."""
    block = concat_blocks(parts)
    columns = []
    for leaf, column in enumerate(block.columns):
        try:
            columns.append(fold(column, size))
        except RowError as error:
            raise _named(error, block.structure, leaf) from None
    return Block(block.structure, columns, block.rows // size)


def _named(error: RowError, structure: Structure, leaf: int) -> RowError:
    """The error of a leaf, which it names."""
    name, path = structure.leaf_names()[leaf], list(structure.paths())[leaf]
    if not isinstance(error, MissingError):
        return RowError(error.row, f"{name} {error.text}")
    cure = f"put a value in its place with map(), as 0 if x{path} is None else x{path} does"
    text = f"{name} {error.text}: {cure}, or with from_parquet(fill_nulls=...) where a table is read"
    return MissingError(error.row, text)


def _unequal(node: Batch, first: int, fault: RowError) -> DataError:
    cure = "" if isinstance(fault, MissingError) else f"; only equal elements form a batch: {_cure(node)}"
    return node.site.data_error(first + fault.row, f"{fault.text}{cure}")


def _cure(node: Node) -> str:
    """What makes elements equal: what a function below says of itself, or a function."""
    while node.inputs:
        node = node.input
        for call in getattr(node, "calls", ()):
            cure = getattr(call.function, "equal_by", None)
            if isinstance(cure, str):
                return f"{cure}, or make them equal with map()"
    return "make them equal with map()"
