"""TFRecord files: both ways with TensorFlow, in every mode, and their index."""

import io as stdio
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay._native import crc32c
from forebay.storage.side_files import index_of
from unit.lazy_tensorflow import tf

RECORDS = [bytes([i % 256]) * (i * 37 % 300) for i in range(500)]


def write(path: Path, records: list[bytes], compression: str | None = None) -> str:
    with fb.io.TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def files(folder: Path, *sizes: int) -> list[str]:
    return [
        write(folder / f"{i}.tfrecord", [b"%d-%d" % (i, k) * (k % 9) for k in range(n)]) for i, n in enumerate(sizes)
    ]


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_files_go_both_ways(tmp_path: Path, compression: str | None) -> None:
    ours = write(tmp_path / "ours", RECORDS, compression)
    theirs = str(tmp_path / "theirs")
    with tf.io.TFRecordWriter(theirs, compression or "") as writer:
        for record in RECORDS:
            writer.write(record)
    assert list(tf.data.TFRecordDataset(ours, compression or "").as_numpy_iterator()) == RECORDS
    assert list(fb.TFRecordDataset(theirs, compression)) == RECORDS
    if compression is None:
        assert Path(ours).read_bytes() == Path(theirs).read_bytes()


@settings(max_examples=30, deadline=None)
@given(records=st.lists(st.binary(max_size=400), max_size=40), buffer=st.sampled_from([None, 1, 64]))
def test_any_records(tmp_path_factory: Any, records: list[bytes], buffer: int | None) -> None:
    path = write(tmp_path_factory.mktemp("any") / "file", records)
    assert list(fb.TFRecordDataset(path, buffer_size=buffer)) == records
    assert list(tf.data.TFRecordDataset(path).as_numpy_iterator()) == records
    assert list(fb.TFRecordDataset(path, index=True)) == records


def test_records_larger_than_the_buffer(tmp_path: Path) -> None:
    records = [b"a", os.urandom(5_000_000), b"", os.urandom(100_000)]
    path = write(tmp_path / "large", records)
    assert list(fb.TFRecordDataset(path)) == records


@pytest.mark.parametrize("reads", [1, 2, 3, 5, 8])
def test_parallel_reads_take_turns_as_in_tf_data(tmp_path: Path, reads: int) -> None:
    names = files(tmp_path, 10, 3, 0, 25, 1, 12)
    expected = list(tf.data.TFRecordDataset(names, num_parallel_reads=reads).as_numpy_iterator())
    assert list(fb.TFRecordDataset(names, num_parallel_reads=reads)) == expected


def test_filenames_in_every_form(tmp_path: Path) -> None:
    names = files(tmp_path, 4, 5)
    everything = list(fb.TFRecordDataset(names))
    assert list(fb.TFRecordDataset(tuple(map(Path, names)))) == everything
    assert list(fb.TFRecordDataset(np.array(names))) == everything
    assert list(fb.TFRecordDataset(names[1])) == everything[4:]
    assert list(fb.TFRecordDataset(f"file://{names[1]}")) == everything[4:]
    of_names = fb.Dataset.from_tensor_slices(names)
    assert list(fb.TFRecordDataset(of_names)) == everything
    assert list(fb.TFRecordDataset(of_names.map(str.encode))) == everything
    assert list(of_names.flat_map(fb.TFRecordDataset)) == everything
    turns = list(fb.TFRecordDataset(names, num_parallel_reads=2))
    assert list(fb.TFRecordDataset(of_names, num_parallel_reads=2)) == turns
    assert list(fb.TFRecordDataset([])) == []


def test_urls_are_read_by_fsspec() -> None:
    import fsspec

    with fb.io.TFRecordWriter("memory://records/a", "GZIP") as writer:
        writer.write(b"one")
    with fsspec.open("memory://records/b", "wb") as out:
        out.write(Path(__file__).read_bytes()[:0])
    paths = ["memory://records/a", "memory://records/b"]
    assert list(fb.TFRecordDataset(paths, "GZIP")) == [b"one"]
    with pytest.raises(fb.FileError, match="memory://records/c: there is no such file"):
        list(fb.TFRecordDataset("memory://records/c"))


def test_members_of_a_gzip_file_follow_one_another(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", RECORDS[:9], "GZIP"), write(tmp_path / "b", RECORDS[9:], "GZIP")
    both = tmp_path / "both"
    both.write_bytes(Path(first).read_bytes() + Path(second).read_bytes())
    assert list(fb.TFRecordDataset(both, "GZIP")) == RECORDS


def test_a_state_leads_back_by_an_offset(tmp_path: Path) -> None:
    names = files(tmp_path, 2_000, 3_000)
    dataset = fb.TFRecordDataset(names).with_options(fb.Options(block_bytes=1 << 12))
    everything = list(dataset)
    it = iter(dataset)
    for _ in range(4_000):
        next(it)
    state = it.state_dict()
    place, skip = state["cursor"]
    assert place["file"] == 1
    assert place["at"] > 0
    assert skip < 1_000
    again = iter(fb.TFRecordDataset(names))
    again.load_state_dict(state)
    assert list(again) == everything[4_000:]


class TestIndex:
    def test_rows_by_number(self, tmp_path: Path) -> None:
        names = files(tmp_path, 30, 0, 45)
        everything = list(fb.TFRecordDataset(names))
        dataset = fb.TFRecordDataset(names, index=True)
        assert len(dataset) == 75
        assert list(dataset) == everything
        assert list(dataset.skip(28).take(5)) == everything[28:33]
        assert list(dataset.shard(4, 3)) == everything[3::4]
        shuffled = list(dataset.shuffle(seed=3))
        assert shuffled != everything
        assert sorted(shuffled) == sorted(everything)
        out = stdio.StringIO()
        dataset.shuffle(10, seed=3).explain(out)
        assert "reads='permuted'" in out.getvalue()

    def test_it_is_kept_and_used_and_made_again(self, tmp_path: Path) -> None:
        (name,) = files(tmp_path, 30)
        everything = list(fb.TFRecordDataset(name, index=True))
        kept = Path(index_of(name))
        before = kept.stat().st_ino
        assert list(fb.TFRecordDataset(name, index=True)) == everything
        assert kept.stat().st_ino == before
        write(Path(name), [b"x"] * 7)
        assert list(fb.TFRecordDataset(name, index=True)) == [b"x"] * 7
        for damage in (b"", b"{}\n", b"null\n", kept.read_bytes()[:-8], kept.read_bytes()[:-1] + b"\xff"):
            kept.write_bytes(damage)
            assert list(fb.TFRecordDataset(name, index=True)) == [b"x"] * 7

    def test_it_knows_how_many_faults_were_passed_over(self, tmp_path: Path) -> None:
        (name,) = files(tmp_path, 30)
        everything = list(fb.TFRecordDataset(name))
        data = bytearray(Path(name).read_bytes())
        data[-5] ^= 1
        Path(name).write_bytes(data)

        def read(most: int | None) -> list[bytes]:
            return list(fb.TFRecordDataset(name, index=True, on_error="skip", max_errors=most))

        for most in (0, 100, 0, None, 0, 1):
            if most == 0:
                with pytest.raises(fb.FileError, match="this is fault 1, and max_errors is 0"):
                    read(most)
            else:
                assert read(most) == everything[:-1]

    @pytest.mark.parametrize("replaced", [False, True])
    def test_of_a_file_that_changes(self, tmp_path: Path, replaced: bool) -> None:
        """How many rows there are has been told, so that others cannot come in their place."""
        (name,) = files(tmp_path, 10)
        first, second = (fb.TFRecordDataset(name, index=True) for _ in range(2))
        assert len(first) == len(second) == 10
        assert len(list(first)) == 10
        if replaced:
            os.replace(write(tmp_path / "new", [b"x"] * 20), name)
        else:
            write(Path(name), [b"x"] * 20)
        for dataset in (first, second, second.shuffle(seed=1), second.skip(2).shard(2, 1)):
            with pytest.raises(fb.FileError, match=r"0\.tfrecord: has changed since this dataset looked at it"):
                list(dataset)
        assert list(fb.TFRecordDataset(name, index=True)) == [b"x"] * 20

    def test_a_folder_that_may_not_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (name,) = files(tmp_path, 30)

        def refuse(*args: Any) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "replace", refuse)
        assert len(fb.TFRecordDataset(name, index=True)) == 30
        assert [path.name for path in tmp_path.iterdir()] == ["0.tfrecord"]

    def test_large_records_are_not_read_for_it(self, tmp_path: Path) -> None:
        records = [os.urandom(3_000_000), b"", os.urandom(2_000_000)]
        name = write(tmp_path / "large", records)
        dataset = fb.TFRecordDataset(name, index=True)
        assert len(dataset) == 3
        assert list(dataset.skip(2)) == records[2:]

    def test_not_for_compressed_files(self, tmp_path: Path) -> None:
        with pytest.raises(fb.PlanError, match="compressed files can only be read from the start on"):
            fb.TFRecordDataset("x", "GZIP", index=True)


class TestWriting:
    def test_shards_and_order(self, tmp_path: Path) -> None:
        dataset = fb.Dataset.from_tensor_slices(RECORDS)
        dataset.write_tfrecord(tmp_path / "x", shards=3)
        names = sorted(map(str, tmp_path.iterdir()))
        assert [os.path.basename(name) for name in names] == [f"x-0000{i}-of-00003" for i in range(3)]
        assert list(fb.TFRecordDataset(names, num_parallel_reads=3)) == RECORDS
        assert list(tf.data.TFRecordDataset(names, num_parallel_reads=3).as_numpy_iterator()) == RECORDS

    def test_patterns(self, tmp_path: Path) -> None:
        texts = fb.Dataset.from_tensor_slices(["a", "ü"])
        texts.write_tfrecord(tmp_path / "{shard}.gz", shards=2, compression_type="GZIP")
        assert list(fb.TFRecordDataset(tmp_path / "1.gz", "GZIP")) == ["ü".encode()]
        texts.write_tfrecord(tmp_path / "one")
        assert list(fb.TFRecordDataset(tmp_path / "one")) == [b"a", "ü".encode()]
        with pytest.raises(fb.PlanError, match="all would have one name"):
            texts.write_tfrecord(tmp_path / "{shards}", shards=2)
        with pytest.raises(fb.PlanError, match=r"only \{shard\} and \{shards\}"):
            texts.write_tfrecord(tmp_path / "{other}")

    def test_dicts_are_written_as_examples(self, tmp_path: Path) -> None:
        rows = [{"x": np.int64(i), "v": np.arange(i, dtype=np.float32), "s": f"row {i}"} for i in range(5)]
        fb.Dataset.range(5).map(lambda i: rows[i]).write_tfrecord(tmp_path / "x")
        for record, row in zip(tf.data.TFRecordDataset(str(tmp_path / "x")), rows):
            found = tf.train.Example.FromString(record.numpy()).features.feature
            assert list(found["x"].int64_list.value) == [row["x"]]
            assert list(found["v"].float_list.value) == row["v"].tolist()
            assert list(found["s"].bytes_list.value) == [row["s"].encode()]

    def test_an_error_leaves_nothing_behind(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"old")
        with pytest.raises(fb.FunctionError):
            fb.Dataset.range(10).map(lambda i: b"x" * (1 // (7 - i))).write_tfrecord(tmp_path / "x")
        with pytest.raises(fb.DataError, match="element 0: a TFRecord file holds bytes"):
            fb.Dataset.range(10).write_tfrecord(tmp_path / "x")
        assert [path.name for path in tmp_path.iterdir()] == ["x"]
        assert (tmp_path / "x").read_bytes() == b"old"

    def test_flush_makes_it_readable(self, tmp_path: Path) -> None:
        for compression in (None, "ZLIB"):
            writer = fb.io.TFRecordWriter(tmp_path / "x", compression)
            writer.write("text")
            writer.write(bytearray(b"bytes"))
            writer.flush()
            raw = (tmp_path / "x").read_bytes()
            assert b"bytes" in (raw if compression is None else zlib.decompressobj().decompress(raw))
            writer.close()
            writer.close()
            with pytest.raises(fb.PlanError, match="closed"):
                writer.write(b"more")

    def test_options(self) -> None:
        for wrong in ("SNAPPY", 3):
            with pytest.raises(fb.PlanError, match="must be None, '', 'GZIP' or 'ZLIB'"):
                fb.io.TFRecordOptions(wrong)  # type: ignore[arg-type]
        with pytest.raises(fb.PlanError, match="compression_level=11"):
            fb.io.TFRecordOptions("GZIP", compression_level=11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"compression_type": "LZ4"}, "compression_type='LZ4'"),
        ({"buffer_size": -1}, "buffer_size must be at least 0"),
        ({"num_parallel_reads": 0}, "num_parallel_reads must be at least 1"),
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'skip'"),
        ({"max_errors": -1}, "max_errors must be at least 0"),
        ({"index": "yes"}, "index must be True or False"),
        ({"filenames": 3}, "give a path, a list of paths, or a dataset of paths"),
        ({"filenames": [3]}, "3 is not a path"),
    ],
)
def test_arguments_are_checked_when_built(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(fb.PlanError, match=message):
        fb.TFRecordDataset(**({"filenames": "x"} | arguments))


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=1000), repeat=st.integers(1, 40))
def test_checksums_by_instruction_and_by_table(data: bytes, repeat: int) -> None:
    values = np.frombuffer(data * repeat, np.uint8)
    assert crc32c(values) == crc32c(values, portable=True)
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283


def test_a_pattern_is_told_from_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(fb.FileError, match=r"there is no such file; Dataset\.list_files\(\) finds"):
        list(fb.TFRecordDataset(tmp_path / "train-*.tfrecord"))
    with pytest.raises(fb.FileError, match=r"there is no such file$"):
        list(fb.TFRecordDataset(tmp_path / "train-0.tfrecord"))


def test_what_is_skipped_does_not_depend_on_the_budget(tmp_path: Path) -> None:
    """A damaged length may point further than the budget allows to look."""
    path = str(tmp_path / "data")
    rows = [b"%06d" % i + b"x" * 20 for i in range(4000)]
    with fb.io.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(row)
    data = bytearray(Path(path).read_bytes())
    data[700 * 42 + 2] ^= 64
    Path(path).write_bytes(data)
    dataset = fb.TFRecordDataset(path, on_error="skip")
    for memory in ("100KB", "64MiB"):
        assert list(dataset.with_options(fb.Options(memory=memory))) == rows[:700] + rows[701:], memory


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(("size", "memory"), [(3 << 20, "4MiB"), (100_000, "128KiB")])
def test_records_that_the_budget_holds_one_of_all_come(tmp_path: Path, size: int, memory: str, on_error: str) -> None:
    """However large a block is expected to be: that alone is no reason to refuse it."""
    path = tmp_path / "large.tfrecord"
    sizes = [size, 60, 60, size, size, 20_000, 60, size]
    with fb.io.TFRecordWriter(path) as writer:
        for each in sizes:
            writer.write(bytes(each))
    dataset = fb.TFRecordDataset(path, on_error=on_error).with_options(fb.Options(memory=memory))
    assert [len(record) for record in dataset] == sizes


@pytest.mark.parametrize("calls", [None, fb.AUTOTUNE])
def test_large_records_wait_for_their_turn_in_files(tmp_path: Path, calls: int | None) -> None:
    """Of large records each slot of an interleave holds one, and no buffer beside it."""
    names = []
    for number in range(8):
        names.append(str(tmp_path / f"{number}.tfrecord"))
        with fb.io.TFRecordWriter(names[-1]) as writer:
            for _ in range(6):
                writer.write(bytes([number]) * (2 << 20))
    dataset = fb.Dataset.from_tensor_slices(names).interleave(fb.TFRecordDataset, 8, num_parallel_calls=calls)
    with iter(dataset.with_options(fb.Options(memory="16MiB"))) as it:
        assert [record[0] for record in it] == [*range(8)] * 6
        assert it.ledger.peak < 32 << 20
