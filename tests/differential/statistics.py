"""How a buffered shuffle is distributed, exactly, and a test of whether samples follow a distribution."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

# Standard deviations from the mean at which a chi-square statistic counts as another distribution: one in a
# million by chance. Seeds are fixed, so a passing test passes for ever.
_FAR = 4.75


def shuffle_law(count: int, buffer_size: int) -> dict[tuple[int, ...], float]:
    """The probability of every order in which a buffer of that size may hand out 0 .. count - 1.

    The buffer is filled; then each step hands out one of the elements held, all equally likely, and the next
    input takes its place.
    """
    law: dict[tuple[int, ...], Fraction] = {}

    def step(out: tuple[int, ...], held: tuple[int, ...], arriving: int, probability: Fraction) -> None:
        if not held:
            law[out] = law.get(out, Fraction()) + probability
        for element in held:
            rest = tuple(other for other in held if other != element)
            if arriving < count:
                rest += (arriving,)
            step((*out, element), rest, arriving + 1, probability / len(held))

    first = min(count, buffer_size)
    step((), tuple(range(first)), first, Fraction(1))
    return {order: float(probability) for order, probability in law.items()}


def follows(samples: Iterable[K], law: Mapping[K, float]) -> bool:
    """Whether samples may come from the law, by Pearson's chi-square test."""
    seen = Counter(samples)
    if not seen.keys() <= law.keys():
        return False
    total = sum(seen.values())
    assert min(law.values()) * total >= 5, "too few samples for a chi-square test"
    statistic = sum((seen[key] - total * share) ** 2 / (total * share) for key, share in law.items())
    return _plausible(statistic, len(law) - 1)


def alike(left: Iterable[K], right: Iterable[K]) -> bool:
    """Whether two sets of samples may come from one distribution, by the chi-square test of homogeneity."""
    a, b = Counter(left), Counter(right)
    # The approximation fails for cells that hardly ever occur, so those are counted as one.
    cells = {key: key if a[key] + b[key] >= 10 else None for key in a.keys() | b.keys()}
    a, b = (Counter(cells[key] for key in side.elements()) for side in (a, b))
    scale = (b.total() / a.total()) ** 0.5
    keys = a.keys() | b.keys()
    statistic = sum((a[key] * scale - b[key] / scale) ** 2 / (a[key] + b[key]) for key in keys)
    return _plausible(statistic, len(keys) - 1)


def _plausible(statistic: float, freedom: int) -> bool:
    # Wilson and Hilferty: the cube root of chi-square over its freedom is close to normal.
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5 < _FAR
