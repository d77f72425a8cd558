"""The input side of ``interleave``: slots for the next elements, made ahead of need, and for those of a saved state."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from forebay.block import START, Block, Cursor
from forebay.ops.inner import Inner, InnerDatasets
from forebay.ops.interleave_slot import Slot, Supply
from forebay.run import Operator, Reader
from forebay.run.later import Later

# Going on reading to an element that is so near is cheaper than seeking, which a source may do by reading anyway.
_NEAR = 256


@dataclass(frozen=True, slots=True)
class SavedSlot:
    """A slot as its state tells it. `at` is None if the inner dataset has ended."""

    number: int
    index: int
    origin: Cursor
    at: Cursor | None

    @staticmethod
    def from_json(number: int, value: dict[str, Any]) -> "SavedSlot":
        """What ``Slot.state`` wrote."""
        at = None if value["at"] is None else Cursor.from_json(value["at"])
        return SavedSlot(number, int(value["index"]), Cursor.from_json(value["input"]), at)

    def after(self, rows: int) -> "SavedSlot":
        """The slot when so many more of its rows have been read."""
        return self if self.at is None else replace(self, at=self.at.after(rows))


class Feed:
    """Reads elements and makes slots of them, up to `ahead` more than have been asked for."""

    def __init__(self, supply: Supply, source: Operator, datasets: InnerDatasets, ahead: int) -> None:
        self._supply = supply
        self._source = source
        self._reader = Reader(source)
        self._datasets = datasets
        self.ahead = ahead
        self.seek(START, 0, 0, {})

    def seek(self, at: Cursor | None, index: int, epoch: int, starts: dict[int, Cursor]) -> None:
        """Continue with element `index`, which is at that cursor of the input; None if the input has ended.

        `starts` tells, for elements from there on, where to begin in their datasets if not at the start.
        """
        self._starts = starts
        self._waiting: deque[Slot] = deque()
        self._epoch = epoch
        self._at = START if at is None else at
        self._index = index
        self._over = at is None  # Nothing more can be read; what waits has still to be taken.
        self._error: Later | None = None
        self._read: int | None = None  # The number of the element that the reader stands at, once it does.
        self.ended = at is None
        """Whether everything has been taken."""

    @property
    def index(self) -> int:
        """The number of the next element to be taken."""
        return self._waiting[0].index if self._waiting else self._index

    def state(self) -> dict[str, Any]:
        """Where the next element to be taken is."""
        if not self._waiting and self._source.free:
            # Only the cursor that an element came with knows of the order in which those after it will come.
            self._look_ahead(1)
        at = self._waiting[0].origin if self._waiting else self._at
        return {"in": None if self.ended else at.to_json(), "index": self.index}

    def take(self) -> Slot | None:
        """A slot for the next element, or None at the end."""
        if not self._waiting:
            self._look_ahead(1)
        if not self._waiting:
            if self._error is not None:
                raise self._error.error
            self.ended = True
            return None
        slot = self._waiting.popleft()
        self.prepare()
        return slot

    def prepare(self) -> None:
        """Have the next datasets opened and their first rows fetched, if that is wanted ahead of need."""
        while len(self._waiting) < self.ahead and not self._over and self._supply.afford():
            self._look_ahead(len(self._waiting) + 1)

    def restore(self, saved: list[SavedSlot]) -> dict[int, Slot]:
        """The slots of a saved state by number, made again from their elements."""
        slots = {}
        for one in sorted(saved, key=lambda one: one.index):
            self._go_to(one.origin, one.index)
            element = self._next(one.index)
            self._read = one.index + 1
            slot = self._make(element, one.index, START if one.at is None else one.at)
            slot.ended = one.at is None
            slots[one.number] = slot
        return slots

    def abandon(self) -> None:
        """Those that nobody has taken."""
        for slot in list(self._waiting):
            slot.abandon()

    def close(self) -> None:
        """Close the slots that nobody has taken."""
        while self._waiting:
            self._waiting[0].close()
            self._waiting.popleft()

    def _look_ahead(self, count: int) -> None:
        while len(self._waiting) < count and not self._over:
            try:
                self._go_to(self._at, self._index)
                element = self._reader.read(1)
            except Exception as error:
                # Elements before it are still good, so it is raised when its own turn comes.
                self._error = Later(error)
                self._over = True
                return
            if element is None:
                self._over = True
                return
            slot = self._make(element, self._index, self._starts.get(self._index, START))
            slot.ask()
            self._waiting.append(slot)
            self._at = element.cursor.after(1)
            self._index += 1
            self._read = self._index

    def _make(self, element: Block, index: int, at: Cursor) -> Slot:
        return Slot(self._supply, Inner(self._datasets, element, index, self._epoch, at), at)

    def _go_to(self, at: Cursor, index: int) -> None:
        """Put the reader at an element."""
        if self._read is None or not 0 <= index - self._read <= _NEAR:
            self._reader.seek(at, self._epoch)
            self._read = index
        while self._read < index:
            self._read += self._next(self._read, index - self._read).rows

    def _next(self, index: int, most: int = 1) -> Block:
        block = self._reader.read(most)
        if block is None:
            raise self._supply.site.data_error(
                index, "the input ended before the place where it is to be resumed: it has become shorter"
            )
        return block
