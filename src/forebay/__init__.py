"""Forebay: a standalone input pipeline for training. See ``Dataset``."""

from typing import TYPE_CHECKING, Any

from forebay import errors, io
from forebay.block.spec import NoneSpec, TensorSpec
from forebay.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from forebay.dataset.files import TFRecordDataset
from forebay.errors import (
    BusyError,
    ClosedError,
    CursorError,
    DataError,
    FileError,
    ForebayError,
    FunctionError,
    LengthError,
    PlanError,
    SpillError,
)
from forebay.iterator import DatasetIterator
from forebay.ledger import Ledger
from forebay.options import Options

__version__ = "0.1.0"

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "BusyError",
    "ClosedError",
    "CursorError",
    "DataError",
    "Dataset",
    "DatasetIterator",
    "FileError",
    "ForebayError",
    "FunctionError",
    "Ledger",
    "LengthError",
    "NoneSpec",
    "Options",
    "PlanError",
    "SpillError",
    "TFRecordDataset",
    "TensorSpec",
    "errors",
    "io",
    "watch",
]

if TYPE_CHECKING:
    from forebay.observe import watch
else:

    def __getattr__(name: str) -> Any:
        # Loaded when first used: few programs watch themselves, and all of them import Forebay.
        if name == "watch":
            from forebay.observe import watch

            return watch
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
