"""Arrow and Parquet files whose values are in dictionaries or runs, or that have none at all."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay.storage.table_cuts import cut
from unit.support import python

MB = 1 << 20
WORDS = ["", "a" * 3000, "b" * 10, "c" * 500]
PICKED = [WORDS[i * 7 % 4] for i in range(400)]

GROWN = """
import sys
import pyarrow.compute
import forebay as fb

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

read = getattr(fb.Dataset, "from_" + sys.argv[1])
dataset = read(sys.argv[2]).with_options(fb.Options(memory=64 << 20))
if sys.argv[3] == "shuffled":
    dataset = dataset.shuffle(200, seed=1)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
print(sum(1 for _ in dataset), status("VmHWM") - before)
"""


def write(path: Path, table: pa.Table, form: str) -> str:
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with (pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
            writer.write_table(table)
    return str(path)


@pytest.mark.parametrize("order", ["in order", "shuffled"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_a_long_value_of_many_rows_stays_within_the_budget(tmp_path: Path, form: str, order: str) -> None:
    """600 MB of rows in a file of a kilobyte."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 60_000, pa.int32()), pa.array(["x" * 10_000]))
    path = write(tmp_path / "x", pa.table({"s": column}), form)
    rows, grown = map(int, python(GROWN, 300, form.replace("stream", "arrow"), path, order).split())
    assert rows == 60_000
    assert grown <= 112 * MB


def columns() -> dict[str, Any]:
    words = pa.array(PICKED).dictionary_encode()
    ends = pa.array(range(4, 404, 4), pa.int32())
    offsets = pa.array(range(0, 401, 4), pa.int32())
    return {
        "dictionary": words,
        "nulls": pa.array([None if i % 3 else word for i, word in enumerate(PICKED)]).dictionary_encode(),
        "struct": pa.StructArray.from_arrays([words, pa.array(range(400))], ["d", "i"]),
        "runs": pa.RunEndEncodedArray.from_arrays(ends, pa.array(PICKED[:100])),
        "list": pa.ListArray.from_arrays(offsets, words),
        "fixed list": pa.FixedSizeListArray.from_arrays(words, 4),
        "plain": pa.array(PICKED),
    }


@pytest.mark.parametrize("name", columns())
@pytest.mark.parametrize("first", [0, 13])
def test_batches_are_cut_by_what_they_decode_to(name: str, first: int) -> None:
    column = columns()[name]
    batch = pa.record_batch([column, pa.array(range(len(column)))], ["x", "i"]).slice(first)
    pieces = list(cut(batch, 7, 10_000))
    assert [row for piece in pieces for row in piece.to_pylist()] == batch.to_pylist()[7:]
    assert len(pieces) > 5
    if name != "plain":
        assert all(len(str(piece.to_pylist())) < 30_000 or piece.num_rows == 1 for piece in pieces)


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_what_is_under_a_null_leads_nowhere(tmp_path: Path, form: str) -> None:
    kind = pa.struct([("d", pa.dictionary(pa.int8(), pa.string()))])
    path = write(tmp_path / "x", pa.table({"s": pa.array([None], kind)}), form)
    assert list(fb.Dataset.from_arrow(path)) == [{"s": {"d": None}}]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_no_elements_have_columns_if_it_is_known_which(tmp_path: Path, form: str) -> None:
    path = str(tmp_path / "x")
    made = fb.Dataset.range(5).map(lambda x: {"x": x, "s": ["a"]})
    for dataset, names in (
        (made.filter(lambda element: False), {"x", "s"}),
        (fb.Dataset.range(0), {"value"}),
        (made.take(0), {"x", "s"}),
        (fb.Dataset.from_generator(lambda: iter(())), set()),
    ):
        getattr(dataset, f"to_{form}")(path)
        schema = pq.read_schema(path) if form == "parquet" else pa.ipc.open_file(path).schema
        assert set(schema.names) == names
        assert list(getattr(fb.Dataset, f"from_{form}")(path)) == []


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_files_without_columns(tmp_path: Path, form: str) -> None:
    path = write(tmp_path / "x", pa.table({}), form)
    assert list(fb.Dataset.from_parquet(path) if form == "parquet" else fb.Dataset.from_arrow(path)) == []
