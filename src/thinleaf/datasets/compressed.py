"""Files that may be compressed, with gzip or zstd, whatever their names are."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import PurePath
from typing import IO, Any, Final

SUFFIXES: Final = (".gz", ".zst")
"""What the names of compressed files end in, after what says their format."""

_CHUNK: Final = 1 << 16
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class DamagedError(ValueError):
    """Compressed data is damaged or cut short."""


def plain_suffix(name: str) -> str:
    """Return what a name ends in, in lower case, without what stands for compression.

    Examples
    --------
    >>> from thinleaf.datasets.compressed import plain_suffix
    >>> plain_suffix("data.CSV.gz"), plain_suffix("data.zst")
    ('.csv', '')
    """
    path = PurePath(name.lower())
    return PurePath(path.stem).suffix if path.suffix in SUFFIXES else path.suffix


def open_bytes(path: str) -> IO[bytes]:
    """Open a file for reading, decompressed; reading raises :class:`DamagedError`.

    Raises
    ------
    OSError
        If it cannot be opened.
    ModuleNotFoundError
        If it is compressed with zstd, and nothing is installed that can read that.
    """
    file = open(path, "rb")  # noqa: SIM115  - the reader of lines closes it
    try:
        found: IO[bytes] = decompressed(file, path, own=True)
    except BaseException:
        file.close()
        raise
    return found


def decompressed(file: Any, name: str, *, own: bool = False) -> Any:
    """Return what a stream of bytes holds, decompressed if its first bytes say that it must be.

    Parameters
    ----------
    file : binary stream
        One that can neither be peeked nor sought in is taken as it is.
    name : str
        What messages call it.
    own : bool
        Whether closing what is returned closes it, too.
    """
    start = _first_bytes(file)
    if start.startswith(_GZIP):
        stream: Any = gzip.GzipFile(fileobj=file)
        return io.BufferedReader(_Decompressed(stream, file if own else None, "gzip"), _CHUNK)
    if start.startswith(_ZSTD):
        stream = _zstd(file if own else _Borrowed(file), name)
        return io.BufferedReader(_Decompressed(stream, file if own else None, "zstd"), _CHUNK)
    return file


def _first_bytes(file: Any) -> bytes:
    """Return what a stream begins with, if it can be looked at; it may wait for that."""
    if hasattr(file, "peek"):
        return bytes(file.peek(len(_ZSTD)))
    start = b""
    if hasattr(file, "seekable") and file.seekable() and isinstance(file.read(0), bytes):
        start = file.read(len(_ZSTD))
        file.seek(-len(start), io.SEEK_CUR)
    return start


def _zstd(file: Any, path: str) -> Any:
    try:  # Python's own, from 3.14 on
        from compression.zstd import ZstdFile  # type: ignore[import-not-found, unused-ignore]

        return ZstdFile(file)
    except ImportError:
        pass
    try:
        from pyarrow import CompressedInputStream
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{path} is compressed with zstd, which needs pyarrow or Python 3.14: "
            "pip install 'thinleaf[arrow]', or decompress the file"
        ) from error
    return CompressedInputStream(file, "zstd")


class _Borrowed(io.RawIOBase):
    """A stream that stays open when this is closed."""

    def __init__(self, file: Any) -> None:
        self._read = getattr(file, "read1", file.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Decompressed(io.RawIOBase):
    """What a decompressor gives, its many errors as one; closing it closes the file, if given."""

    def __init__(self, stream: Any, file: IO[bytes] | None, kind: str) -> None:
        self._stream, self._file, self._kind = stream, file, kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._stream.read1(len(buffer))  # what has arrived, of a live stream
        except (EOFError, zlib.error, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk
            message = f"the {self._kind} data is damaged or cut short"
            raise DamagedError(f"{message} here or in the lines that follow ({error})") from error
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._file is not None:
                self._stream.close()
                self._file.close()
