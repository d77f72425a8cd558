"""One pipeline, written once and built in both libraries."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from differential.sides import Side

Point = namedtuple("Point", "a b")


@dataclass(frozen=True)
class Case:
    """A pipeline, the intended differences it shows, and for what only Forebay accepts, what it `gives`.

    `python_error`: refused by Python itself (a missing argument, `len`), not with an error of Forebay's own.
    """

    id: str
    build: Callable[[Side], Any]
    differs: tuple[str, ...] = ()
    gives: Any = None
    python_error: bool = False


def case(id: str, build: Callable[[Side], Any], *differs: str, gives: Any = None, python_error: bool = False) -> Case:
    """A Case, short enough for a table."""
    return Case(id, build, differs, gives, python_error)
