"""How ``Dataset`` looks from outside, whatever it is put together of."""

from collections.abc import Callable
from dataclasses import fields
from functools import update_wrapper
from inspect import CO_VARKEYWORDS
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

# What other libraries call their workers, and what else.
_WORKERS = frozenset({"max_workers", "n_jobs", "num_proc", "num_threads", "num_workers", "workers"})
_ELSEWHERE = {
    "drop_last": "drop_remainder",
    "fn": "map_func",
    "func": "map_func",
    "function": "map_func",
    "path": "filename",
}
_PADDED = (
    "map() to one length, then batch(); of Examples, batch() and then parse_example() with "
    "FixedLenSequenceFeature(allow_missing=True); of tokens, fb.text.pack() wastes no place on padding"
)
_RAGGED = "batch() and then parse_example() with RaggedFeature, for Examples"
_KEPT = "a class with __iter__ that keeps what it needs, for from_generator()"
_MIXED = "interleave() takes turns; for shares of your own, a generator over iter() of each, for from_generator()"
# Methods that tf.data has, and that are missed here most, with what comes nearest. README.md lists them.
NOT_YET = {
    "bucket_by_sequence_length": _PADDED,
    "choose_from_datasets": _MIXED,
    "dense_to_ragged_batch": _RAGGED,
    "fingerprint": "",
    "group_by_window": _KEPT,
    "padded_batch": _PADDED,
    "ragged_batch": _RAGGED,
    "rebatch": "unbatch().batch(n) does the same",
    "rejection_resample": "map(f, rng=True) adds a number drawn by chance, by which filter() keeps elements",
    "sample_from_datasets": _MIXED,
    "scan": _KEPT,
    "sparse_batch": "batch() and then parse_example() with VarLenFeature, for Examples",
    "unique": _KEPT,
    "window": "batch(n, drop_remainder=True) gives windows that do not overlap",
}


def missing(name: str, owner: str) -> AttributeError:
    """The error for an attribute that a dataset does not have."""
    if name in NOT_YET:
        instead = f". Meanwhile: {NOT_YET[name]}" if NOT_YET[name] else ""
        return AttributeError(f"Dataset.{name} of tf.data is not there yet{instead}")
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
            if function.__code__.co_argcount + function.__code__.co_kwonlyargcount > 1:
                hinting = _hinting(function)
                setattr(base, name, staticmethod(hinting) if isinstance(each, staticmethod) else hinting)
    return face


def presented_class(face: C) -> C:
    """The same for a class that is called to make a dataset, with an ``__init__`` that it may share with others."""
    shared = face.__init__  # type: ignore[misc]
    own = FunctionType(shared.__code__, shared.__globals__, shared.__name__, shared.__defaults__, shared.__closure__)
    update_wrapper(own, shared)
    own.__kwdefaults__ = shared.__kwdefaults__
    own.__module__, own.__qualname__ = face.__module__, face.__qualname__
    face.__init__ = _hinting(own)  # type: ignore[misc]
    return face


def _hinting(function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    taken, refuse = frozenset(known), _refuse
    if code.co_flags & CO_VARKEYWORDS:
        return function

    def call(*args: Any, **keywords: Any) -> Any:
        if not taken.issuperset(keywords):
            refuse(function, known, keywords)
        return function(*args, **keywords)

    # With the globals of the function, by which doctest tells whose examples these are.
    same_module = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return update_wrapper(same_module, function)


def _refuse(function: FunctionType, known: tuple[str, ...], keywords: dict[str, Any]) -> None:
    """TypeError for the first of these that the function does not take, with what may be meant by it."""
    name = next(name for name in keywords if name not in known)
    meant = next((one for one in known if one.startswith("num_parallel_")), None) if name in _WORKERS else None
    meant = meant or (_ELSEWHERE[name] if _ELSEWHERE.get(name) in known else None)
    hint = f": here that is {meant}" if meant else ""
    if "options" in known:
        from forebay.options import Options

        if any(each.name == name for each in fields(Options)):
            hint = f": write {function.__name__}(fb.Options({name}=...))"
    if not hint:
        from difflib import get_close_matches

        hint = "".join(f". Did you mean: {near!r}?" for near in get_close_matches(name, known[1:], 1))
    raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{hint}")


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
