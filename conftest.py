"""What the examples in docstrings take for granted."""

from typing import Any

import numpy as np
import pytest

import forebay as fb


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace |= {"AUTOTUNE": fb.AUTOTUNE, "Dataset": fb.Dataset, "Options": fb.Options, "np": np}
