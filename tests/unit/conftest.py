"""Hypothesis for unit tests: the same examples in every run, so that what fails here fails everywhere."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("unit", derandomize=True, deadline=None, max_examples=100, print_blob=True)
# HYPOTHESIS_PROFILE=search looks for new examples and takes its time.
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))
