"""Random numbers that depend on what they are for, never on who drew before.

Every draw is named by a key (seed, epoch, operator) and an index. Philox turns both into a number directly,
so that any thread, process or resumed run finds the same one without having made those before it.
"""

import numpy as np
from numpy.typing import NDArray

from forebay._native import philox
from forebay.digests import blake2b

Key = tuple[int, int]


def key_of(*parts: int | str) -> Key:
    """A 128-bit key from seeds, epochs and names."""
    digest = blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def seed_of(*parts: int | str) -> int:
    """A seed derived from others, in the range that users may give themselves."""
    return key_of("seed", *parts)[0] >> 1


def words(key: Key, start: int, count: int) -> NDArray[np.uint64]:
    """Random words number start to start + count of the stream that the key names."""
    found = np.empty(count, np.uint64)
    philox(*key, start, found)
    return found


def uniforms(key: Key, start: int, count: int) -> NDArray[np.float64]:
    """The same words as numbers in [0, 1), with all 53 bits that a float64 can hold."""
    scaled: NDArray[np.float64] = (words(key, start, count) >> np.uint64(11)) * np.float64(2.0**-53)
    return scaled


class Generators:
    """A ``numpy.random.Generator`` per element. One object is set anew for each, which is ten times cheaper."""

    def __init__(self, key: Key) -> None:
        self._bits = np.random.Philox(key=np.array(key, np.uint64))
        self._state = self._bits.state
        self._counter = self._state["state"]["counter"]
        self._generator = np.random.Generator(self._bits)

    def at(self, index: int) -> "np.random.Generator":
        """The generator of that element, at its beginning. It stays valid until the next call."""
        # The index is the highest word of the counter: 2**192 words lie between two elements.
        self._counter[3] = index
        self._bits.state = self._state
        return self._generator
