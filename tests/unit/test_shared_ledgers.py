"""Real memory of many pipelines that share one ledger, worker processes included."""

import pytest

from unit.support import python
from unit.test_budget_rss import ALLOWANCE, MB, MEASURE

# The highest mark of this process, and the most that all children had for themselves at one time: they come and go.
SHARED = (
    MEASURE
    + """
def private(child):
    try:
        return status(child).get("RssAnon", 0)
    except OSError:
        return 0  # It has ended since.

def peak(budget, count, make):
    options = fb.Options(memory=fb.Ledger(budget))
    datasets = [make(i).with_options(options) for i in range(count)]
    open("/proc/self/clear_refs", "w").write("5")
    before, below, elements, processes = status()["VmRSS"], 0, 0, set()
    for together in zip(*datasets, strict=True):
        del together
        elements += 1
        if elements % 4 == 0:
            found = children()
            processes.update(found)
            below = max(below, sum(map(private, found)))
    print(elements, status()["VmHWM"] - before + below, len(processes))
"""
)

PROCESSES = (
    "rows(9000, wide(1000)).map(lambda x: x * 2, num_parallel_calls=2, executor='process').batch(32).prefetch(AUTOTUNE)"
)
TWELVE = {
    "shuffle on disk": "rows(6_000, wide(1000)).shuffle(5_000, seed=i).batch(32)",
    "everything shuffled": "rows(6_000, wide(1000)).shuffle(seed=i).batch(32).prefetch(AUTOTUNE)",
    "shuffle and threads": (
        "rows(6_000, wide(1000)).shuffle(5_000, seed=i).map(lambda x: x * 2, num_parallel_calls=2, executor='thread')"
        ".batch(32).prefetch(AUTOTUNE)"
    ),
    "cache": "rows(3_000, wide(1000)).cache().repeat(2).batch(32).prefetch(AUTOTUNE)",
}


def measured(budget: int, count: int, steps: list[str]) -> list[list[int]]:
    code = SHARED + "".join(f"in_child(lambda: peak({budget}, {count}, lambda i: {each}))\n" for each in steps)
    return [list(map(int, line.split())) for line in python(code, 600).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "most"), [(32 * MB, 1), (128 * MB, 4)], ids=["32MiB", "128MiB"])
def test_pipelines_with_worker_processes_share_these_too(budget: int, most: int) -> None:
    """Each had to have a worker of its own, of some 24 MiB, however many there were."""
    ((elements, grown, workers),) = measured(budget, 4, [PROCESSES])
    assert elements == 282
    assert 1 <= workers <= most
    assert grown <= budget + ALLOWANCE, f"{grown / MB:.1f} MiB, with {workers} workers"


@pytest.mark.slow
def test_twelve_pipelines_stay_within_one_budget() -> None:
    """What none of them can be refused, blocks above all, is in proportion to how many they are."""
    budget = 128 * MB
    found = dict(zip(TWELVE, measured(budget, 12, list(TWELVE.values())), strict=True))
    assert {elements for elements, _, _ in found.values()} == {188}
    too_much = {name: f"{grown / MB:.1f} MiB" for name, (_, grown, _) in found.items() if grown > budget + ALLOWANCE}
    assert not too_much
