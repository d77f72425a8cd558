"""``forebay.formats.convert``: what is written is read by those who read the format, and is what was there."""

import gzip
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import forebay as fb
from forebay.errors import DataError, FileError, ForebayError, PlanError
from forebay.formats import convert
from forebay.formats.format import UsageError
from unit.format_files import FILES, ROWS, dataset, rows, write
from unit.lazy_tensorflow import tf
from unit.support import assert_same

TARGETS = {
    "out.tfrecord": "tfrecord",
    "out.parquet": "parquet",
    "out.arrow": "arrow",
    "out.tar": "webdataset",
    "out": "saved",
}


def read(path: Path) -> list[Any]:
    match TARGETS[path.name]:
        case "tfrecord":
            return list(fb.TFRecordDataset(path))
        case "parquet":
            return list(fb.Dataset.from_parquet(path))
        case "arrow":
            return list(fb.Dataset.from_arrow(path))
        case "webdataset":
            return list(fb.Dataset.from_webdataset(path))
        case _:
            return list(fb.Dataset.load(path))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", FILES)
def test_everything_that_is_read_goes_to_everything_that_is_written(source: str, target: str, tmp_path: Path) -> None:
    path = write(tmp_path, source)
    # An archive has no place for lists of text.
    kept = ["x"] if (source, target) == ("a.jsonl", "out.tar") else None
    done = convert(path, tmp_path / target, columns=kept)
    assert (done.source_format, done.format) == (FILES[source][0], TARGETS[target])
    assert (done.rows, done.skipped, done.files) == (ROWS, 0, [str(tmp_path / target)])
    assert done.bytes > 0
    assert len(read(tmp_path / target)) == ROWS
    assert not [entry for entry in os.listdir(tmp_path) if "forebay-" in entry]


def test_examples_through_every_format_and_back(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tfrecord")
    for number, ending in enumerate((".parquet", ".arrow", "", ".tfrecord")):
        target = tmp_path / f"step{number}{ending}"
        convert(path, target)
        path = target
    assert path.read_bytes() == (tmp_path / "a.tfrecord").read_bytes()


@pytest.mark.parametrize("target", ["out.parquet", "out.arrow", "out"])
def test_elements_stay_what_they_are(target: str, tmp_path: Path) -> None:
    dataset().save(tmp_path / "kept")
    convert(tmp_path / "kept", tmp_path / target)
    for found, row in zip(read(tmp_path / target), dataset(), strict=True):
        assert_same(found, row)


def test_pyarrow_reads_tables(tmp_path: Path) -> None:
    source = write(tmp_path, "a.tfrecord")
    convert(source, tmp_path / "out.parquet", compression="snappy")
    convert(source, tmp_path / "out.arrow")
    with pa.ipc.open_file(tmp_path / "out.arrow") as reader:
        arrow = reader.read_all()
    for table in (pa.parquet.read_table(tmp_path / "out.parquet"), arrow):
        assert table["x"].to_pylist() == [row["x"] for row in rows()]
        assert table["name"].to_pylist() == [row["name"].encode() for row in rows()]
        assert table["v"].to_pylist() == [row["v"].tolist() for row in rows()]
    assert pa.parquet.read_metadata(tmp_path / "out.parquet").row_group(0).column(0).compression == "SNAPPY"


def test_tensorflow_reads_examples(tmp_path: Path) -> None:
    convert(write(tmp_path, "a.parquet"), tmp_path / "out.tfrecord.gz")
    features = {
        "x": tf.io.FixedLenFeature((), tf.int64),
        "name": tf.io.FixedLenFeature((), tf.string),
        "v": tf.io.VarLenFeature(tf.float32),
    }
    records = tf.data.TFRecordDataset(str(tmp_path / "out.tfrecord.gz"), "GZIP")
    parsed = [tf.io.parse_single_example(record, features) for record in records]
    assert [int(row["x"]) for row in parsed] == [row["x"] for row in rows()]
    assert [row["name"].numpy() for row in parsed] == [row["name"].encode() for row in rows()]
    assert [row["v"].values.numpy().tolist() for row in parsed] == [row["v"].tolist() for row in rows()]


# Of theirs, which leaves closing its files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_webdataset_reads_archives(tmp_path: Path) -> None:
    import webdataset

    convert(write(tmp_path, "a.parquet"), tmp_path / "out.tar")
    samples = list(webdataset.WebDataset(str(tmp_path / "out.tar"), shardshuffle=False).decode())
    assert [sample["name"] for sample in samples] == [row["name"].encode() for row in rows()]
    assert [sample["v.npy"].tolist() for sample in samples] == [row["v"].tolist() for row in rows()]
    convert(tmp_path / "out.tar", tmp_path / "out.parquet")
    assert pa.parquet.read_table(tmp_path / "out.parquet")["v.npy"].to_pylist() == [r["v"].tolist() for r in rows()]


def _photos(folder: Path) -> Path:
    for kind in ("dog", "cat", "cat a"):
        (folder / "photos" / kind).mkdir(parents=True)
        cv2.imwrite(str(folder / "photos" / kind / "1.png"), np.full((4, 5, 3), len(kind), np.uint8))
    return folder / "photos"


def test_images_are_stored_as_they_are(tmp_path: Path) -> None:
    photos = _photos(tmp_path)
    done = convert(photos, tmp_path / "out.parquet")
    assert done.notes == []
    rows = list(fb.Dataset.from_parquet(tmp_path / "out.parquet"))
    # As from_images numbers and orders them.
    assert [row["label"] for row in rows] == [label for _, label in fb.Dataset.from_images(photos)] == [0, 1, 2]
    assert [row["class_name"] for row in rows] == ["cat", "cat a", "dog"]
    assert rows[0]["image"] == (photos / "cat" / "1.png").read_bytes()


@pytest.mark.parametrize("target", TARGETS)
def test_names_of_classes_are_kept(target: str, tmp_path: Path) -> None:
    convert(_photos(tmp_path), tmp_path / target)
    found = read(tmp_path / target)
    if target == "out.tfrecord":
        features = {"class_name": fb.io.FixedLenFeature((), bytes)}
        found = [fb.io.parse_single_example(record, features) for record in found]
    names = [row["class_name"] for row in found]
    assert [name if isinstance(name, str) else name.decode() for name in names] == ["cat", "cat a", "dog"]


def test_files_that_stray_among_images_are_passed_over_and_said(tmp_path: Path) -> None:
    photos = _photos(tmp_path)
    for name in ("Thumbs.db", ".DS_Store", "cat/Thumbs.db", "cat/._1.png"):
        (photos / name).write_bytes(bytes(range(256)))
    (photos / "README.txt").write_text("Photos of cats and dogs.\n")
    done = convert(photos, tmp_path / "out.parquet")
    assert done.rows == 3
    assert done.notes == ["passed over 3 files beside the images: README.txt, Thumbs.db, cat/Thumbs.db"]
    # Where images are not what most files are, nobody knows what is meant.
    for name in ("a.csv", "b.csv", "c.csv"):
        (photos / name).write_text("x,y\n1,2\n")
    with pytest.raises(PlanError, match="several formats"):
        convert(photos, tmp_path / "other.parquet")


def test_files_that_stray_among_others_are_said_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "a.parquet")
    (tmp_path / "in" / "a.bin").write_bytes(bytes(range(256)))
    assert convert(tmp_path / "in", tmp_path / "out.arrow").notes == ["passed over 1 file beside the Parquet: a.bin"]


def test_images_that_are_none(tmp_path: Path) -> None:
    photos = _photos(tmp_path)
    whole = (photos / "dog" / "1.png").read_bytes()
    (photos / "dog" / "2.png").write_text("<html>404</html>")
    (photos / "dog" / "3.png").write_bytes(whole[:-20])
    with pytest.raises(FileError, match=r"2\.png: not a JPEG.*out\.parquet is not written"):
        convert(photos, tmp_path / "out.parquet")
    done = convert(photos, tmp_path / "out.parquet", on_error="skip")
    assert (done.rows, done.skipped) == (3, 2)
    assert [Path(fault.file).name for fault in done.listed_faults] == ["2.png", "3.png"]


def test_columns_are_chosen_and_ordered(tmp_path: Path) -> None:
    source = write(tmp_path, "a.jsonl")
    convert(source, tmp_path / "out.parquet", columns=["in.tags", "x"])
    assert pa.parquet.read_table(tmp_path / "out.parquet").column_names == ["in.tags", "x"]
    with pytest.raises(ForebayError, match=r"there is no column 'y'; there are x, in\.tags"):
        convert(source, tmp_path / "other.parquet", columns=["y"])
    assert not (tmp_path / "other.parquet").exists()


@pytest.mark.parametrize(("name", "count"), [("a.parquet", 4), ("a.csv", 4), ("a.tfrecord", 4)])
@pytest.mark.parametrize("target", ["out.parquet", "out.tfrecord", "out.tar"])
def test_shards(name: str, count: int, target: str, tmp_path: Path) -> None:
    done = convert(write(tmp_path, name), tmp_path / target, shards=count)
    stem, ending = target.split(".")
    assert done.files == [str(tmp_path / f"{stem}-{i:05d}.{ending}") for i in range(count)]
    assert sorted(map(str, tmp_path.glob("out-*"))) == done.files
    assert done.rows == ROWS
    read_back = {"parquet": fb.Dataset.from_parquet, "tfrecord": fb.TFRecordDataset, "tar": fb.Dataset.from_webdataset}
    assert len(list(read_back[ending](done.files))) == ROWS


def test_a_pattern_of_ones_own(tmp_path: Path) -> None:
    done = convert(write(tmp_path, "a.csv"), tmp_path / "x{shard:02d}y.arrow", shards=2)
    assert [Path(file).name for file in done.files] == ["x00y.arrow", "x01y.arrow"]
    with pytest.raises(PlanError, match="there already"):
        convert(tmp_path / "a.csv", tmp_path / "x{shard:02d}y.arrow", shards=3)


def test_several_files_become_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        dataset().to_parquet(tmp_path / f"{name}.parquet")
    assert convert(tmp_path / "*.parquet", tmp_path / "out.arrow").rows == 2 * ROWS
    assert convert([tmp_path / "one.parquet", tmp_path / "two.parquet"], tmp_path / "out").rows == 2 * ROWS


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_replaced_unless_it_may_be(target: str, tmp_path: Path) -> None:
    convert(write(tmp_path, "a.csv"), tmp_path / target)
    before = read(tmp_path / target)
    other = write(tmp_path, "a.npz")
    with pytest.raises(PlanError, match="there already; --overwrite"):
        convert(other, tmp_path / target)
    for found, row in zip(read(tmp_path / target), before, strict=True):
        assert_same(found, row)
    convert(other, tmp_path / target, overwrite=True)
    assert len(read(tmp_path / target)) == ROWS


def test_a_file_is_not_written_over_itself(tmp_path: Path) -> None:
    path = write(tmp_path, "a.parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    for target in (path, tmp_path / "link.parquet"):
        with pytest.raises(PlanError, match="read and written at once"):
            convert(path, target, overwrite=True)


def _broken(tmp_path: Path) -> Path:
    path = write(tmp_path, "a.tfrecord")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    return path


def test_faults_end_it_or_are_passed_over(tmp_path: Path) -> None:
    path = _broken(tmp_path)
    with pytest.raises(FileError, match="do not match their checksum"):
        convert(path, tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    with pytest.raises(FileError, match="max_errors"):
        convert(path, tmp_path / "out.parquet", on_error="skip", max_errors=0)
    done = convert(path, tmp_path / "out.parquet", on_error="skip", shards=2)
    assert (done.rows, done.skipped, done.listed_faults[0].offset) == (ROWS - 1, 1, 0)


def test_records_that_do_not_parse_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with fb.io.TFRecordWriter(path) as writer:
        for i in range(1100):
            # Beyond those that the features are found out from.
            writer.write(fb.io.serialize_example({"x": "text" if i == 1050 else i}))
    with pytest.raises(ForebayError, match="'x' holds bytes, wanted is int64"):
        convert(path, tmp_path / "out.parquet")
    done = convert(path, tmp_path / "out.parquet", on_error="skip")
    assert (done.rows, done.skipped) == (1099, 1)
    # Counting the rows for shards is not a second fault.
    done = convert(path, tmp_path / "part.parquet", on_error="skip", max_errors=1, shards=2)
    assert (done.rows, done.skipped, len(done.files)) == (1099, 1, 2)
    with pytest.raises(ForebayError, match="max_errors is 0"):
        convert(path, tmp_path / "out.parquet", on_error="skip", max_errors=0, overwrite=True)


def test_features_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tfrecord")
    convert(path, tmp_path / "out.parquet", features="x=int64,v=float32[]")
    assert pa.parquet.read_table(tmp_path / "out.parquet").column_names == ["x", "v"]
    convert(path, tmp_path / "other.parquet", features={"name": fb.io.FixedLenFeature((), bytes)})
    assert pa.parquet.read_table(tmp_path / "other.parquet").column_names == ["name"]
    with pytest.raises(UsageError, match="not name=dtype"):
        convert(path, tmp_path / "more.parquet", features="x=int32")
    with pytest.raises(UsageError, match="for TFRecord files"):
        convert(write(tmp_path, "a.csv"), tmp_path / "more.parquet", features="x=int64")


@pytest.mark.parametrize(("column", "reason"), [
    (pa.array([datetime(2020, 1, 1)]), "datetime64"),
    (pa.array([["a", None]]), "NoneType"),
    (pa.array([1e300]), "does not fit into float32"),
    (pa.array([2**64 - 1], pa.uint64()), "does not fit into int64"),
])  # fmt: skip
def test_what_an_example_cannot_hold_names_the_column(column: Any, reason: str, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"fine": [1], "odd": column}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=f"feature 'odd'.*{reason}"):
        convert(tmp_path / "a.parquet", tmp_path / "out.tfrecord")
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_complex_numbers_name_their_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", z=np.zeros(2, np.complex128))
    for target in ("out.tfrecord", "out.tar"):
        with pytest.raises(DataError, match=r"z.*(complex|number)"):
            convert(tmp_path / "a.npz", tmp_path / target)


def test_lists_of_text_name_their_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"element 0: in\.tags is ndarray"):
        convert(write(tmp_path, "a.jsonl"), tmp_path / "out.tar")


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    done = convert(write(tmp_path, "a.npy"), tmp_path / "out.tfrecord")
    assert done.notes == [
        "value: float64 is written as float32, which is all that an Example has",
        "value: the shape (2, 3) is written flat; fb.io.FixedLenFeature((2, 3), ...) gives it back",
    ]


def test_a_budget_changes_nothing(tmp_path: Path) -> None:
    source = write(tmp_path, "a.parquet")
    convert(source, tmp_path / "out.parquet")
    convert(source, tmp_path / "small.parquet", memory="4MiB")
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "small.parquet").read_bytes()


@pytest.mark.parametrize(("target", "options", "error", "text"), [
    ("out.csv", {}, UsageError, "is only read; those that are written: parquet, arrow, tfrecord"),
    ("out.xyz", {}, UsageError, "tells no format"),
    ("out.parquet", {"to": "nothing"}, UsageError, "is not known"),
    ("out.parquet", {"compression": "gzipp"}, UsageError, "Parquet has these: zstd, snappy"),
    ("out.parquet.gz", {}, UsageError, "not written compressed with GZIP"),
    ("out", {"shards": 2}, UsageError, "one folder"),
    ("no/such/folder.parquet", {}, FileError, "there is no folder .*/no/such; make it first"),
    ("none/saved", {}, FileError, "there is no folder .*/none; make it first"),
])  # fmt: skip
def test_what_cannot_be_asked_for(
    target: str, options: dict[str, Any], error: type[Exception], text: str, tmp_path: Path
) -> None:
    source = write(tmp_path, "a.csv")
    with pytest.raises(error, match=text):
        convert(source, tmp_path / target, **options)
    assert os.listdir(tmp_path) == ["a.csv"]


def test_sources_that_cannot_be_converted(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(256)))
    with pytest.raises(FileError, match="unknown binary data"):
        convert(tmp_path / "a.bin", tmp_path / "out.parquet")
    with pytest.raises(FileError, match="no such file"):
        convert(tmp_path / "missing", tmp_path / "out.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no files in it"):
        convert(tmp_path / "empty", tmp_path / "out.parquet")
    with pytest.raises(PlanError, match="several formats"):
        convert([write(tmp_path, "a.csv"), write(tmp_path, "a.npy")], tmp_path / "out.parquet")


def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    source = tmp_path / "a[1]{x}.csv.gz"
    source.write_bytes(gzip.compress(b"x,y\n1,2\n"))
    for target in ("b[1]{x}.tfrecord", "b[1]{x}.parquet"):
        assert convert(source, tmp_path / target).rows == 1
        assert (tmp_path / target).exists()
        with pytest.raises(PlanError, match="there already"):
            convert(source, tmp_path / target)


def test_to_and_from_urls(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/converted/a.csv", b"x,y\n1,2\n")
    try:
        done = convert("memory://converted/a.csv", "memory://converted/a.parquet")
        assert (done.rows, done.bytes) == (1, memory.size("/converted/a.parquet"))
        with pytest.raises(PlanError, match="there already"):
            convert("memory://converted/a.csv", "memory://converted/a.parquet")
    finally:
        memory.rm("/converted", recursive=True)
