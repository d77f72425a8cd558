"""What is forecast of disk and of all steps together, beside what an iteration then takes."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.ops.external_parts import ExternalParts


def texts(rows: int, size: int = 200) -> Dataset[bytes]:
    """Rows that differ in size."""
    return Dataset.from_generator(lambda: (bytes(size + i % 3) for i in range(rows)))


def run(dataset: Dataset[Any]) -> int:
    """Bytes that went to disk."""
    with iter(dataset) as it:
        for _ in it:
            pass
        return it.stats().on_disk


@pytest.mark.parametrize(
    ("dataset", "part"),
    [
        (texts(60_000).shuffle(20_000, seed=1), 0.9),
        (texts(150_000, 1).shuffle(20_000, seed=1), 0.7),
        (Dataset.from_tensor_slices([bytes(200 + i % 3) for i in range(30_000)]).cache().shuffle(20_000, seed=1), 0.8),
        (Dataset.from_generator(lambda: ((np.zeros(50), "text") for _ in range(30_000))).shuffle(10_000, seed=1), 0.78),
        (Dataset.from_generator(lambda: (np.zeros(50) for _ in range(30_000))).shuffle(10_000, seed=1), 0.96),
        (Dataset.from_generator(lambda: (np.zeros(20_000) for _ in range(52))).shuffle(26, seed=1), 0.99),
    ],
    ids=["bytes", "short bytes", "a known number", "arrays and text", "arrays", "large arrays"],
)
def test_a_buffer_on_disk_takes_as_much_as_was_forecast_and_fits_that_limit(dataset: Dataset[Any], part: float) -> None:
    dataset = dataset.with_options(fb.Options(memory="1MiB"))
    forecast = dataset.memory_report().disk(1)
    assert forecast is not None
    # That many bytes are enough, although those which were replaced are there for a while.
    assert forecast * part <= run(dataset.with_options(fb.Options(spill_limit=forecast))) <= forecast


@pytest.mark.parametrize("memory", [256 << 10, 1 << 20, 4 << 20])
@pytest.mark.parametrize(
    ("source", "rows", "row_bytes", "alike"),
    [
        (lambda rows: (np.zeros(50) for _ in range(rows)), 30_000, 400, True),
        (lambda rows: (bytes(392 + i % 3) for i in range(rows)), 30_000, 401, False),
        (range, 240_000, 8, True),
        (lambda rows: (np.zeros(5000) for _ in range(rows)), 500, 40_000, True),
        (lambda rows: (np.zeros(10_000) for _ in range(rows)), 300, 80_000, False),
    ],
    ids=["arrays", "bytes", "numbers", "large arrays", "arrays too large for pieces"],
)
def test_everything_goes_to_disk_as_often_as_was_forecast(
    source: Callable[[int], Any], rows: int, row_bytes: int, alike: bool, memory: int
) -> None:
    parts = ExternalParts.within(memory)
    dataset = Dataset.from_generator(lambda: iter(source(rows))).shuffle(seed=1)
    found = run(dataset.with_options(fb.Options(memory=memory)))
    times = len(parts.scattered(rows, row_bytes + 8))
    assert found <= parts.disk(rows, row_bytes + 8, alike)
    assert found > min(times, 1) * rows * row_bytes


def test_of_how_many_elements_nobody_knows_the_disk_cannot_be_told() -> None:
    for dataset in (texts(1000).shuffle(seed=1), texts(1000).cache()):
        report = dataset.with_options(fb.Options(memory="1MiB")).memory_report()
        assert report.disk(1) is None
        assert " + ? disk" in str(report)


def test_a_shuffle_says_how_often_rows_go_to_disk() -> None:
    rows = Dataset.from_tensor_slices(np.zeros((1000, 1000))).cache().shuffle(seed=1)
    report = rows.with_options(fb.Options(memory="16MiB")).memory_report((1, 10, 100, 1000))
    total = 1000 * 8008
    disk = [each or 0 for each in report.steps[0].disk]
    assert disk[0] == pytest.approx(total, rel=0.05)
    assert disk[1] == pytest.approx(10 * total, rel=0.05)
    # Of 64 parts none is larger than a sixth of the budget up to some 180 MB. Others go to disk twice, part by part.
    for times, found in ((100, disk[2]), (1000, disk[3])):
        assert 1.05 * times * total < found < 1.35 * times * total
    assert "all rows go to disk, once" in str(report)
    small = rows.with_options(fb.Options(memory="4MiB")).memory_report()
    assert "all rows go to disk, twice at this budget" in str(small)


@pytest.mark.parametrize("memory", ["128KiB", "1MiB"])
def test_a_cache_takes_no_more_of_the_disk_than_was_forecast(memory: str) -> None:
    rows = [bytes(200 + i % 3) for i in range(10_000)]
    dataset = Dataset.from_tensor_slices(rows).map(lambda x: x).cache().with_options(fb.Options(memory=memory))
    forecast = dataset.memory_report().disk(1)
    assert forecast is not None
    assert forecast * 0.6 < run(dataset.with_options(fb.Options(spill_limit=forecast))) <= forecast


def test_all_steps_hold_no_more_than_the_budget_together() -> None:
    dataset = Dataset.from_tensor_slices(np.zeros((1000, 1000))).cache().shuffle(500, seed=1).prefetch(500)
    tight, roomy = (dataset.with_options(fb.Options(memory=memory)).memory_report() for memory in ("2MiB", "1GiB"))
    assert [tight.memory(scale) for scale in tight.scales] == [2 << 20] * 3
    assert sum(step.memory[0] for step in tight.steps) > 2 << 20
    assert "together they hold no more than the budget" in str(tight)
    assert roomy.memory(1) == sum(step.memory[0] for step in roomy.steps) < 1 << 30
    assert "share" not in str(roomy)


def test_a_budget_without_room_for_an_element_of_every_step_is_exceeded() -> None:
    dataset = Dataset.from_tensor_slices(np.zeros((10, 1000))).map(lambda x: x).batch(10)
    report = dataset.with_options(fb.Options(memory=90_000)).memory_report()
    assert report.memory(1) == 80_000 + 8000 + 8000
    assert "no room for an element of every step" in str(report)


def test_a_ledger_is_said_to_be_shared() -> None:
    rows = Dataset.range(10)
    assert "shared" not in str(rows.with_options(fb.Options(memory="1MiB")).memory_report())
    assert "(half of what is left; Options.memory sets another)\n" in str(rows.memory_report())
    report = rows.with_options(fb.Options(memory=fb.Ledger("1MiB"))).memory_report()
    assert report.shared
    assert str(report).startswith("budget 1 MiB (the fb.Ledger in Options.memory, shared by all that run on it)\n")


def test_looking_at_an_element_does_not_wait_for_a_filter_to_let_one_pass() -> None:
    asked: list[int] = []

    def rare(x: int) -> bool:
        asked.append(x)
        return False

    rows = Dataset.from_tensor_slices([b"some text"] * 100_000).filter(rare).shuffle(90_000, seed=1)
    assert rows.with_options(fb.Options(memory="1MiB")).memory_report().disk(1)
    assert asked == []


@pytest.mark.parametrize("memory", ["1MiB", "2MiB", "8MiB"])
def test_row_groups_take_no_more_of_the_disk_than_was_forecast(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    Dataset.from_tensor_slices({f"v{i}": np.arange(20_000) for i in range(60)}).to_parquet(
        path, row_group_bytes=2 << 20
    )
    dataset = Dataset.from_parquet(path).shuffle(seed=1).with_options(fb.Options(memory=memory))
    forecast = dataset.memory_report().disk(1)
    assert forecast is not None
    limited = dataset.with_options(fb.Options(spill_limit=forecast))
    # Groups are decoded in the first epoch, which takes room of its own where the budget is small.
    assert 0.5 * forecast < run(limited) <= forecast
    assert run(limited) <= forecast


def test_what_a_forecast_looked_at_is_gone_with_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    Dataset.from_tensor_slices({f"v{i}": np.arange(20_000) for i in range(60)}).to_parquet(
        path, row_group_bytes=64 << 20
    )
    options = fb.Options(memory="1MiB", spill_dir=tmp_path)
    gc.collect()
    gc.disable()
    try:
        Dataset.from_parquet(path).shuffle(seed=1).with_options(options).memory_report()
        assert not [link for link in map(link_of, os.listdir("/proc/self/fd")) if link.startswith(str(tmp_path))]
    finally:
        gc.enable()


def link_of(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # That of the folder itself.
        return ""


def buffered(_: int) -> Dataset[Any]:
    """2,000 rows, half of which are in a buffer."""
    return Dataset.range(2000).map(lambda x: np.full(100, x, np.float64)).filter(lambda x: True).shuffle(1000)


@pytest.mark.parametrize("parallel", [None, 2])
def test_buffers_inside_of_interleaved_datasets_are_forecast(parallel: int | None) -> None:
    rows = Dataset.range(8).interleave(buffered, cycle_length=4, num_parallel_calls=parallel).batch(32)
    tight, roomy = (rows.with_options(fb.Options(memory=memory)) for memory in ("1MiB", "1GiB"))
    datasets = 4 + (parallel or 0)
    assert roomy.memory_report().disk(1) == 0
    assert roomy.memory_report().memory(1) > datasets * 1000 * 800
    assert "buffers as the first of them has" in str(roomy.memory_report())
    forecast = tight.memory_report().disk(1)
    assert forecast is not None
    assert 0 < run(tight) <= forecast < 3 * datasets * 1000 * 816


def test_interleaved_datasets_without_buffers_have_none() -> None:
    rows = Dataset.range(8).interleave(lambda x: Dataset.range(1000), cycle_length=4)
    assert "buffers" not in str(rows.memory_report())


def test_a_function_that_makes_no_dataset_of_the_first_element_is_not_forecast() -> None:
    def some(x: int) -> Dataset[Any]:
        if x == 0:
            raise ValueError("no such file")
        return Dataset.range(10)

    rows = Dataset.range(8).interleave(some, cycle_length=4, on_error="skip")
    assert "4 open datasets, and their own" in str(rows.memory_report())


def test_an_element_larger_than_the_budget_is_told_beforehand_as_it_is_later() -> None:
    rows = Dataset.from_tensor_slices(np.zeros((1000, 1000)))
    tight = fb.Options(memory="1MiB")
    large = rows.batch(500).prefetch(2).with_options(tight)
    told = "an element of batch(batch_size=500, drop_remainder=False) takes 3.8 MiB, and the budget has no room for it"
    assert told in str(large.memory_report())
    with pytest.raises(fb.DataError, match="4,000,000 bytes, and the budget is"):
        next(iter(large))
    # A batch of all there is may be smaller than asked for.
    small = rows.take(10).batch(500).with_options(tight)
    assert "is an error" not in str(small.memory_report())
    assert len(list(small)) == 1


def test_a_scale_that_was_not_asked_for_is_refused_with_what_to_ask() -> None:
    report = Dataset.range(5).memory_report(scales=(1, 2))
    for asked in (report.memory, report.disk):
        with pytest.raises(fb.PlanError, match=r"for 1, 2 times the data: memory_report\(scales=\[7\]\) has that"):
            asked(7)


def test_it_says_whose_elements_may_be_of_other_sizes_than_the_first() -> None:
    images = Dataset.from_tensor_slices(np.zeros((10, 20)))

    def words() -> Iterator[str]:
        yield from ("x" * i for i in range(10))

    uneven = {
        "from_generator": Dataset.from_generator(words).shuffle(5),
        "map": images.map(lambda row: row[:3]).shuffle(5),
        "from_tensor_slices": Dataset.from_tensor_slices(["a", "bb"]).cache(),
    }
    for name, dataset in uneven.items():
        report = dataset.memory_report()
        assert [step.partition("(")[0] for step in report.uneven] == [name]
        assert f"as large as the first one of {name}(" in str(report)
    for dataset in (images.shuffle(5), images.map(np.sum).shuffle(5), images.batch(3), Dataset.range(10).cache()):
        assert dataset.memory_report().uneven == ()
        assert "as large as the first" not in str(dataset.memory_report())
