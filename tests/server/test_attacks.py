"""The requests of ``benchmarks/attacks.py``, here against the application without a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from awatt.server.limits import Limits

from .attack_requests import REQUESTS, Attack
from .conftest import HOST, TOKEN, make_client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_client(tmp_path_factory.mktemp("attacks"), Limits(), token=None) as client:
        client.post("/v1/project/sample", json={}, headers={"authorization": f"Bearer {TOKEN}"})
        yield client


@pytest.mark.parametrize("attack", REQUESTS, ids=lambda attack: attack.name)
def test_an_attack_gets_nothing(attack: Attack, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.server.access.GUESS_SECONDS", 0)
    own = {"TOKEN": TOKEN, "ORIGIN": f"http://{HOST}", "HOST": HOST}
    headers = dict(attack.headers)
    for name, value in own.items():
        headers = {key: each.replace(name, value) for key, each in headers.items()}
    encoded = {key: value.encode() for key, value in headers.items()}
    response = server.request(attack.method, attack.path, content=attack.body, headers=encoded)
    assert response.status_code in attack.statuses
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["content-type"].startswith("application/json")
    if response.status_code != 200:
        assert set(response.json()) == {"error", "code", "field", "line"}
