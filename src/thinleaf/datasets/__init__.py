"""Data sets: where examples and figures get theirs. Nothing here knows a tree."""

from thinleaf.datasets.icd10cm import TextSplit, load_icd10cm

__all__ = ["TextSplit", "load_icd10cm"]
