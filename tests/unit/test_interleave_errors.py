"""What interleave refuses, and errors of its functions, datasets and input in their order."""

import pytest

import forebay as fb
from unit.interleaving import dataset, expected, inner, numbers, our_threads


def test_a_state_that_is_none_is_refused():
    ds = dataset([3, 3], 2, 1)
    iterator = iter(ds)
    next(iterator)
    for change in ({"slots": [None]}, {"order": []}, {"done": 9}, {"slots": [{}, None]}):
        state = iterator.state_dict()
        state["cursor"] = [state["cursor"][0] | change, 0]
        with pytest.raises(fb.errors.CursorError):
            iter(ds).load_state_dict(state)


def failing(index, length):
    """Element 2 cannot be made, the rows of element 1 end with an error."""
    if index == 2:
        raise ValueError("element two")

    def row(x):
        if x == 1003:
            raise ValueError("row three")
        return x

    return inner(index, length).map(row)


@pytest.mark.parametrize("calls", [None, 1, 2])
@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize(
    ("lengths", "count", "text"),
    [
        # Row 1003 comes before element 2, which has to wait until a slot is free ...
        ([9, 9, 9], 7, "row three"),
        # ... and after it when the first dataset is short.
        ([2, 9, 9], 5, "element two"),
    ],
)
def test_errors_come_in_order(lengths, count, text, size, calls):
    iterator = iter(dataset(lengths, 2, 1, calls, make=failing, block_bytes=size))
    whole = expected(lengths, 2, 1)
    assert [int(next(iterator)) for _ in range(count)] == whole[:count]
    for _ in range(2):
        # Asking again tries the same element again.
        with pytest.raises(fb.errors.FunctionError, match=text):
            next(iterator)
        assert not our_threads()
    iterator.close()


@pytest.mark.parametrize("calls", [None, 2])
def test_an_error_of_the_input_waits_for_its_turn(calls):
    def element(i):
        if i == 3:
            raise ValueError("no more")
        return i

    source = fb.Dataset.range(9).map(element)
    iterator = iter(source.interleave(lambda i: inner(i, 2), 2, 1, calls))
    assert [int(next(iterator)) for _ in range(5)] == [0, 1000, 1, 1001, 2000]
    with pytest.raises(fb.errors.FunctionError, match="no more"):
        next(iterator)
    assert not our_threads()
    iterator.close()


def test_an_error_that_was_never_reached_is_forgotten():
    ds = dataset([9, 9, 9], 2, 1, make=failing).take(7).repeat(3)
    assert numbers(ds) == 3 * expected([9, 9, 9], 2, 1)[:7]


@pytest.mark.parametrize("calls", [None, 2])
def test_inner_datasets_must_be_datasets_of_one_kind(calls):
    woven = fb.Dataset.range(3).interleave(lambda i: [1, 2], 2, 1, calls)
    with pytest.raises(fb.errors.DataError, match="element 0: <lambda> returned a list, it must return a Dataset"):
        list(woven)

    def make(i):
        return fb.Dataset.from_tensor_slices([1.5] if i == 1 else [1, 2])

    iterator = iter(fb.Dataset.range(3).interleave(make, 2, 1, calls))
    assert next(iterator) == 1
    with pytest.raises(fb.errors.DataError, match=r"element 1: .*float64, earlier int64"):
        next(iterator)
    iterator.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"cycle_length": 0},
        {"cycle_length": -2},
        {"cycle_length": 1.5},
        {"block_length": 0},
        {"block_length": -1},
        {"num_parallel_calls": 0},
        {"num_parallel_calls": -2},
        {"cycle_length": 2, "num_parallel_calls": 3},
        {"deterministic": "no"},
        {"map_func": 3},
        {"map_func": lambda a, b: None},
    ],
)
def test_arguments_are_checked_when_built(arguments):
    with pytest.raises(fb.errors.PlanError, match="interleave"):
        fb.Dataset.range(3).interleave(**{"map_func": fb.Dataset.from_tensors, **arguments})
