"""The libraries behind saved datasets, imported when one is first needed."""

from typing import Any

from forebay.errors import PlanError


def arrow() -> Any:
    """pyarrow with its IPC module."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise _missing("pyarrow") from error
    return pyarrow


def hasher() -> Any:
    """A new checksum of 64 bits."""
    try:
        import xxhash
    except ImportError as error:
        raise _missing("xxhash") from error
    return xxhash.xxh3_64()


def checksum(*parts: Any) -> str:
    """The checksum of some bytes, as text."""
    state = hasher()
    for part in parts:
        state.update(part)
    return str(state.hexdigest())


def _missing(package: str) -> PlanError:
    return PlanError(f"save(), load() and snapshot() need {package}: pip install 'forebay[arrow]'")
