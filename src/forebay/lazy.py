"""What is loaded or found out when it is first asked for: all programs import Forebay, few need all of it."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any


def on_first_use(package: str, names: dict[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for the package: `names` has the modules in it, each with the names that come from it.

    Names are separated by blanks. A module that is to be had as a whole has none.
    """
    homes = {name: module for module, inside in names.items() for name in inside.split() or [module]}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        # Whoever asks again finds it without coming here.
        return vars(sys.modules[package]).setdefault(name, module if name == homes[name] else getattr(module, name))

    return load


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """That of the standard library, without a lock.

        Python 3.11 holds one meanwhile, of all objects of a class: threads that look at files would wait for one
        another, and a child that is forked meanwhile for ever. If two come at once, both have what was there first.
        """

        def __init__(self, make: Any) -> None:
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._make(instance))
