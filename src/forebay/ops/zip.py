"""``zip``: rows of several datasets side by side."""

from dataclasses import dataclass
from typing import Any

from forebay.block import Block, Cursor, Indices, Structure
from forebay.plan.node import Build, Node, element_count
from forebay.run import Access, Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Zip(Node):
    """``Dataset.zip``. `shape` is the structure that the datasets were given in."""

    shape: Structure

    kind = "zip"

    def cardinality(self) -> int:
        """The shortest."""
        return element_count(*(node.cardinality() for node in self.inputs))

    def spec(self, *inputs: Any) -> Any:
        """The specs in the same structure."""
        return self.shape.unflatten(inputs)

    def access(self) -> Access | None:
        """By number, if every input is."""
        parts = [node.access() for node in self.inputs]
        return _Zipped(self.shape, [p for p in parts if p is not None]) if None not in parts else None

    def params(self) -> dict[str, Any]:
        """The structure, as a text."""
        return {"structure": str(self.shape)}

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read all in step."""
        return _Zip(self, [build(node, setup) for node in self.inputs])


class _Zip(Operator):
    """State: one cursor per input."""

    def __init__(self, node: Zip, sources: list[Operator]) -> None:
        super().__init__(node.site, *sources)
        self._readers = [Reader(source) for source in sources]
        self._shape = node.shape

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Every input skips as many rows."""
        state = cursor.state or {"in": [[None, 0]] * len(self._readers)}
        for reader, at in zip(self._readers, state["in"], strict=True):
            reader.seek(Cursor.from_json(at).after(cursor.skip), epoch)
        return 0

    def pull(self) -> Block | None:
        """As many rows as all inputs have at hand. The inputs are asked in order; the first to end ends all."""
        ready = []
        for reader in self._readers:
            block = reader.peek()
            if block is None:
                return None
            ready.append(block.rows)
        blocks = [block for reader in self._readers if (block := reader.read(min(ready))) is not None]
        return side_by_side(self._shape, blocks).at(Cursor({"in": [block.cursor.to_json() for block in blocks]}))


class _Zipped(Access):
    def __init__(self, shape: Structure, parts: list[Access]) -> None:
        super().__init__(min(part.length for part in parts))
        self._shape = shape
        self._parts = parts

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The same rows of every part."""
        return side_by_side(self._shape, [part.gather(indices, epoch) for part in self._parts])

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """The same rows of every part."""
        return side_by_side(self._shape, [part.read(start, stop, epoch) for part in self._parts])


def side_by_side(shape: Structure, blocks: list[Block]) -> Block:
    """Blocks of equally many rows as one, their structures put into the leaves of `shape`."""
    structure = shape.nest([block.structure for block in blocks])
    return Block(structure, [column for block in blocks for column in block.columns], blocks[0].rows)
