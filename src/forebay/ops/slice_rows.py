"""Take, skip and shard over rows that can be read by number: arithmetic instead of reading and dropping."""

from dataclasses import dataclass

from forebay.block import Block, Indices
from forebay.errors import InternalError
from forebay.plan.node import Build, Node, Traits
from forebay.run import Access, Operator, ReadRows, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class SliceRows(Node):
    """Rows start, start + step, ... below stop. Made by a rule, never by a user."""

    start: int
    stop: int
    step: int

    kind = "slice_rows"
    traits = Traits(same_elements=True)

    def cardinality(self) -> int:
        """As Python's range."""
        return len(range(self.start, self.stop, self.step))

    def access(self) -> Access:
        """By number, as the input."""
        inner = self.input.access()
        if inner is None:
            raise InternalError(f"slice_rows over {self.input.kind}, which cannot be read by number")
        return _Sliced(inner, range(self.start, self.stop, self.step))

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)


def sliced(inner: Access | None, window: slice) -> Access | None:
    """The rows of a window, by number where the input is."""
    return None if inner is None else _Sliced(inner, range(inner.length)[window])


class _Sliced(Access):
    def __init__(self, inner: Access, rows: range) -> None:
        super().__init__(len(rows))
        self._inner = inner
        self._rows = rows

    def origin(self, row: int, epoch: int) -> str | None:
        """By the number below."""
        return self._inner.origin(row * self._rows.step + self._rows.start, epoch)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The same rows by their numbers below."""
        return self._inner.gather(indices * self._rows.step + self._rows.start, epoch)

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Neighbours stay neighbours when nothing is left out between them."""
        if self._rows.step == 1:
            return self._inner.read(start + self._rows.start, stop + self._rows.start, epoch)
        return super().read(start, stop, epoch)
