"""Settings of a pipeline that never change what it produces."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from forebay.errors import PlanError
from forebay.ledger import Ledger
from forebay.sizes import parse_size

O = TypeVar("O")  # noqa: E741 - any of the classes below


class _Shown:
    """Printed as what is set: what is not says nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        texts = (f"{name}={value!r}" for name, value in _set_fields(self))
        return f"{type(self).__name__}({', '.join(texts)})"


@dataclass(slots=True, repr=False)
class Threading(_Shown):
    """How many threads a pipeline may use.

    Args:
        private_threadpool_size: the most threads or processes that one step gets, whatever it asks for.
        max_intra_op_parallelism: how many threads libraries that keep a pool of their own (OpenCV, Arrow) use for one
            call. Worker processes are limited without further effect; on threads the limit holds for the process.
    """

    private_threadpool_size: int | None = None
    max_intra_op_parallelism: int | None = None


@dataclass(slots=True, repr=False)
class Autotune(_Shown):
    """What the tuner may do where a step says AUTOTUNE.

    Args:
        enabled: without it, such steps stay at what they begin with.
        cpu_budget: how many processors to make use of; all that the process may use unless given.
    """

    enabled: bool | None = None
    cpu_budget: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class RemoteOptions(_Shown):
    """How files behind URLs are read, and from where.

    A request that fails for now (no connection, no answer, a server's error, a body that breaks off) is made again for
    the bytes that are missing. One that is refused (no such file, no permission) is not.

    Args:
        retries: how often one read is tried again; 8 by default.
        deadline: seconds after which a read that has not got its bytes is given up, whatever was tried; 120 by default.
        timeout: seconds without a byte after which a request is given up and made again, twice as many each time; 20
            by default.
        backoff: seconds to wait before the second try, about; twice as many before each further one, up to 10. 0.1 by
            default.
        read_ahead: bytes to ask for before they are needed where a file is read from front to back, within
            ``Options.memory``: a number or a text such as "8MiB", the default. 0 for none.
        requests: how many requests one read may have under way at once; 8 by default.
        checksum: compare what was read of a file from its first byte to its last with the MD5 sum that its store has
            of it, where it has one; by default it is.
        allow: the only places that files may be read from and written to: protocols such as "file", for paths of this
            machine, and hosts or buckets such as "s3://my-bucket" and "https://data.example.org". All links of a
            chained URL have to be in it, and where a web server leads on to. By default all places are allowed.

    A field left at ``None`` is inherited, as in ``Options``.

    >>> import forebay as fb
    >>> careful = fb.RemoteOptions(deadline=10, allow=("file", "s3://my-bucket"))
    >>> ds = fb.TFRecordDataset("s3://my-bucket/a.tfrecord").with_options(fb.Options(remote=careful))
    >>> ds.options().remote.deadline, ds.options().remote.retries
    (10, 8)
    >>> fb.TFRecordDataset("s3://other/a.tfrecord").with_options(fb.Options(remote=careful))
    Traceback (most recent call last):
    forebay.errors.PlanError: TFRecordDataset at ...: s3://other/a.tfrecord is not allowed...
    """

    retries: int | None = None
    deadline: float | None = None
    timeout: float | None = None
    backoff: float | None = None
    read_ahead: "int | str | None" = None
    requests: int | None = None
    checksum: bool | None = None
    allow: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _keep_count(self, "remote.retries", 0)
        _keep_count(self, "remote.requests")
        _flag("remote.checksum", self.checksum)
        for name in ("deadline", "timeout", "backoff"):
            _seconds(f"remote.{name}", getattr(self, name))
        if self.read_ahead is not None and not (type(self.read_ahead) is int and self.read_ahead == 0):
            object.__setattr__(
                self, "read_ahead", parse_size("RemoteOptions.read_ahead", self.read_ahead, lambda: 1 << 30)
            )
        if self.allow is not None:
            entries = self.allow
            if isinstance(entries, str) or not isinstance(entries, (tuple, list, set, frozenset)):
                raise PlanError(f"RemoteOptions.allow must be a tuple of protocols and hosts, got {entries!r}")
            # Imported by those who use it.
            from forebay.allow import check_entry

            for entry in entries:
                check_entry(entry)
            object.__setattr__(self, "allow", tuple(entries))

    def merged(self, later: "RemoteOptions") -> "RemoteOptions":
        """These options with every field that `later` sets taken from there."""
        return _merged(self, later)


@dataclass(slots=True, repr=False)
class Options(_Shown):
    """How a dataset runs. No option but ``deterministic=False`` changes its elements or their order.

    Args:
        optimize: rewrite the plan before running it; see ``Dataset.explain``.
        block_bytes: the size in bytes that blocks grow to, a whole number; by default 2 MiB (``2 << 20``), or less
            where the budget is small. Larger blocks cost less per row and more memory per stage.
        deterministic: False lets parallel steps that do not say otherwise give their results as they come.
        memory: the most bytes that buffers may hold together: a number, a text such as "2GiB" or "500MB" ("2G" is
            2 GiB), a fraction of what the limits of the process, the container or the host leave, or a ``Ledger`` that
            several datasets share. By default half of what is left.
        spill_dir: where to put what does not fit into that. By default the system's temporary folder, or ``/var/tmp``
            if that one is only memory; ``~`` is the user's home. That it is a folder which may be written to is looked
            at by ``iter()``; a file is made there, or refused, when the first rows have no room in memory.
        spill_limit: the most bytes to put there, above 0: a number, a text, or a fraction of what is free on that disk
            when an iteration begins.
        threading: see ``Threading``.
        autotune: see ``Autotune``.
        remote: see ``RemoteOptions``.

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
    spill_limit: "str | int | float | None" = None
    threading: Threading = field(default_factory=Threading)
    autotune: Autotune = field(default_factory=Autotune)
    remote: RemoteOptions = field(default_factory=RemoteOptions)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise PlanError on a value that cannot be meant; fields may have been set after construction."""
        for name in ("optimize", "deterministic"):
            _flag(name, getattr(self, name))
        _keep_count(self, "block_bytes")
        if self.memory is not None and not isinstance(self.memory, Ledger):
            parse_size("Options.memory", self.memory, lambda: 1 << 30)
        if self.spill_limit is not None:
            parse_size("Options.spill_limit", self.spill_limit, lambda: 1 << 30)
        if self.spill_dir is not None and not isinstance(self.spill_dir, (str, os.PathLike)):
            raise PlanError(f"Options.spill_dir must be a path, got {self.spill_dir!r}")
        if self.spill_dir is not None:
            self.spill_dir = os.path.expanduser(self.spill_dir)
        for name, kind in (("threading", Threading), ("autotune", Autotune), ("remote", RemoteOptions)):
            if not isinstance(getattr(self, name), kind):
                raise PlanError(
                    f"Options.{name} must be a forebay.options.{kind.__name__}, got {getattr(self, name)!r}"
                )
        _keep_count(self.threading, "threading.private_threadpool_size")
        _keep_count(self.threading, "threading.max_intra_op_parallelism")
        _flag("autotune.enabled", self.autotune.enabled)
        _keep_count(self.autotune, "autotune.cpu_budget")

    def merged(self, later: "Options") -> "Options":
        """These options with every field that `later` sets taken from there."""
        return _merged(self, later)


def _set_fields(options: Any) -> Iterator[tuple[str, Any]]:
    for each in fields(options):
        value = getattr(options, each.name)
        if value is not None and (not is_dataclass(value) or any(_set_fields(value))):
            yield each.name, value


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


def _keep_count(owner: Any, name: str, least: int = 1) -> None:
    """Check a field of the owner's, by its name in ``Options``, and keep it as Python's own kind of number."""
    attribute = name.rpartition(".")[2]
    value = getattr(owner, attribute)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PlanError(f"Options.{name} must be a whole number of at least {least}, got {value!r}")
    object.__setattr__(owner, attribute, int(value))


def _seconds(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise PlanError(f"Options.{name} must be a number of seconds above 0, got {value!r}")


DEFAULTS = Options(
    optimize=True,
    block_bytes=2 << 20,
    deterministic=True,
    autotune=Autotune(enabled=True),
    remote=RemoteOptions(
        retries=8,
        deadline=120.0,
        timeout=20.0,
        backoff=0.1,
        read_ahead=8 << 20,
        requests=8,
        checksum=True,
    ),
)
