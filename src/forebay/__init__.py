"""Forebay: a standalone input pipeline for training. See ``Dataset``."""

from typing import TYPE_CHECKING

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
    RemoteError,
    SpillError,
)
from forebay.iterator import DatasetIterator
from forebay.lazy import on_first_use
from forebay.ledger import Ledger
from forebay.options import Options, RemoteOptions

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
    "RemoteError",
    "RemoteOptions",
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
    __getattr__ = on_first_use(
        __name__,
        {
            "dataset.files": "TFRecordDataset",
            "dataset.text": "CsvDataset FixedLengthRecordDataset SqlDataset TextLineDataset",
            "image": "",
            "io": "",
            "observe": "watch",
            "text": "",
        },
    )

    def __dir__() -> list[str]:
        """What there is to use, loaded or not: editors and shells complete names by it."""
        return [*__all__, "__version__"]
