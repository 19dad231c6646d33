"""One hypothesis profile for the whole suite, and the order of tests."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "thinleaf",
    deadline=None,  # compiled code makes first calls slow
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=1000)  # --hypothesis-profile=deep
settings.load_profile("thinleaf")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that compile for a minute: at the end, one process would wait."""
    items.sort(key=lambda item: item.get_closest_marker("compiles") is None)
