"""Forebay: a standalone input pipeline for training. See ``Dataset``."""

from typing import TYPE_CHECKING, Any

from forebay import errors
from forebay.block.spec import NoneSpec, TensorSpec
from forebay.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
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
    "CsvDataset",
    "CursorError",
    "DataError",
    "Dataset",
    "DatasetIterator",
    "FileError",
    "FixedLengthRecordDataset",
    "ForebayError",
    "FunctionError",
    "Ledger",
    "LengthError",
    "NoneSpec",
    "Options",
    "PlanError",
    "SpillError",
    "SqlDataset",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "errors",
    "image",
    "io",
    "text",
    "watch",
]

if TYPE_CHECKING:
    from forebay import image, io, text
    from forebay.dataset.files import TFRecordDataset
    from forebay.dataset.text import CsvDataset, FixedLengthRecordDataset, SqlDataset, TextLineDataset
    from forebay.observe import watch
else:
    # Loaded when first used: few programs need all of them, and all programs import Forebay.
    _LAZY = {
        "CsvDataset": "forebay.dataset.text",
        "FixedLengthRecordDataset": "forebay.dataset.text",
        "SqlDataset": "forebay.dataset.text",
        "TFRecordDataset": "forebay.dataset.files",
        "TextLineDataset": "forebay.dataset.text",
        "image": "forebay.image",
        "io": "forebay.io",
        "text": "forebay.text",
        "watch": "forebay.observe",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(_LAZY[name])
        return module if name in ("image", "io", "text") else getattr(module, name)
