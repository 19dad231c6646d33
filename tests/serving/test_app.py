"""The app over HTTP: every request is answered, a bad one with what is wrong; models change."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tests.serving.models import SAMPLES, row_model, saved, text_model
from thinleaf.serving import create_app
from thinleaf.serving.answer import Answerer


@pytest.fixture
def path(tmp_path) -> Any:
    return saved(text_model(), tmp_path)


@pytest.fixture
def client(path) -> Iterator[TestClient]:
    with TestClient(create_app(path, max_body=20_000, max_batch=50, watch=0.02)) as client:
        yield client


def error(response: httpx.Response, status: int) -> str:
    """Return what a refusal says."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    record = response.json()
    assert record.keys() == {"error"}
    return str(record["error"])


def test_one_and_several(client):
    one = client.post("/predict", json={"text": "a broken toe"}).json()
    assert one["label"] == "fracture"
    several = client.post("/predict", json={"texts": ["a broken toe", "fever"], "proba": True})
    assert several.status_code == 200
    assert [p["label"] for p in several.json()["predictions"]] == ["fracture", "fever"]
    assert several.json()["model"] == one["model"]
    assert re.fullmatch(r"[0-9a-f]{16}", one["model"])


def test_large_bodies_are_answered_in_a_thread_and_alike(client):
    texts = [f"a broken toe {'x' * 200} {i}" for i in range(50)]
    found = client.post("/predict", json={"texts": texts, "top_k": 2, "proba": True})
    labels, p = text_model().predict_topk(texts, 2)
    answers = found.json()["predictions"]
    assert [a["labels"] for a in answers] == labels.tolist()
    assert [a["probabilities"] for a in answers] == p.tolist()


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_all_kinds_of_models(kind, tmp_path):
    make, sample = SAMPLES[kind]
    with TestClient(create_app(saved(make(), tmp_path))) as client:
        health = client.get("/health").json()
        assert health["input"] == ("texts" if kind == "label tree" else kind)
        assert health["classes"] == make().n_classes
        one = health["input"][:-1]
        expected = make().predict([sample]).tolist()[0]
        assert client.post("/predict", json={one: sample}).json()["label"] == expected


HOSTILE: list[tuple[dict[str, Any], int]] = [
    ({"content": b""}, 400),
    ({"content": b"{"}, 400),
    ({"content": b'{"text": NaN}'}, 400),
    ({"content": b'{"text": "\xff\xfe"}'}, 400),
    ({"content": b"[" * 19_000}, 400),
    ({"content": b'{"text": "a", "top_k": 1e999}'}, 422),
    ({"content": b'{"text": "a", "top_k": ' + b"9" * 5000 + b"}"}, 400),
    ({"content": b'{"text": "\\udc00"}'}, 422),
    ({"content": b"null"}, 422),
    ({"content": b'{"texts": []}'}, 422),
    ({"content": b'{"texts": {}}'}, 422),
    ({"content": b'{"text": "a", "sort": 1}'}, 422),
    ({"content": json.dumps({"texts": ["a"] * 51}).encode()}, 413),
    ({"content": b'{"text": "' + b"a" * 20_000 + b'"}'}, 413),
    ({"content": b"\x00" * 10_000_000}, 413),
    ({"content": b'{"text": "a"}', "headers": {"content-type": "text/plain"}}, 415),
    ({"content": b"text=a", "headers": {"content-type": "application/x-www-form-urlencoded"}}, 415),
    ({"content": b'{"text": "a"}', "headers": {"content-type": ""}}, 415),
]


@pytest.mark.parametrize(("request_", "status"), HOSTILE)
def test_bad_requests_say_why_and_hurt_nobody(client, request_, status):
    sent = {"headers": {"content-type": "application/json"}} | request_
    said = error(client.post("/predict", **sent), status)
    assert said
    assert client.post("/predict", json={"text": "a broken toe"}).json()["label"] == "fracture"


def test_other_paths_and_methods(client):
    assert "/predict" in error(client.get("/nothing"), 404)
    assert "does not take GET" in error(client.get("/predict"), 405)
    assert "does not take DELETE" in error(client.delete("/health"), 405)
    assert error(client.post("/predict/", json={"text": "a"}), 404)
    assert client.head("/health").status_code == 200


def test_a_body_that_never_ends_is_given_up(path):
    app = create_app(path, timeout=0.2)

    async def slow() -> Any:
        import asyncio

        yield b'{"text": '
        await asyncio.sleep(5.0)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(
                "/predict", content=slow(), headers={"content-type": "application/json"}
            )

    import asyncio

    # the transport gives the body part by part, as a connection does
    assert "did not come within 0.2 s" in error(asyncio.run(ask()), 408)


def test_an_answer_that_takes_too_long_and_a_server_that_is_busy(path, monkeypatch):
    free = threading.Event()
    labels = Answerer.labels

    def slow(self: Answerer, samples: Any) -> list[Any]:
        if "wait" in samples[0]:
            assert free.wait(20.0)
        return labels(self, samples)

    monkeypatch.setattr(Answerer, "labels", slow)
    app = create_app(path, timeout=0.2, threads=1, max_waiting=1)
    long = "wait" + " x" * 4000
    with TestClient(app) as client:
        assert "longer than 0.2 s" in error(client.post("/predict", json={"text": long}), 503)
        busy = client.post("/predict", json={"text": long})
        assert "too busy" in error(busy, 503)
        assert busy.headers["retry-after"] == "1"
        assert client.post("/predict", json={"text": "fever"}).json()["label"] == "fever"
        free.set()
        for _ in range(200):
            if client.post("/predict", json={"text": "a" * 5000}).status_code == 200:
                break
            time.sleep(0.02)
        else:
            pytest.fail("the thread was never free again")


def test_an_error_of_ours_is_a_500_and_the_next_request_is_answered(path, monkeypatch):
    def broken(self: Answerer, samples: Any) -> list[Any]:
        if samples == ["boom"]:
            raise ZeroDivisionError
        return ["fine"]

    app = create_app(path)
    monkeypatch.setattr(Answerer, "labels", broken)
    with TestClient(app, raise_server_exceptions=False) as client:
        said = error(client.post("/predict", json={"text": "boom"}), 500)
        assert "ZeroDivision" not in said
        assert client.post("/predict", json={"text": "a"}).json()["label"] == "fine"
        assert 'status="500"} 1' in client.get("/metrics").text


def wait_for(condition: Any) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it never came")


def test_a_file_that_is_replaced_is_taken_up(client, path):
    before = client.get("/health").json()
    text_model(other=True).save(path)
    wait_for(lambda: client.get("/health").json()["model"] != before["model"])
    assert client.post("/predict", json={"text": "fever"}).json()["label"] == "other fever"
    path.write_bytes(b"broken")
    wait_for(lambda: client.get("/health").json()["reload_failure"])
    assert client.post("/predict", json={"text": "fever"}).json()["label"] == "other fever"
    figures = client.get("/metrics").text
    assert 'thinleaf_reloads_total{result="ok"} 1' in figures
    assert 'thinleaf_reloads_total{result="failed"} 1' in figures
    assert "thinleaf_reload_failed 1" in figures


def test_a_reload_that_is_asked_for(path):
    app = create_app(path, watch=0.0)
    with TestClient(app) as client:
        text_model(other=True).save(path)
        time.sleep(0.1)
        assert client.post("/predict", json={"text": "fever"}).json()["label"] == "fever"
        assert client.portal is not None
        client.portal.call(app.state.ask_reload)
        wait_for(lambda: app.state.slot.n_reloads == 1)
        assert client.post("/predict", json={"text": "fever"}).json()["label"] == "other fever"


def test_figures_are_counted(client):
    for content in ({"text": "a"}, {"texts": ["a", "b"], "min_proba": 1.0}, {"none": 1}):
        client.post("/predict", json=content)
    client.get("/no/such/path")
    text = client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = text.text.splitlines()
    assert 'thinleaf_requests_total{path="/predict",status="200"} 2' in lines
    assert 'thinleaf_requests_total{path="/predict",status="422"} 1' in lines
    assert 'thinleaf_requests_total{path="other",status="404"} 1' in lines
    assert "thinleaf_rows_total 3" in lines
    assert "thinleaf_predict_seconds_count 3" in lines
    assert 'thinleaf_predict_seconds_bucket{le="+Inf"} 3' in lines
    version = client.get("/health").json()["model"]
    assert any(line.startswith(f'thinleaf_model_info{{version="{version}"') for line in lines)
    sample = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+')
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line
    buckets = [int(line.split()[-1]) for line in lines if "_bucket{" in line]
    assert buckets == sorted(buckets)


def test_the_app_can_be_mounted(path):
    inner = create_app(path)
    outer = Starlette(routes=[Mount("/labels", inner)])
    with TestClient(outer) as client:
        found = client.post("/labels/predict", json={"text": "a broken toe"})
        assert found.json()["label"] == "fracture"
        assert 'path="/predict",status="200"} 1' in client.get("/labels/metrics").text
        assert client.get("/labels/").status_code == 200


class Loads(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found += [f"{tag} {value}" for name, value in attrs if name == "src"]
        self.found += [tag] if tag in ("link", "img", "iframe") else []


@pytest.mark.parametrize("where", ["/", "/docs"])
def test_the_page_loads_nothing_and_shows_the_fields(client, where):
    response = client.get(where)
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = Loads()
    page.feed(response.text)
    assert page.found == []
    script = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert len(script) == 1
    assert f"script-src 'sha256-{digest}'" in response.headers["content-security-policy"]
    assert "https://" not in response.text
    assert "{{" not in response.text
    for field in ("text", "texts", "top_k", "proba", "min_proba"):
        assert f"<code>{field}</code>" in response.text
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")


@pytest.mark.parametrize(
    "wrong", [{"watch": -1.0}, {"threads": 0}, {"max_batch": 0}, {"timeout": -1}]
)
def test_parameters_that_are_wrong(path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        create_app(path, **wrong)


def test_a_model_of_rows_has_its_own_page(tmp_path):
    with TestClient(create_app(saved(row_model(), tmp_path))) as client:
        assert "rows of 6 features" in client.get("/").text
        assert "give 'row' or 'rows', not 'text'" in error(
            client.post("/predict", json={"text": "a"}), 422
        )
