"""The library behind saved datasets, imported when it is first needed."""

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


def _missing(package: str) -> PlanError:
    return PlanError(f"save(), load() and snapshot() need {package}: pip install 'forebay[arrow]'")
