"""Where running iterators tell whoever watches them. Without a watcher this costs one test per block."""

from collections.abc import Iterator
from typing import Any, Protocol

from forebay.block import Block
from forebay.ledger import Ledger
from forebay.run.meter import StageStats


class Observed(Protocol):
    """What a watcher may ask an iterator."""

    def stats(self) -> list[StageStats]:
        """What every step has done and holds."""

    @property
    def where(self) -> str:
        """The dataset's last step, and the line it was written on."""

    @property
    def ledger(self) -> Ledger:
        """The budget that it runs under."""


class Observer(Protocol):
    """Is told what iterators of this process do, on the threads that use them."""

    def block(self, iterator: Observed, block: Block) -> None:
        """Rows have come that will be handed out next."""

    def element(self) -> None:
        """One of them is about to be handed out."""

    def ended(self, iterator: Observed) -> None:
        """There are no more; its buffers are still there."""

    def closed(self) -> None:
        """And now they are gone."""


# Replaced as a whole, never changed: iterators on other threads may be going through it.
_observers: tuple[Observer, ...] = ()


def add(observer: Observer) -> None:
    """Tell it from now on."""
    global _observers
    _observers = (*_observers, observer)


def remove(observer: Observer) -> None:
    """Tell it no longer."""
    global _observers
    _observers = tuple(each for each in _observers if each is not observer)


def observed(iterator: Observed, block: Block) -> Iterator[Any]:
    """The elements of a block, each told to those who watch; just as they are if nobody does."""
    elements = block.elements()
    if not _observers:
        return elements
    for observer in _observers:
        observer.block(iterator, block)
    # Not a generator: that would keep the last element alive until the next is asked for.
    return map(_pass_on, elements)


def _pass_on(element: Any) -> Any:
    for observer in _observers:
        observer.element()
    return element


def ended(iterator: Observed) -> None:
    """An iterator has handed out its last element."""
    for observer in _observers:
        observer.ended(iterator)


def closed() -> None:
    """What it held has been let go of."""
    for observer in _observers:
        observer.closed()
