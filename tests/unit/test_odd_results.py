"""What functions return that is hard to put into columns: the same on any workers, and told where it happened."""

import enum
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset

WORKERS: list[dict[str, Any]] = [
    {},
    {"num_parallel_calls": 2, "executor": "thread"},
    {"num_parallel_calls": 2, "executor": "process"},
]
on_any_workers = pytest.mark.parametrize("workers", WORKERS, ids=["inline", "threads", "processes"])


def in_turns(x: Any) -> Any:
    i = int(x)
    inner = {"c": i, "d": 1} if i % 3 else {"d": 1, "c": i}
    return {"a": i, "b": (inner,)} if i % 2 else {"b": (inner,), "a": i}


@on_any_workers
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_dict_keys_in_any_order(workers: dict[str, Any], block_bytes: int) -> None:
    dataset = Dataset.range(300).map(in_turns, **workers).with_options(fb.Options(block_bytes=block_bytes))
    found = list(dataset)
    assert found == [in_turns(i) for i in range(300)]
    assert {(*element, *element["b"][0]) for element in found} == {("b", "a", "d", "c")}


def test_columns_of_dicts_in_any_order() -> None:
    def columns(x: Any) -> Any:
        return {"a": x, "b": -x} if x[0] % 20 else {"b": -x, "a": x}

    options = fb.Options(block_bytes=80)
    found = list(Dataset.range(100).map(columns, batched=True).with_options(options))
    assert found == [{"a": i, "b": -i} for i in range(100)]
    assert len({tuple(element) for element in found}) == 1


class Colour(enum.StrEnum):
    RED = "red"


class Raw(bytes):
    pass


@on_any_workers
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
@pytest.mark.parametrize("value", [Colour.RED, Raw(b"raw"), np.str_("text"), np.bytes_(b"by\0tes")])
def test_classes_of_text_come_out_as_text(workers: dict[str, Any], block_bytes: int, value: Any) -> None:
    dataset = Dataset.range(40).map(lambda x: None if x % 7 == 3 else value, **workers)
    found = list(dataset.with_options(fb.Options(block_bytes=block_bytes)))
    kind = bytes if isinstance(value, bytes) else str
    assert {type(each) for each in found} == {kind, type(None)}
    assert [each for each in found if each is not None] == [value] * 34


class NoArray:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("call detach() first")


@on_any_workers
@pytest.mark.parametrize("wrong", [NoArray, lambda: [NoArray()]], ids=["alone", "listed"])
def test_what_gives_no_array_is_told_of(workers: dict[str, Any], wrong: Any) -> None:
    dataset = Dataset.range(20).map(lambda x: wrong() if x == 7 else np.zeros(3), name="encode", **workers)
    with iter(dataset) as it:
        for _ in range(7):
            next(it)
        with pytest.raises(fb.DataError, match=r"map 'encode' at .*, element 7: .*call detach\(\) first"):
            next(it)


def test_what_gives_no_array_in_a_generator() -> None:
    with pytest.raises(fb.DataError, match=r"from_generator at .*, element 1: .*NoArray that gives no array"):
        list(Dataset.from_generator(lambda: iter([np.zeros(2), NoArray()])))


def look_up(x: Any) -> Any:
    return next(iter([])) if x == 5 else bool(x >= 0)


@on_any_workers
@pytest.mark.parametrize("step", ["map", "filter"])
def test_a_stop_out_of_a_function_has_its_traceback(workers: dict[str, Any], step: str) -> None:
    with pytest.raises(fb.FunctionError, match="element 5: look_up raised StopIteration") as caught:
        list(getattr(Dataset.range(10), step)(look_up, **workers))
    assert "return next(iter([])) if" in "".join(traceback.format_exception(caught.value))


@on_any_workers
def test_an_error_is_not_hidden_by_a_generator_that_cannot_clean_up(workers: dict[str, Any]) -> None:
    def numbers() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            raise RuntimeError("no clean end")

    def fails(x: Any) -> Any:
        if x == 3:
            raise ValueError("of the user")
        return x

    with pytest.raises(fb.FunctionError, match="element 3: fails raised ValueError: of the user") as caught:
        list(Dataset.from_generator(numbers).map(fails, **workers))
    assert ["RuntimeError: no clean end" in note for note in caught.value.__notes__] == [True]
