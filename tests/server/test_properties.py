"""Every route with requests that the OpenAPI document allows, and some that it does not.

No response is a server error, and the document describes each: its status, its content type, its shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from awatt.server.export import MEDIA_TYPES

from .conftest import HOST, TOKEN, make_client

schemathesis = pytest.importorskip("schemathesis", reason="needs the package schemathesis")

#: A request for each route, in an order in which all of them succeed.
USUAL: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/project/sample", {"body": {}}),
    ("GET", "/v1/project", {}),
    ("POST", "/v1/detect", {"body": {"texts": ["The soup was cold and the waiter rude."], "threshold": 0.1}}),
    ("GET", "/v1/report", {}),
    ("POST", "/v1/suggest", {"body": {"k": 3}}),
    ("POST", "/v1/suggest", {"body": {"texts": ["The widget is gone."]}}),
    ("GET", "/v1/aspects", {}),
    ("POST", "/v1/aspects", {"body": {"name": "parking", "examples": ["We never found a parking spot."]}}),
    ("PATCH", "/v1/aspects/{key}", {"key": 1, "body": {"threshold": 0.4}}),
    ("POST", "/v1/aspects/{key}/examples", {"key": 1, "body": {"texts": ["Valet parking only."]}}),
    ("PUT", "/v1/examples/{key}", {"key": 1, "body": {"aspects": [1, 2]}}),
    ("DELETE", "/v1/examples/{key}", {"key": 1}),
    ("GET", "/v1/project/sentences", {}),
    ("GET", "/v1/project/scores", {}),
    ("GET", "/v1/project/map", {}),
    ("POST", "/v1/aspects/names", {"body": {"names": ["battery"]}}),
    ("GET", "/v1/project/quality", {}),
    ("GET", "/v1/project/quality/course", {}),
    ("GET", "/v1/project/by", {}),
    ("GET", "/v1/project/values", {}),
    ("POST", "/v1/project/words", {"body": {"ids": [1, 2]}}),
    ("PUT", "/v1/project/sentences/{key}", {"key": 1, "body": {"aspects": [1], "seen": None}}),
    ("GET", "/v1/project/people", {}),
    ("DELETE", "/v1/project/sentences/{key}", {"key": 1}),
    ("POST", "/v1/project/labels", {"body": {"labels": [{"id": 1, "aspects": [1]}, {"id": 2, "aspects": None}]}}),
    ("PUT", "/v1/project/notes/{key}", {"key": 1, "body": {"note": "ask"}}),
    ("GET", "/v1/project/reviews/{number}", {"number": 1}),
    ("GET", "/v1/project/suggested-aspects", {}),
    ("POST", "/v1/project/suggested-aspects/dismiss", {"body": {"groups": ["table"]}}),
    ("POST", "/v1/project/examples", {"query": {"format": "csv"}, "body": b"text,aspects\nCold soup.,food\n"}),
    ("GET", "/v1/project/progress", {}),
    ("DELETE", "/v1/project/progress", {}),
    ("GET", "/v1/projects", {}),
    ("POST", "/v1/projects", {"body": {"name": "project"}}),
    ("PATCH", "/v1/project/settings", {"body": {"threshold": 0.5}}),
    ("POST", "/v1/project/undo", {}),
    ("POST", "/v1/project/redo", {}),
    *(("GET", "/v1/project/export/{kind}", {"kind": kind}) for kind in MEDIA_TYPES),
    ("GET", "/v1/project/version", {}),
    ("DELETE", "/v1/aspects/{key}", {"key": 1}),
    ("POST", "/v1/project/suggested-aspects", {"body": {"name": "wine", "examples": ["Good wine."], "groups": ["x"]}}),
    ("POST", "/v1/project/columns", {"query": {"format": "csv"}, "body": b"text,stars\nGood.,5\n"}),
    ("POST", "/v1/project/reviews", {"query": {"format": "jsonl"}, "body": b'{"text": "Good."}\nnonsense\n'}),
    ("DELETE", "/v1/project", {}),
    ("GET", "/health/live", {}),
    ("GET", "/health/ready", {}),
    ("POST", "/v1/link", {"body": {"read_only": True, "view": "overview"}}),
    ("GET", "/v1/session", {}),
    ("DELETE", "/v1/session", {}),
]
HEADERS = {"authorization": f"Bearer {TOKEN}", "host": HOST}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_client(tmp_path_factory.mktemp("properties")) as client:
        client.post("/v1/project/sample", json={})
        yield client


@pytest.fixture(scope="module")
def document(served: Any) -> Any:
    return schemathesis.openapi.from_dict(served.get("/openapi.json").json())


def test_usual_responses_have_the_documented_shape(tmp_path: Path) -> None:
    with make_client(tmp_path) as client:
        document = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        covered = set()
        for method, path, given in USUAL:
            parameters = {name: value for name, value in given.items() if name in ("key", "kind", "number")}
            rest = {name: given[name] for name in ("query", "body") if name in given}
            if "body" in rest:
                rest["media_type"] = (
                    "application/octet-stream" if isinstance(rest["body"], bytes) else "application/json"
                )
            operation = document[path][method]
            case = operation.Case(path_parameters=parameters, **rest)
            response = send(case, client)
            assert response.status_code == 200, (method, path, response.text)
            conforms(case, response)
            covered.add(operation.label)
        assert covered == {each.ok().label for each in document.get_all_operations()}


def test_every_response_is_documented(served: Any, document: Any) -> None:
    seen: Counter[bool] = Counter()
    operations = [operation.ok() for operation in document.get_all_operations()]
    for operation in operations:
        check(operation.as_strategy(), served, seen)
    assert len(operations) > 20
    assert seen[True] > 50  # accepted ones
    assert seen[False] > 20


def check(cases: Any, served: Any, seen: Counter[bool]) -> None:
    @given(case=cases)
    @settings(max_examples=12, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    def holds(case: Any) -> None:
        response = send(case, served)
        seen[response.is_success] += 1
        if response.status_code == 503:
            return
        conforms(case, response)

    holds()


def conforms(case: Any, response: Any) -> None:
    checks = schemathesis.checks
    wanted = [checks.not_a_server_error, checks.status_code_conformance]
    wanted += [checks.content_type_conformance, checks.response_schema_conformance]
    case.validate_response(response, checks=wanted)


def send(case: Any, client: Any) -> Any:
    wanted = case.as_transport_kwargs(base_url=f"http://{HOST}")
    headers = {k: v for k, v in wanted.get("headers", {}).items() if k.lower() not in HEADERS} | HEADERS
    body = wanted.get("data") if "data" in wanted else None
    if isinstance(body, str):
        body = body.encode("utf-8", "replace")
    return client.request(
        wanted["method"],
        wanted["url"],
        params=wanted.get("params"),
        headers=headers,
        **({"json": wanted["json"]} if "json" in wanted else {"content": body}),
    )
