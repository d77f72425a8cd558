"""What a cache in memory keeps, for how long, and what it costs."""

import copy
import gc
import os
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, Options
from forebay.ops.cache import Cache
from forebay.plan import check_use
from unit.support import plain, python, resumed, saved


class Counted:
    """A function that knows what it was called with."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.calls.append(int(x))
        return x * 2


def rows_kept(dataset: Dataset[Any]) -> int:
    assert isinstance(dataset.plan, Cache)
    return dataset.plan.content.rows


def test_elements_are_computed_once() -> None:
    function = Counted()
    dataset = Dataset.range(1000).map(function).cache()
    expected = list(range(0, 2000, 2))
    for _ in range(3):
        assert plain(list(dataset)) == expected
    assert plain(list(dataset.repeat(2))) == expected * 2
    assert [int(b.sum()) for b in dataset.batch(500)] == [sum(expected[:500]), sum(expected[500:])]
    assert function.calls == list(range(1000))


def test_all_datasets_built_on_it_share_it() -> None:
    function = Counted()
    cached = Dataset.range(100).map(function).cache()
    train, test = cached.skip(20), cached.take(20).with_options(Options(optimize=False))
    assert len(list(train)) == 80
    assert len(list(test)) == 20
    assert len(list(cached.shuffle(10).batch(7))) == 15
    assert function.calls == list(range(100))


def test_each_call_of_cache_is_a_cache_of_its_own() -> None:
    function = Counted()
    mapped = Dataset.range(10).map(function)
    list(mapped.cache())
    list(mapped.cache())
    assert len(function.calls) == 20


def test_a_part_is_kept_used_and_continued() -> None:
    function = Counted()
    dataset = Dataset.range(100_000).map(function).cache()
    with iter(dataset) as it:
        for _ in range(100):
            next(it)
    kept = rows_kept(dataset)
    assert 100 <= kept < 100_000
    computed = len(function.calls)
    assert len(list(dataset)) == 100_000
    # The map passes over rows that are there without calling the function.
    assert function.calls == list(range(100_000))
    assert computed >= kept


def test_a_part_of_a_generator_is_continued() -> None:
    given: list[int] = []

    def numbers() -> Any:
        for i in range(50):
            given.append(i)
            yield i

    dataset = Dataset.from_generator(numbers).cache()
    with iter(dataset) as it:
        first = [next(it) for _ in range(7)]
    assert plain(list(dataset)) == list(range(50))
    assert plain(first) == list(range(7))
    before = len(given)
    assert plain(list(dataset)) == list(range(50))
    assert len(given) == before


def test_skipping_keeps_what_is_skipped() -> None:
    function = Counted()
    dataset = Dataset.range(100).map(function).cache()
    assert plain(list(dataset.skip(90))) == list(range(180, 200, 2))
    assert plain(list(dataset.skip(90))) == list(range(180, 200, 2))
    assert len(function.calls) == 100


def test_a_state_leads_to_the_same_place_with_and_without_what_was_kept() -> None:
    function = Counted()

    def build() -> Dataset[Any]:
        return Dataset.range(5000).map(function).filter(lambda x: x % 3 != 0).cache().map(lambda x: x + 1)

    dataset = build()
    expected = plain(list(dataset))
    for k in (0, 1, 700, 3000, len(expected)):
        state = saved(dataset, k)
        full = len(function.calls)
        assert plain(list(resumed(dataset, state))) == expected[k:]
        assert len(function.calls) == full, "it was all there"
        fresh = build()
        assert plain(list(resumed(fresh, state))) == expected[k:]
        # Resuming does not begin at the start: at most the block that the state is in is computed again.
        assert len(function.calls) - full <= 5000 - k + 1024 * 2
        assert plain(list(fresh)) == expected


def test_resume_in_a_kept_epoch_costs_a_lookup() -> None:
    dataset = Dataset.range(300_000).cache()
    content = dataset.plan.content  # type: ignore[attr-defined]
    list(dataset)
    it = resumed(dataset, saved(dataset, 250_000))
    assert next(it) == 250_000
    assert content.complete
    # Nothing came from the input.
    assert [step.elements for step in it.stats() if step.name.startswith("range")] == [0]


@pytest.mark.parametrize("optimize", [True, False])
def test_what_was_kept_under_other_rules_serves_all(optimize: bool) -> None:
    function = Counted()
    cached = Dataset.range(2000).map(function).skip(3).map(lambda x: x + 1).cache()
    one, other = (cached.with_options(Options(optimize=o)) for o in (optimize, not optimize))
    expected = [2 * i + 1 for i in range(3, 2000)]
    with iter(one) as it:
        head = [next(it) for _ in range(300)]
    assert plain(head) == expected[:300]
    states = {k: saved(other, k) for k in (10, 250, 1500)}
    assert plain(list(other)) == expected
    for k, state in states.items():
        for dataset in (one, other):
            assert plain(list(resumed(dataset, state))) == expected[k:]


def test_seeds_of_another_run_are_not_served_what_these_gave() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (Dataset.range(500).shuffle(50).cache() for _ in range(2))
        for dataset in (here, there):
            check_use(dataset.plan, again=True)
    mine, theirs = plain(list(here)), plain(list(there))
    assert mine != theirs
    state = saved(there, 100)
    assert plain(list(resumed(here, state))) == theirs[100:]
    # The dataset goes on with the seeds that were loaded.
    assert plain(list(here)) == theirs


@pytest.mark.parametrize("memory", [1_000, 20_000, 200_000, "1GiB"])
def test_any_budget_gives_the_same_elements(memory: Any) -> None:
    rows = np.random.default_rng(1).random((2000, 100))
    dataset = Dataset.from_tensor_slices((rows, np.arange(2000))).cache().with_options(Options(memory=memory))
    for _ in range(3):
        for i, (x, y) in enumerate(dataset):
            assert y == i
            assert (x == rows[i]).all()


def test_it_holds_a_lease_and_gives_it_back() -> None:
    ledger = fb.Ledger("10MB")
    dataset = Dataset.range(100_000).cache()
    other = dataset.batch(10).with_options(Options(memory=ledger))
    list(other)
    assert 800_000 <= ledger.held < 1_000_000
    assert ledger.holders().keys() == {"cache"}
    list(other)
    assert ledger.held < 1_000_000
    dataset.clear()
    gc.collect()
    assert ledger.held == 0
    list(other)
    assert ledger.held >= 800_000
    del dataset, other
    gc.collect()
    assert ledger.held == 0


def test_what_waits_to_be_written_is_there_for_others() -> None:
    rows = np.arange(60_000)
    cached = Dataset.from_tensor_slices(rows).cache()
    small, large = (cached.with_options(Options(memory=memory, block_bytes=10_000)) for memory in (50_000, "1GiB"))
    with iter(small) as it:
        for _ in range(5_000):
            next(it)
        content = cached.plan.content  # type: ignore[attr-defined]
        assert content.waiting > 0
        kept = content.rows
        assert plain([x for _, x in zip(range(kept), small)]) == list(range(kept))
    # A budget with room for them keeps them in memory, in their place among the others.
    assert plain(list(large)) == rows.tolist()
    assert content.waiting == 0
    for each in (small, large):
        assert plain(list(each)) == rows.tolist()


def test_it_takes_no_more_than_half_the_budget() -> None:
    ledger = fb.Ledger(400_000)
    dataset = Dataset.range(200_000).cache().with_options(Options(memory=ledger))
    assert len(list(dataset)) == 200_000
    assert 100_000 < ledger.held <= 200_000
    assert plain(list(dataset)) == list(range(200_000))


def test_a_view_does_not_keep_what_it_is_a_view_of() -> None:
    """One row in a hundred stays; a view of it would hold all of the block it was in."""
    ledger = fb.Ledger("1GiB")
    dataset = (
        Dataset.range(400).map(lambda i: np.full(10_000, i)).batch(100).map(lambda x: x[:1, :10]).unbatch().cache()
    )
    dataset = dataset.with_options(Options(memory=ledger))
    assert len(list(dataset)) == 4
    content = dataset.plan.input.content  # type: ignore[attr-defined]
    for kept in content._kept:
        for column in kept.block.columns:
            for array in column.buffers():
                base = array
                while isinstance(base.base, np.ndarray):
                    base = base.base
                assert base.nbytes <= 4 * 10 * 8 + 4096


def test_blocks_of_few_rows_are_joined() -> None:
    dataset = Dataset.range(3000).with_options(Options(block_bytes=1)).cache()
    assert plain(list(dataset)) == list(range(3000))
    content = dataset.plan.content  # type: ignore[attr-defined]
    assert len(content._kept) < 30
    assert plain(list(dataset)) == list(range(3000))


def test_the_source_may_change_afterwards() -> None:
    source = np.arange(12.0).reshape(4, 3)
    dataset = Dataset.from_tensor_slices(source).cache()
    expected = source.copy()
    np.testing.assert_array_equal(list(dataset), expected)
    source[...] = -1
    np.testing.assert_array_equal(list(dataset), expected)


def test_writing_into_elements_does_not_reach_the_cache() -> None:
    dataset = Dataset.range(6).map(lambda i: np.full(3, i)).cache()
    for _ in range(3):
        for i, element in enumerate(dataset):
            assert (element == i).all()
            element[...] = -1


def test_clear_computes_anew_and_leaves_running_iterators_alone() -> None:
    function = Counted()
    dataset = Dataset.range(40_000).map(function).cache().batch(10)
    list(dataset)
    with iter(dataset) as it:
        next(it)
        dataset.clear()
        assert sum(len(batch) for batch in it) == 39_990
    assert len(function.calls) == 40_000
    list(dataset)
    assert len(function.calls) == 80_000


def test_two_iterators_fill_together() -> None:
    function = Counted()
    dataset = Dataset.range(3000).map(function).cache()
    with iter(dataset) as a, iter(dataset) as b:
        for i, (x, y) in enumerate(zip(a, b)):
            assert x == y == 2 * i
    assert function.calls == list(range(3000))


def test_threads_that_fill_together_all_get_everything() -> None:
    dataset = Dataset.range(20_000).map(lambda x: x + 1).cache()
    expected = list(range(1, 20_001))
    found: list[list[Any]] = []
    threads = [threading.Thread(target=lambda: found.append(plain(list(dataset)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    assert rows_kept(dataset) == 20_000
    assert plain(list(dataset)) == expected


def test_an_error_leaves_what_came_before_it() -> None:
    broken = [True]

    def function(x: Any) -> Any:
        if broken[0] and x == 500:
            raise ValueError("not yet")
        return x

    dataset = Dataset.range(1000).map(function).cache()
    it = iter(dataset)
    with pytest.raises(fb.FunctionError, match="element 500"):
        list(it)
    assert rows_kept(dataset) == 500
    broken[0] = False
    assert plain(list(it)) == list(range(500, 1000))
    assert plain(list(dataset)) == list(range(1000))


def test_what_is_below_runs_in_order_also_where_it_need_not() -> None:
    dataset = Dataset.range(500).map(lambda x: x, num_parallel_calls=4, deterministic=False, executor="thread").cache()
    assert plain(list(dataset)) == list(range(500))
    assert plain(list(dataset)) == list(range(500))


def test_copies_in_other_processes_begin_empty() -> None:
    dataset = Dataset.range(5).cache()
    list(dataset)
    for other in (copy.deepcopy(dataset.plan), pickle.loads(pickle.dumps(dataset.plan))):
        assert other.content.rows == 0
        assert plain(list(Dataset(other))) == list(range(5))


def test_it_is_freed_with_the_dataset() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    dataset = Dataset.range(100_000).cache().with_options(Options(memory=50_000))
    list(dataset)
    assert len(os.listdir("/proc/self/fd")) == descriptors + 1
    del dataset
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_nothing_is_left_after_the_process(tmp_path: Path, end: str) -> None:
    code = f"""
import os, sys
import forebay as fb
ds = fb.Dataset.range(100_000).cache().with_options(fb.Options(memory=50_000, spill_dir=sys.argv[1]))
list(ds)
if os.fork() == 0:
    {end or "sys.exit(0)"}
os.wait()
"""
    python(code, 300, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_and_what_there_is_stays() -> None:
    options = Options(memory=50_000, spill_limit=100_000)
    cached = Dataset.range(100_000).cache()
    with pytest.raises(fb.SpillError, match="spill_limit"):
        list(cached.with_options(options))
    kept = rows_kept(cached)
    assert kept > 1000
    assert plain(list(cached)) == list(range(100_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filename": 3}, "filename must be a path"),
        ({"filename": "x", "compression": "gzip"}, 'compression must be "zstd", "lz4" or None'),
        ({"compression": "zstd"}, "only a cache with a filename"),
        ({"filename": __file__}, "must be a folder"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(fb.PlanError, match=message):
        Dataset.range(3).cache(**arguments)
