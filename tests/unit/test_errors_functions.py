"""Functions and generators that raise: the operator, the user's line, the element, and the user's own exception."""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import ClosedError, DataError, Dataset, FunctionError
from forebay.errors import LengthError
from unit.support import SETTINGS, until_error

FILE = Path(__file__).name
BAD = 7

every_setting = pytest.mark.parametrize("options", SETTINGS, ids=lambda o: f"{o.optimize}-{o.block_bytes}")


def boom(x: Any, *rest: Any) -> Any:
    if (x == BAD).any():
        raise ValueError("seven")
    return x


def stop(x: Any, *rest: Any) -> Any:
    if (x == BAD).any():
        raise StopIteration("early")
    return x


def truth(call: Callable[..., Any]) -> Callable[..., Any]:
    def predicate(x: Any) -> Any:
        return call(x) >= 0

    return predicate


def inner(call: Callable[..., Any]) -> Callable[..., Any]:
    def make(x: Any) -> Any:
        return Dataset.from_tensors(call(x))

    return make


def numbers(call: Callable[..., Any]) -> Callable[..., Any]:
    class Numbers:
        def __init__(self) -> None:
            self.next = 0

        def __iter__(self) -> "Numbers":
            return self

        def __next__(self) -> Any:
            self.next += 1
            return call(np.int64(self.next - 1)) if self.next <= 20 else np.int64(0)

    return Numbers


# Operator, the name of the function in errors, and a dataset of the numbers up to 19 that fails at element 7.
FUNCTIONS: list[tuple[str, str | None, Callable[[Any], Dataset[Any]]]] = [
    ("map", None, lambda call: Dataset.range(20).map(call)),
    ("map", None, lambda call: Dataset.range(20).map(call, batched=True)),
    ("map", None, lambda call: Dataset.range(20).map(call, rng=True, seed=1)),
    ("map", None, lambda call: Dataset.range(20).map(call).map(abs)),
    ("map", None, lambda call: Dataset.range(20).map(abs).map(call)),
    ("map", None, lambda call: Dataset.range(20).map(abs).map(call).map(abs)),
    ("map", None, lambda call: Dataset.zip(Dataset.range(20), Dataset.range(20)).map(call)),
    ("map", None, lambda call: Dataset.from_tensor_slices(np.arange(20)).map(call)),
    ("map 'decode'", None, lambda call: Dataset.range(20).map(call, name="decode")),
    ("filter", "predicate", lambda call: Dataset.range(20).filter(truth(call))),
    ("filter", "predicate", lambda call: Dataset.range(20).filter(truth(call), batched=True)),
    ("take_while", "predicate", lambda call: Dataset.range(20).take_while(truth(call))),
    ("flat_map", "make", lambda call: Dataset.range(20).flat_map(inner(call))),
]
functions = pytest.mark.parametrize(
    ("operator", "name", "build"), FUNCTIONS, ids=[f"{i}-{case[0]}" for i, case in enumerate(FUNCTIONS)]
)


@functions
@every_setting
def test_an_error_says_where_and_what(
    operator: str, name: str | None, build: Callable[[Any], Dataset[Any]], options: fb.Options
) -> None:
    elements, error = until_error(build(boom).with_options(options))
    assert [int(np.ravel(x)[0]) for x in elements] == list(range(BAD))
    assert type(error) is FunctionError
    where = f"{FILE}:{build.__code__.co_firstlineno}"
    said = f"{operator} at {where}, element {BAD}: {name or 'boom'} raised ValueError: seven"
    # An element that is its own number is told already.
    assert str(error) == said + (" (the element is (7, 7))" if error.element == "(7, 7)" else "")


@functions
@every_setting
def test_the_users_own_exception_and_traceback_are_kept(
    operator: str, name: str | None, build: Callable[[Any], Dataset[Any]], options: fb.Options
) -> None:
    _, error = until_error(build(boom).with_options(options))
    assert error is not None
    cause = error.__cause__
    assert type(cause) is ValueError
    assert cause.args == ("seven",)
    frames = traceback.extract_tb(cause.__traceback__)
    assert (frames[-1].filename, frames[-1].name) == (__file__, "boom")
    assert frames[-1].lineno == boom.__code__.co_firstlineno + 2
    assert "ValueError: seven" in "".join(traceback.format_exception(error))


@functions
@every_setting
def test_stop_iteration_is_an_error_like_any_other(
    operator: str, name: str | None, build: Callable[[Any], Dataset[Any]], options: fb.Options
) -> None:
    elements, error = until_error(build(stop).with_options(options))
    assert len(elements) == BAD
    assert type(error) is FunctionError
    assert f"element {BAD}: {name or 'stop'} raised StopIteration" in str(error)
    assert isinstance(error.__cause__, StopIteration)


@functions
def test_exceptions_that_are_no_errors_pass_through_unchanged(
    operator: str, name: str | None, build: Callable[[Any], Dataset[Any]]
) -> None:
    for exception in (KeyboardInterrupt("stop"), SystemExit(3), GeneratorExit()):

        def raises(x: Any, *rest: Any, exception: BaseException = exception) -> Any:
            if (x == BAD).any():
                raise exception
            return x

        for options in SETTINGS:
            assert until_error(build(raises).with_options(options))[1] is exception
            assert until_error(build(raises).prefetch(2).with_options(options))[1] is exception


# Generators


@every_setting
def test_an_error_inside_a_generator(options: fb.Options) -> None:
    def count() -> Iterator[int]:
        yield from range(BAD)
        raise ValueError("seven")

    build: Callable[[], Dataset[Any]] = lambda: Dataset.from_generator(count)  # noqa: E731
    elements, error = until_error(build().with_options(options))
    assert elements == list(range(BAD))
    assert type(error) is FunctionError
    where = f"{FILE}:{build.__code__.co_firstlineno}"
    assert str(error) == f"from_generator at {where}, element {BAD}: count raised ValueError: seven"
    assert traceback.extract_tb(error.__cause__.__traceback__)[-1].name == "count"


@every_setting
def test_an_iterator_of_the_users_may_raise_too(options: fb.Options) -> None:
    elements, error = until_error(Dataset.from_generator(numbers(boom)).with_options(options))
    assert elements == list(range(BAD))
    assert type(error) is FunctionError
    assert f"element {BAD}: Numbers raised ValueError: seven" in str(error)


def test_a_generator_that_gives_no_iterator() -> None:
    _, error = until_error(Dataset.from_generator(lambda: 5))
    assert type(error) is FunctionError
    assert "element 0: <lambda> raised TypeError" in str(error)


def test_a_generator_that_fails_before_it_begins() -> None:
    def broken() -> Any:
        raise OSError("no such file")

    _, error = until_error(Dataset.from_generator(broken))
    assert type(error) is FunctionError
    assert "element 0: broken raised OSError: no such file" in str(error)


# Results and iterators


def test_reduce_names_the_element() -> None:
    with pytest.raises(FunctionError, match=rf"reduce at {FILE}:\d+, element 7: <lambda> raised ValueError") as caught:
        Dataset.range(20).reduce(0, lambda total, x: total + boom(x))
    assert isinstance(caught.value.__cause__, ValueError)


def test_reduce_of_a_dataset_that_fails() -> None:
    with pytest.raises(FunctionError, match=f"map at {FILE}:"):
        Dataset.range(20).map(boom).reduce(0, lambda total, x: total + x)


def test_a_single_element_must_be_single() -> None:
    assert Dataset.range(1).get_single_element() == 0
    with pytest.raises(DataError, match=rf"get_single_element at {FILE}:\d+: the dataset has no element"):
        Dataset.range(0).get_single_element()
    with pytest.raises(DataError, match="more than one element"):
        Dataset.range(2).get_single_element()
    with pytest.raises(DataError, match="more than one element"):
        Dataset.counter().get_single_element()


def test_lengths_that_are_not_known() -> None:
    with pytest.raises(LengthError, match="infinite"):
        len(Dataset.counter())
    with pytest.raises(TypeError, match=r"only iterating over it can tell$"):
        len(Dataset.range(5).filter(bool))


def test_an_element_spec_needs_an_element() -> None:
    with pytest.raises(DataError, match=f"map at {FILE}:.* gives no elements"):
        _ = Dataset.range(0).map(abs).element_spec


def test_a_closed_iterator_says_so() -> None:
    it = iter(Dataset.range(5))
    state = it.state_dict()
    next(it)
    it.close()
    it.close()
    for use in (lambda: next(it), it.state_dict, lambda: it.load_state_dict(state)):
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_names_are_part_of_every_error() -> None:
    with pytest.raises(DataError, match=rf"^batch 'pairs' at {FILE}:"):
        list(Dataset.from_tensor_slices([[1], [1, 2]]).batch(2, name="pairs"))
    with pytest.raises(FunctionError, match=rf"^from_generator 'files' at {FILE}:"):
        list(Dataset.from_generator(lambda: 5, name="files"))
