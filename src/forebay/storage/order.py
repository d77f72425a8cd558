"""The order in which rows of several shards are read: in turns, as ``interleave`` takes them."""

from collections.abc import Iterator, Sequence

import numpy as np

from forebay.block import Indices

# As interleave's default; tf.data takes the number of processors, which would make the order depend on the machine.
CYCLE = 16


class Turns:
    """Which stored row comes at which place, when shards lie one behind another and give a row each in turn.

    Sixteen shards are read at a time. The place of one that has ended is taken by the next when its turn comes again.
    The order is kept as runs of rounds in which the same shards take part.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        runs = list(_runs(lengths))
        widths = np.array([len(starts) for _, starts in runs], np.int64)
        rounds = np.array([count for count, _ in runs], np.int64)
        self._widths = widths
        self._first = np.cumsum(np.concatenate([[0], widths * rounds]))
        self._slots = np.cumsum(np.concatenate([[0], widths]))
        self._rows = np.array([row for _, starts in runs for row in starts], np.int64)

    def stored(self, places: Indices) -> Indices:
        """The stored rows at these places of the order."""
        run = np.searchsorted(self._first, places, side="right") - 1
        rounds, slot = np.divmod(places - self._first[run], self._widths[run])
        stored: Indices = self._rows[self._slots[run] + slot] + rounds
        return stored


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """So many rounds in which rows are taken from these places on, one from each, in turn."""
    starts = np.cumsum([0, *lengths]).tolist()
    coming = iter(range(len(lengths)))
    slots: list[tuple[int, int] | None] = [None] * min(CYCLE, max(len(lengths), 1))  # The next row, and the end.
    more = True
    while more or any(slot is not None for slot in slots):
        live = [slot for slot in slots if slot is not None]
        whole = min((end - row for row, end in live), default=0)
        if whole and (len(live) == len(slots) or not more):
            yield whole, [row for row, _ in live]
            slots = [None if slot is None else (slot[0] + whole, slot[1]) for slot in slots]
            continue
        # A round in which a shard begins or turns out to have ended.
        taken = []
        for i, slot in enumerate(slots):
            if slot is None and more:
                shard = next(coming, None)
                if shard is None:
                    more = False
                else:
                    slot = (starts[shard], starts[shard + 1])
            if slot is not None and slot[0] < slot[1]:
                taken.append(slot[0])
                slots[i] = (slot[0] + 1, slot[1])
            else:
                slots[i] = None
        if taken:
            yield 1, taken
