"""Text lines, CSV, fixed-length records, SQL and list_files against tf.data's own: the same rows, the same refusals."""

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import forebay as fb
from differential.sides import tensorflow
from forebay.storage.marks import mark_of
from unit.support import assert_same, few, until_error

FIELDS = ["", "1", "-7", " 8 ", "x", "NA", '"q"', '"a,b"', '"a\nb"', '"a""b"', 'a"b', '"a"b', "2.5", "1e3", "\r", "\n"]
WHOLE = """
    1 -1 +1 01 1.0 1e3 2147483647 2147483648 -2147483648 -2147483649 0x10 --1 1_0 - + -0 9223372036854775807
    9223372036854775808 -9223372036854775808 -9223372036854775809 99999999999999999999999999999999999999999999
    0000000000000000000000000000000000000000005
"""
REAL = """
    1 1.5 +1.5 -1.5 1e5 1E5 1e+5 1e-5 1e .5 5. . -.5 inf INF -inf Infinity +inf nan NaN infi 0x10 0x1p3 0x 1e999
    -1e999 1e-999 1e-45 3.5e38 1f 1_0 0.1 16777217 16777219 1e5x ++1 e5 1.e5 1.e - -0 -0.0 0.30000000000000004
    123456789012345678 9007199254740993 1.7976931348623157e308 2.2250738585072011e-308 4.9e-324 1e22 1e23 8388608.5
    1e10 1e11 1111111111111111111111111111111111111111111 0.33333333333333333333333333333333333333333333333333333333
    0.1e1000000000000 1e-1000000000000 0.000000000000000000000000000000000000000000000000001e60
"""
SPACED = [" 1", "1 ", "\t1\t", "\v1\f", "- 1", "1 2", " ", "1\0"]


def theirs(dataset: Any) -> list[Any]:
    """Elements, with None for each that is refused."""
    found: list[Any] = []
    it = iter(dataset)
    while len(found) < 500:
        try:
            element = next(it)
        except StopIteration:
            break
        except tensorflow().errors.OpError:
            found.append(None)
            continue
        found.append(tensorflow().nest.map_structure(lambda leaf: leaf.numpy(), element))
    return found


def same_as_theirs(path: str, columns: list[Any], tf_columns: list[Any], **how: Any) -> list[Any]:
    """Rows in order up to the first that is refused, and all good ones with on_error="skip"."""
    expected = theirs(tensorflow().data.experimental.CsvDataset(path, tf_columns, **how))
    good = [element for element in expected if element is not None]
    found, error = until_error(fb.CsvDataset(path, columns, **how))
    assert_same(found, expected[: expected.index(None)] if None in expected else good)
    assert isinstance(error, fb.FileError) if None in expected else error is None
    assert_same(list(fb.CsvDataset(path, columns, on_error="skip", max_errors=500, **how)), good)
    assert_same(list(fb.CsvDataset(path, columns, on_error="skip", max_errors=500, buffer_size=1, **how)), good)
    return expected


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_numbers(dtype: str, tmp_path: Path) -> None:
    fields = SPACED + (WHOLE if dtype[0] == "i" else REAL).split()
    rng = np.random.default_rng(5)
    if dtype[0] == "f":
        fields = fields + [repr(float(x)) for x in rng.standard_normal(50) * 10.0 ** rng.integers(-30, 30, 50)]
        fields = fields + [f"{x:.9f}" for x in rng.random(50)]
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(fields), newline="")
    expected = same_as_theirs(str(path), [np.dtype(dtype)], [getattr(tensorflow(), dtype)])
    assert len(expected) == len(fields)


def test_records(tmp_path: Path) -> None:
    tf = tensorflow()
    path = str(tmp_path / "a.csv")
    for text, how in (
        (b'a,b\n"c","d"\r\ne,\rf,g', {}),
        (b"\n\na,b\n", {}),
        (b'a,"b\nc""d"\ne,f', {}),
        (b'a,b"c\ne,f\n', {}),
        (b'a,"bc"', {}),
        (b"a,b,c\ne,f\ng\nh,i", {}),
        (b"a,\n,\nb,", {}),
        (b"a;b\n", {"field_delim": ";"}),
        (b'"a","b\n', {"use_quote_delim": False}),
        (b'"NA",x\n"",NA\n', {"na_value": "NA"}),
        (b'"h\n",1\na,b\n', {"header": True}),
        (b"", {"header": True}),
        (b"", {}),
        (b"1,2,3\n4\n5,6\n", {"select_cols": [0, 1]}),
        (b"1,2,3\n4\n5,6,7,8\n", {"select_cols": [1, 2]}),
        (b"1,2,3\n4\n5,6,7\n", {"exclude_cols": [1]}),
    ):
        Path(path).write_bytes(text)
        same_as_theirs(path, ["x", "y"], ["x", "y"], **how)
    Path(path).write_bytes(b"1,,x\n,2,y\n3,4,\n")
    same_as_theirs(path, [[5], np.int64, "z"], [[5], tf.int64, "z"])


@few
@given(
    rows=st.lists(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r", ""]),
)
def test_any_csv(tmp_path_factory: Any, rows: list[list[str]], end: str) -> None:
    tf = tensorflow()
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(((end or "\n").join(",".join(row) for row in rows) + end).encode())
    same_as_theirs(str(path), ["d", [3], [0.5]], ["d", [3], [0.5]], na_value="NA")
    same_as_theirs(str(path), [np.float64], [tf.float64], select_cols=[1])


@few
@given(
    lines=st.lists(st.binary(max_size=40).filter(lambda line: not set(line) & set(b"\r\n")), max_size=20),
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    buffer=st.sampled_from([None, 1, 7]),
)
def test_any_lines(tmp_path_factory: Any, lines: list[bytes], end: bytes, last: bool, buffer: int | None) -> None:
    folder = tmp_path_factory.mktemp("lines")
    plain, packed = str(folder / "a"), str(folder / "a.gz")
    data = end.join(lines) + (end if last else b"")
    assume(mark_of(data) is None)  # Files that look compressed are refused.
    Path(plain).write_bytes(data)
    Path(packed).write_bytes(gzip.compress(data))
    expected = theirs(tensorflow().data.TextLineDataset(plain))
    assert list(fb.TextLineDataset(plain, buffer_size=buffer)) == expected
    assert list(fb.TextLineDataset(packed, "GZIP", buffer_size=buffer)) == expected
    assert list(fb.TextLineDataset(plain, index=True).skip(1)) == expected[1:]


def test_lone_carriage_returns_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    Path(path).write_bytes(b"a\rb\nc\r\r\n")
    assert theirs(tensorflow().data.TextLineDataset(path)) == [b"ab", b"c"]
    assert list(fb.TextLineDataset(path)) == [b"a\rb", b"c\r"]


@pytest.mark.parametrize("reads", [None, 2, 5])
def test_files_in_turns(reads: int | None, tmp_path: Path) -> None:
    tf = tensorflow()
    names = []
    for i, count in enumerate([4, 0, 9, 1, 6]):
        names.append(str(tmp_path / f"{i}.txt"))
        Path(names[-1]).write_text("".join(f"{i}-{k}\n" for k in range(count)))
    expected = theirs(tf.data.TextLineDataset(names, num_parallel_reads=reads))
    assert list(fb.TextLineDataset(names, num_parallel_reads=reads)) == expected
    expected = theirs(tf.data.FixedLengthRecordDataset(names, 4, num_parallel_reads=reads))
    assert list(fb.FixedLengthRecordDataset(names, 4, num_parallel_reads=reads)) == expected


def test_fixed_length_records(tmp_path: Path) -> None:
    tf = tensorflow()
    plain, packed = str(tmp_path / "a"), str(tmp_path / "a.gz")
    for data, ends in (
        (b"HHaaabbbF", (2, 1)),
        (b"", (0, 0)),
        (b"HHF", (2, 1)),
        (b"aaabbbccc", (0, 3)),
        (b"aaabb", (0, 0)),
        (b"H", (2, 0)),
    ):
        Path(plain).write_bytes(data)
        Path(packed).write_bytes(gzip.compress(data))
        how = {"header_bytes": ends[0], "footer_bytes": ends[1]}
        for path, compression in ((plain, None), (packed, "GZIP")):
            expected = theirs(tf.data.FixedLengthRecordDataset(path, 3, compression_type=compression, **how))
            found: list[Any]
            try:
                found, error = until_error(fb.FixedLengthRecordDataset(path, 3, compression_type=compression, **how))
            except fb.FileError as refused:
                found, error = [], refused
            assert found == [element for element in expected if element is not None]
            assert (error is not None) == (None in expected)


@pytest.mark.parametrize("record_bytes", [3, 4])
def test_files_too_small_for_their_ends_are_refused(tmp_path: Path, record_bytes: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    how = {"record_bytes": record_bytes, "footer_bytes": 1}
    # TensorFlow takes the size modulo 2**64, and finds nothing wrong if that happens to be a number of records.
    expected = [] if (2**64 - 1) % record_bytes == 0 else [None]
    assert theirs(tensorflow().data.FixedLengthRecordDataset(str(path), **how))[:1] == expected
    with pytest.raises(fb.FileError, match="it has 0 bytes, too few for a footer of 1"):
        list(fb.FixedLengthRecordDataset(path, **how))


def test_sql(tmp_path: Path) -> None:
    tf = tensorflow()
    path = str(tmp_path / "a.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (i INTEGER, t TEXT, r REAL, b BLOB)")
    rows = [(k - 2**40 * (k % 2), f"é{k}", k / 3, bytes([k, 0])) for k in range(20)]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    query = "SELECT i, t, r, b, i AS s, i % 2 AS f FROM t ORDER BY i"
    types = (tf.int64, tf.string, tf.float64, tf.string, tf.string, tf.bool)
    expected = theirs(tf.data.experimental.SqlDataset("sqlite", path, query, types))
    assert_same(list(fb.SqlDataset("sqlite", path, query, types)), expected)


def test_list_files(tmp_path: Path) -> None:
    tf = tensorflow()
    for name in ("b.txt", "a.txt", ".hidden.txt", "c.bin", "sub"):
        (tmp_path / name).mkdir() if name == "sub" else (tmp_path / name).touch()
    for pattern in ("*", "*.txt", "?.*", "[ab].txt", "a.txt", "sub"):
        given_ = str(tmp_path / pattern)
        expected = [each.decode() for each in theirs(tf.data.Dataset.list_files(given_, shuffle=False))]
        assert list(fb.Dataset.list_files(given_, shuffle=False)) == expected
        assert sorted(fb.Dataset.list_files(given_, seed=1)) == expected
    both = [str(tmp_path / "a*"), str(tmp_path / "*.txt")]
    expected = [each.decode() for each in theirs(tf.data.Dataset.list_files(both, shuffle=False))]
    assert list(fb.Dataset.list_files(both, shuffle=False)) == expected
    with pytest.raises(fb.FileError, match="no file that matches"):
        fb.Dataset.list_files(str(tmp_path / "none*"))


def test_from_csv_is_make_csv_dataset_without_the_shuffle(tmp_path: Path) -> None:
    tf = tensorflow()
    path = str(tmp_path / "a.csv")
    rows = ["id,big,size,name,none", *(f"{k},{k * 2**33},{k / 4},n{k},NA" for k in range(5))]
    Path(path).write_text("\n".join(rows))
    how: dict[str, Any] = {"label_name": "id", "na_value": "NA"}
    dataset = tf.data.experimental.make_csv_dataset(path, 1, num_epochs=1, shuffle=False, **how)
    expected = [({name: x[0] for name, x in row.items()}, label[0]) for row, label in theirs(dataset)]
    assert_same(list(fb.Dataset.from_csv(path, **how)), expected)
