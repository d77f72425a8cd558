"""Order, resume, threads, errors and laziness of interleave, against a model of tf.data's algorithm."""

import itertools
import json
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import forebay as fb

LENGTHS = [
    [],
    [0],
    [0, 0, 0],
    [5],
    [3, 3, 3, 3],
    [1, 9, 2, 0, 7],
    [0, 4, 0, 0, 6, 1],
    [40, 3, 0, 25, 1, 1, 30, 2, 17],
]
CYCLES = [1, 2, 3, 5, 8]
TURNS = [1, 2, 3, 7, 1000]


def expected(lengths: list[int], cycle: int, turn: int) -> list[int]:
    """What tf.data gives: row r of inner dataset i is 1000 * i + r."""
    slots: list[list[int] | None] = [None] * cycle
    rows: list[int] = []
    unread = iter(range(len(lengths)))
    ended, slot, done = False, 0, 0
    while not ended or any(slots):
        inner = slots[slot]
        if inner:
            index, row = inner
            if row < lengths[index]:
                rows.append(1000 * index + row)
                inner[1] += 1
                done += 1
                if done < turn:
                    continue
            else:
                slots[slot] = None
        elif not ended:
            index = next(unread, -1)
            if index >= 0:
                slots[slot] = [index, 0]
            else:
                ended = True
            continue
        slot, done = (slot + 1) % cycle, 0
    return rows


def inner(index: int, length: int) -> fb.Dataset:
    return fb.Dataset.range(1000 * index, 1000 * index + length)


def dataset(lengths, cycle, turn, calls=None, deterministic=None, make=inner, **options) -> fb.Dataset:
    elements = (np.arange(len(lengths)), np.array(lengths, np.int64))
    woven = fb.Dataset.from_tensor_slices(elements).interleave(make, cycle, turn, calls, deterministic)
    return woven.with_options(fb.Options(**options))


def numbers(elements) -> list[int]:
    return [int(element) for element in elements]


def our_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "interleave" in thread.name]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("cycle", CYCLES)
def test_order(cycle, turn):
    for lengths, size in itertools.product(LENGTHS, [1, 24, 100, 1 << 20]):
        assert numbers(dataset(lengths, cycle, turn, block_bytes=size)) == expected(lengths, cycle, turn)


def test_order_of_long_datasets():
    lengths = [900, 999, 1, 640, 0, 999, 333, 999, 980]
    for cycle, turn in [(4, 1), (4, 16), (3, 250)]:
        assert numbers(dataset(lengths, cycle, turn)) == expected(lengths, cycle, turn)


def test_inner_blocks_that_end_anywhere():
    # Every second row passes, so that blocks come out of the filter in sizes of their own.
    def make(index, length):
        return inner(index, 2 * length).filter(lambda x: x % 7 != 3 and x % 3 != 1)

    lengths = [50, 3, 80, 0, 41, 66]
    rows = {i: [int(x) for x in make(i, n)] for i, n in enumerate(lengths)}
    model = expected([len(rows[i]) for i in range(len(lengths))], 3, 2)
    wanted = [rows[value // 1000][value % 1000] for value in model]
    for size in (1, 40, 1 << 20):
        assert numbers(dataset(lengths, 3, 2, make=make, block_bytes=size)) == wanted


def test_structures_strings_and_uneven_rows():
    def make(i):
        count = int(i) + 1
        return fb.Dataset.range(3).map(lambda r: {"text": f"{i}/{r}", "row": np.arange(count), "none": None})

    found = list(fb.Dataset.range(3).interleave(make, cycle_length=2))
    assert [element["text"] for element in found] == ["0/0", "1/0", "0/1", "1/1", "0/2", "1/2", "2/0", "2/1", "2/2"]
    assert [len(element["row"]) for element in found] == [1, 2, 1, 2, 1, 2, 3, 3, 3]
    assert all(element["none"] is None for element in found)


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize(("cycle", "turn"), [(1, 1), (2, 1), (3, 2), (4, 5), (8, 1)])
def test_resume_at_every_element(cycle, turn, calls):
    lengths = [7, 3, 0, 9, 1, 1, 12, 2]
    calls = calls and min(calls, cycle)
    whole = expected(lengths, cycle, turn)
    for size, optimize in [(1, True), (40, False), (1 << 20, True)]:
        iterator = iter(dataset(lengths, cycle, turn, calls, block_bytes=size, optimize=optimize))
        for position in range(len(whole) + 1):
            state = json.loads(json.dumps(iterator.state_dict()))
            for other, parallel in [(size, None), (24, cycle), (1, None)]:
                with iter(dataset(lengths, cycle, turn, parallel, block_bytes=other)) as resumed:
                    resumed.load_state_dict(state)
                    assert numbers(resumed) == whole[position:]
            if position < len(whole):
                assert int(next(iterator)) == whole[position]
        iterator.close()


RESUME = """
import json, sys
import forebay as fb
ds = fb.Dataset.range(6).interleave(lambda i: fb.Dataset.range(50 + 9 * i).map(lambda x: x * 10 + i).shuffle(8), 3, 2)
for state in json.load(sys.stdin):
    it = iter(ds)
    it.load_state_dict(state, strict=False)
    print(json.dumps([int(x) for x in it]))
"""


def test_resume_in_a_fresh_process():
    source = RESUME.split("\n")[3]
    names = {"fb": fb}
    exec(source, names)
    iterator = iter(names["ds"])
    states, taken = [], []
    for position, element in enumerate(iterator):
        taken.append(int(element))
        if position % 37 == 5:
            states.append((position + 1, iterator.state_dict()))
    result = subprocess.run(
        [sys.executable, "-c", RESUME],
        input=json.dumps([state for _, state in states]),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) > 5
    assert lines == [taken[position:] for position, _ in states]


def test_a_cursor_inside_a_block_does_not_make_skipped_rows_again():
    called: Counter = Counter()

    def make(index, length):
        return inner(index, length).map(count)

    def count(x):
        called[int(x)] += 1
        return x

    lengths = [400, 400, 400]
    whole = expected(lengths, 3, 1)
    iterator = iter(dataset(lengths, 3, 1, make=make))
    # Far enough for blocks of many rows.
    taken = [int(next(iterator)) for _ in range(700)]
    state = iterator.state_dict()
    iterator.close()
    called.clear()
    with iter(dataset(lengths, 3, 1, make=make)) as resumed:
        resumed.load_state_dict(state, strict=False)
        assert numbers(resumed) == whole[700:]
    assert not set(called) & set(taken[:100])
    assert sum(called.values()) <= len(whole) - 700 + 512


def test_resume_when_the_input_stands_far_from_an_open_slot():
    # One dataset outlives hundreds of others, whose elements are not read again.
    lengths = [900] + [2] * 800
    whole = expected(lengths, 2, 1)
    iterator = iter(dataset(lengths, 2, 1))
    for _ in range(1500):
        next(iterator)
    state = iterator.state_dict()
    iterator.close()
    with iter(dataset(lengths, 2, 1)) as resumed:
        resumed.load_state_dict(state)
        assert numbers(resumed) == whole[1500:]


def test_state_is_small():
    lengths = [60] * 40
    ds = dataset(lengths, None, 1, make=lambda i, n: inner(i, n).shuffle(10).map(lambda x: x).batch(2))
    iterator = iter(ds)
    sizes = [len(json.dumps(iterator.state_dict())) for _ in iterator]
    assert len(sizes) == 40 * 30
    assert max(sizes) < 1 << 15


def test_a_state_that_is_none_is_refused():
    ds = dataset([3, 3], 2, 1)
    iterator = iter(ds)
    next(iterator)
    for change in ({"slots": [None]}, {"order": []}, {"done": 9}, {"slots": [{}, None]}):
        state = iterator.state_dict()
        state["cursor"] = [state["cursor"][0] | change, 0]
        with pytest.raises(fb.errors.CursorError):
            iter(ds).load_state_dict(state)


@pytest.mark.parametrize("calls", [1, 2, 3, fb.AUTOTUNE])
def test_threads_do_not_change_the_output(calls):
    for lengths, turn, size in itertools.product(LENGTHS, [1, 4], [1, 100, 1 << 20]):
        assert numbers(dataset(lengths, 3, turn, calls, block_bytes=size)) == expected(lengths, 3, turn)
    assert not our_threads()


def test_unseeded_inner_shuffles_differ_and_are_the_same_with_threads():
    def shuffled(i):
        return fb.Dataset.range(30).shuffle(30)

    def woven(calls):
        return fb.Dataset.range(4).interleave(shuffled, 2, 1, calls)

    with iter(woven(None)) as one, iter(woven(2)) as other:
        state = one.state_dict()
        other.load_state_dict(state)
        first, second = numbers(one), numbers(other)
    assert first == second
    assert first[0:60:2] != first[1:60:2]


def test_default_cycle_is_sixteen():
    lengths = [2] * 40
    for cycle in (None, fb.AUTOTUNE):
        assert numbers(dataset(lengths, cycle, None)) == expected(lengths, 16, 1)


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


def test_threads_are_shown_but_are_not_part_of_the_plan(capsys):
    ds = dataset([1], 3, 1, 2)
    ds.explain()
    assert "cycle_length=3, block_length=1, num_parallel_calls=2" in capsys.readouterr().out


@pytest.mark.parametrize("deterministic", [True, False])
def test_no_thread_is_left(deterministic):
    ds = dataset([5000] * 8, 4, 3, 3, deterministic)
    iterator = iter(ds)
    assert not our_threads()
    for _ in range(10):
        next(iterator)
    assert 1 <= len(our_threads()) <= 3
    state = iterator.state_dict()
    iterator.close()
    assert not our_threads()
    with iter(ds) as iterator:
        iterator.load_state_dict(state)
        assert not our_threads()
        assert len(list(iterator)) == 8 * 5000 - 10
        assert not our_threads()


def test_so_many_threads_work_at_once_and_no_more():
    lock = threading.Lock()
    meeting = threading.Barrier(2, timeout=300)
    working, most = 0, 0

    def slow(x):
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        if x % 1000 == 0:
            # Passes only with another thread in it at the same time; rows 0 of six datasets make three pairs.
            meeting.wait()
        with lock:
            working -= 1
        return x

    lengths = [20] * 6
    ds = dataset(lengths, 4, 1, 2, make=lambda i, n: inner(i, n).map(slow), block_bytes=64)
    assert numbers(ds) == expected(lengths, 4, 1)
    assert most == 2


def test_the_next_datasets_are_opened_ahead():
    opened = {index: threading.Event() for index in range(9)}

    def make(i):
        opened[int(i)].set()
        return inner(i, 1000)

    with iter(fb.Dataset.range(9).interleave(make, 2, 1000, 2)) as iterator:
        next(iterator)
        # Element 1 has the next turn, in a thousand rows; element 2 has none before a dataset ends.
        assert opened[1].wait(300)
        assert opened[2].wait(300)
        assert not any(opened[index].is_set() for index in range(3, 9))


@pytest.mark.parametrize(("calls", "ahead"), [(None, 0), (2, 2)])
def test_inner_datasets_are_opened_when_needed(calls, ahead):
    opened, ended = [], []

    def make(i):
        opened.append(int(i))
        last = 1000 * int(i) + 9
        return inner(i, 10).filter(lambda x: ended.append(i) is None if x == last else True)

    with iter(fb.Dataset.range(30).interleave(make, 4, 1, calls).with_options(fb.Options(block_bytes=8))) as iterator:
        for count, _ in enumerate(iterator, 1):
            assert len(opened) <= min(count, 4) + len(ended) + ahead
    assert sorted(opened) == list(range(30))


def test_reading_ahead_is_bounded():
    lock = threading.Lock()
    produced = 0

    def rows(i):
        def generate():
            nonlocal produced
            for _ in range(2000):
                with lock:
                    produced += 1
                yield np.full(128, i)

        return fb.Dataset.from_generator(generate, output_signature=fb.TensorSpec((128,), np.int64))

    # A block holds 16 rows of 1 KiB. A slot has one in use, one that waits and one being made; there are four slots,
    # two opened ahead, and a block of the output.
    most = (4 + 2) * 3 * 16 + 16
    ds = fb.Dataset.range(5).interleave(rows, 4, 1, 2).with_options(fb.Options(block_bytes=1 << 14))
    with iter(ds) as iterator:
        for consumed, _ in enumerate(iterator, 1):
            with lock:
                assert produced - consumed <= most


def test_whatever_is_ready_comes_first():
    release = threading.Event()

    def make(index, length):
        def late(x):
            release.wait(300)
            return x

        return inner(index, length).map(late) if index == 0 else inner(index, length)

    lengths = [5, 50, 50]
    with iter(dataset(lengths, 2, 1, 2, False, make=make)) as iterator:
        # Everything but the first dataset comes while that one waits.
        found = [int(next(iterator)) for _ in range(100)]
        assert all(value >= 1000 for value in found)
        release.set()
        found += numbers(iterator)
    assert sorted(found) == sorted(expected(lengths, 2, 1))


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_any_order_loses_and_repeats_nothing(size):
    for lengths, turn in itertools.product(LENGTHS, [1, 3]):
        whole = Counter(expected(lengths, 3, turn))
        ds = dataset(lengths, 3, turn, 3, False, block_bytes=size)
        iterator = iter(ds)
        taken: list[int] = []
        for element in iterator:
            taken.append(int(element))
            state = iterator.state_dict()
            if len(taken) % 5 == 1:
                with iter(ds) as resumed:
                    resumed.load_state_dict(state)
                    assert Counter(taken + numbers(resumed)) == whole
        assert Counter(taken) == whole
    assert not our_threads()


def test_interleaved_interleaves_resume():
    def group(i):
        return fb.Dataset.range(i, i + 3).interleave(lambda j: inner(j, 4), 2, 1)

    ds = fb.Dataset.range(4).interleave(group, 3, 2, 2).batch(5).repeat(2)
    iterator = iter(ds)
    whole, states = [], []
    while True:
        states.append(iterator.state_dict())
        try:
            whole.append(next(iterator).tolist())
        except StopIteration:
            break
    for position, state in enumerate(states):
        with iter(ds) as resumed:
            resumed.load_state_dict(state)
            assert [batch.tolist() for batch in resumed] == whole[position:]
