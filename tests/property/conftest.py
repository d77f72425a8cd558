"""Hypothesis profiles: by default always the same examples; `HYPOTHESIS_PROFILE=search` seeks new ones."""

import os

from hypothesis import HealthCheck, settings

# A deadline or a slowness check would fail on a loaded machine for reasons that are not ours.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", settings.get_profile("fixed"), derandomize=False, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
