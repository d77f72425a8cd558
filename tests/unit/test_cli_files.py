"""``forebay inspect`` and ``forebay convert`` as commands: what they print, and their exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import forebay as fb
from forebay.cli import app
from unit.format_files import FILES, ROWS, write

COMMAND = [sys.executable, "-c", "from forebay.cli import app; app()"]


def run(*arguments: Any) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("name", FILES)
def test_inspect_tells_of_every_format(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    code, output = run("inspect", path, "--check", "--head", 1)
    assert code == 0, output
    assert re.search(rf"rows +{ROWS}\n", re.sub(r" +\n", "\n", output))
    assert "everything was read, nothing is damaged" in output
    assert "ds = fb." in output


def test_the_json_form_is_pinned(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,\n2,b\n")
    code, output = run("inspect", path, "--json")
    assert code == 0
    assert json.loads(output) == {
        "version": 1,
        "sound": True,
        "reports": [
            {
                "path": str(path),
                "files": 1,
                "bytes": 11,
                "format": "csv",
                "title": "CSV",
                "told_by": "content",
                "compression": None,
                "rows": {"count": 2, "exact": True, "by": "all were read"},
                "columns": [
                    {"name": "x", "dtype": "int32", "shape": [], "present": 1.0, "values": None},
                    {"name": "y", "dtype": "bytes", "shape": [], "present": 1.0, "values": None},
                ],
                "elements": [{"x": "1", "y": "b''"}, {"x": "2", "y": "b'b'"}],
                "row_bytes": {"mean": 4.5, "least": 4, "most": 5, "looked_at": 2},
                "by_number": "no, where a record begins depends on the quotes before it; save() once, then load()",
                "code": f"ds = fb.Dataset.from_csv({str(path)!r})",
                "details": {"delimiter": "','", "header": "yes"},
                "advice": "",
                "faults": 0,
                "listed_faults": [],
                "checked": False,
            }
        ],
        "folders": [],
        "faults": [],
    }


def test_the_json_form_of_folders_and_faults(tmp_path: Path) -> None:
    path = write(tmp_path, "raw.tfrecord")
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    code, output = run("inspect", tmp_path, tmp_path / "missing", "--check", "--json")
    found = json.loads(output)
    assert (code, found["sound"]) == (1, False)
    part = {"format": "tfrecord", "title": "TFRecord", "compression": None, "files": 1, "bytes": len(data)}
    assert found["folders"] == [{"path": str(tmp_path), "files": 1, "bytes": len(data), "parts": [part]}]
    assert found["reports"][0]["listed_faults"] == [
        {"file": str(path), "offset": 0, "reason": "a record's bytes do not match their checksum", "line": None}
    ]
    missing = {"file": str(tmp_path / "missing"), "offset": None, "reason": "there is no such file", "line": None}
    assert found["faults"] == [missing]


def test_a_folder_is_summed_up(tmp_path: Path) -> None:
    for name in ("a.csv", "a.npy", "a.txt"):
        write(tmp_path, name)
    code, output = run("inspect", tmp_path)
    assert code == 0
    assert "3 files" in output
    assert re.search(r"NumPy array +1 +", output)


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m[bold]\x07.jsonl"
    path.write_text('{"\\u001b[2J[red]": "\\u0007"}\n')
    code, output = run("inspect", path)
    assert code == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", output)
    assert "[bold]" in output
    assert "[2J[red]" in output


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    Path(os.fsdecode(path)).write_text("one\n")
    assert run("inspect", tmp_path)[0] == 0
    assert run("inspect", tmp_path, "--json")[0] == 0


@pytest.mark.parametrize("arguments", [
    ["inspect"],
    ["inspect", "x", "--head", "-1"],
    ["inspect", "x", "--memory", "lots"],
    ["inspect", "x", "--nothing"],
    ["convert", "x"],
    ["convert", "x", "y.parquet", "--on-error", "perhaps"],
    ["convert", "x", "y.csv"],
    ["convert", "x", "y.parquet", "--shards", "0"],
    ["convert", "x", "y.parquet", "--compression", "zip"],
])  # fmt: skip
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "Traceback" not in output


def test_convert_says_what_was_written(tmp_path: Path) -> None:
    source, target = write(tmp_path, "a.tfrecord"), tmp_path / "out.parquet"
    code, output = run("convert", source, target, "--columns", "x, name", "--memory", "64MiB")
    assert code == 0
    assert re.search(rf"out\.parquet\n  {ROWS} rows, [\d.,]+ (bytes|KiB), in \d+\.\d s\n", output)
    assert list(next(iter(fb.Dataset.from_parquet(target)))) == ["x", "name"]
    code, output = run("convert", source, target)
    assert code == 1
    assert "there already; --overwrite replaces" in output
    assert run("convert", source, target, "--overwrite")[0] == 0


def test_convert_several_to_shards(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    for path in (one, two):
        path.write_text("x,y\n1,2\n3,4\n")
    code, output = run("convert", one, two, tmp_path / "out.tfrecord", "--shards", 2, "--compression", "gzip")
    assert code == 0, output
    assert "2 files" in output
    assert "4 rows" in output
    assert len(list(fb.TFRecordDataset(tmp_path / "out-00001.tfrecord", "GZIP"))) == 2


def test_convert_passes_over_so_many_faults(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"x": 1}\nnothing\n{"x": 2}\nnor this\n')
    target = tmp_path / "out.arrow"
    code, output = run("convert", source, target)
    assert (code, target.exists()) == (1, False)
    assert "line 2 (byte 9): the line is not a JSON object" in output
    assert run("convert", source, target, "--on-error", "skip", "--max-errors", 1)[0] == 1
    # It would be taken for a number of rows.
    assert run("convert", source, target, "--on-error", "skip", "--limit", 2)[0] == 2
    code, output = run("convert", source, target, "--on-error", "skip", "--max-errors", 2)
    assert code == 0
    assert "2 rows" in output
    assert "2 faults passed over" in output


@pytest.mark.parametrize(("arguments", "told"), [
    ([], "SRC and DST are missing, as in: forebay convert train.csv train.parquet"),
    (["in/a.csv"], "DST is missing, as in: forebay convert in/a.csv a.parquet"),
    (["photos/"], "DST is missing, as in: forebay convert photos/ photos.parquet"),
    (["a.parquet"], "DST is missing, as in: forebay convert a.parquet a.tfrecord"),
    (["*"], "DST is missing, as in: forebay convert * train.parquet"),
])  # fmt: skip
def test_a_target_that_is_missing(arguments: list[str], told: str) -> None:
    code, output = run("convert", *arguments)
    assert (code, output) == (2, f"error: {told}\n")


@pytest.mark.parametrize(("name", "content", "target", "told"), [
    ("a.jsonl", '{"x": 1}\nnothing\n', "out.arrow", "{source}, line 2 (byte 9): the line is not"),
    ("b.jsonl", '{"x": 1}\n{"x": "one"}\n', "out.arrow", "{source}, line 2 (byte 9): x is 'one', not int64; "),
    ("a.csv", "x,y\n1,2\n3\n", "out.tfrecord", "{source}, line 3 (byte 8): "),
    ("d.jsonl", '{"x": ["a", "b"]}\n', "out.tar", "{source} to {target}: to_webdataset(), element 0: x"),
    ("e.jsonl", '{"x": 1e300}\n', "out.tfrecord", "{source} to {target}: write_tfrecord, element 0: "),
])  # fmt: skip
def test_errors_of_convert_name_files(name: str, content: str, target: str, told: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text(content)
    done = subprocess.run(
        [*COMMAND, "convert", str(source), str(tmp_path / target)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: " + told.format(source=source, target=tmp_path / target))
    assert target in done.stderr
    assert done.stderr.count("\n") == 1
    assert not re.search(r"\.py|typer|click| at ", done.stderr)


def test_as_processes_of_their_own(tmp_path: Path) -> None:
    source = write(tmp_path, "a.tfrecord")
    (tmp_path / "cut.tfrecord").write_bytes(source.read_bytes()[:-5])
    made = subprocess.run(
        [*COMMAND, "convert", str(source), str(tmp_path / "out.parquet")], capture_output=True, text=True
    )
    assert (made.returncode, made.stderr) == (0, "")
    seen = subprocess.run(
        [*COMMAND, "inspect", "out.parquet", "cut.tfrecord", "--check"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (seen.returncode, seen.stderr) == (1, "")
    assert "ds = fb.Dataset.from_parquet('out.parquet')" in seen.stdout
    assert "the file ends in the middle of a record" in seen.stdout
    assert set(re.findall(r"[\x00-\x1f\x7f]", seen.stdout)) == {"\n"}
