"""Every route with what the OpenAPI document allows, and a little of what it does not: no answer is a fault of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from .conftest import HOST, TOKEN, make_client

schemathesis = pytest.importorskip("schemathesis", reason="needs the package schemathesis")

HEADERS = {"authorization": f"Bearer {TOKEN}", "host": HOST}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_client(tmp_path_factory.mktemp("properties")) as client:
        client.post("/v1/project/sample", json={})
        yield client


def test_no_request_is_a_fault_of_ours(served: Any) -> None:
    document = schemathesis.openapi.from_dict(served.get("/openapi.json").json())
    seen = 0
    for operation in document.get_all_operations():
        check(operation.ok().as_strategy(), served)
        seen += 1
    assert seen > 20


def check(cases: Any, served: Any) -> None:
    @given(case=cases)
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    def holds(case: Any) -> None:
        wanted = case.as_transport_kwargs(base_url=f"http://{HOST}")
        wanted["headers"] = {k: v for k, v in wanted.get("headers", {}).items() if k.lower() not in HEADERS} | HEADERS
        answer = send(served, wanted)
        assert answer.status_code < 500 or answer.status_code == 503
        if answer.status_code >= 400:
            assert isinstance(answer.json()["error"], str)

    holds()


def send(client: Any, wanted: dict[str, Any]) -> Any:
    body = wanted.get("data") if "data" in wanted else None
    if isinstance(body, str):
        body = body.encode("utf-8", "replace")
    return client.request(
        wanted["method"],
        wanted["url"],
        params=wanted.get("params"),
        headers=wanted["headers"],
        **({"json": wanted["json"]} if "json" in wanted else {"content": body}),
    )
