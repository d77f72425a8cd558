"""Shared by all tests."""

import gc

from hypothesis import HealthCheck, settings

# A loaded machine is no fault of ours: what takes 10 ms takes 300 there now and then.
settings.register_profile("at any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("at any pace")


def pytest_collection_finish() -> None:
    """Tests that collect garbage should not walk through tens of thousands of test items each time."""
    gc.collect()
    gc.freeze()
