"""Shared by all tests."""

import gc


def pytest_collection_finish() -> None:
    """Tests that collect garbage should not walk through tens of thousands of test items each time."""
    gc.collect()
    gc.freeze()
