"""Ctrl-C at every point where Python may deliver it: nothing is lost or repeated, and the state stays true."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from unit.interrupting import Key, interrupted_next
from unit.support import assert_same

MOST = 100  # Moments to try per dataset.


@dataclass
class Pair:
    a: Any
    b: Any


CHAINS: dict[str, Callable[[], Dataset[Any]]] = {
    "numbers": lambda: Dataset.range(6),
    "dicts": lambda: Dataset.from_tensor_slices({"a": np.arange(6), "b": ["x", "y", "z", "u", "v", "w"]}),
    "dataclasses": lambda: Dataset.range(6).map(lambda x: Pair(x, (x, x))),
    "arrays": lambda: Dataset.from_tensor_slices(np.arange(12.0).reshape(6, 2)),
    "map": lambda: Dataset.range(6).map(lambda x: x + 1).map(lambda x: x * 2),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(6))),
    "filter and batch": lambda: Dataset.range(9).filter(lambda x: x % 3 != 1).batch(2),
    "flat_map": lambda: Dataset.range(4).flat_map(lambda n: Dataset.range(n)),
    "flat_map on threads": lambda: Dataset.range(4).flat_map(lambda n: Dataset.range(n), num_parallel_calls=2),
    "interleave": lambda: Dataset.range(4).interleave(lambda n: Dataset.range(n), 2),
    "interleave on threads": lambda: Dataset.range(4).interleave(lambda n: Dataset.range(n), 2, 1, 2).batch(2),
    "shuffled stream": lambda: Dataset.from_generator(lambda: iter(range(6))).shuffle(3, 1, False),
    "shuffle and repeat": lambda: Dataset.range(3).shuffle(2, 1, False).repeat(2),
    "unbatch": lambda: Dataset.range(6).batch(2).unbatch().enumerate(),
    "zip and concatenate": lambda: Dataset.zip(Dataset.range(4).concatenate(Dataset.range(2)), Dataset.range(9)),
}


def run(dataset: Dataset[Any], key: Key) -> tuple[list[Any], list[tuple[int, Any]]]:
    """All elements, and for every interrupt how many had come and the state right after it."""
    it = iter(dataset)
    found: list[Any] = []
    states: list[tuple[int, Any]] = []
    while True:
        try:
            found.append(interrupted_next(it, key))
        except StopIteration:
            return found, states
        except KeyboardInterrupt:
            states.append((len(found), json.loads(json.dumps(it.state_dict()))))


# A key that is pressed while Python drops a generator is swallowed there, with no more than a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("name", CHAINS)
def test_an_interrupt_at_any_moment_loses_nothing(name: str, block_bytes: int) -> None:
    dataset = CHAINS[name]().with_options(fb.Options(block_bytes=block_bytes))
    expected = list(dataset)
    whole = Key()
    run(dataset, whole)
    pressed = 0
    # All moments of a short run, every n-th of a long one, which goes through the same code again and again.
    for moment in range(1, whole.count + 1, whole.count // MOST + 1):
        found, states = run(dataset, Key(moment))
        assert_same(found, expected, f"interrupted at moment {moment}")
        pressed += len(states)
        for position, state in states:
            resumed = iter(dataset)
            resumed.load_state_dict(state)
            assert_same(list(resumed), expected[position:], f"resumed after an interrupt at moment {moment}")
    assert pressed > 20
