"""Errors of functions show the element that they were called with, and where it was read."""

import logging
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, FunctionError
from forebay.run.shown import shown
from unit.support import SETTINGS, until_error

PATHS = [f"photos/{number:03}.jpg" for number in range(20)]


def load(path: str, *rest: Any) -> Any:
    if "017" in path:
        raise fb.DataError("neither a JPEG nor a PNG")
    return path


@dataclass
class Sample:
    path: str
    image: Any


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("not me")

    __str__ = __repr__
    __len__ = None


def fails(dataset: Dataset[Any], options: fb.Options | None = None) -> FunctionError:
    _, error = until_error(dataset if options is None else dataset.with_options(options))
    assert isinstance(error, FunctionError)
    return error


@pytest.mark.parametrize("options", SETTINGS, ids=lambda o: f"{o.optimize}-{o.block_bytes}")
@pytest.mark.parametrize("batched", [False, True])
def test_an_error_behind_a_shuffle_names_the_file(options: fb.Options, batched: bool) -> None:
    function = (lambda paths: np.array([load(path) for path in paths], object)) if batched else load
    error = fails(Dataset.from_tensor_slices(PATHS).shuffle(seed=3).map(function, batched=batched), options)
    assert str(error).endswith("raised DataError: neither a JPEG nor a PNG (the element is 'photos/017.jpg')")
    assert error.element == "'photos/017.jpg'"


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_it_comes_from_any_executor(executor: Any) -> None:
    made = Dataset.from_tensor_slices(PATHS).map(load, num_parallel_calls=2, executor=executor)
    assert str(fails(made)).endswith("(the element is 'photos/017.jpg')")
    error = pickle.loads(pickle.dumps(fails(made)))
    assert (error.element, error.origin) == ("'photos/017.jpg'", None)
    assert str(error).endswith("(the element is 'photos/017.jpg')")


@pytest.mark.parametrize("optimize", [True, False])
def test_it_is_the_argument_of_the_function_that_failed(optimize: bool) -> None:
    made = Dataset.from_tensor_slices(PATHS).map(str.upper).map(str.lower).map(load).map(str.upper)
    assert fails(made, fb.Options(optimize=optimize)).element == "'photos/017.jpg'"
    drawn = Dataset.from_tensor_slices(PATHS).map(load, rng=True, seed=1)
    assert fails(drawn, fb.Options(optimize=optimize)).element == "'photos/017.jpg'"


@pytest.mark.parametrize(
    "build",
    [
        lambda paths: paths.filter(lambda path: load(path) != ""),
        lambda paths: paths.take_while(lambda path: load(path) != ""),
        lambda paths: paths.flat_map(lambda path: Dataset.from_tensors(load(path))),
        lambda paths: paths.interleave(lambda path: Dataset.from_tensors(load(path))),
    ],
)
def test_every_step_with_a_function_shows_it(build: Any) -> None:
    assert "(the element is 'photos/017.jpg')" in str(fails(build(Dataset.from_tensor_slices(PATHS).shuffle(seed=1))))


def test_reduce_shows_it() -> None:
    with pytest.raises(FunctionError, match=r"element 17: .* \(the element is 'photos/017.jpg'\)$"):
        Dataset.from_tensor_slices(PATHS).reduce("", lambda _, path: load(path))


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_the_log_of_what_is_skipped_shows_it(executor: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = Dataset.from_tensor_slices(PATHS).map(load, on_error="skip", num_parallel_calls=2, executor=executor)
    with caplog.at_level(logging.WARNING, "forebay"):
        assert len(list(made)) == 19
    assert [record.getMessage().partition("raised ")[2] for record in caplog.records] == [
        "DataError: neither a JPEG nor a PNG (the element is 'photos/017.jpg')"
    ]


def test_the_fault_that_is_one_too_many_shows_it() -> None:
    error = fails(Dataset.from_tensor_slices(PATHS).map(load, on_error="skip", max_errors=0))
    assert str(error).endswith("; this is fault 1, and max_errors is 0 (the element is 'photos/017.jpg')")
    assert isinstance(error.__cause__, fb.DataError)


def test_beside_the_place_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\n".join(PATHS))
    lines = fb.TextLineDataset(str(tmp_path / "list.txt"))
    error = fails(lines.map(lambda line: load(line.decode())))
    assert str(error).endswith(f"(the element is b'photos/017.jpg', from {tmp_path / 'list.txt'}, line 18 (byte 255))")
    assert error.origin == f"{tmp_path / 'list.txt'}, line 18 (byte 255)"


def test_what_the_message_says_is_not_said_again(tmp_path: Path) -> None:
    for missing in ("/no/such/none.jpg", f"{tmp_path}/{'long' * 30}/none.jpg"):
        error = fails(Dataset.from_tensor_slices([missing]).map(lambda path: open(path)))  # noqa: SIM115
        assert str(error).count("none.jpg") == 1
        assert error.element is not None
        assert error.element.endswith("none.jpg'")


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (("a.jpg", np.int64(3)), "('a.jpg', 3)"),
        (("a.jpg",), "('a.jpg',)"),
        ({"path": "a.jpg", "image": np.zeros((2, 3), np.uint8)}, "{'path': 'a.jpg', 'image': uint8[2, 3]}"),
        ({"id": np.float32(0.5), "jpg": b"x" * 5000}, "{'id': 0.5, 'jpg': 5,000 bytes}"),
        (Sample("a.jpg", None), "(path='a.jpg', image=None)"),
        (("a", Rude()), "('a', Rude)"),
        (np.datetime64("2020-01-01"), "2020-01-01"),
        (True, "True"),
        ("two\nlines", r"'two\nlines'"),
        (np.zeros(3), None),
        (b"x" * 5000, None),
        (None, None),
        (Rude(), None),
    ],
)
def test_elements_in_short(element: Any, text: str | None) -> None:
    assert shown(element) == text


def test_what_is_shown_is_bounded() -> None:
    for element in ("x" * 5000, {f"column {i}": i for i in range(100)}, tuple("x" * 70 for _ in range(9)), 10**400):
        assert len(shown(element) or "") <= 120
