"""How much one request may ask for, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a server grants a request.

    Attributes
    ----------
    max_body : int
        Bytes of a request's body.
    max_batch : int
        Texts or rows of a request.
    max_labels : int
        Labels of a response: texts or rows times ``top_k``.
    timeout : float
        Seconds for reading a request's body, and again for its answer.
    max_waiting : int
        Requests that wait for a thread; others are sent away.
    """

    max_body: int = 4 << 20
    max_batch: int = 1024
    max_labels: int = 100_000
    timeout: float = 10.0
    max_waiting: int = 1000

    def __post_init__(self) -> None:
        for name in ("max_body", "max_batch", "max_labels", "max_waiting"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if not 0.0 < self.timeout < float("inf"):
            raise ValueError(f"timeout must be a positive number of seconds, got {self.timeout!r}")
