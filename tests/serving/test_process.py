"""A real server: started, asked, its model replaced, attacked slowly, and stopped."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.test_cli import wrong
from tests.serving.models import saved, text_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


class Server:
    """A process that serves a file."""

    def __init__(self, path: Path, *options: str) -> None:
        command = [sys.executable, "-m", "thinleaf", "serve", str(path), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", said)):
            line = self.process.stderr.readline()
            assert line, (said, self.process.poll())
            said += line
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"
        for _ in range(500):
            try:
                httpx.get(f"{self.url}/health")
                return
            except httpx.ConnectError:
                time.sleep(0.02)

    def ask(self, text: str = "a broken arm") -> Any:
        return httpx.post(f"{self.url}/predict", json={"text": text}, timeout=30.0).json()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    found = Server(saved(text_model(), tmp_path), "--watch", "0.05")
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.communicate()


def until(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it never came")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_replaced_and_stopped(server, tmp_path, number):
    path = tmp_path / "model.thinleaf"
    first = server.ask()
    assert first["label"] == "fracture"
    text_model(other=True).save(path)
    until(lambda: server.ask()["label"] == "other fracture")
    path.write_bytes(b"broken")
    until(lambda: httpx.get(f"{server.url}/health").json()["reload_failure"])
    assert server.ask()["label"] == "other fracture"
    text_model().save(path)
    server.process.send_signal(signal.SIGHUP)
    until(lambda: server.ask()["model"] == first["model"])
    code, said = server.end(number)
    assert code == 0
    assert "Traceback" not in said
    assert "the old one stays" in said


def test_no_request_is_lost_or_wrong_while_models_change(server, tmp_path):
    expected = {"fracture": set(), "other fracture": set()}  # versions by label
    lost: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        with httpx.Client() as client:
            while not stop.is_set():
                found = client.post(f"{server.url}/predict", json={"text": "a broken arm"})
                if found.status_code != 200:
                    lost.append(found.text)
                else:
                    expected[found.json()["label"]].add(found.json()["model"])

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        text_model(other=turn % 2 == 0).save(tmp_path / "model.thinleaf")
        time.sleep(0.3)
    stop.set()
    for thread in threads:
        thread.join()
    assert lost == []
    assert [len(versions) for versions in expected.values()] == [1, 1]


def test_what_has_begun_is_answered_at_the_end(server):
    """A body comes slowly, the signal meanwhile."""
    head = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    body = b'{"text": "a broken arm"}'
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body[:5])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        with pytest.raises(OSError):  # noqa: PT011
            socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(body[5:])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"200 OK" in answer
    assert b"fracture" in answer
    assert server.process.wait(30) == 0


def test_heads_without_end_are_cut_off_and_others_answered(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        with suppress(OSError):
            for i in range(40):
                connection.sendall(b"x-%d: %s\r\n" % (i, b"a" * 5000))
        ready, _, _ = select.select([connection], [], [], 10.0)
        assert ready
        with suppress(ConnectionError):
            assert connection.recv(1000) == b""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        assert b"400" in connection.recv(1000)
    assert server.ask()["label"] == "fracture"


def test_a_server_that_cannot_start_says_so(tmp_path):
    path = saved(text_model(), tmp_path)
    assert "No such file" in wrong("serve", tmp_path / "none")
    (tmp_path / "broken").write_bytes(b"no model")
    assert "broken" in wrong("serve", tmp_path / "broken")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}: " in wrong("serve", path, "--port", port)
    wrong("serve", path, "--port", 99999, code=2)
