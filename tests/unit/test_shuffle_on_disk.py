"""A shuffle buffer on disk: the order and the resumes of one in memory, in memory that the budget bounds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.ops import shuffle_buffer
from forebay.run.slot_numbers import SlotNumbers
from forebay.run.spilled_rows import SpilledRows
from unit.support import assert_same, python
from unit.test_budget_rss import ALLOWANCE, MB, MEASURE

ROWS = 3000

KINDS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda i: i,
    "text": lambda i: f"{i}" * (i % 5),
    "uneven from some row on": lambda i: np.full(3 if i < 2000 else i % 4, i),
    "many columns": lambda i: {"a": i, "b": (np.float32(i), f"row {i}"), "c": np.arange(i % 3), "d": b"x"},
    "nothing": lambda i: (),
}


def stream(kind: str) -> Dataset[Any]:
    return Dataset.from_generator(lambda: (KINDS[kind](i) for i in range(ROWS)))


def by_number() -> Dataset[Any]:
    return Dataset.range(ROWS).map(lambda i: i)


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of all numbers of slots that are made, whether they are on disk."""
    made: list[bool] = []

    class Recorded(SlotNumbers):
        def __init__(self, live: int, store: Any = None) -> None:
            super().__init__(live, store)
            if live:
                made.append(store is not None)

    monkeypatch.setattr("forebay.ops.shuffle_buffer.SlotNumbers", Recorded)
    monkeypatch.setattr("forebay.run.picks.SlotNumbers", Recorded)
    return made


@pytest.mark.parametrize("size", [600, 2400, 5000])
@pytest.mark.parametrize("kind", [*KINDS, "by number"])
def test_order_and_resumes_are_those_of_a_buffer_in_memory(kind: str, size: int, on_disk: list[bool]) -> None:
    dataset = (by_number() if kind == "by number" else stream(kind)).shuffle(size, seed=5)
    expected = list(dataset.with_options(fb.Options(memory="1GiB")))
    assert not any(on_disk)
    on_disk.clear()
    states = []
    tight = dataset.with_options(fb.Options(memory=4000, block_bytes=2000))
    with iter(tight) as it:
        states.append((0, it.state_dict()))
        for i, element in enumerate(it, 1):
            assert_same(element, expected[i - 1])
            if i in (1, 777, ROWS - 2400, ROWS - 600, ROWS - 599, ROWS - 100, ROWS):
                states.append((i, it.state_dict()))
    assert i == ROWS
    # Whatever can be read by number is permuted if the buffer covers it.
    assert set(on_disk) == (set() if kind == "by number" and size > ROWS else {True})
    for options in (fb.Options(memory=4000, block_bytes=2000), fb.Options(memory="1GiB")):
        for done, state in states:
            with iter(dataset.with_options(options)) as it:
                it.load_state_dict(state)
                assert_same(list(it), expected[done:])


def test_a_buffer_that_goes_to_disk_late_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows grow after the buffer was filled in memory."""
    made: list[SpilledRows] = []
    monkeypatch.setattr(shuffle_buffer, "SpilledRows", lambda store: made.append(SpilledRows(store)) or made[-1])
    rows = Dataset.from_generator(lambda: ("x" * (1 if i < 1000 else 8000) + str(i) for i in range(2000)))
    shuffled = rows.shuffle(500, seed=1)
    expected = list(shuffled.with_options(fb.Options(memory="1GiB")))
    with iter(shuffled.with_options(fb.Options(memory=1_500_000, block_bytes=4000))) as it:
        assert next(it) == expected[0]
        assert made == []
        assert list(it) == expected[1:]
        assert len(made) == 1


GROWTH = (
    MEASURE
    + """
def grown(dataset, budget, *stops):
    dataset = dataset.with_options(fb.Options(memory=budget))
    states, count = [], 0
    open("/proc/self/clear_refs", "w").write("5")  # The highest mark begins anew.
    before = status()["VmRSS"]
    with iter(dataset) as it:
        for element in it:
            count += 1
            if count - 1 in stops:
                with iter(dataset) as again:
                    again.load_state_dict(state)
                    assert np.array_equal(next(again), element)
            if count in stops:
                state = it.state_dict()
            del element
    print(count, status()["VmHWM"] - before)

def lines(path, count):
    return fb.TextLineDataset(path).take(count)

def numbers(count):
    return Dataset.from_generator(lambda: (np.arange(i, i + 10_000) for i in range(0, count, 10_000))).unbatch()

path = sys.argv[1]
"""
)


def growth(pipelines: dict[str, str], folder: Path, lines: int) -> dict[str, list[int]]:
    path = folder / "lines.txt"
    with path.open("w") as file:
        file.writelines(f"line {i} of a text {'that goes on ' * (i % 4)}\n" for i in range(lines))
    code = GROWTH + "".join(f"in_child(lambda: grown({steps}))\n" for steps in pipelines.values())
    found = python(code, 900, str(path)).splitlines()
    return {name: list(map(int, line.split())) for name, line in zip(pipelines, found, strict=True)}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """What was kept of each row once, 8 bytes and 56 of text, would be more than is allowed. Resumes count too."""
    budget = 4 * MB
    found = growth(
        {
            "text": f"lines(path, 1_000_000).shuffle(900_000, seed=1), {budget}, 50_000, 600_000",
            "numbers": f"numbers(4_000_000).shuffle(3_500_000, seed=1).batch(1000), {budget}, 250, 2000",
            "by number": f"Dataset.range(4_500_000).shuffle(4_000_000, seed=1).batch(1000), {budget}, 250, 2000",
        },
        tmp_path,
        1_000_000,
    )
    assert [count for count, _ in found.values()] == [1_000_000, 4000, 4500]
    too_much = {name: f"{rise / MB:.1f} MiB" for name, (_, rise) in found.items() if rise > budget + ALLOWANCE}
    assert not too_much


@pytest.mark.slow
def test_memory_of_large_buffers(tmp_path: Path) -> None:
    budget = 64 * MB
    found = growth(
        {
            "text": f"lines(path, 4_250_000).shuffle(4_250_000, seed=1), {budget}",
            "numbers": f"numbers(20_000_000).shuffle(20_000_000, seed=1).batch(1000), {budget}",
        },
        tmp_path,
        4_250_000,
    )
    assert [count for count, _ in found.values()] == [4_250_000, 20_000]
    too_much = {name: f"{rise / MB:.1f} MiB" for name, (_, rise) in found.items() if rise > budget + ALLOWANCE}
    assert not too_much


def test_a_buffer_that_the_forecast_has_in_memory_is_never_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    spilled: list[Any] = []

    class Recorded(SpilledRows):
        def __init__(self, store: Any) -> None:
            super().__init__(store)
            spilled.append(store)

    monkeypatch.setattr(shuffle_buffer, "SpilledRows", Recorded)
    rows = Dataset.from_generator(lambda: (np.full(250, i, np.float32) for i in range(14_000)))
    # Arrays that double would for some of these take nearly twice as much as is needed.
    for size, spills in ((2400, False), (2800, False), (3400, False), (4000, False), (4500, False), (9000, True)):
        dataset = rows.shuffle(size, seed=1).with_options(fb.Options(memory="10MiB"))
        assert ("on disk" in str(dataset.memory_report())) == spills
        assert sum(1 for _ in dataset) == 14_000
        assert bool(spilled) == spills


def test_a_full_buffer_counts_once() -> None:
    rows = Dataset.from_generator(lambda: (np.full(250 if i < 9000 else 251, i, np.float32) for i in range(14_000)))
    dataset = rows.shuffle(4000, seed=1).with_options(fb.Options(memory="10MiB"))
    with iter(dataset) as it:
        held = [next(iter(it.ledger.holders().values())) / 4000 / (250 * 4 + 8) for _ in it]
    # From row 9,000 on, rows of another length would have all of it copied: that counts twice, or it goes to disk.
    assert 1 <= held[4000] < 1.1
    assert it.ledger.peak <= 10 << 20
