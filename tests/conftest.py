"""One hypothesis profile for the whole suite: compiled code makes first calls slow."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "thinleaf",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=1000)  # --hypothesis-profile=deep
settings.load_profile("thinleaf")

os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")  # of processes whose standard error is read
