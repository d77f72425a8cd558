"""Sizes as people write them, and memory and processors as the machine really has them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import cgroups, sizes
from forebay.errors import PlanError
from forebay.run import cpus
from forebay.sizes import memory_left, parse_size
from unit.support import python


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
        (np.int64(100), 100),
        (np.uint8(7), 7),
        (np.float32(0.5), 500),
        (np.float64(0.25), 250),
    ],
)
def test_sizes(size: object, count: int) -> None:
    assert parse_size("x", size, lambda: 1000) == count  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "size",
    [
        0,
        -1,
        "",
        "GiB",
        "-1GiB",
        "1 zebra",
        "0",
        0.0,
        1.0,
        2.5,
        -0.5,
        True,
        None,
        [],
        "1e9",
        np.int64(0),
        np.float32(2),
        np.True_,
    ],
)
def test_what_is_no_size(size: object) -> None:
    with pytest.raises(PlanError, match=r"^x=.*a size is a"):
        parse_size("x", size, lambda: 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "hint"),
    [
        ("50%", ". For 50% write 0.5"),
        (" 12.5 % ", ". For 12.5 % write 0.125"),
        (0, ". Of 0 bytes nothing fits: it must be more"),
        (0.0, ". Of 0 bytes nothing fits: it must be more"),
        ("0MiB", ". Of 0 bytes nothing fits: it must be more"),
        ("0.25", ". For a fraction write 0.25 without quotes"),
        (1e9, ". For 1e+09 bytes write 1000000000"),
        ("100%", ""),
        (False, ""),
        ([], ""),
        ("much", ""),
    ],
)
def test_what_is_no_size_comes_with_what_to_write(size: Any, hint: str) -> None:
    for field in ("memory", "spill_limit"):
        with pytest.raises(PlanError) as caught:
            fb.Options(**{field: size})
        assert str(caught.value).startswith(f"Options.{field}={size!r}: ")
        assert str(caught.value).partition("of what is left")[2] == hint


def test_memory_left_is_what_there_is() -> None:
    assert 0 < memory_left() < 1 << 50


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes files of control groups, of which this process is in /a/b."""
    monkeypatch.setattr(cgroups, "_ROOT", str(tmp_path))
    cgroups._limits.cache_clear()

    def limits(controller: str, *names: str) -> tuple[str, ...]:
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


@pytest.mark.parametrize(("limit", "counted"), [("RLIMIT_DATA", 5), ("RLIMIT_AS", 0)])
def test_what_a_process_may_have_is_what_it_has_left(limit: str, counted: int) -> None:
    """A shuffle within the budget that follows goes to disk where it would end in a MemoryError otherwise."""
    code = """
import resource, sys
import numpy as np
import forebay as fb
from forebay.sizes import memory_left, system_left

list(fb.Dataset.range(10).shuffle(3))
dataset = fb.Dataset.range(60_000).map(lambda x: np.full(1000, x, np.float32)).shuffle(50_000)
pages = [int(each) for each in open("/proc/self/statm").read().split()]
limit = pages[int(sys.argv[2])] * resource.getpagesize() + (160 << 20)
resource.setrlimit(getattr(resource, sys.argv[1]), (limit, resource.RLIM_INFINITY))
assert 100 << 20 < memory_left() <= 160 << 20 < system_left()
it = iter(dataset)
assert 50 << 20 < it.ledger.budget <= 80 << 20
assert sorted(int(row[0]) for row in it) == list(range(60_000))
"""
    python(code, 300, limit, str(counted))
