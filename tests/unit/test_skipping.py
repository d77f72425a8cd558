"""Elements that a function fails for: what is said about them, and what is raised all the same."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from images import jpeg


def odd_only(i: int) -> int:
    if i % 2 == 0:
        raise ValueError(f"{i} is even")
    return i


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "forebay"]


def test_what_is_left_out_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with iter(Dataset.range(5).map(odd_only, on_error="skip", name="parse")) as it:
        assert list(it) == [1, 3]
        stats = it.stats()
    assert [each.skipped for each in stats] == [3, 0]
    first, *_ = messages(caplog)
    assert first.startswith("skipped: map 'parse' at test_skipping.py:")
    assert first.endswith("element 0: odd_only raised ValueError: 0 is even")
    assert len(messages(caplog)) == 3


def test_the_table_has_a_column_only_if_something_was_left_out() -> None:
    shown = {}
    for on_error in ("raise", "skip"):
        out = io.StringIO()
        Dataset.range(1, 4, 2).concatenate(Dataset.range(0, 9, 4 if on_error == "skip" else 10).skip(1)).map(
            odd_only, on_error=on_error
        ).explain(out, analyze=True)
        shown[on_error] = out.getvalue().partition("As it ran:")[2]
    assert "skipped" not in shown["raise"]
    assert "skipped" in shown["skip"]


def test_of_very_many_not_all_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with iter(Dataset.range(5000).map(odd_only, on_error="skip", max_errors=None)) as it:
        assert len(list(it)) == 2500
        assert it.stats()[0].skipped == 2500
    told = messages(caplog)
    assert len(told) == 100 + 9 + 1  # 200, 300, ..., 1000, and 2000.
    assert "2,000 so far" in told[-1]


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_the_one_too_many_is_raised_with_its_cause(executor: str) -> None:
    dataset = Dataset.range(9).map(odd_only, 2, executor=executor, on_error="skip", max_errors=2)
    with iter(dataset) as it:
        assert [next(it), next(it)] == [1, 3]
        for _ in range(2):
            with pytest.raises(fb.FunctionError, match=r"element 4: .*fault 3, and max_errors is 2") as caught:
                next(it)
            assert isinstance(caught.value.__cause__, ValueError)


def test_results_that_do_not_fit_together_are_raised() -> None:
    dataset = Dataset.range(9).map(lambda i: i if i < 5 else float(i), on_error="skip")
    with pytest.raises(fb.DataError, match="element 5"):
        list(dataset)
    with pytest.raises(fb.DataError, match="must return True or False"):
        list(Dataset.range(9).filter(lambda i: i, on_error="skip"))


def test_rows_that_only_fail_together_are_nobodys_fault() -> None:
    def alone(column: np.ndarray) -> np.ndarray:
        if len(column) > 1:
            raise ValueError("one at a time")
        return column

    for on_error in ("raise", "skip"):
        with pytest.raises(fb.FunctionError, match="one at a time"):
            list(Dataset.range(99).skip(1).map(alone, batched=True, on_error=on_error))


def test_a_failing_half_of_many_columns_is_found_with_few_calls() -> None:
    calls = 0

    def columns(column: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += len(column)
        if (column % 2 == 0).any():
            raise ValueError("even")
        return column

    rows = 4096
    dataset = Dataset.range(rows).map(columns, batched=True, on_error="skip", max_errors=None)
    assert len(list(dataset)) == rows // 2
    assert calls < 20 * rows


def test_it_is_no_longer_read_by_number_or_moved() -> None:
    dataset = Dataset.range(9).map(odd_only, on_error="skip")
    assert dataset.cardinality() == fb.UNKNOWN_CARDINALITY
    assert dataset.plan.access() is None
    assert sorted(dataset.shuffle(seed=1).skip(1)) != []
    assert [int(i) for i in dataset.map(lambda i: i * 2).take(2)] == [2, 6]


def test_ignore_errors_is_quiet_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    dataset = Dataset.range(5).map(odd_only)
    assert list(dataset.ignore_errors()) == [1, 3]
    assert messages(caplog) == []
    assert list(dataset.ignore_errors(log_warning=True)) == [1, 3]
    assert len(messages(caplog)) == 3


def test_ignore_errors_keeps_limits_and_what_is_stored() -> None:
    limited = Dataset.range(9).map(odd_only, on_error="skip", max_errors=1).ignore_errors()
    with pytest.raises(fb.FunctionError, match="max_errors is 1"):
        list(limited)
    cached = Dataset.range(9).map(odd_only).cache()
    with pytest.raises(fb.FunctionError):
        list(cached.map(lambda i: i).ignore_errors())
    assert list(Dataset.range(5).map(odd_only).ignore_errors().cache().repeat(2)) == [1, 3, 1, 3]


def test_ignore_errors_reaches_readers_of_files(tmp_path: Path) -> None:
    good, gone = tmp_path / "good.txt", tmp_path / "gone.txt"
    good.write_text("a\nb\n")
    for paths in ([gone, good], Dataset.from_tensor_slices([str(gone), str(good)])):
        assert list(fb.TextLineDataset(paths).ignore_errors()) == [b"a", b"b"]


def test_a_state_resumes_whether_or_not_it_is_logged() -> None:
    dataset = Dataset.range(9).map(odd_only)
    with iter(dataset.ignore_errors()) as it:
        next(it)
        state = it.state_dict()
    with iter(dataset.ignore_errors(log_warning=True)) as it:
        it.load_state_dict(state)
        assert list(it) == [3, 5, 7]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'skip'"),
        ({"max_errors": -1}, "max_errors must be at least 0"),
        ({"max_errors": 1.5}, "max_errors must be a whole number"),
    ],
)
def test_refused_arguments(how: dict[str, object], text: str) -> None:
    for add in (Dataset.map, Dataset.filter, Dataset.flat_map, Dataset.interleave):
        with pytest.raises(fb.PlanError, match=text):
            add(Dataset.range(3), lambda i: i, **how)
    with pytest.raises(fb.PlanError, match="log_warning"):
        Dataset.range(3).ignore_errors("yes")


FEATURES = {"image": fb.io.FixedLenFeature([], bytes)}


def _records(path: Path) -> list[int]:
    """Examples with images, one of which is none, behind a record that is no Example; the offsets of these two."""
    records = [fb.io.serialize_example({"image": jpeg(8, 9, seed)}) for seed in range(6)]
    records[2] = b"\xff garbage"
    records[4] = fb.io.serialize_example({"image": b"not an image"})
    with fb.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    starts = np.cumsum([0] + [len(record) + 16 for record in records]).tolist()
    return [starts[2], starts[4]]


@pytest.mark.parametrize("index", [False, True])
def test_file_and_offset_of_the_record_are_named(tmp_path: Path, index: bool, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tfrecord"
    first, second = _records(path)
    records = fb.TFRecordDataset(str(path), index=index).prefetch(2)
    parsed = records.map(lambda record: fb.io.parse_single_example(record, FEATURES))
    with pytest.raises(fb.FunctionError, match=rf"element 2: .*{path}, byte {first:,}\)"):
        list(parsed)

    def load(record: bytes) -> np.ndarray:
        return fb.io.decode_jpeg(fb.io.parse_single_example(record, FEATURES)["image"])

    assert [image.shape for image in records.map(load, 2, executor="thread", on_error="skip")] == [(8, 9, 3)] * 4
    told = messages(caplog)
    assert len(told) == 2
    assert f"{path}, byte {first:,}" in told[0]
    assert f"{path}, byte {second:,}" in told[1]
    with pytest.raises(fb.FunctionError, match=f"{path}, byte"):
        list(records.shuffle(seed=1).skip(0).map(load)) if index else list(records.map(lambda r: r).map(load))


def test_the_line_of_a_text_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\nthree\n4\n")
    for index in (False, True):
        with pytest.raises(fb.FunctionError, match=rf"element 2: int raised .*{path}, line 3 \(byte 4\)\)"):
            list(fb.TextLineDataset(path, index=index).map(int))
