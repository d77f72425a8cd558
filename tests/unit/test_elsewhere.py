"""Objects with items, other libraries' datasets, and token streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay.ops.pack import best_fit

Dataset = fb.Dataset


class Items:
    def __init__(self, count: int = 10, broken: int = -1) -> None:
        self._count = count
        self._broken = broken

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> Any:
        if i == self._broken:
            raise KeyError("no such picture")
        return {"i": i, "row": np.full(2, i)}


class Batches(Items):
    def __init__(self, count: int = 10, broken: int = -1) -> None:
        super().__init__(count, broken)
        self.asked: list[int] = []

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        self.asked.append(len(numbers))
        return [self[i] for i in numbers]


@pytest.mark.parametrize("kind", [Items, Batches])
def test_items_are_read_by_number(kind: type[Items]) -> None:
    dataset = Dataset.from_indexable(kind())
    assert len(dataset) == 10
    assert [int(row["i"]) for row in dataset.skip(7)] == [7, 8, 9]
    assert sorted(int(row["i"]) for row in dataset.shuffle(seed=1)) == list(range(10))
    with iter(dataset.shuffle(seed=1)) as rows:
        before = [next(rows) for _ in range(4)]
        state = json.loads(json.dumps(rows.state_dict()))
        after = list(rows)
    with iter(dataset.shuffle(seed=1)) as rows:
        rows.load_state_dict(state)
        assert repr(list(rows)) == repr(after)
    assert len(before) + len(after) == 10


@pytest.mark.parametrize("kind", [Items, Batches])
def test_items_that_fail_are_named(kind: type[Items]) -> None:
    rows = iter(Dataset.from_indexable(kind(broken=3)))
    assert [int(next(rows)["i"]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(fb.FunctionError, match=r"element 3.*no such picture"):
        next(rows)


def test_many_items_are_asked_for_at_once() -> None:
    items = Batches(1000)
    assert len(list(Dataset.from_indexable(items))) == 1000
    assert len(items.asked) < 100
    assert sum(1 for _ in Dataset.from_indexable(items, num_parallel_calls=2)) == 1000
    with pytest.raises(fb.PlanError, match="__len__"):
        Dataset.from_indexable(type("Endless", (), {"__getitem__": lambda self, i: i})())
    with pytest.raises(fb.PlanError, match="no items by number"):
        Dataset.from_indexable(3)


def test_tensors_become_arrays() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import TensorDataset

    pairs = TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
    found = list(Dataset.from_torch(pairs))
    assert [(row.tolist(), int(label)) for row, label in found] == [([2.0 * i, 2.0 * i + 1], i) for i in range(6)]
    assert found[0][0].dtype == np.float32
    assert sorted(int(label) for _, label in Dataset.from_torch(pairs).shuffle(seed=1)) == list(range(6))


def _theirs() -> Any:
    return datasets.Dataset.from_dict(
        {
            "x": list(range(60)),
            "words": [["a", "b", "c"][: i % 4] for i in range(60)],
            "ids": [[i] * (i % 3) for i in range(60)],
            "none": [None if i % 4 == 0 else float(i) for i in range(60)],
        }
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds,
        lambda ds: ds.shuffle(seed=1),
        lambda ds: ds.select(range(10, 30)),
        lambda ds: ds.shuffle(seed=1).select([5, 3, 3]).remove_columns("words"),
        lambda ds: datasets.concatenate_datasets([ds, ds.select(range(5))]),
    ],
    ids=["whole", "shuffled", "slice", "chosen", "joined"],
)
def test_map_style_datasets_give_their_rows(change: Any) -> None:
    theirs = change(_theirs())
    dataset = Dataset.from_huggingface(theirs)
    want = list(theirs)
    found = [
        {key: value.tolist() if hasattr(value, "tolist") else value for key, value in row.items()} for row in dataset
    ]
    assert found == want
    assert len(dataset) == len(want)
    order = [int(i) for i in Dataset.range(len(want)).shuffle(seed=2)]
    assert [int(row["x"]) for row in dataset.shuffle(seed=2)] == [want[i]["x"] for i in order]
    # Its own columns only, in the order asked for.
    assert list(next(iter(Dataset.from_huggingface(theirs, ["ids", "x"])))) == ["ids", "x"]


@pytest.mark.parametrize("buffer", [0, 8])
def test_iterable_datasets_resume_exactly(buffer: int) -> None:
    theirs = _theirs().to_iterable_dataset(num_shards=3)
    if buffer:
        theirs = theirs.shuffle(seed=3, buffer_size=buffer)
    dataset = Dataset.from_huggingface(theirs)
    want = list(map(repr, dataset))
    assert sorted(row["x"] for row in theirs) == sorted(int(row["x"]) for row in dataset)
    with iter(dataset) as rows:
        states = [json.loads(json.dumps(rows.state_dict())) for _ in rows]
    for done in (1, 20, 21, 47, 60):
        with iter(dataset) as rows:
            rows.load_state_dict(states[done - 1])
            assert list(map(repr, rows)) == want[done:]


def test_several_splits_are_not_one_dataset() -> None:
    with pytest.raises(fb.PlanError, match="give one of"):
        Dataset.from_huggingface(datasets.DatasetDict(train=_theirs(), test=_theirs()))
    with pytest.raises(fb.PlanError, match="list"):
        Dataset.from_huggingface([1, 2])


def test_a_transform_of_theirs_is_not_left_out_unsaid() -> None:
    theirs = _theirs().with_transform(lambda rows: {"y": [-x for x in rows["x"]]})
    with pytest.raises(fb.PlanError, match="has a transform"):
        Dataset.from_huggingface(theirs)
    assert [int(row["y"]) for row in Dataset.from_indexable(theirs).take(3)] == [0, -1, -2]
    assert len(Dataset.from_huggingface(theirs.with_format(None))) == 60


def test_token_windows(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    np.arange(100, dtype=np.uint32).tofile(path)
    dataset = Dataset.from_tokens(path, np.uint32, 10)
    assert [row.tolist() for row in dataset] == np.arange(100).reshape(10, 10).tolist()
    assert len(Dataset.from_tokens(path, np.uint32, 101)) == 0
    assert next(iter(Dataset.from_tokens(path, np.uint32, 3, offset=8))).tolist() == [2, 3, 4]
    assert sorted(int(row[0]) for row in dataset.shuffle(seed=1)) == list(range(0, 100, 10))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(fb.FileError, match="no whole number of uint32 tokens"):
        Dataset.from_tokens(path, np.uint32, 10)
    with pytest.raises(fb.FileError, match="no such file"):
        Dataset.from_tokens(tmp_path / "none.bin", np.uint32, 10)
    with pytest.raises(fb.PlanError, match="whole numbers"):
        Dataset.from_tokens(path, np.float32, 10)


_DOCUMENTS = st.lists(st.lists(st.integers(1, 50), max_size=20), min_size=1, max_size=15)


def _dataset(documents: list[list[int]]) -> fb.Dataset[Any]:
    arrays = [np.array(each, np.int32) for each in documents]
    return Dataset.from_generator(lambda: iter(arrays))


@settings(max_examples=40, deadline=None)
@given(_DOCUMENTS, st.integers(1, 9), st.booleans())
def test_chunks_are_all_tokens_end_to_end(documents: list[list[int]], length: int, segments: bool) -> None:
    pack = fb.text.pack(length, end=0, segments=segments, drop_remainder=False)
    found = list(_dataset(documents).apply(pack))
    flat = [token for document in documents for token in [*document, 0]]
    tokens = [row["tokens"] if segments else row for row in found]
    assert [len(row) for row in tokens[:-1]] == [length] * (len(tokens) - 1)
    assert np.concatenate(tokens).tolist() == flat
    if segments:
        for row in found:
            ends = np.concatenate([[0], np.cumsum(row["tokens"][:-1] == 0)])
            assert (row["segment_ids"] == ends + 1).all()
            starts = np.flatnonzero(np.concatenate([[True], np.diff(row["segment_ids"]) > 0]))
            assert (row["positions"] == np.arange(len(ends)) - starts[row["segment_ids"] - 1]).all()
    whole = len(flat) // length
    assert len(list(_dataset(documents).apply(fb.text.pack(length, end=0)))) == whole


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=40))
def test_the_best_fit_is_the_fullest_bin_with_room(sizes: list[int]) -> None:
    bins = best_fit(np.array(sizes, np.int64), 12)
    left: list[int] = []
    for piece in np.argsort(-np.array(sizes), kind="stable").tolist():
        rooms = [room for room in left if room >= sizes[piece]]
        expected = min(rooms) if rooms else 12
        if int(bins[piece]) == len(left):
            assert not rooms
            left.append(12)
        assert left[int(bins[piece])] == expected
        left[int(bins[piece])] -= sizes[piece]


def test_packing_says_what_it_cannot_pack() -> None:
    for build, error, text in (
        (lambda: Dataset.range(3).apply(fb.text.pack(4)), fb.PlanError, "one-dimensional arrays of token ids"),
        (lambda: _dataset([[1]]).apply(fb.text.pack(0)), fb.PlanError, "length must be at least 1"),
        (lambda: _dataset([[1]]).apply(fb.text.pack(4, fit=True, segments=False)), fb.PlanError, "told apart"),
        (lambda: list(_dataset([[1]]).apply(fb.text.pack(4, end=2**40))), fb.DataError, "no room for end"),
        (lambda: list(Dataset.from_generator(lambda: iter("ab")).apply(fb.text.pack(4))), fb.DataError, "element 0"),
    ):
        with pytest.raises(error, match=text):
            build()
