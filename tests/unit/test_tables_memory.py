"""Tables in real memory: what Arrow's decoders and its allocator take stays within the budget and the allowance."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset
from unit.support import assert_same, python

ALLOWANCE = 48

# Whatever a library loads or sets up the first time is there before anything is measured.
GROWN = """
import sys
import forebay as fb
from forebay import Dataset

folder, budget = sys.argv[1], int(sys.argv[2])
list(Dataset.from_parquet(f"{folder}/tiny.parquet", filters=[("id", ">", 3)]).shuffle(seed=1).batch(2))

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) >> 10

def read(name, **how):
    return Dataset.from_parquet(f"{folder}/{name}.parquet", **how)

dataset = eval(sys.argv[3]).with_options(fb.Options(memory=budget << 20))
open("/proc/self/clear_refs", "w").write("5")  # The highest mark begins anew.
before, count = status("VmRSS"), 0
with iter(dataset) as it:
    for element in it:
        count += 1
        del element
print(count, status("VmHWM") - before)
"""

PIPELINES = {
    "in order": "read('long').batch(32)",
    "filtered": "read('long', filters=[('id', '>', 100)]).batch(32)",
    "filtered, external shuffle": "read('long', filters=[('id', '>', 100)]).shuffle(seed=1).batch(32)",
    "many columns": "read('wide').batch(32)",
    "many columns, by number": "read('wide').shuffle(seed=1).batch(32)",
    "files in turns": (
        "Dataset.range(8).interleave(lambda i: read('long', index=False).take(10_000), cycle_length=8, "
        "num_parallel_calls=4).batch(32)"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)

    def long(rows: int) -> Any:
        values = pa.array(rng.random(rows * 64).astype(np.float32))
        texts = [f"text {i} " * 10 for i in range(rows)]
        return pa.table({"id": np.arange(rows), "v": pa.FixedSizeListArray.from_arrays(values, 64), "s": texts})

    pq.write_table(long(10), made / "tiny.parquet")
    pq.write_table(long(100_000), made / "long.parquet", row_group_size=50_000)
    pq.write_table(pa.table({f"c{i}": rng.random(100_000) for i in range(60)}), made / "wide.parquet")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("budget", [8, 32])
@pytest.mark.parametrize("name", PIPELINES)
def test_the_highest_mark_is_within_the_budget(folder: Path, name: str, budget: int) -> None:
    count, grown = map(int, python(GROWN, 300, str(folder), str(budget), PIPELINES[name]).split())
    assert count > 2000
    assert grown <= budget + ALLOWANCE


def _table(rows: int) -> Any:
    """Columns of every kind that is laid out in a way of its own."""
    number = np.arange(rows)
    return pa.table(
        {
            "number": number,
            "text": [f"row {i}" * (i % 5) for i in range(rows)],
            "none": pa.array([None if i % 3 else i for i in range(rows)], pa.int32()),
            "list": [list(range(i % 7)) for i in range(rows)],
            "word": pa.array([f"word {i % 9}" for i in range(rows)]).dictionary_encode(),
            "struct": [{"a": i, "b": f"{i}"} for i in range(rows)],
            "tensor": pa.FixedSizeListArray.from_arrays(np.arange(rows * 3.0), 3),
            "flag": number % 2 == 0,
        }
    )


@pytest.mark.parametrize("how", ["in order", "by number", "filtered"])
def test_columns_one_after_another_give_the_same_rows(tmp_path: Path, how: str) -> None:
    pq.write_table(_table(3000), tmp_path / "a.parquet", row_group_size=1100)
    filters = [("number", ">", 50)] if how == "filtered" else None
    dataset = Dataset.from_parquet(tmp_path / "a.parquet", filters=filters)
    if how == "by number":
        dataset = dataset.shuffle(seed=1)
    tight = dataset.with_options(fb.Options(memory="192KiB"))
    with iter(tight) as iterator:
        small = list(iterator)
    whole = list(dataset)
    assert len(small) == len(whole)
    for one, other in zip(small, whole):
        assert_same(one, other)


def test_columns_one_after_another_resume_anywhere(tmp_path: Path) -> None:
    pq.write_table(_table(300), tmp_path / "a.parquet", row_group_size=110)
    dataset = Dataset.from_parquet(tmp_path / "a.parquet", filters=[("number", ">", 5)])
    tight = dataset.with_options(fb.Options(memory="64KiB"))
    numbers = [int(row["number"]) for row in tight]
    assert numbers == list(range(6, 300))
    with iter(tight) as iterator:
        for done in range(1, 294, 7):
            while int(next(iterator)["number"]) < numbers[done - 1]:
                pass
            # Also under the usual budget: a place means the same there.
            for other in (tight, dataset):
                with iter(other) as again:
                    again.load_state_dict(iterator.state_dict())
                    assert int(next(again)["number"]) == numbers[done]


def test_rows_before_a_fault_come_out_one_column_after_another(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({f"c{i}": np.random.default_rng(i).random(4000) for i in range(8)})
    pq.write_table(table, path, row_group_size=2000, compression="none")
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(1).column(5)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    tight = Dataset.from_parquet(path, index=False).with_options(fb.Options(memory="128KiB"))
    found: list[Any] = []
    with pytest.raises(fb.FileError, match="row group 1"):
        found.extend(tight)
    assert len(found) == 2000


def test_what_goes_through_a_file_counts_as_spilled(tmp_path: Path) -> None:
    pq.write_table(_table(3000), tmp_path / "a.parquet")
    dataset = Dataset.from_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(fb.SpillError, match="spill_limit"):
        list(dataset.with_options(fb.Options(memory="64KiB", spill_limit="16KiB")))
    assert len(list(dataset.with_options(fb.Options(spill_limit="16KiB")))) == 3000
