"""The ledger: what is held is counted, growth beyond the budget is refused, and everything comes back."""

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, cgroups, sizes
from forebay.errors import PlanError
from forebay.ledger import Ledger
from forebay.run import cpus
from forebay.sizes import memory_left, parse_size


@pytest.mark.parametrize(
    ("size", "count"),
    [
        (1, 1),
        (10**12, 10**12),
        ("1", 1),
        ("1B", 1),
        ("2KiB", 2048),
        ("2 kb", 2000),
        ("1.5MiB", 3 << 19),
        ("500MB", 500_000_000),
        ("2GiB", 2 << 30),
        ("2g", 2 << 30),
        ("1TiB", 1 << 40),
        (0.5, 500),
    ],
)
def test_sizes(size: object, count: int) -> None:
    assert parse_size("x", size, lambda: 1000) == count  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "size", [0, -1, "", "GiB", "-1GiB", "1 zebra", "0", 0.0, 1.0, 2.5, -0.5, True, None, [], "1e9"]
)
def test_what_is_no_size(size: object) -> None:
    with pytest.raises(PlanError, match=r"^x=.*a size is a"):
        parse_size("x", size, lambda: 1000)  # type: ignore[arg-type]


def test_memory_left_is_what_there_is() -> None:
    assert 0 < memory_left() < 1 << 50


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes files of control groups, of which this process is in /a/b."""
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    cgroups._limits.cache_clear()

    def limits(controller: str, *names: str) -> tuple[Path, ...]:
        return cgroups._limits("2:cpu,cpuacct:/a/b\n1:memory:/a/b\n0::/a/b\n", controller, names)

    monkeypatch.setattr(sizes, "limits", limits)
    monkeypatch.setattr(cpus, "limits", limits)

    def write(folder: str, **texts: object) -> None:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (tmp_path / folder / name.replace("_", ".", 1)).write_text(f"{text}\n")

    return write


def test_memory_of_a_group(groups: Callable[..., None]) -> None:
    groups("a/b", memory_max="max")
    groups("a", memory_max=50_000, memory_current=30_000, memory_stat="anon 7\ninactive_file 5000")
    assert memory_left() == 25_000


def test_memory_of_a_group_of_the_first_version(groups: Callable[..., None]) -> None:
    groups("memory", memory_limit_in_bytes=9223372036854771712, memory_usage_in_bytes=1, memory_stat="")
    groups("memory/a/b", memory_limit_in_bytes=50_000, memory_usage_in_bytes=30_000, memory_stat="cache 9")
    assert memory_left() == 20_000


def test_processors_of_a_group(groups: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    groups("a", cpu_max="max 100000")
    assert cpus.available_cpus() == 8
    groups("a/b", cpu_max="350000 100000")
    cgroups._limits.cache_clear()
    assert cpus.available_cpus() == 3
    groups("cpu,cpuacct/a/b", cpu_cfs_quota_us=200_000, cpu_cfs_period_us=100_000)
    cgroups._limits.cache_clear()
    assert cpus.available_cpus() == 2


def test_growth_is_granted_up_to_the_budget() -> None:
    ledger = Ledger(100)
    one, other = ledger.lease("one"), ledger.lease("other")
    assert one.ask(60)
    assert not other.ask(41)
    assert other.ask(40)
    assert (ledger.held, other.held) == (100, 40)
    assert ledger.holders() == {"one": 60, "other": 40}
    assert one.ask(10)
    assert other.ask(90)
    one.release()
    other.release()
    assert (ledger.held, ledger.peak, ledger.holders()) == (0, 100, {})


def test_what_cannot_be_done_without_is_noted_in_any_case() -> None:
    ledger = Ledger(100)
    lease = ledger.lease("one")
    lease.note(150)
    assert ledger.held == 150
    assert not ledger.lease("other").ask(1)
    assert lease.ask(140)


def test_a_lease_that_nobody_has_any_more_is_given_back() -> None:
    ledger = Ledger(100)
    lease = ledger.lease("one")
    lease.ask(100)
    del lease
    gc.collect()
    assert ledger.held == 0


def test_threads_never_hold_more_than_the_budget_together() -> None:
    ledger = Ledger(1000)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        lease = ledger.lease(str(seed))
        for total in rng.integers(0, 600, 2000).tolist():
            lease.ask(total)
        lease.release()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.held == 0
    assert 0 < ledger.peak <= 1000


def numbers(rows: int, width: int) -> Dataset:
    return Dataset.from_generator(lambda: (np.full(width, i) for i in range(rows)))


def test_pipelines_share_a_budget_and_give_it_back() -> None:
    ledger = fb.Ledger("1MiB")
    options = fb.Options(memory=ledger, block_bytes=8000)
    datasets = [numbers(400, 100).prefetch(1000).with_options(options) for _ in range(3)]
    iterators = [iter(dataset) for dataset in datasets]
    found = [[int(row[0]) for row in it] for it in iterators]
    assert found == [list(range(400))] * 3
    # Each of them may always have a block in hand and one in the making.
    assert ledger.peak <= (1 << 20) + 6 * 16_000
    assert ledger.held == 0


@pytest.mark.parametrize("budget", [1, 1000, 30_000, 10**6])
def test_any_budget_gives_the_same_elements(budget: int) -> None:
    dataset = (
        numbers(300, 4)
        .shuffle(100, seed=1)
        .map(lambda x: x + 1, num_parallel_calls=3, executor="thread")
        .prefetch(20)
        .with_options(fb.Options(memory=max(budget, 200)))
    )
    expected = numbers(300, 4).shuffle(100, seed=1).map(lambda x: x + 1)
    assert [x.tolist() for x in dataset] == [x.tolist() for x in expected]


def test_an_element_larger_than_the_budget_is_named() -> None:
    with pytest.raises(
        fb.DataError, match=r"from_generator at .*: one element takes 80,000 bytes, and the budget is 1,0"
    ):
        list(numbers(3, 10_000).with_options(fb.Options(memory=1024)))
    with pytest.raises(fb.DataError, match=r"^batch at .*: one element takes .* smaller batches"):
        list(numbers(1000, 100).batch(500).with_options(fb.Options(memory="100KiB")))


def test_the_forecast_does_not_grow_with_the_data() -> None:
    dataset = numbers(100, 1000).shuffle(10_000, seed=1).batch(32).prefetch(2)
    report = dataset.with_options(fb.Options(memory="1MiB")).memory_report()
    assert report.scales == (1, 10, 100)
    assert report.memory(1) == report.memory(100)
    assert "budget 1.0 MiB" in str(report)
    assert "disk" in str(report)
    assert len(str(report).splitlines()) == 7
