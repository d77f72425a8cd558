"""How a check is spread over the cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.case import Case
from conformance.cases import CASES


def every_case(where: Callable[[Case], bool] = lambda case: True) -> pytest.MarkDecorator:
    """Run the test once for each case that the check applies to; its argument is called `case`."""
    chosen = [case for case in CASES if where(case)]
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen])
