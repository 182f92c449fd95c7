"""A server with a project of its own; the tests are skipped where the extra is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the packages of the server: pip install 'awatt[serve]'")

from fastapi.testclient import TestClient

from awatt.server.app import create_app
from awatt.server.limits import Limits
from awatt.server.security import Access
from awatt.server.store import ProjectStore

HOST = "127.0.0.1:8377"
TOKEN = "a-token-for-the-tests"
SMALL = Limits(
    body=200_000, json_body=20_000, texts=20, characters=500, aspects=8, examples=60, sentences=300, body_seconds=0.3
)


def make_client(folder: Path, limits: Limits = SMALL, token: str | None = TOKEN) -> TestClient:
    """A client of a new server over the project of a folder."""
    access = Access(TOKEN, frozenset({HOST}), "awatt_8377")
    guard = create_app(ProjectStore(folder / "project.sqlite", limits), access, limits)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    client = TestClient(guard, base_url=f"http://{HOST}", headers=headers, raise_server_exceptions=False)
    client.guard = guard  # type: ignore[attr-defined]
    return client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    """With the token, over an empty project."""
    with make_client(tmp_path) as made:
        yield made


@pytest.fixture
def sample(client: Any) -> Any:
    """With the bundled restaurant sentences."""
    assert client.post("/v1/project/sample", json={}).status_code == 200
    return client
