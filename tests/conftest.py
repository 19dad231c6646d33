"""One hypothesis profile for the whole suite, the order of tests, and threads."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # Threads of linear algebra that wait for a core which another process has take ten times as
    # long. NumPy and PyTorch read this when they are imported, which is later.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

# jobs of a shell script begin with Ctrl-C ignored: tests of it would wait in vain
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "thinleaf",
    deadline=None,  # compiled code makes first calls slow
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=1000)  # --hypothesis-profile=deep
settings.load_profile("thinleaf")

os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")  # of processes whose standard error is read

# What is saved and loaded is the same to the bit, in Python. That the extension, where it was
# built, answers alike is tested in tests/native.
os.environ["THINLEAF_NATIVE"] = "0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that compile for a minute: at the end, one process would wait."""
    items.sort(key=lambda item: item.get_closest_marker("compiles") is None)
