"""What a watch makes of series whose truth is known: how often it cries wolf, and how often it sleeps."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.observe.bins import Bins
from forebay.observe.conclude import is_doubtful
from forebay.observe.judge import FLOOR, Judgement, Readings, Series, follow, judge
from forebay.observe.trend import Floats, mann_kendall, trend
from forebay.observe.verdict import HolderGrowth, TypeGrowth
from unit.support import fixed

MIB = 1 << 20
RUNS = 100
Make = Callable[[np.random.Generator, int], Floats]


def series(values: Floats, epoch: int | None = None) -> Series:
    steps, epochs = Bins(), Bins()
    for value in values:
        steps.add(int(value))
    if epoch:
        for start in range(0, len(values) - epoch + 1, epoch):
            part = values[start : start + epoch]
            epochs.add_range(int(part.min()), int(part.max()))
    return Series(steps.curve(), epochs.curve(), epoch, epoch or 0)


def kind(values: Floats, epoch: int | None = None, held: Floats | None = None) -> str:
    """Of memory that is all in use, as the C library sees it too."""
    memory = series(values, epoch)
    rest = memory if held is None else series(values - held, epoch)
    readings = Readings(memory, rest, live=rest, other=memory)
    most = 0 if held is None else int(held.max())
    return judge(readings, int(values.max() - values[0]), most, held is not None).kind


def level(steps: int) -> Floats:
    return np.full(steps, 200.0 * MIB)


def dependent(rng: np.random.Generator, steps: int, deviation: float, memory: float = 0.9) -> Floats:
    """Noise in which each value is mostly the one before."""
    fresh = rng.normal(0, deviation * np.sqrt(1 - memory**2), steps)
    values = np.zeros(steps)
    for i in range(1, steps):
        values[i] = memory * values[i - 1] + fresh[i]
    return values


def small_noise(rng: np.random.Generator, steps: int) -> Floats:
    return rng.normal(0, 0.2 * MIB, steps)


def jumps(rng: np.random.Generator, steps: int) -> Floats:
    at = rng.integers(steps, size=rng.integers(1, 4))
    return level(steps) + sum((np.arange(steps) > one) * rng.uniform(1, 60) * MIB for one in at)


NO_LEAK: dict[str, Make] = {
    "noise": lambda rng, n: level(n) + rng.normal(0, rng.choice([0.05, 0.5, 5]) * MIB, n),
    "dependent noise": lambda rng, n: level(n) + dependent(rng, n, rng.choice([0.05, 0.5, 5]) * MIB),
    "spikes": lambda rng, n: level(n) + (rng.random(n) < 0.1) * rng.uniform(10, 100) * MIB,
    "one to three jumps": lambda rng, n: jumps(rng, n) + small_noise(rng, n),
    "warm-up": lambda rng, n: (
        level(n)
        + (1 - np.exp(-np.arange(n) / (n * rng.uniform(0.01, 0.1)))) * rng.uniform(10, 300) * MIB
        + small_noise(rng, n)
    ),
    "a buffer that is full before a third": lambda rng, n: (
        level(n) + np.minimum(np.arange(n), n * rng.uniform(0.05, 0.3)) / n * 300 * MIB + small_noise(rng, n)
    ),
    "filled and emptied": lambda rng, n: (
        level(n) + (np.arange(n) % rng.integers(5, n // 3)) * rng.uniform(0.01, 0.2) * MIB
    ),
    "an allocator that keeps the most it ever had": lambda rng, n: (
        level(n) + np.maximum.accumulate(rng.exponential(10, n)) * MIB
    ),
    "ever more slowly": lambda rng, n: level(n) + np.log1p(np.arange(n)) * rng.uniform(5, 30) * MIB,
}


def kinds(make: Make, steps: int) -> Counter[str]:
    rng = np.random.default_rng(7)
    return Counter(kind(make(rng, steps)) for _ in range(RUNS))


@pytest.mark.parametrize("steps", [40, 400, 3000])
def test_false_alarms(steps: int) -> None:
    """At most 3 of 100 for any shape, at most 1 of 100 over all of them."""
    alarms = {name: kinds(make, steps)["leak"] for name, make in NO_LEAK.items()}
    assert max(alarms.values()) <= 3, alarms
    assert sum(alarms.values()) <= 0.01 * RUNS * len(alarms), alarms


@pytest.mark.parametrize("name", [name for name in NO_LEAK if name not in ("one to three jumps", "ever more slowly")])
def test_what_is_level_is_called_a_plateau(name: str) -> None:
    assert kinds(NO_LEAK[name], 400)["plateau"] >= 0.9 * RUNS


def test_a_plateau_is_never_said_against_the_odds() -> None:
    """An uneven rise is left open rather than called level with next to no confidence."""
    fall = np.tile([0.0, 0, 0, -6, -6], 20)
    uneven = level(100) + (np.arange(100) * 0.25 + fall) * MIB
    found = [follow(series(make(np.random.default_rng(seed), 100))) for make in NO_LEAK.values() for seed in range(20)]
    for each in [follow(series(uneven)), *found]:
        assert each.trend is not None
        risen = min(each.trend.rise, each.trend.late_rise) > max(FLOOR, 4 * each.trend.noise)
        assert each.course != "level" or each.confidence >= 0.5 or not risen


def test_what_levels_off_is_left_open() -> None:
    assert kinds(NO_LEAK["ever more slowly"], 400)["unclear"] == RUNS


def test_random_walks_are_the_worst_case() -> None:
    """They have no trend, and yet 8 of 100 look like one."""
    found = kinds(lambda rng, n: level(n) + np.cumsum(rng.normal(0, 0.1 * MIB, n)), 400)
    assert found["leak"] <= 12


def leaking(kib_per_step: float, noise: float) -> Make:
    return lambda rng, n: (
        level(n)
        + kib_per_step * 1024 * np.arange(n)
        + dependent(rng, n, noise * MIB, 0.8)
        + 50 * MIB * (1 - np.exp(-np.arange(n) / (0.02 * n)))
    )


@pytest.mark.parametrize(
    ("kib_per_step", "noise", "steps", "found"),
    [
        (2, 0.1, 3000, 1.0),
        (10, 0.1, 400, 1.0),
        (10, 0.5, 3000, 1.0),
        (50, 0.5, 400, 0.99),
        (50, 2, 3000, 1.0),
        (250, 2, 400, 0.99),
        (1000, 2, 40, 0.9),
        (1000, 5, 400, 0.99),
    ],
)
def test_leaks_found(kib_per_step: float, noise: float, steps: int, found: float) -> None:
    """After a warm-up of 50 MiB, in noise of that many MiB: all but the stated share."""
    assert kinds(leaking(kib_per_step, noise), steps)["leak"] >= found * RUNS


def test_a_leak_too_small_to_tell_is_a_plateau() -> None:
    assert kinds(leaking(1, 0.1), 400)["plateau"] == RUNS


def test_the_slope_of_a_leak() -> None:
    values = leaking(100, 0.5)(np.random.default_rng(1), 1000)
    line = follow(series(values)).trend
    assert line is not None
    assert line.low < 100 * 1024 < line.high
    assert abs(line.slope / 1024 - 100) < 2


# Epochs


def test_what_is_emptied_between_two_epochs_is_no_leak() -> None:
    rise = np.tile(np.arange(200) * 0.5 * MIB, 2)
    assert kind(level(400) + rise, epoch=200) == "plateau"
    assert kind(level(400) + np.arange(400) * 0.5 * MIB, epoch=200) == "leak"


def test_a_cache_that_fills_in_the_first_epoch_is_no_leak() -> None:
    filled = np.minimum(np.arange(600), 200) * 1.0 * MIB
    assert kind(level(600) + filled, epoch=200) == "plateau"
    assert kind(level(400) + filled[:400], epoch=200) == "plateau"


def test_a_leak_under_a_sawtooth_is_found_over_epochs() -> None:
    steps = np.arange(1000)
    values = level(1000) + (steps % 100) * 1.0 * MIB + (steps // 100) * 3 * MIB
    assert kind(values, epoch=100) == "leak"
    assert kind(values - (steps // 100) * 3 * MIB, epoch=100) == "plateau"


def test_what_every_epoch_leaves_behind_is_a_leak() -> None:
    steps = np.arange(500)
    assert kind(level(500) + (steps // 100) * 20.0 * MIB, epoch=100) == "leak"


# Buffers


def test_a_buffer_that_is_still_filling_is_growth() -> None:
    held = np.arange(400) * 0.5 * MIB
    assert kind(level(400) + held, held=held) == "growth"
    assert kind(level(400) + held) == "leak"


def test_a_buffer_that_has_filled_is_growth() -> None:
    held = np.minimum(np.arange(400), 100) * 1.0 * MIB
    assert kind(level(400) + held, held=held) == "growth"
    assert kind(level(400) + held) == "plateau"


def test_a_leak_behind_a_buffer_is_found() -> None:
    held = np.minimum(np.arange(400), 100) * 1.0 * MIB
    assert kind(level(400) + held + np.arange(400) * 0.1 * MIB, held=held) == "leak"


def test_what_a_dataset_comes_to_keep_in_its_first_epochs_is_left_open() -> None:
    held = np.full(900, 10.0 * MIB)
    assert kind(level(900) + np.linspace(0, 8 * MIB, 900), 300, held) == "unclear"
    assert kind(level(900) + np.linspace(0, 30 * MIB, 900), 300, held) == "leak"
    assert kind(level(900) + np.linspace(0, 8 * MIB, 900), 300) == "leak"  # Of somebody else's.
    assert kind(level(900) + np.linspace(0, 8 * MIB, 900), 90, held) == "leak"  # Over ten epochs.


def test_the_memory_before_the_first_epoch_does_not_count_as_growth_of_all() -> None:
    epoch = np.concatenate([np.zeros(20), np.linspace(0, 40, 280)]) * MIB
    filled = np.concatenate([[-40 * MIB], np.zeros(899)])
    assert kind(level(900) + np.tile(epoch, 3) + filled, 300) != "leak"


def test_a_buffer_that_drains_under_level_memory_is_no_leak() -> None:
    held = np.arange(400, 0, -1) * 0.1 * MIB
    assert kind(level(400) + 40 * MIB, held=held) != "leak"


def test_too_few_steps() -> None:
    assert kind(level(15)) == "unclear"
    assert follow(series(level(15))).course == "short"


def test_what_allocators_keep_beside_a_buffer_that_fills_is_no_leak() -> None:
    rise = np.arange(400) * 0.1 * MIB
    memory, rest = series(level(400) + 2 * rise), series(level(400) + rise)
    steady = series(level(400))
    # Of what is not kept, all that rises is in the buffer.
    found = judge(Readings(memory, rest, steady, rest), int(2 * rise[-1]), int(rise[-1]), datasets=True)
    assert found.kind != "leak"
    found = judge(Readings(memory, rest, steady, memory), int(2 * rise[-1]), int(rise[-1]), datasets=True)
    assert (found.kind, found.why) == ("leak", "not in use")


# What is in use


def judged(memory: Floats, live: Floats | None, epoch: int | None = None, kept: Floats | float = 0.0) -> Judgement:
    """Beside datasets whose buffers hold nothing worth a word."""
    resident = series(memory, epoch)
    grown = int(memory.max() - memory[0])
    if live is None:
        return judge(Readings(resident, resident), grown, 0, datasets=True)
    readings = Readings(resident, resident, series(live, epoch), series(memory - kept, epoch))
    return judge(readings, grown, 0, datasets=True)


def ratchet(rng: np.random.Generator, epochs: int, epoch: int, scale: float) -> Floats:
    """What an allocator comes to keep: every peak that is higher than all before leaves something behind."""
    peaks = np.maximum.accumulate(rng.gamma(8, scale / 3, epochs) * np.linspace(1, 1.5, epochs))
    return np.repeat(peaks, epoch) * MIB


def test_a_small_rise_of_what_is_in_use_is_not_a_buffers_growth() -> None:
    """Losses that are kept, 7 MiB of them, while resident memory goes up and down by more."""
    steps, epoch = 1252, 313
    kept = level(steps) + np.linspace(0, 7 * MIB, steps)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        memory = kept + rng.uniform(0, 20 * MIB, steps)
        # What is in use is known well, or hardly better.
        for live, held in ((kept, 20), (kept + rng.uniform(0, 12 * MIB, steps), 4)):
            rest = series(memory, epoch)
            resident = rest if held == 20 else series(memory + np.linspace(0, 20 * MIB, steps), epoch)
            readings = Readings(resident, rest, series(live, epoch), rest)
            assert judge(readings, 30 * MIB, held * MIB, datasets=True).kind == "unclear", (seed, held)


def test_a_plateau_that_is_not_sure_is_open_to_containers_that_grew() -> None:
    rng = np.random.default_rng(1)
    noisy = follow(series(level(1252) + np.linspace(0, 7 * MIB, 1252) + rng.uniform(0, 80 * MIB, 1252)))
    assert noisy.course == "level"
    assert noisy.trend is not None
    rising = replace(noisy, trend=replace(noisy.trend, low=1.0), confidence=0.3)
    falling = replace(rising, trend=replace(noisy.trend, low=-1.0))
    small, large = (TypeGrowth("Tensor", 1252, 200 << 10),), (TypeGrowth("numpy.ndarray", 1252, 3 * MIB),)
    full = (HolderGrowth("list kept", 0, 1252, bytes=700 << 10),)
    assert is_doubtful(rising, 7 * MIB, small, ())
    assert is_doubtful(falling, 7 * MIB, large, ())
    assert not is_doubtful(falling, 7 * MIB, small, full)
    assert not is_doubtful(rising, MIB, small, ())
    sure = replace(rising, confidence=0.95)
    assert not is_doubtful(sure, 7 * MIB, large, ())
    # However sure: of a slope above none, and of what it is made of.
    assert is_doubtful(sure, MIB, small, full)
    assert not is_doubtful(sure, 7 * MIB, small, full)
    assert not is_doubtful(replace(falling, confidence=0.95), MIB, small, full)


def test_what_allocators_keep_is_no_leak_however_steadily_it_rises() -> None:
    alarms = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        kept = ratchet(rng, 12, 50, 5)
        live = level(600) + dependent(rng, 600, 1 * MIB, 0.5)
        resident = series(level(600) + kept, 50)
        alarms += follow(resident).course == "rising"
        assert judged(level(600) + kept, live, 50, kept).kind in ("plateau", "unclear")
    assert alarms > 10  # So much for resident memory.


def test_what_is_in_use_is_a_leak_under_what_allocators_keep() -> None:
    found: Counter[str] = Counter()
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        kept = np.array([0, *rng.uniform(0, 60, 11)]).repeat(50) * MIB
        leak = np.arange(600) * 40 * 1024.0
        live = level(600) + leak + dependent(rng, 600, 0.5 * MIB, 0.5)
        found[judged(level(600) + kept + leak, live, 50, kept).kind] += 1
    assert found["leak"] == RUNS


def test_memory_that_no_allocator_knows_of_is_a_leak_from_12_mib_on() -> None:
    rise = np.arange(600) * 1.0
    for each, expected in ((40 * 1024, ("leak", "not in use")), (10 * 1024, ("unclear", "course"))):
        found = judged(level(600) + rise * each, level(600), 50)
        assert (found.kind, found.why) == expected


def test_where_allocators_cannot_be_asked_12_mib_make_a_leak() -> None:
    rise = np.arange(600) * 1.0
    for each, expected in ((40 * 1024, "leak"), (10 * 1024, "unclear"), (1024, "plateau")):
        assert judged(level(600) + rise * each, None, 50).kind == expected


def test_what_was_asked_for_and_never_written_to_is_no_leak() -> None:
    assert judged(level(600), level(600) + np.arange(600) * 100 * 1024.0, 50).kind == "unclear"


def test_within_one_epoch_resident_memory_has_to_agree() -> None:
    rise = np.arange(600) * 100 * 1024.0
    wild = np.random.default_rng(0).uniform(0, 90, 600).repeat(1) * MIB
    assert judged(level(600) + rise, level(600) + rise).kind == "leak"
    assert judged(level(600) + np.sort(wild)[::-1] + rise, level(600) + rise).kind != "leak"


def test_four_epochs_that_each_leave_something_are_a_leak_whatever_comes_and_goes() -> None:
    rng = np.random.default_rng(3)
    steps = level(400) + rng.uniform(-40, 40, 400) * MIB
    left = Bins()
    for epoch in range(4):
        left.add(int((200 + 8 * epoch) * MIB))
    live = replace(series(steps, 100), epochs=left.curve())
    resident = series(level(400) + rng.uniform(0, 60, 400) * MIB, 100)
    found = judge(Readings(resident, resident, live, resident), 60 * MIB, 0, datasets=True)
    assert (found.kind, found.why) == ("leak", "in use")
    assert found.finding.trend is not None
    assert found.finding.trend.slope == pytest.approx(8 * MIB / 100)


# The parts


def test_theil_sen_and_mann_kendall_against_figures_worked_out_by_hand() -> None:
    found = trend(np.arange(4.0), np.array([1.0, 3.0, 2.0, 6.0]))
    # Pairs: 2, 0.5, 5/3, -1, 1.5, 4.
    assert found.slope == pytest.approx((1.5 + 5 / 3) / 2)
    assert found.tau == pytest.approx(4 / 6)
    _, p, deviation = mann_kendall(np.array([1.0, 3.0, 2.0, 6.0]))
    assert deviation == pytest.approx(np.sqrt(4 * 3 * 13 / 18))
    assert p == pytest.approx(0.1541, abs=1e-4)
    assert mann_kendall(np.ones(9)) == (0.0, 1.0, 0.0)


@fixed
@given(st.lists(st.integers(-(1 << 40), 1 << 40), max_size=300), st.sampled_from([2, 8, 64]))
def test_bins_know_every_extreme_in_fixed_memory(values: list[int], capacity: int) -> None:
    bins = Bins(capacity)
    for value in values:
        bins.add(value)
    curve = bins.curve()
    assert len(curve) <= capacity
    assert bins.count == len(values)
    if len(curve) and len(values) <= capacity:
        assert curve.low.tolist() == values
    elif len(curve):
        width = round(2 * (curve.x[0] + 0.5))
        parts = [values[i * width : (i + 1) * width] for i in range(len(curve))]
        assert curve.low.tolist() == [min(part) for part in parts]
        assert curve.high.tolist() == [max(part) for part in parts]


@fixed
@given(st.integers(20, 600), st.integers(0, 1 << 34), st.integers(0, 5))
def test_no_size_of_process_matters(steps: int, base: int, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1 * MIB, steps)
    assert kind(base + (1 << 24) + noise) in ("plateau", "unclear")
    rising = base + (1 << 24) + noise + np.arange(steps) * 8.0 * FLOOR / steps * 4
    assert kind(rising) in ("leak", "unclear")
    if steps >= 40:
        assert kind(rising) == "leak"
