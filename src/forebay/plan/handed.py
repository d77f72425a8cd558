"""Objects through which threads and processes wait for one another, by the values that they hand over.

The waiting decides when a function runs, not what it returns: of locks, threads and pools the type is all that counts.
"""

from collections.abc import Iterator
from typing import Any

from forebay.plan.made import Unknown

_MODULES = (
    *("_asyncio", "_queue", "_thread", "asyncio", "concurrent", "threading", "_multiprocessing"),
    *(
        "multiprocessing.context",
        "multiprocessing.pool",
        "multiprocessing.process",
        "multiprocessing.queues",
        "multiprocessing.shared_memory",
        "multiprocessing.synchronize",
    ),
)
_LOCAL = ("_thread", "_local")
_FUTURES = (("concurrent.futures._base", "Future"), ("_asyncio", "Future"), ("asyncio.futures", "Future"))
_RESULT = ("multiprocessing.pool", "ApplyResult")
_RESULTS = ("multiprocessing.pool", "IMapIterator")
_QUEUES = (
    ("_queue", "SimpleQueue"),
    ("asyncio.queues", "Queue"),
    ("multiprocessing.queues", "Queue"),
    ("multiprocessing.queues", "SimpleQueue"),
)
_SHARED = ("multiprocessing.shared_memory", "SharedMemory")
_SHARED_LIST = ("multiprocessing.shared_memory", "ShareableList")
# What a pool does on each of its workers, where functions find it.
_PREPARED = ("_initializer", "_initargs")


def is_in(module: Any, modules: tuple[str, ...]) -> bool:
    """Whether a module is one of these, or inside of one."""
    return any(module == name or str(module).startswith(f"{name}.") for name in modules)


def hands_over(kind: type) -> bool:
    """Whether a class is made for that."""
    return is_in(kind.__module__, _MODULES)


def handed_parts(value: Any) -> Iterator[Any]:
    """The values in such an object; those that are still to come, or that only taking them shows, are unknown."""
    kinds = [(str(base.__module__), base.__name__) for base in type(value).__mro__]
    if kinds[0] == _LOCAL:
        yield sorted(vars(value).items())
    elif any(kind in kinds for kind in _FUTURES):
        yield from _future(value)
    elif _RESULT in kinds:
        yield (value._success, value._value) if value.ready() else Unknown(value)
    elif _SHARED in kinds:
        yield value.buf
    elif _SHARED_LIST in kinds:
        yield list(value)
    elif _RESULTS in kinds or (any(kind in kinds for kind in _QUEUES) and not value.empty()):
        yield Unknown(value)
    yield from (getattr(value, name) for name in _PREPARED if getattr(value, name, None))


def _future(future: Any) -> Iterator[Any]:
    if not future.done():
        yield Unknown(future)
    elif future.cancelled():
        yield "cancelled"
    else:
        error = future.exception()
        yield future.result() if error is None else error
