"""Files with columns: CSV, JSON lines, Parquet and Arrow. One record is one example.

``columns`` finds the columns of texts, labels or features, ``fields`` makes an example of a record,
and each kind of file has a module of its own that gives records.
"""
