"""Requests that the description allows are answered as it says, and others refused."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serving.models import record_model, row_model, saved, text_model
from thinleaf.serving import create_app

CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)


few = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("make", [text_model, row_model, record_model])
def test_requests_that_are_described_and_others(make, mode, tmp_path):
    app = create_app(saved(make(), tmp_path), max_batch=5)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    statuses: dict[int, Any] = {}  # with an example

    @few
    @given(schema["/predict"]["POST"].as_strategy(generation_mode=mode))
    def validate(case: Any) -> None:
        response = case.call()
        statuses[response.status_code] = (case.body, response.text)
        case.validate_response(response, checks=CHECKS)

    validate()
    if mode is GenerationMode.NEGATIVE:
        assert statuses
        assert statuses.keys() <= {400, 405, 413, 415, 422}, statuses
    elif make is text_model:
        assert statuses.keys() == {200}, statuses
    else:  # no schema can say that there are as many values as indices, or what a column can hold
        assert 200 in statuses
        assert statuses.keys() <= {200, 422}, statuses


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_other_paths_are_as_described(path, tmp_path):
    app = create_app(saved(text_model(), tmp_path))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)

    @settings(few, max_examples=3)
    @given(schema[path]["GET"].as_strategy())
    def validate(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    validate()
