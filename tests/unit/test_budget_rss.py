"""Real memory: what a process takes at its highest stays within the budget and a fixed allowance, in every epoch."""

import pytest

from unit.support import python

MB = 1 << 20
# What is not buffers: code loaded on first use, pages that the allocator keeps, the elements under the reader's hand.
ALLOWANCE = 48 * MB

# One process is forked for every pipeline, right after imports, so that none finds memory that another has left.
MEASURE = """
import os, sys, traceback
import numpy as np
import forebay as fb
from forebay import AUTOTUNE, Dataset

MB = 1 << 20

def status(process="self"):
    fields = {}
    with open(f"/proc/{process}/status") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.startswith(("Vm", "Rss")):
                fields[name] = int(value.split()[0]) * 1024
    return fields

def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found += map(int, file.read().split())
        except OSError:
            pass  # A thread that has ended since.
    return found

def rows(count, function):
    return Dataset.from_generator(lambda: (function(i) for i in range(count)))

def wide(width):
    return lambda i: np.full(width, i, np.float32)

def uneven(i):
    return np.full(500 + i * 7919 % 5000, i % 100, np.int32)

def text(i):
    return bytes([i % 256]) * (500 + i * 7919 % 20000)

def in_child(function):
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
"""

PEAK = (
    MEASURE
    + """
def peak(dataset, budget, every=8):
    dataset = dataset.with_options(fb.Options(memory=budget))
    open("/proc/self/clear_refs", "w").write("5")  # The highest mark begins anew.
    before, highest, count = status()["VmRSS"], {}, 0
    with iter(dataset) as it:
        for element in it:
            del element
            count += 1
            if count % every == 0:
                for child in children():
                    try:
                        # What it has for itself. What it shares with this process counts here already.
                        own = status(child).get("RssAnon", 0)
                        highest[child] = max(highest.get(child, 0), own)
                    except OSError:
                        pass
    print(count, status()["VmHWM"] - before + sum(highest.values()), len(highest))

TIMES = 1 if budget <= 32 * MB else 3  # The larger the budget, the more data, so that little fits.
"""
)

PIPELINES = {
    "shuffle on disk": "rows(12_000 * TIMES, wide(1000)).shuffle(10_000 * TIMES, seed=1).batch(32)",
    "external shuffle": "rows(16_000 * TIMES, wide(1000)).shuffle(seed=1).batch(32)",
    "uneven arrays": "rows(5_000 * TIMES, uneven).shuffle(4_000 * TIMES, seed=1).prefetch(100)",
    "uneven arrays, external": "rows(5_000 * TIMES, uneven).shuffle(seed=1)",
    "narrow rows": (
        "Dataset.from_generator(lambda: (np.full(4000, i) for i in range(1000 * TIMES))).unbatch()"
        ".shuffle(3_600_000 * TIMES, seed=1).batch(4096)"
    ),
    "bytes": "rows(5_000 * TIMES, text).shuffle(4_000 * TIMES, seed=1).cache()",
    "large rows": "rows(40 * TIMES, wide(MB // 2)).shuffle(30 * TIMES, seed=1).prefetch(AUTOTUNE)",
    "large results of many threads": (
        'Dataset.range(300 * TIMES).map(lambda i: wide(MB)(i), num_parallel_calls=32, executor="thread")'
    ),
    "large rows of many slots": (
        "Dataset.range(24).interleave(lambda i: rows(8 * TIMES, wide(MB)), cycle_length=24, num_parallel_calls=24)"
    ),
    "large batches": "rows(300 * TIMES, wide(MB // 16)).batch(16).prefetch(4)",
    "shuffles of shuffles": (
        "rows(8_000 * TIMES, wide(1000)).shuffle(6_000 * TIMES, seed=1).shuffle(4_000 * TIMES, seed=2)"
        ".batch(16).shuffle(100 * TIMES, seed=3)"
    ),
    "cache": "rows(8_000 * TIMES, wide(1000)).cache().repeat(2).batch(32)",
    "interleave": (
        "Dataset.range(12).interleave(lambda i: rows(600 * TIMES, wide(1000)).shuffle(500 * TIMES, seed=1)"
        ".prefetch(50), cycle_length=6, num_parallel_calls=6).batch(32)"
    ),
    "flat_map": "Dataset.range(8).flat_map(lambda i: rows(8 * TIMES, wide(MB // 2)).prefetch(9), num_parallel_calls=4)",
    "threads": (
        "rows(8_000 * TIMES, wide(1000)).map(lambda x: x * 2, num_parallel_calls=AUTOTUNE, executor='thread').batch(32)"
        ".map(lambda x: x + 1, num_parallel_calls=4, executor='thread').prefetch(AUTOTUNE)"
    ),
    "threads in any order": (
        "rows(600 * TIMES, wide(MB // 8)).map(lambda x: x, num_parallel_calls=4, executor='thread', "
        "deterministic=False).map(lambda x: x + 1)"
    ),
    "processes": (
        "rows(6_000 * TIMES, wide(1000)).map(lambda x: x * 2, num_parallel_calls=4, executor='process').batch(32)"
        ".prefetch(AUTOTUNE)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("budget", [32 * MB, 128 * MB], ids=["32MiB", "128MiB"])
def test_the_highest_mark_is_within_the_budget(budget: int) -> None:
    """At least the budget's worth of rows goes by, several times that in most; children count with what they have."""
    code = PEAK.replace("TIMES =", "budget = int(sys.argv[1])\nTIMES =")
    for steps in PIPELINES.values():
        code += f"in_child(lambda: peak({steps}, budget))\n"
    found = [list(map(int, line.split())) for line in python(code, 600, str(budget)).splitlines()]
    assert len(found) == len(PIPELINES)
    too_much = {
        name: f"{grown / MB:.1f} MiB"
        for name, (_, grown, _) in zip(PIPELINES, found, strict=True)
        if grown > budget + ALLOWANCE
    }
    assert not too_much
    assert all(count > 0 for count, _, _ in found)
    # A worker takes some 25 MiB: one is started in any case, and others where there is room.
    workers = dict(zip(PIPELINES, found, strict=True))["processes"][2]
    assert 1 <= workers <= (2 if budget == 32 * MB else 4)


SHARED = (
    MEASURE
    + """
def peak(count):
    options = fb.Options(memory=fb.Ledger(32 * MB))
    datasets = [
        rows(6_000, wide(1000)).shuffle(5_000, seed=i).batch(32).prefetch(AUTOTUNE).with_options(options)
        for i in range(count)
    ]
    open("/proc/self/clear_refs", "w").write("5")
    before = status()["VmRSS"]
    elements = sum(1 for _ in zip(*datasets, strict=True))
    print(elements, status()["VmHWM"] - before, options.memory.peak)
"""
)


@pytest.mark.slow
def test_pipelines_that_share_a_ledger_stay_within_its_budget() -> None:
    """Six at once, each on a thread of its own: no heap keeps what buffers took before they went to disk."""
    elements, grown, held = map(int, python(SHARED + "in_child(lambda: peak(6))", 600).split())
    assert elements == 188
    assert grown <= 32 * MB + ALLOWANCE, f"{grown / MB:.1f} MiB, of which {held / MB:.1f} were leased"


EPOCHS = (
    MEASURE
    + """
from forebay.observe.trend import trend

def epochs(dataset, leak=0):
    kept = []
    dataset = dataset.with_options(fb.Options(memory=16 * MB))
    held = []
    for epoch in range(20):
        for _ in dataset:
            pass
        kept.append(np.ones(leak, np.uint8))
        held.append(status()["VmRSS"])
    whole = trend(np.arange(16.0), np.array(held[4:], float))
    halves = [trend(np.arange(8.0), np.array(half, float)).rise for half in (held[4:12], held[12:])]
    print(whole.p, *halves)
"""
)

REPEATED = {
    "shuffle on disk": "rows(4_000, wide(1000)).shuffle(3_500, seed=1).batch(32)",
    "shuffle in memory": "rows(4_000, wide(1000)).shuffle(300, seed=1).batch(32)",
    "external shuffle": "rows(5_000, wide(1000)).shuffle(seed=1).batch(32)",
    "bytes": "rows(1_500, text).shuffle(500, seed=1).batch(4)",
    "cache": "rows(5_000, wide(1000)).cache().shuffle(50, seed=1).batch(32)",
    "threads": (
        "rows(4_000, wide(1000)).map(lambda x: x * 2, num_parallel_calls=3, executor='thread').batch(16)"
        ".prefetch(AUTOTUNE)"
    ),
    "interleave": (
        "Dataset.range(8).interleave(lambda i: rows(500, wide(1000)).prefetch(4), cycle_length=4, num_parallel_calls=4)"
    ),
}


@pytest.mark.slow
def test_twenty_epochs_show_no_upward_trend() -> None:
    """After four epochs of warm-up: no rise by Mann and Kendall's test, or less than 1 MiB in one half by Theil-Sen.

    An allocator may take a step upwards at any time, and stay there: that is in one half of the epochs. A leak goes on
    in both. One of half a MiB per epoch, which makes 4 MiB in each, is found: the last run has it.

    On a busy machine threads come to their memory late, and in other ways each time. So what has risen runs again, and
    has to rise every time: a leak does.
    """
    runs = {name: f"epochs({steps})" for name, steps in REPEATED.items()}
    runs["leak"] = f"epochs({REPEATED['external shuffle']}, leak=MB // 2)"
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in runs}
    rising = list(runs)
    for _ in range(3):
        code = EPOCHS + "".join(f"in_child(lambda: {runs[name]})\n" for name in rising)
        for name, line in zip(rising, python(code, 600).splitlines(), strict=True):
            found[name].append(tuple(map(float, line.split())))
        rising = [name for name in rising if found[name][-1][0] < 0.01 and min(found[name][-1][1:]) > MB]
    assert rising == ["leak"], found
