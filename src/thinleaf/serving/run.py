"""The server of ``thinleaf serve``: uvicorn, guarded against slow clients, with signals.

SIGTERM and SIGINT let requests that have begun be answered, then end it; SIGHUP takes the model
file up anew.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

try:
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        'serving needs uvicorn and httptools: pip install "thinleaf[serve]"'
    ) from missing

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOST_CONNECTIONS = 1000
"""Connections at a time; who comes then gets a 503."""

_HEAD_SECONDS = 10.0
_HEAD_BYTES = 1 << 16
_IDLE_SECONDS = 15


class GuardedProtocol(HttpToolsProtocol):
    """HTTP whose requests must begin soon: uvicorn itself would wait for a head for ever.

    A connection that has not sent a whole head after ten seconds, or has sent 64 kB without one, is
    closed. Bodies have their own time in the app.
    """

    _timer: TimerHandle | None = None
    _n_head = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take data; go on waiting if they are no whole head."""
        super().data_received(data)
        if self._has_request():
            self._n_head = 0
            self._stop_waiting()
            return
        self._n_head += len(data)
        if self._n_head > _HEAD_BYTES:
            self._end()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._end)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._stop_waiting()
        if not self._has_request() and not self.transport.is_closing():
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; ``OSError`` if that is not possible.

    Parameters
    ----------
    host : str
    port : int
        0 is any that is free.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise OSError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


def run(
    app: Starlette,
    listening: socket.socket,
    *,
    access_log: bool = False,
    grace: float = 30.0,
    started: Callable[[], None] | None = None,
) -> None:
    """Serve until a signal says to end.

    Parameters
    ----------
    app : Starlette
        As from :func:`~thinleaf.serving.create_app`.
    listening : socket
        As from :func:`listen`.
    access_log : bool
        Whether to write a line a request to standard error.
    grace : float
        Seconds that requests have left after a signal.
    started : callable, optional
        Called when the server listens.
    """
    _write_logs(access_log)
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=access_log,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=max(1, round(grace)),
        limit_concurrency=MOST_CONNECTIONS,
    )
    server = uvicorn.Server(config)
    # uvicorn raises the signal that ended it again, once all is done: that is to be no error
    before = {number: signal.signal(number, _nothing) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_serve(server, app, listening, started))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve(
    server: uvicorn.Server,
    app: Starlette,
    listening: socket.socket,
    started: Callable[[], None] | None,
) -> None:
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, app.state.ask_reload)
    if started is not None:
        started()
    await server.serve(sockets=[listening])


def _nothing(number: int, frame: Any) -> None:
    pass


def _write_logs(access_log: bool) -> None:
    """Write what is said of models, errors and, if wanted, requests to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    levels = {"thinleaf.serving": logging.INFO, "uvicorn.error": logging.ERROR}
    if access_log:
        levels["uvicorn.access"] = logging.INFO
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
