"""Every test starts from the workers that are there already."""

from collections.abc import Iterator

import pytest

from faults import support


@pytest.fixture(autouse=True)
def only_own_workers() -> Iterator[None]:
    support.foreign.update(support.workers_of())
    yield
    support.foreign.clear()
