"""Checks of arguments, made when a dataset is built so that the error points at the line that is wrong."""

import inspect
import operator
import reprlib
from collections.abc import Callable
from typing import Any

from forebay.errors import PlanError
from forebay.plan.fingerprint import function_name
from forebay.plan.text import brief


def whole_number(
    call: str, name: str, value: Any, least: int, *, also: tuple[int, ...] = (), most: int | None = None
) -> int:
    """The value as an int of at least `least` and at `most` that, or one of `also`; PlanError otherwise."""
    try:
        number = operator.index(value)
        if isinstance(value, bool):
            raise TypeError
    except TypeError:
        raise PlanError(f"{call}({name}={reprlib.repr(value)}): {name} must be a whole number") from None
    if number < least and number not in also:
        allowed = "".join(f" or {other if name == 'count' else 'fb.AUTOTUNE'}" for other in also)
        raise PlanError(f"{call}({name}={number}): {name} must be at least {least}{allowed}")
    if most is not None and number > most:
        raise PlanError(f"{call}({name}={number}): {name} must be at most {most}")
    return number


def whole_numbers(call: str, name: str, value: Any, least: int) -> tuple[int, ...]:
    """The same for several, of which there must be one."""
    try:
        numbers = tuple(value)
    except TypeError:
        numbers = ()
    if not numbers:
        raise PlanError(f"{call}({name}={reprlib.repr(value)}): {name} must be a list of whole numbers")
    return tuple(whole_number(call, f"{name}[{i}]", number, least) for i, number in enumerate(numbers))


def keep_whole(node: Any, name: str, least: int, *, also: tuple[int, ...] = (), most: int | None = None) -> None:
    """Check a node's field as ``whole_number`` does and keep it as a plain int: states and digests depend on it."""
    object.__setattr__(node, name, whole_number(node.kind, name, getattr(node, name), least, also=also, most=most))


def keep_seed(node: Any) -> None:
    """The same for a seed, which may be None."""
    if node.seed is not None:
        keep_whole(node, "seed", -(2**63))


def function(call: str, name: str, value: Any) -> Callable[..., Any]:
    """The value, if it can be called."""
    if not callable(value):
        raise PlanError(f"{call}({name}={value!r}): {name} must be a function")
    return value  # type: ignore[no-any-return]


def flag(call: str, name: str, value: Any) -> bool:
    """The value, if it is True or False."""
    if not isinstance(value, bool):
        raise PlanError(f"{call}({name}={value!r}): {name} must be True or False")
    return value


_BESIDES = {
    "from_tensor_slices": "; to go through several arrays together, pass a tuple: from_tensor_slices((x, y))",
    "from_tensors": "; to make an element of several values, pass a tuple: from_tensors((x, y))",
    "concatenate": "; to add several datasets, call concatenate once for each",
}


def step_name(call: str, value: Any) -> None:
    """PlanError if what should name a step is something else, most often an argument too many."""
    if value is not None and not isinstance(value, str):
        shown = reprlib.repr(value).replace("\n", " ")
        raise PlanError(f"{call}(name={shown}): name must be a str{_BESIDES.get(call, '')}")


def arguments(call: str, function: Callable[..., Any], spec: Any, extra: int = 0) -> None:
    """PlanError if a function cannot take an element of that spec; says nothing where either is not known."""
    if spec is None:
        return
    count = (len(spec) if type(spec) is tuple else 1) + extra
    try:
        signature = inspect.signature(function)
    except Exception:
        # Some have none, and objects of the user's own may raise anything.
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        last = ", the last of them the generator that rng=True asks for" if extra else ""
        raise PlanError(
            f"{call}({function_name(function)}): it is called with {count} argument{'s' * (count != 1)}{last}, "
            f"but takes {signature} ({error}); elements are {brief(str(spec))}"
        ) from None
