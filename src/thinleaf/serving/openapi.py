"""The description of the interface, OpenAPI 3.1, for the model that answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from thinleaf._dtypes import PARAM
from thinleaf._version import __version__
from thinleaf.serving.limits import Limits
from thinleaf.serving.request import Shape

_LABEL: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_PROBABILITY = {"type": ["number", "null"], "minimum": 0, "maximum": 1.000001}
_ERRORS = {
    "400": "The body is not JSON in UTF-8.",
    "408": "The body did not come in time.",
    "413": "The body or the batch is too large.",
    "415": "The content type is not application/json.",
    "422": "A field is wrong; the message says which and why.",
    "500": "An error of the server.",
    "503": "The server is too busy, or the answer took too long.",
}


def document(shape: Shape, limits: Limits) -> dict[str, Any]:
    """Return the description of what can be asked of a model."""
    one, many = shape.fields
    sample = _sample(shape)
    options: dict[str, Any] = {
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": shape.n_classes,
            "description": "Give this many labels, the most probable first.",
        },
        "proba": {"type": "boolean", "description": "Give labels with their probabilities."},
        "min_proba": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Reject an answer that is less probable.",
        },
    }
    if shape.rejects:
        options["reject"] = {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "description": "Reject answers so that this share of the others is right.",
        }
    several = {"type": "array", "items": sample, "minItems": 1, "maxItems": limits.max_batch}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "thinleaf",
            "version": __version__,
            "description": f"Labels for texts or rows, from a model of {shape.n_classes:,} labels.",
        },
        "paths": {
            "/predict": {"post": _predict(one, many, sample, several, options)},
            "/health": {
                "get": _plain("Whether the server answers, and with which model.", _HEALTH)
            },
            "/metrics": {
                "get": {
                    "operationId": "metrics",
                    "summary": "Figures in the text format of Prometheus.",
                    "responses": {
                        "200": {
                            "description": "Figures.",
                            "content": {"text/plain": {"schema": {"type": "string"}}},
                        }
                    },
                }
            },
        },
        "components": {"schemas": {"Error": _ERROR, "Answer": _ANSWER}},
    }


def _predict(
    one: str, many: str, sample: Any, several: Any, options: dict[str, Any]
) -> dict[str, Any]:
    asked = [
        {
            "type": "object",
            "properties": {name: schema, **options},
            "required": [name],
            "additionalProperties": False,
        }
        for name, schema in ((one, sample), (many, several))
    ]
    answered = {
        "type": "object",
        "properties": {
            "predictions": {"type": "array", "items": {"$ref": "#/components/schemas/Answer"}},
            "model": {"type": "string"},
        },
        "required": ["predictions", "model"],
    }
    single = {
        "allOf": [
            {"$ref": "#/components/schemas/Answer"},
            {"type": "object", "required": ["model"]},
        ]
    }
    errors = {status: _error(about) for status, about in _ERRORS.items()}
    return {
        "operationId": "predict",
        "summary": "The label of one sample, or of several.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"oneOf": asked}}},
        },
        "responses": {
            "200": {
                "description": "An answer, or one for each sample in order.",
                "content": {"application/json": {"schema": {"anyOf": [single, answered]}}},
            },
            **errors,
        },
    }


def _sample(shape: Shape) -> dict[str, Any]:
    if shape.kind == "texts":
        return {"type": "string"}
    largest = float(np.finfo(PARAM).max)
    number = {"type": "number", "minimum": -largest, "maximum": largest}
    if shape.kind == "records":
        columns: dict[str, Any] = {name: {"type": "string"} for name in shape.text_columns}
        columns |= dict.fromkeys(shape.numeric_columns, number)
        return {
            "type": "object",
            "properties": columns,
            "required": list(columns),
            "additionalProperties": False,
        }
    n = shape.n_features
    index = {"type": "integer", "minimum": 0, "maximum": n - 1}
    return {
        "oneOf": [
            {"type": "array", "items": number, "minItems": n, "maxItems": n},
            {
                "type": "object",
                "description": "The entries that are not zero; as many values as indices.",
                "properties": {
                    "indices": {"type": "array", "items": index, "uniqueItems": True},
                    "values": {"type": "array", "items": number},
                },
                "required": ["indices", "values"],
                "additionalProperties": False,
            },
        ]
    }


def _error(about: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _plain(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {
        "operationId": "health",
        "summary": about,
        "responses": {"200": {"description": about, "content": content}},
    }


_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What is wrong."}},
    "required": ["error"],
    "additionalProperties": False,
}
_ANSWER = {
    "type": "object",
    "properties": {
        "label": {**_LABEL, "type": [*_LABEL["type"], "null"]},
        "probability": _PROBABILITY,
        "labels": {"type": "array", "items": _LABEL},
        "probabilities": {"type": "array", "items": _PROBABILITY},
        "rejected": {"type": "boolean"},
        "model": {"type": "string", "description": "The version of the model that answered."},
    },
    "additionalProperties": False,
}
_HEALTH = {
    "type": "object",
    "properties": {
        "status": {"const": "ok"},
        "model": {"type": "string"},
        "input": {"enum": ["texts", "rows", "records"]},
        "features": {"type": "integer"},
        "classes": {"type": "integer"},
        "loaded_at": {"type": "string"},
        "reload_failure": {"type": ["string", "null"]},
    },
    "required": ["status", "model", "input", "features", "classes", "loaded_at", "reload_failure"],
}
