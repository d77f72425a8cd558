"""One class to look at: the methods of all that ``Dataset`` is put together of speak of themselves as its own."""

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

# What other libraries call their workers.
_WORKERS = frozenset({"max_workers", "n_jobs", "num_proc", "num_threads", "num_workers", "workers"})


def presented(face: C) -> C:
    """Have Python's own errors name the class that users know, and say what a keyword of another library is here."""
    for base in face.__mro__:
        if not base.__module__.startswith("forebay."):
            continue
        for name, each in list(vars(base).items()):
            function = getattr(each, "__func__", each)
            if name.startswith("_") or not isinstance(function, FunctionType):
                continue
            function.__module__, function.__qualname__ = face.__module__, f"{face.__qualname__}.{name}"
            workers = next((one for one in function.__code__.co_varnames if one.startswith("num_parallel_")), None)
            if workers is not None:
                hinting = _hinting(function, workers)
                setattr(base, name, staticmethod(hinting) if isinstance(each, staticmethod) else hinting)
    return face


def _hinting(function: FunctionType, workers: str) -> Callable[..., Any]:
    refuse = _refuse

    def call(*args: Any, **keywords: Any) -> Any:
        refuse(function, workers, keywords)
        return function(*args, **keywords)

    # With the globals of the function, by which doctest tells whose examples these are.
    same_module = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return update_wrapper(same_module, function)


def _refuse(function: FunctionType, workers: str, keywords: dict[str, Any]) -> None:
    for name in _WORKERS & keywords.keys():
        raise TypeError(
            f"{function.__qualname__}() got an unexpected keyword argument {name!r}: here that is {workers}"
        )
