"""The ASGI app: what is asked under which path, in how much time, on which thread."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from thinleaf.serving import docs_page
from thinleaf.serving.answer import Answer, answer
from thinleaf.serving.limits import Limits
from thinleaf.serving.metrics import CONTENT_TYPE, Metrics
from thinleaf.serving.openapi import document
from thinleaf.serving.request import RequestError
from thinleaf.serving.slot import Loaded, Slot

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        'serving needs starlette and uvicorn: pip install "thinleaf[serve]"'
    ) from missing

log = logging.getLogger("thinleaf.serving")

PATHS = ("/", "/docs", "/health", "/metrics", "/openapi.json", "/predict")

_INLINE = 4096
"""Bytes of the largest body that is answered without a thread, if the model is quick."""

_DRAINED = 1 << 26
"""Bytes of a body that are read and dropped, so that who sends it can read the refusal."""


def create_app(
    path: str | os.PathLike[str],
    *,
    max_body: int = Limits.max_body,
    max_batch: int = Limits.max_batch,
    max_labels: int = Limits.max_labels,
    timeout: float = Limits.timeout,
    max_waiting: int = Limits.max_waiting,
    threads: int | None = None,
    watch: float = 1.0,
    beam: int | None = None,
    temperature: float | None = None,
    encoder: Any = None,
) -> Starlette:
    """Return an ASGI app that answers with the model of a file.

    The model is loaded now; when the file is replaced, the app takes up the new one between two
    requests. Run it under any ASGI server, or mount it in another app; ``app.state.slot.reload()``
    takes the file up at once.

    Parameters
    ----------
    path : path-like
        A model file. Replace it by renaming another over it, as ``save`` does.
    max_body : int
        Bytes of a request's body.
    max_batch : int
        Texts or rows of a request.
    max_labels : int
        Labels of a response: texts or rows times ``top_k``.
    timeout : float
        Seconds for reading a request's body, and again for its answer.
    max_waiting : int
        Requests that wait for a thread; others get a 503.
    threads : int, optional
        That predict; by default as many as there are cores.
    watch : float
        Seconds between looks at the file; 0 for none.
    beam, temperature : int, float, optional
        Of the model, instead of its own.
    encoder : callable, optional
        What makes rows of texts, if the model was trained with one.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or holds no valid model.

    Examples
    --------
    >>> from thinleaf.serving import create_app
    >>> app = create_app("model.thinleaf", max_batch=64)  # doctest: +SKIP
    """
    limits = Limits(max_body, max_batch, max_labels, timeout, max_waiting)
    if watch < 0.0:
        raise ValueError(f"watch must be 0 or a number of seconds, got {watch!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads!r}")
    service = Service(Slot(path, limits, beam, temperature, encoder), limits, threads, watch)
    app = Starlette(
        routes=[
            Route("/predict", service.predict, methods=["POST"]),
            Route("/health", service.health),
            Route("/metrics", service.figures),
            Route("/openapi.json", service.openapi),
            Route("/", service.docs),
            Route("/docs", service.docs),
        ],
        middleware=[Middleware(Counted, metrics=service.metrics)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False
    app.state.slot, app.state.metrics = service.slot, service.metrics
    app.state.ask_reload = service.ask_reload
    return app


class Service:
    """The endpoints, over a slot that holds the model.

    Parameters
    ----------
    slot : Slot
    limits : Limits
    threads : int or None
    watch : float
    """

    def __init__(self, slot: Slot, limits: Limits, threads: int | None, watch: float) -> None:
        self.slot, self.limits, self.metrics = slot, limits, Metrics()
        self._watch = watch
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, "thinleaf-predict")
        self._n_waiting = 0
        self._asked: asyncio.Event | None = None
        self._policy = docs_page.policy()

    # -- endpoints ---------------------------------------------------------------------------------

    async def predict(self, request: Request) -> Response:
        """Answer a request for labels."""
        try:
            body = await self._body(request)
            loaded = self.slot.current  # one model for the whole request
            if loaded.quick and len(body) <= _INLINE:
                found = answer(body, loaded.answerer, loaded.version, self.limits)
            else:
                found = await self._in_thread(body, loaded)
        except RequestError as error:
            return _error(error.status, error.message)
        except ClientDisconnect:
            return _error(400, "the client is gone")
        self.metrics.n_rows += found.n_rows
        self.metrics.n_rejected += found.n_rejected
        return Response(found.body, media_type="application/json")

    async def health(self, request: Request) -> Response:
        """Say that the server answers, and with which model."""
        loaded = self.slot.current
        shape = loaded.answerer.shape
        loaded_at = datetime.fromtimestamp(loaded.loaded_at, UTC)
        return _json(
            {
                "status": "ok",
                "model": loaded.version,
                "input": shape.kind,
                "features": shape.n_features,
                "classes": shape.n_classes,
                "loaded_at": loaded_at.isoformat(timespec="milliseconds"),
                "reload_failure": self.slot.failure,
            }
        )

    async def figures(self, request: Request) -> Response:
        """Give the figures that Prometheus collects."""
        return Response(self.metrics.text(self.slot), headers={"content-type": CONTENT_TYPE})

    async def openapi(self, request: Request) -> Response:
        """Describe the interface."""
        return _json(document(self.slot.current.answerer.shape, self.limits))

    async def docs(self, request: Request) -> Response:
        """Give the page for people."""
        content = docs_page.page(self.slot.current.answerer.shape, self.limits)
        return HTMLResponse(content, headers={"content-security-policy": self._policy})

    # -- reading and predicting --------------------------------------------------------------------

    async def _body(self, request: Request) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            await self._drain(request)
            raise RequestError(415, "the content-type must be application/json")
        most = self.limits.max_body
        parts: list[bytes] = []
        n_bytes = 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                async for part in request.stream():
                    n_bytes += len(part)
                    if n_bytes <= most:
                        parts.append(part)
                    else:
                        parts.clear()  # read on, so that the refusal is heard
                        if n_bytes > max(most, _DRAINED):
                            break
        except TimeoutError:
            seconds = f"{self.limits.timeout:g} s"
            raise RequestError(408, f"the body did not come within {seconds}") from None
        if n_bytes > most:
            raise RequestError(413, f"the body has more than {most} bytes")
        return b"".join(parts)

    async def _drain(self, request: Request) -> None:
        n_bytes = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.timeout):
                async for part in request.stream():
                    n_bytes += len(part)
                    if n_bytes > _DRAINED:
                        break

    async def _in_thread(self, body: bytes, loaded: Loaded) -> Answer:
        if self._n_waiting >= self.limits.max_waiting:
            raise RequestError(503, "the server is too busy: try again")
        loop = asyncio.get_running_loop()
        self._n_waiting += 1
        job = self._pool.submit(answer, body, loaded.answerer, loaded.version, self.limits)
        job.add_done_callback(partial(self._done, loop))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self.limits.timeout)
        except TimeoutError:
            seconds = f"{self.limits.timeout:g} s"
            raise RequestError(503, f"the answer took longer than {seconds}") from None

    def _done(self, loop: asyncio.AbstractEventLoop, job: Future[Answer]) -> None:
        """Count a job as done when its thread is free, which is after a timeout."""

        def less() -> None:
            self._n_waiting -= 1

        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(less)

    # -- another model -----------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Watch the model file while the app runs."""
        self._asked = asyncio.Event()
        watcher = asyncio.create_task(self._watch_file(self._asked))
        try:
            yield
        finally:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            self._pool.shutdown(wait=False, cancel_futures=True)

    def ask_reload(self) -> None:
        """Take the model file up soon, whether or not it has changed; call it on the loop."""
        if self._asked is not None:
            self._asked.set()

    async def _watch_file(self, asked: asyncio.Event) -> None:
        while True:
            try:
                await asyncio.wait_for(asked.wait(), self._watch or None)
            except TimeoutError:
                if not self.slot.changed():
                    continue
            asked.clear()
            # a thread of its own: it must not wait for requests, nor they for it
            await asyncio.to_thread(self.slot.reload)


class Counted:
    """Counts responses by path and status, and how long they took.

    Parameters
    ----------
    app : ASGI app
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, noted)
        finally:
            self._metrics.in_flight -= 1
            path = scope["path"].removeprefix(scope.get("root_path", ""))  # if it is mounted
            known = path if path in PATHS else "other"
            self._metrics.count(known, status, time.perf_counter() - started)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, status, headers, "application/json")


def _error(status: int, message: str) -> Response:
    headers = {
        503: {"retry-after": "1"},
        408: {"connection": "close"},
        413: {"connection": "close"},
    }
    return _json({"error": message}, status, headers.get(status))


async def _refused(request: Request, error: Exception) -> Response:
    """Answer what has no endpoint, or not by this method."""
    assert isinstance(error, HTTPException)
    said = {
        404: f"there is nothing here: there are {', '.join(PATHS)}",
        405: f"{request.url.path} does not take {request.method[:20]}",
    }
    content = {"error": said.get(error.status_code, error.detail)}
    return _json(content, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """Answer after an error of our own; the server writes it to its log."""
    return _json({"error": "an error of the server: its log says more"}, 500)
