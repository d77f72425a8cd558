"""``forebay.formats.inspect``: what is told of good files."""

import gzip
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import forebay as fb
from forebay.formats import Report, inspect
from unit.format_files import FILES, ROWS, rows, write


def one(path: Any, **options: Any) -> Report:
    found = inspect(path, **options)
    assert found.sound, found
    (report,) = found.reports
    return report


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_recognised_counted_and_opened(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    report = one(path, check=True, head=2)
    assert report.format == FILES[name][0]
    assert report.told_by == "content"
    assert (report.rows.count, report.rows.exact, report.checked) == (ROWS, True, True)
    assert len(report.elements) == 2
    assert report.row_bytes is not None
    assert report.row_bytes.least <= report.row_bytes.mean <= report.row_bytes.most
    # What is told to paste runs, and gives as many rows.
    names: dict[str, Any] = {"fb": fb, "np": np}
    exec(report.code or "", names)
    assert sum(1 for _ in names["ds"]) == ROWS


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name][0] not in ("saved", "csv", "npz")])
def test_contents_count_for_more_than_names(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    other = tmp_path / "other.bin"
    path.rename(other)
    report = one(other)
    assert (report.format, report.told_by) == (FILES[name][0], "content")
    assert report.rows.count == ROWS


def test_features_of_examples(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with fb.io.TFRecordWriter(path) as writer:
        for i in range(20):
            row: dict[str, Any] = {"label": i, "box": [0.5] * 4, "words": ["w"] * (i % 3)}
            writer.write(fb.io.serialize_example(row | ({"rare": b"r"} if i % 4 == 0 else {})))
    report = one(path)
    assert [(c.name, c.dtype, c.shape, c.present, c.values) for c in report.columns] == [
        ("label", "int64", (), 1.0, (1, 1)),
        ("box", "float32", (4,), 1.0, (4, 4)),
        ("words", "bytes", (None,), 1.0, (0, 2)),
        ("rare", "bytes", (), 0.25, (1, 1)),
    ]
    assert report.code == (
        f"ds = fb.TFRecordDataset({str(path)!r})\n"
        "features = {\n"
        "    'label': fb.io.FixedLenFeature((), np.int64),\n"
        "    'box': fb.io.FixedLenFeature((4,), np.float32),\n"
        "    'words': fb.io.VarLenFeature(bytes),\n"
        "    'rare': fb.io.VarLenFeature(bytes),\n"
        "}\n"
        "ds = ds.map(lambda record: fb.io.parse_single_example(record, features))"
    )
    assert report.elements[1] == {
        "label": "1",
        "box": "[0.5, 0.5, 0.5, 0.5] float32",
        "words": "[b'w']",
        "rare": "[]",
    }


def test_a_feature_of_two_kinds_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with fb.io.TFRecordWriter(path) as writer:
        for value in (1, 0.5):
            writer.write(fb.io.serialize_example({"x": value, "y": 1}))
    report = one(path)
    assert report.columns[0].dtype == "float32 or int64"
    assert "x: values are of different kinds" in report.details["not parsed"]
    assert "'x'" not in (report.code or "")


def test_steps_of_sequence_examples(tmp_path: Path) -> None:
    report = one(write(tmp_path, "seq.tfrecord"))
    assert [(c.name, c.shape, c.values) for c in report.columns] == [("a", (), (1, 1)), ("s", (None, 3), (1, 1))]
    assert "SequenceExample" in report.details["records"]
    assert report.elements[0] == {"a": "7", "s": "[1, 2, 3] int64 1x3"}


def test_records_that_are_no_examples(tmp_path: Path) -> None:
    report = one(write(tmp_path, "raw.tfrecord"))
    assert report.details["records"] == "bytes that are no tf.train.Example"
    assert report.elements[0] == {"value": "b'record 0'"}


def test_columns_of_tables(tmp_path: Path) -> None:
    report = one(write(tmp_path, "a.parquet"))
    assert [(c.name, c.dtype, c.shape, c.values) for c in report.columns] == [
        ("x", "int64", (), None),
        ("name", "str", (), None),
        ("v", "float32", (None,), (0, 3)),
    ]
    assert report.details["row groups"] == "3"
    assert report.details["columns compressed with"] == "snappy"
    assert report.by_number == "yes"


def test_values_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": "a"}\n{"x": null}\n{"x": "b"}\n{}\n')
    (column,) = one(path).columns
    assert (column.dtype, column.present) == ("str", 0.5)


@pytest.mark.parametrize(("content", "delimiter", "header", "names"), [
    ("a;b\n1;2\n", "';'", "yes", ["a", "b"]),
    ("1|2\n3|4\n", "'|'", "no", ["c0", "c1"]),
    ("name,other\nx,y\n", "','", "yes", ["name", "other"]),
])  # fmt: skip
def test_dialects_of_csv(content: str, delimiter: str, header: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    report = one(path)
    assert (report.details["delimiter"], report.details["header"]) == (delimiter, header)
    assert [column.name for column in report.columns] == names


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "nothing"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_header_of_more_than_the_first_look(name: str, delimiter: str, tmp_path: Path) -> None:
    path, columns = tmp_path / name, 8_000
    names = [f"measurement {i}" for i in range(columns)]
    lines = [delimiter.join(names), *(delimiter.join(str(row + i) for i in range(columns)) for row in range(3))]
    data = ("\n".join(lines) + "\n").encode()
    assert len(lines[0]) > 1 << 16
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    report = one(path, head=1)
    assert (report.format, report.faults, report.rows.count) == ("csv", 0, 3)
    assert (report.details["delimiter"], report.details["header"]) == (repr(delimiter), "yes")
    assert [column.name for column in report.columns] == names
    assert report.elements[0][names[-1]] == str(columns - 1)


def test_first_records_of_more_than_the_first_look(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(f"{row}.{i:06d}" for i in range(12_000)) for row in range(3)))
    report = one(path, head=0)
    assert (report.rows.count, len(report.columns), report.details["header"]) == (3, 12_000, "no")


def test_a_first_line_without_end(tmp_path: Path) -> None:
    endless, one_field = tmp_path / "endless.csv", tmp_path / "one.csv"
    endless.write_text("a;" * (3 << 20))
    (report,) = inspect(endless).reports
    assert report.faults == 1
    assert "its first line is longer than 4,194,304 bytes" in report.listed_faults[0].reason
    # More than Python's own reader takes for a field.
    one_field.write_text("x" * 200_000 + "\n1\n2\n")
    assert (one(one_field).rows.count, one(one_field).faults) == (2, 0)


def test_a_first_object_of_more_than_the_first_look(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"x": "' + "y" * 100_000 + '"}\n{"x": "z"}\n')
    assert (one(path).format, one(path).rows.count) == ("json", 2)


def test_a_header_without_a_line_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b"))
    assert (one(path).faults, one(path).rows.count) == (0, 0)


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_estimates_are_called_that_and_are_near(compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    words = np.random.default_rng(1).integers(0, 1 << 40, 60_000).tolist()
    fb.Dataset.from_tensor_slices([f"a record of {i:013d}" for i in words]).write_tfrecord(path, 1, compression)
    report = one(path, look_bytes=1 << 19)
    assert not report.rows.exact
    assert report.rows.count == pytest.approx(60_000, rel=0.1)
    assert report.row_bytes is not None
    assert report.row_bytes.looked_at < 60_000
    assert one(path, full=True).rows.count == 60_000


def test_an_index_tells_how_many_records_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tfrecord")
    assert len(fb.TFRecordDataset(path, index=True)) == ROWS
    report = one(path, look_bytes=1)
    assert (report.rows.count, report.rows.exact) == (ROWS, True)
    assert report.rows.by == "an index or a header tells"


def test_shards_are_taken_together(tmp_path: Path) -> None:
    for i in range(3):
        fb.Dataset.range(10).map(lambda x: {"x": x}).write_tfrecord(tmp_path / f"part-{i}.tfrecord")
    for paths in ([tmp_path / f"part-{i}.tfrecord" for i in range(3)], str(tmp_path / "part-*.tfrecord"), tmp_path):
        report = one(paths)
        assert (report.files, report.rows.count) == (3, 30)
        names: dict[str, Any] = {"fb": fb, "np": np}
        exec(report.code or "", names)
        assert len(list(names["ds"])) == 30


def test_a_folder_of_everything(tmp_path: Path) -> None:
    for name in FILES:
        write(tmp_path, name)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write(tmp_path / "deep" / "er", "a.csv")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "_SUCCESS").touch()
    found = inspect(tmp_path)
    assert found.sound
    (folder,) = found.folders
    assert folder.files == len(FILES) + 1
    assert {part.format for part in folder.parts} == {format for format, _ in FILES.values()}
    assert {(part.format, part.compression): part.files for part in folder.parts}["csv", None] == 3


def test_a_folder_of_images(tmp_path: Path) -> None:
    for kind, count in (("cat", 2), ("dog", 3)):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for i in range(count):
            cv2.imwrite(str(tmp_path / "photos" / kind / f"{i}.png"), np.zeros((4, 5 + i, 3), np.uint8))
    # Found from above as well.
    for folder in (tmp_path / "photos", tmp_path):
        report = one(folder)
        assert (report.format, report.path, report.rows.count) == ("images", str(tmp_path / "photos"), 5)
        assert report.details["classes"] == "2: cat 2, dog 3"
        assert (report.details["width"], report.details["height"]) == ("5 to 7", "4")
        assert report.columns[0].shape == (4, None, 3)
    assert "labels=None" in (one(tmp_path / "photos" / "cat").code or "")


def test_a_cache_is_recognised_and_not_unpickled(tmp_path: Path) -> None:
    ds = fb.Dataset.range(7).cache(tmp_path / "kept")
    list(ds)
    report = one(tmp_path / "kept")
    assert (report.format, report.rows.count, report.code) == ("cache", 7, None)
    assert "complete" in " ".join(report.details.values())


@pytest.mark.parametrize(("name", "content", "format"), [
    ("a.bin", b"\x00\x01\x02" * 100, "unknown"),
    ("a.zst", b"\x28\xb5\x2f\xfd" + bytes(50), "compressed"),
    ("a.json", b"[1, 2,\n 3]", "json-document"),
    ("a", b"", "empty"),
])  # fmt: skip
def test_what_cannot_be_read_is_said_plainly(name: str, content: bytes, format: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    report = one(path)
    assert (report.format, report.rows.count, report.code) == (format, None, None)
    assert report.advice


def test_samples_with_different_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    made = [{"txt": f"t{i}", "cls": i if i % 2 else None} for i in range(10)]
    fb.Dataset.range(10).map(lambda i: made[i]).to_webdataset(path)
    report = one(path, check=True)
    assert report.rows.count == 10
    assert {c.name: c.present for c in report.columns} == {"__key__": 1.0, "txt": 1.0, "cls": 0.5}
    assert report.details["not in every sample"] == "cls (50%)"


def test_a_url(tmp_path: Path) -> None:
    import fsspec

    write(tmp_path, "a.parquet")
    memory = fsspec.filesystem("memory")
    memory.pipe("/inspected/a.parquet", (tmp_path / "a.parquet").read_bytes())
    try:
        for url in ("memory://inspected/a.parquet", "memory://inspected", "memory://inspected/*.parquet"):
            assert one(url).rows.count == ROWS
    finally:
        memory.rm("/inspected", recursive=True)


def test_rows_are_what_was_written(tmp_path: Path) -> None:
    report = one(write(tmp_path, "a.tfrecord"), head=ROWS)
    assert [element["x"] for element in report.elements] == [str(row["x"]) for row in rows()]


def opened(report: Report, **arguments: Any) -> Any:
    """What the code that is told opens, with more arguments for the reader."""
    names: dict[str, Any] = {"fb": fb, "np": np}
    more = "".join(f", {name}={value!r}" for name, value in arguments.items())
    code = (report.code or "").partition("\nfeatures = ")[0]
    assert code.endswith(")")
    exec(f"{code[:-1]}{more})", names)
    return names["ds"]


@pytest.mark.parametrize(("given", "beside", "pattern"), [
    (["b7/train-0.tfrecord", "b7/train-1.tfrecord"], [], "b7/train-*.tfrecord"),
    (["b7/train-0.tfrecord", "b7/train-1.tfrecord"], ["b8/train-0.tfrecord"], "b7/train-*.tfrecord"),
    (["b7/train-0-of-2", "b7/train-1-of-2"], ["b7/train-0-of-3"], "b7/train-*-of-2"),
    (["b7/train-0.tfrecord", "b8/train-0.tfrecord"], ["b7/train-1.tfrecord"], "b*/train-0.tfrecord"),
    (["b7/train-0.tfrecord", "b7/train-1.tfrecord"], ["b7/train-2.tfrecord"], None),
    (["b7/train-0.tfrecord", "b8/train-0.tfrecord"], ["b9/train-0.tfrecord"], None),
    (["b7/train-0.tfrecord", "b7/train-0.tfrecord"], [], None),
])  # fmt: skip
def test_names_are_widened_where_they_differ(
    given: list[str], beside: list[str], pattern: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in given + beside:
        Path(name).parent.mkdir(exist_ok=True)
        fb.Dataset.from_tensor_slices([name]).write_tfrecord(name)
    report = one(given)
    assert (repr(pattern) if pattern else repr(given)) in (report.code or "")
    assert list(opened(report)) == [name.encode() for name in given]


@pytest.mark.parametrize(("names", "source"), [
    ([f"{c}.tfrecord" for c in "abcdefghijklmnopqrstuvwxyz"], "sorted(glob.glob('run1/*.tfrecord', recursive=True))"),
    (["t-0.tfrecord", "t-1.tfrecord"], "sorted(glob.glob('run1/t-*.tfrecord', recursive=True))"),
    (["t-0-of-2", "t-1-of-2"], "list(fb.Dataset.list_files('run1/t-*-of-2', shuffle=False))"),
    (["t.0", "t.1"], "list(fb.Dataset.list_files('run1/t.*', shuffle=False))"),
    ([f"{c}.{'rec' if c < 'm' else 'tfr'}" for c in "abcdefghijklmnopqrstuvwxyz"],
     "list(fb.Dataset.list_files('run1/*', shuffle=False))"),
])  # fmt: skip
def test_code_stays_right_once_there_are_indexes(
    names: list[str], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("run1", "run2"):
        Path(folder).mkdir()
        for name in names:
            fb.Dataset.from_tensor_slices([name]).write_tfrecord(f"{folder}/{name}")
    report = one("run1/")
    assert f"ds = fb.TFRecordDataset({source})" in (report.code or "")
    for _ in range(3):
        assert len(opened(report, index=True)) == len(names)
    # And the same is told of the folder with them.
    assert (one("run1/").code, one("run1").code) == (report.code, report.code)
    assert list(opened(report)) == [name.encode() for name in names]


def test_readers_that_take_patterns_are_given_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for i in range(2):
        fb.Dataset.range(3).map(lambda x: {"x": x}).to_parquet(f"part-{i}.parquet")
        Path(f"part-{i}.csv").write_text("x,y\n1,2\n")
    for name, count in (("parquet", 6), ("csv", 2)):
        report = one(f"part-?.{name}")
        assert report.code == f"ds = fb.Dataset.from_{name}('part-*.{name}')"
        assert len(list(opened(report))) == count
