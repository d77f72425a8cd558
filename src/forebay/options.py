"""Settings of a pipeline that never change what it produces."""

import os
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from forebay.errors import PlanError
from forebay.ledger import Ledger
from forebay.sizes import parse_size

O = TypeVar("O")  # noqa: E741 - any of the classes below


@dataclass(slots=True)
class Threading:
    """How many threads a pipeline may use.

    Args:
        private_threadpool_size: the most threads or processes that one step gets, whatever it asks for.
        max_intra_op_parallelism: how many threads libraries that keep a pool of their own (OpenCV, Arrow) use for one
            call. Worker processes are limited without further effect; on threads the limit holds for the process.
    """

    private_threadpool_size: int | None = None
    max_intra_op_parallelism: int | None = None


@dataclass(slots=True)
class Autotune:
    """What the tuner may do where a step says AUTOTUNE.

    Args:
        enabled: without it, such steps stay at what they begin with.
        cpu_budget: how many processors to make use of; all that the process may use unless given.
    """

    enabled: bool | None = None
    cpu_budget: int | None = None


@dataclass(slots=True)
class Options:
    """How a dataset runs. No option but ``deterministic=False`` changes its elements or their order.

    Args:
        optimize: rewrite the plan before running it; see ``Dataset.explain``.
        block_bytes: the size that blocks grow to. Larger blocks cost less per row and more memory per stage.
        deterministic: False lets parallel steps that do not say otherwise give their results as they come.
        memory: the most bytes that buffers may hold together: a number, a text such as "2GiB" or "500MB", a fraction
            of what the container or the host has left, or a ``Ledger`` that several datasets share. By default half
            of what is left.
        spill_dir: where to put what does not fit into that. By default the system's temporary folder, or ``/var/tmp``
            if that one is only memory.
        spill_limit: the most bytes to put there.
        threading: see ``Threading``.
        autotune: see ``Autotune``.

    A field left at ``None`` is inherited from the options set further up, then from the defaults.

    >>> import forebay as fb
    >>> options = fb.Options(block_bytes=1 << 16)
    >>> options.autotune.cpu_budget = 2
    >>> ds = fb.Dataset.range(3).with_options(options)
    >>> ds.options().block_bytes, ds.options().autotune.cpu_budget
    (65536, 2)
    """

    optimize: bool | None = None
    block_bytes: int | None = None
    deterministic: bool | None = None
    memory: "str | int | float | Ledger | None" = None
    spill_dir: "str | os.PathLike[str] | None" = None
    spill_limit: "str | int | None" = None
    threading: Threading = field(default_factory=Threading)
    autotune: Autotune = field(default_factory=Autotune)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise PlanError on a value that cannot be meant; fields may have been set after construction."""
        for name in ("optimize", "deterministic"):
            _flag(name, getattr(self, name))
        _count("block_bytes", self.block_bytes)
        if self.memory is not None and not isinstance(self.memory, Ledger):
            parse_size("Options.memory", self.memory, lambda: 1 << 30)
        if self.spill_limit is not None:
            parse_size("Options.spill_limit", self.spill_limit, lambda: 0)
        if self.spill_dir is not None and not isinstance(self.spill_dir, (str, os.PathLike)):
            raise PlanError(f"Options.spill_dir must be a path, got {self.spill_dir!r}")
        for name, kind in (("threading", Threading), ("autotune", Autotune)):
            if not isinstance(getattr(self, name), kind):
                raise PlanError(
                    f"Options.{name} must be a forebay.options.{kind.__name__}, got {getattr(self, name)!r}"
                )
        _count("threading.private_threadpool_size", self.threading.private_threadpool_size)
        _count("threading.max_intra_op_parallelism", self.threading.max_intra_op_parallelism)
        _flag("autotune.enabled", self.autotune.enabled)
        _count("autotune.cpu_budget", self.autotune.cpu_budget)

    def merged(self, later: "Options") -> "Options":
        """These options with every field that `later` sets taken from there."""
        return _merged(self, later)


def _merged(first: O, later: O) -> O:
    changes: dict[str, Any] = {}
    for each in fields(later):  # type: ignore[arg-type]
        value = getattr(later, each.name)
        if is_dataclass(value):
            changes[each.name] = _merged(getattr(first, each.name), value)
        elif value is not None:
            changes[each.name] = value
    return replace(first, **changes)  # type: ignore[type-var]


def _flag(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, bool):
        raise PlanError(f"Options.{name} must be True, False or None, got {value!r}")


def _count(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise PlanError(f"Options.{name} must be a whole number of at least 1, got {value!r}")


DEFAULTS = Options(optimize=True, block_bytes=1 << 20, deterministic=True, autotune=Autotune(enabled=True))
