"""flat_map on threads: the same output, datasets opened ahead, arguments."""

import threading

import pytest

import forebay as fb
from forebay import Dataset


def our_threads():
    return [thread for thread in threading.enumerate() if "flat_map" in thread.name]


@pytest.mark.parametrize("calls", [1, 2, 5, fb.AUTOTUNE])
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_threads_do_not_change_the_output(calls, size):
    def build(**settings):
        rows = Dataset.range(9).flat_map(lambda n: Dataset.range(n * 7 % 5).map(lambda x: x + n), **settings)
        return rows.with_options(fb.Options(block_bytes=size))

    wanted = list(build())
    assert list(build(num_parallel_calls=calls)) == wanted
    assert list(build(num_parallel_calls=calls, executor="thread")) == wanted
    assert not our_threads()


def test_the_next_datasets_are_opened_ahead():
    opened = {index: threading.Event() for index in range(6)}

    def make(i):
        opened[int(i)].set()
        return Dataset.range(1000)

    with iter(Dataset.range(6).flat_map(make, num_parallel_calls=2)) as iterator:
        next(iterator)
        assert opened[1].wait(300)
        assert opened[2].wait(300)
        assert not any(opened[index].is_set() for index in range(3, 6))
        assert 1 <= len(our_threads()) <= 2
        state = iterator.state_dict()
    assert not our_threads()
    for event in opened.values():
        event.clear()
    with iter(Dataset.range(6).flat_map(make, num_parallel_calls=2)) as iterator:
        iterator.load_state_dict(state, strict=False)
        next(iterator)
        assert opened[2].wait(300)


def test_a_dataset_that_is_ready_overtakes():
    release = threading.Event()

    def late(x):
        assert release.wait(300)
        return x

    def make(i):
        rows = Dataset.range(10 * i, 10 * i + 10)
        return rows.map(late) if i == 0 else rows

    with iter(Dataset.range(5).flat_map(make, num_parallel_calls=2, deterministic=False)) as iterator:
        found = [int(next(iterator)) for _ in range(40)]
        assert min(found) == 10
        release.set()
        found += [int(x) for x in iterator]
    assert sorted(found) == list(range(50))


def test_errors_wait_for_their_turn():
    def make(i):
        if i == 2:
            raise ValueError("two")
        return Dataset.range(3)

    iterator = iter(Dataset.range(5).flat_map(make, num_parallel_calls=3))
    assert [int(next(iterator)) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    for _ in range(2):
        with pytest.raises(fb.errors.FunctionError, match="element 2: make raised ValueError: two"):
            next(iterator)
        assert not our_threads()
    iterator.close()


def test_no_thread_without_being_asked_for():
    seen = set()

    def make(i):
        seen.add(threading.current_thread())
        return Dataset.range(2)

    for settings in ({}, {"num_parallel_calls": 2, "executor": "inline"}):
        assert len(list(Dataset.range(3).flat_map(make, **settings))) == 6
    assert seen == {threading.current_thread()}


@pytest.mark.parametrize("kind", ["flat_map", "interleave"])
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"num_parallel_calls": 0}, r"num_parallel_calls=0\): num_parallel_calls must be at least 1 or fb\.AUTOTUNE"),
        ({"num_parallel_calls": 1.5}, "must be a whole number"),
        ({"deterministic": 1}, "deterministic must be True or False"),
        ({"executor": "process"}, r"give executor='process' to a map\(\) inside them or after"),
        ({"executor": "fast"}, "executor must be one of 'inline', 'thread', 'auto'"),
    ],
)
def test_arguments_are_checked_when_built(kind, settings, text):
    with pytest.raises(fb.errors.PlanError, match=f"{kind}.*{text}"):
        getattr(Dataset.range(3), kind)(lambda i: Dataset.range(2), **settings)


def test_threads_are_shown_but_are_not_part_of_the_plan(capsys):
    ds = Dataset.range(2).flat_map(Dataset.range, num_parallel_calls=2)
    ds.explain()
    assert "num_parallel_calls=2)" in capsys.readouterr().out
    with iter(ds) as iterator, iter(Dataset.range(2).flat_map(Dataset.range)) as other:
        other.load_state_dict(iterator.state_dict())
