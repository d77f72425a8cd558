"""Every test starts from the workers that are there already."""

from collections.abc import Iterator

import pytest

from faults import support
from faults.nursery import Nursery


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made


@pytest.fixture(autouse=True)
def only_own_workers() -> Iterator[None]:
    support.foreign.update(support.workers_of())
    yield
    support.foreign.clear()
