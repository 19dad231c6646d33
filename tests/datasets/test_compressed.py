"""Compressed files are read as others are; damaged ones are refused, and all are closed."""

from __future__ import annotations

import gzip
import io

import pytest

from thinleaf.datasets import DataFileError, LiveStream, open_examples, read_examples
from thinleaf.datasets.compressed import open_bytes, plain_suffix

CONTENT = "".join(f"{i}\ttext {i * i}\n" for i in range(20_000)).encode()


def zstd(content: bytes) -> bytes:
    pa = pytest.importorskip("pyarrow")
    return pa.Codec("zstd").compress(content, asbytes=True)


both = pytest.mark.parametrize(
    ("compress", "suffix"), [(gzip.compress, ".gz"), (zstd, ".zst")], ids=["gzip", "zstd"]
)


@both
@pytest.mark.filterwarnings("error::ResourceWarning")
def test_what_is_compressed_is_read(compress, suffix, tmp_path):
    for name in (f"a.tsv{suffix}", "a.tsv"):  # the name does not matter
        path = tmp_path / name
        path.write_bytes(compress(CONTENT[:9000]) + compress(CONTENT[9000:]))
        with open_bytes(str(path)) as file:
            assert file.read() == CONTENT
        assert file.closed
        assert len(read_examples(path)) == 20_000


@both
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_what_is_cut_short_or_damaged_is_refused(compress, suffix, on_error, tmp_path):
    whole = compress(CONTENT)
    path = tmp_path / f"a.tsv{suffix}"
    for broken in (whole[:-1], whole[:-9], whole[: len(whole) // 2], whole[:5], whole + b"\1" * 9):
        path.write_bytes(broken)
        with (
            pytest.raises(
                DataFileError, match=r"a.tsv.*:\d+: the \w+ data is damaged or cut short"
            ),
            open_examples(path, on_error=on_error) as reader,
        ):
            reader.read_all()


def test_names():
    assert plain_suffix("a.b/c.TSV.ZST") == ".tsv"
    assert plain_suffix("c.gz") == plain_suffix("c") == ""


@both
def test_streams_may_be_compressed_and_stay_open(compress, suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(compress(CONTENT))
    with open(path, "rb") as file:
        assert len(read_examples(file, format="tsv")) == 20_000
        assert not file.closed
    stream = io.BytesIO(compress(CONTENT))
    assert len(read_examples(stream, format="tsv")) == 20_000
    assert not stream.closed
    assert len(read_examples(LiveStream(io.BytesIO(compress(CONTENT))), format="tsv")) == 20_000
