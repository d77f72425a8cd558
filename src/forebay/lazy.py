"""Packages whose names are loaded when they are first asked for: all programs import Forebay, few need all of it."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


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
