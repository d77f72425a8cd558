"""How ``Dataset`` looks from outside, whatever it is put together of."""

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

# What other libraries call their workers.
_WORKERS = frozenset({"max_workers", "n_jobs", "num_proc", "num_threads", "num_workers", "workers"})
# Methods that tf.data has, and that are missed here most, with what does the same. README.md lists them.
NOT_YET = dict.fromkeys(
    (
        "bucket_by_sequence_length",
        "choose_from_datasets",
        "dense_to_ragged_batch",
        "fingerprint",
        "group_by_window",
        "padded_batch",
        "ragged_batch",
        "rejection_resample",
        "sample_from_datasets",
        "scan",
        "sparse_batch",
        "unique",
        "window",
    ),
    "",
) | {"rebatch": "; unbatch().batch(n) does the same"}


def missing(name: str, owner: str) -> AttributeError:
    """The error for an attribute that a dataset does not have."""
    if name in NOT_YET:
        return AttributeError(f"Dataset.{name} of tf.data is not there yet{NOT_YET[name]}")
    return AttributeError(f"{owner} has no attribute {name!r}")


class Hinting(type):
    """The class of ``Dataset``: what tf.data calls on the class, and is not there, is said to be so."""

    if not TYPE_CHECKING:
        # To a type checker, every name would be there.
        def __getattr__(cls, name: str) -> Any:
            raise missing(name, f"type object {cls.__name__!r}")


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
            workers = _workers(function)
            if workers is not None:
                hinting = _hinting(function, workers)
                setattr(base, name, staticmethod(hinting) if isinstance(each, staticmethod) else hinting)
    return face


def presented_class(face: C) -> C:
    """The same for a class that is called to make a dataset, with an ``__init__`` that it may share with others."""
    shared = face.__init__  # type: ignore[misc]
    own = FunctionType(shared.__code__, shared.__globals__, shared.__name__, shared.__defaults__, shared.__closure__)
    update_wrapper(own, shared)
    own.__kwdefaults__ = shared.__kwdefaults__
    own.__module__, own.__qualname__ = face.__module__, face.__qualname__
    workers = _workers(own)
    face.__init__ = own if workers is None else _hinting(own, workers)  # type: ignore[misc]
    return face


def _workers(function: FunctionType) -> str | None:
    return next((one for one in function.__code__.co_varnames if one.startswith("num_parallel_")), None)


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


class StaticOrMethod(Generic[P, R]):
    """A static method whose first argument is the instance, where it is called on one.

    A plain static method would leave the instance out without a word: ``a.zip(b)`` would be b alone.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.__func__ = function
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "")
        self.__module__ = function.__module__

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Callable[P, R]:
        return self.__func__ if instance is None else MethodType(self.__func__, instance)
