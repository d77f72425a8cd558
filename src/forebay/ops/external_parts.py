"""Into how many parts a shuffle of everything scatters rows, and so how often each of them goes to disk."""

from dataclasses import dataclass
from math import sqrt
from mmap import PAGESIZE

from forebay.run.scatter import slot_bytes

# Rows are scattered by so many leading bits of their words at a time: as many as leave pieces of a good size to be
# written at once, and to be remembered. Fewer would mean that small budgets scatter large data too many times.
_MOST_BITS = 8
_LEAST_BITS = 4
_PIECE = 1 << 16
# Parts of the budget. Of rows that are collected in memory: for a moment they are there twice.
_PART = 4
# Of rows that are put in order at once: there are the part that is given out and the one that is being read, and beside
# them what is scattered once more, or copies of rows that differ in size.
_ORDERED = 6
# More to scatter at once only makes pieces larger that are large enough.
_MOST = 64 << 20
# A part is scattered once more into pieces of this size, of which few are enough: it is only a little too large.
_AGAIN = 1 << 20
WORD_BITS = 64
# What a piece or a block costs on disk besides its rows, about: where it begins at a good place, what tells of it, and
# where it lies.
_ABOUT = 512
# Parts differ in size by chance. One that is larger than expected by so many standard deviations never comes.
_SPREAD = 6


@dataclass(frozen=True, slots=True)
class ExternalParts:
    """How rows are divided within a share of the budget.

    Args:
        part: bytes of rows that are collected in memory before any goes to disk.
        ordered: bytes of rows that are put in order at once.
        at_once: bytes of rows that are scattered at once.
        bits: leading bits of their words by which rows are scattered at first.
    """

    part: int
    ordered: int
    at_once: int
    bits: int

    @staticmethod
    def within(share: int) -> "ExternalParts":
        """Those for so many bytes of the budget."""
        part = share // _PART
        at_once = min(part, _MOST)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (at_once // _PIECE).bit_length() - 1))
        return ExternalParts(part, share // _ORDERED, at_once, bits)

    @property
    def blocks_at_once(self) -> int:
        """The same as `at_once` for rows that differ in size, which are copied as they are scattered."""
        return min(self.ordered, _MOST)

    def too_large(self, nbytes: float, bits: int) -> bool:
        """Whether a part, whose rows have so many bits in common, has to be scattered once more."""
        return nbytes > self.ordered and bits < WORD_BITS

    def bits_again(self, nbytes: float, bits: int) -> int:
        """The bits by which it is."""
        return min(bits + min(self.bits, (int(nbytes) // max(self.ordered, 1)).bit_length() + 1), WORD_BITS)

    def pieces_bytes(self, parts: int, again: bool) -> int:
        """Bytes that rows of one size may take together while they are scattered into so many parts."""
        return min(self.at_once, parts * _AGAIN) if again else self.at_once

    def scattered(self, rows: int, row_bytes: int) -> list[int]:
        """Into how many parts each time that so many rows go to disk at most; none if they are collected in memory."""
        if rows * row_bytes <= self.part:
            return []
        bits = self.bits
        into = [1 << bits]
        while self.too_large(_largest(rows, row_bytes, bits), bits):
            # The least that is too large is cut into the fewest.
            mean = rows * row_bytes / (1 << bits)
            more = self.bits_again(max(mean, self.ordered + 1), bits)
            into.append(1 << (more - bits))
            bits = more
        return into

    def once(self) -> int:
        """Bytes of rows that as good as never go to disk twice."""
        return self.ordered << self.bits

    def disk(self, rows: int, row_bytes: int, alike: bool) -> int:
        """Bytes that these take up on disk at most.

        A part that has been scattered once more gives the pages of its rows back, but for those that it shares.
        Rows that are `alike` lie in pieces of a fixed size.
        """
        found, bits = 0, 0
        into = self.scattered(rows, row_bytes)
        for number, parts in enumerate(into):
            nbytes, pieces = self._lying(rows, row_bytes, parts, alike, again=number > 0)
            bits += parts.bit_length() - 1
            if number < len(into) - 1:
                left = nbytes - rows * row_bytes + 2 * PAGESIZE * pieces
                nbytes = min(nbytes, left + int(_largest(rows, row_bytes, bits)))
            found += nbytes
        return found

    def _lying(self, rows: int, row_bytes: int, parts: int, alike: bool, again: bool) -> tuple[int, int]:
        """Bytes that these take when they are scattered once, and in how many pieces they lie."""
        total = rows * row_bytes
        # Each part ends with a piece that is not full. Where that is done part by part, there are more of them.
        pieces = (total // max(self.blocks_at_once, 1) + 1) << self.bits
        if alike:
            size = slot_bytes(row_bytes, parts, self.pieces_bytes(parts, again))
            total = -(-rows * size // (size // row_bytes))
            pieces = total // size + (pieces if again else parts)
        pieces = min(pieces, rows)
        return total + _ABOUT * pieces, pieces


def _largest(rows: int, row_bytes: int, bits: int) -> float:
    """Bytes of the largest part: rows are thrown into parts as by chance."""
    mean = rows / (1 << bits)
    return (mean + _SPREAD * sqrt(mean)) * row_bytes
