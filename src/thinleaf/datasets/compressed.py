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
        start = file.peek(len(_ZSTD))
        if start.startswith(_GZIP):
            stream = gzip.GzipFile(fileobj=file)
            return io.BufferedReader(_Decompressed(stream, file, "gzip"), _CHUNK)
        if start.startswith(_ZSTD):
            return io.BufferedReader(_Decompressed(_zstd(file, path), file, "zstd"), _CHUNK)
    except BaseException:
        file.close()
        raise
    return file


def _zstd(file: IO[bytes], path: str) -> Any:
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


class _Decompressed(io.RawIOBase):
    """What a decompressor gives, its many errors as one; closing it closes the file, too."""

    def __init__(self, stream: Any, file: IO[bytes], kind: str) -> None:
        self._stream, self._file, self._kind = stream, file, kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._stream.read(len(buffer))
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
            self._stream.close()
            self._file.close()
