"""Static methods that mean the same when they are called on an instance."""

from collections.abc import Callable
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


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
