"""Data: readers of files, and the data set of examples and figures. Nothing here knows a tree."""

from thinleaf.datasets.examples import (
    FeatureRows,
    TextRows,
    concatenate,
    label_array,
    label_kind,
    take,
)
from thinleaf.datasets.formats import Layout
from thinleaf.datasets.icd10cm import TextSplit, load_icd10cm
from thinleaf.datasets.lines import DataFileError
from thinleaf.datasets.live import LiveStream
from thinleaf.datasets.reader import ExampleReader, open_examples, read_examples

__all__ = [
    "DataFileError",
    "ExampleReader",
    "FeatureRows",
    "Layout",
    "LiveStream",
    "TextRows",
    "TextSplit",
    "concatenate",
    "label_array",
    "label_kind",
    "load_icd10cm",
    "open_examples",
    "read_examples",
    "take",
]
