"""Lines of a stream as they arrive, so that whoever waits for an answer gets one."""

from __future__ import annotations

import io
from collections import deque
from typing import Final

from thinleaf.datasets.compressed import decompressed

_CHUNK: Final = 1 << 16


class LiveStream:
    """A stream that knows whether its next line has arrived.

    An :class:`~thinleaf.datasets.reader.ExampleReader` of it ends a batch when no further line is
    there yet: rows that come one by one are batches of one, and rows that come fast are large ones.

    Parameters
    ----------
    stream : binary stream with ``read1``
        Such as ``sys.stdin.buffer``. What it holds may be compressed with gzip or zstd.
    name : str
        What messages call it.
    """

    def __init__(self, stream: io.BufferedIOBase, name: str = "<stdin>") -> None:
        self.name = name
        self._stream = stream
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._begun = False

    @property
    def idle(self) -> bool:
        """Whether :meth:`readline` may have to wait."""
        return not self._lines

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, or at the end of the stream nothing."""
        if not self._begun:
            self._begun, self._stream = True, decompressed(self._stream, self.name)
        while not self._lines:
            chunk = self._stream.read1(_CHUNK)
            self._rest += chunk
            if b"\n" in chunk:
                *lines, rest = self._rest.split(b"\n")
                self._lines.extend(bytes(line) + b"\n" for line in lines)
                self._rest = rest
            elif not chunk or 0 <= limit <= len(self._rest):
                line, self._rest = bytes(self._rest), bytearray()
                return line
        return self._lines.popleft()
