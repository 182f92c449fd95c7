"""Host, token, cookie, origin, bodies, headers: requests that must be refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .conftest import HOST, SMALL, TOKEN, make_client

ORIGIN = {"origin": f"http://{HOST}"}


def test_a_wrong_host_is_refused_before_anything_else(client: Any) -> None:
    for host in ("evil.example", "evil.example:8377", "127.0.0.1", "127.0.0.1:80", "localhost:8377", f"{HOST}.evil.io"):
        for path in ("/", "/health/live", "/v1/project", "/?token=x"):
            assert client.get(path, headers={"host": host}).status_code == 421


def test_without_a_token_only_health_responds(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        assert client.get("/health/live").status_code == client.get("/health/ready").status_code == 200
        for path in ("/", "/v1/project", "/static/style.css", "/openapi.json", "/nothing", "/health/live/../../v1/x"):
            response = client.get(path)
            assert response.status_code == 401
            assert "token" in response.json()["error"]
        assert client.get("/v1/project", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/v1/project", headers={"authorization": f"Bearer {TOKEN}é".encode()}).status_code == 401
        assert client.get("/v1/project", headers={"cookie": "awatt_8377="}).status_code == 401


def test_the_link_opens_the_page_once(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        link = client.guard.access.new_link()
        opened = client.get(f"/?token={link}", follow_redirects=False)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
        assert client.get("/v1/project").status_code == 200  # authorised by the cookie
        client.cookies.clear()
        again = client.get(f"/?token={link}", follow_redirects=False)
        assert again.status_code == 401
        assert "has been used" in again.json()["error"]


def test_another_link_needs_the_token(client: Any) -> None:
    path = client.post("/v1/link").json()["path"]
    assert client.get(path, headers={"authorization": ""}, follow_redirects=False).status_code == 303


def test_a_change_from_another_origin_is_refused(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        client.get(f"/?token={client.guard.access.new_link()}")
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", f"https://{HOST}", ""):
            response = client.post("/v1/aspects", json={"name": "food"}, headers={"origin": origin})
            assert response.status_code == 403
        assert client.post("/v1/aspects", json={"name": "food"}).status_code == 403  # a cookie alone is not enough
        assert client.post("/v1/aspects", json={"name": "food"}, headers=ORIGIN).status_code == 200
        assert client.options("/v1/aspects", headers={"origin": "http://evil.example"}).status_code == 403
        assert "access-control-allow-origin" not in client.get("/v1/aspects", headers=ORIGIN).headers


def test_every_response_has_the_security_headers(client: Any) -> None:
    for path in ("/", "/v1/project", "/nothing", "/static/style.css"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/"]
)
def test_paths_outside_the_static_folder_are_not_found(client: Any, path: str) -> None:
    assert client.get(path).status_code == 404
    assert client.get("/v1/project/export/..%2f..%2fproject.sqlite").status_code == 404


def test_large_bodies_are_refused(client: Any) -> None:
    response = client.post("/v1/detect", content=b"x" * (SMALL.json_body + 1))
    assert response.status_code == 413
    assert "20,000 bytes" in response.json()["error"]
    declared = {"content-length": str(10**12), "content-type": "application/octet-stream"}
    assert client.post("/v1/project/columns?format=csv", content=b"a", headers=declared).status_code == 413
    unknown = {"content-type": "application/octet-stream"}
    parts = (b"x" * 50_000 for _ in range(10))  # without a Content-Length
    assert client.post("/v1/project/columns?format=csv", content=parts, headers=unknown).status_code == 413


def test_a_slow_body_times_out(tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = []

    async def ask(guard: Any) -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0.1)
            return {"type": "http.request", "body": b" ", "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/v1/detect", "query_string": b"", "headers": headers}
        await asyncio.wait_for(guard(scope, receive, send), 60)

    with make_client(tmp_path, replace(SMALL, body_seconds=0.3)) as client:
        asyncio.run(ask(client.guard))  # type: ignore[attr-defined]
    assert sent[0]["status"] == 408


def test_websockets_are_refused(client: Any) -> None:
    asyncio.run(client.guard({"type": "websocket"}, None, None))
