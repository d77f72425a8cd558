"""What random output has to obey, whatever the numbers drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.case import Law


def reordered(inputs: Sequence[Any], key: Callable[[Any], Any] = int) -> Law:
    """The inputs, each as often as it came, in another order."""

    def law(elements: list[Any]) -> None:
        seen = [key(e) for e in elements]
        assert Counter(seen) == Counter(inputs)
        assert seen != list(inputs), "nothing was shuffled"

    return law


def buffered(inputs: Sequence[Any], buffer_size: int, key: Callable[[Any], Any] = int, whole: bool = True) -> Law:
    """A buffer of this size: the element at place t was among the first t + buffer_size inputs.

    Inputs are all different. `whole` says that the stream was read to its end.
    """

    def law(elements: list[Any]) -> None:
        position = {value: i for i, value in enumerate(inputs)}
        origin = [position[key(e)] for e in elements]
        assert len(set(origin)) == len(origin), "an element came twice"
        if whole:
            assert len(origin) == len(inputs)
        for t, i in enumerate(origin):
            assert i < t + buffer_size, f"input {i} came at place {t} out of a buffer of {buffer_size}"
        assert origin != sorted(origin), "nothing was shuffled"

    return law


def rounds(inputs: Sequence[Any], count: int, fresh: bool, buffer_size: int | None = None) -> Law:
    """`count` rounds over the inputs, each a shuffle of its own, or (not fresh) the same one again."""

    def law(elements: list[Any]) -> None:
        n = len(inputs)
        assert len(elements) == n * count
        parts = [[int(e) for e in elements[i * n : (i + 1) * n]] for i in range(count)]
        for part in parts:
            buffered(inputs, buffer_size or n)([np.int64(i) for i in part])
        different = len({tuple(part) for part in parts})
        assert different == (count if fresh else 1), f"{different} different orders in {count} rounds"

    return law


def distinct_within(low: int, high: int, count: int) -> Law:
    """The first `count` draws of a range without replacement, and not in their natural order."""

    def law(elements: list[Any]) -> None:
        values = [int(e) for e in elements]
        assert len(values) == count
        assert len(set(values)) == count
        assert all(low <= v < high for v in values)
        assert values != sorted(values)

    return law


def random_words(count: int) -> Law:
    """Draws of `Dataset.random`: int64 in [0, 2**32), all over the range."""

    def law(elements: list[Any]) -> None:
        assert len(elements) == count
        assert all(type(e) is np.int64 and 0 <= e < 2**32 for e in elements)
        assert len({int(e) for e in elements}) == count
        assert min(elements) < 2**31 <= max(elements)

    return law


def each_different(count: int, key: Callable[[Any], Any] = float) -> Law:
    """`count` draws, no two the same."""

    def law(elements: list[Any]) -> None:
        assert len(elements) == count
        assert len({key(e) for e in elements}) == count

    return law
