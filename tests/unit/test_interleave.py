"""Order and resume of interleave, against a model of tf.data's algorithm."""

import itertools
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import forebay as fb
from unit.interleaving import CYCLES, LENGTHS, TURNS, dataset, expected, inner, numbers


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
    for number, (size, optimize) in enumerate([(1, True), (40, False), (1 << 20, True)]):
        iterator = iter(dataset(lengths, cycle, turn, calls, block_bytes=size, optimize=optimize))
        for position in range(len(whole) + 1):
            state = json.loads(json.dumps(iterator.state_dict()))
            # In turn, so that every place is tried in all three ways from blocks of one size or another.
            other, parallel = [(size, None), (24, cycle), (1, None)][(position + number) % 3]
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


def test_default_cycle_is_sixteen():
    lengths = [2] * 40
    for cycle in (None, fb.AUTOTUNE):
        assert numbers(dataset(lengths, cycle, None)) == expected(lengths, 16, 1)


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
