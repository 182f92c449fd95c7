"""Host, token, cookie, origin, bodies, headers: requests that must be refused."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from awatt.server.access import Access
from awatt.server.body import deliver
from awatt.server.security import Guard

from .conftest import HOST, SMALL, TOKEN, make_client


def sign_in(client: Any) -> str:
    """Open a link as a browser does it, and return the page's key, which is sent from then on."""
    opened = client.get(f"/?token={client.guard.access.new_link()}", follow_redirects=False)
    key = opened.headers["location"].partition("#key=")[2]
    client.headers["x-awatt-key"] = key
    return str(key)


ORIGIN = {"origin": f"http://{HOST}"}


def test_a_wrong_host_is_refused_before_anything_else(client: Any) -> None:
    for host in ("evil.example", "evil.example:8377", "127.0.0.1", "127.0.0.1:80", "localhost:8377", f"{HOST}.evil.io"):
        for path in ("/", "/health/live", "/v1/project", "/?token=x"):
            assert client.get(path, headers={"host": host}).status_code == 421


def test_without_a_token_only_health_responds(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        assert client.get("/health/live").status_code == client.get("/health/ready").status_code == 200
        for path in ("/", "/v1/project", "/static/app.js", "/openapi.json", "/nothing", "/health/live/../../v1/x"):
            response = client.get(path)
            assert response.status_code == 401
            assert "token" in response.json()["error"]
        refused = client.get("/v1/project", headers={"authorization": "Bearer wrong"})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        assert refused.json()["error"].startswith("the token is wrong. Send ")
        assert client.get("/v1/project", headers={"authorization": f"Bearer {TOKEN}é".encode()}).status_code == 401
        assert client.get("/v1/project", headers={"cookie": "awatt_8377="}).status_code == 401


def test_the_link_opens_the_page_once(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        link = client.guard.access.new_link()
        opened = client.get(f"/?token={link}", follow_redirects=False)
        place, _, key = opened.headers["location"].partition("#key=")
        assert (opened.status_code, place) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=86400"))
        assert client.get("/v1/project", headers={"x-awatt-key": key}).status_code == 200
        client.cookies.clear()
        again = client.get(f"/?token={link}", follow_redirects=False)
        assert again.status_code == 401
        assert "has been used" in again.json()["error"]


def test_another_link_needs_the_token(client: Any) -> None:
    path = client.post("/v1/link").json()["path"]
    assert client.get(path, headers={"authorization": ""}, follow_redirects=False).status_code == 303


def test_a_change_from_another_origin_is_refused(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        sign_in(client)
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
    calls: list[str] = []

    async def receive() -> Any:
        calls.append("receive")
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        calls.append(message["type"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["type"])

    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"path": "/v1/project", "query_string": b"", "headers": headers}
    guard = Guard(app, client.guard.access, SMALL)
    asyncio.run(guard({"type": "websocket", **scope}, receive, send))
    assert calls == []  # neither accepted nor passed on
    asyncio.run(guard({"type": "http", "method": "GET", **scope}, deliver(b"", receive), send))
    assert calls == ["http"]  # as the same request without a websocket is


def test_the_cookie_of_another_port_gives_no_data(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        key = sign_in(client)
        assert client.get("/v1/project").status_code == 200
        for wrong in ("", "x", key[:-1], key + "é"):
            response = client.get("/v1/project", headers={"x-awatt-key": wrong.encode()})
            assert response.status_code == 401
        client.headers.pop("x-awatt-key")
        for path in ("/v1/project", "/v1/project/export/results.csv", "/openapi.json", "/v1/project/version"):
            assert client.get(path).status_code == 401
        assert client.post("/v1/aspects", json={"name": "food"}, headers=ORIGIN).status_code == 401
        assert client.get("/").status_code == client.get("/static/app.js").status_code == 200  # they contain no data
        client.cookies.clear()
        assert client.get("/v1/project", headers={"x-awatt-key": key}).status_code == 401  # nor does the key alone


def test_sign_ins_and_links_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    with make_client(tmp_path, token=None) as client:
        sign_in(client)
        old, other = client.guard.access.new_link(), client.guard.access.new_link()
        monkeypatch.setattr("awatt.server.access.time.monotonic", lambda: now + 59 * 60)
        assert client.get(f"/?token={other}", follow_redirects=False).status_code == 303
        monkeypatch.setattr("awatt.server.access.time.monotonic", lambda: now + 61 * 60)
        response = client.get(f"/?token={old}", follow_redirects=False)
        assert (response.status_code, response.json()["code"]) == (401, "link_used")
        sign_in(client)
        monkeypatch.setattr("awatt.server.access.time.monotonic", lambda: now + 24 * 3600)
        assert client.get("/v1/project").status_code == 200
        monkeypatch.setattr("awatt.server.access.time.monotonic", lambda: now + 26 * 3600)
        assert client.get("/v1/project").status_code == 401
        assert client.guard.access.sessions == {}


def test_links_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awatt.server.access.MAX_KEPT", 3)
    access = Access(TOKEN, frozenset({HOST}))
    first, *_, last = [access.new_link() for _ in range(4)]
    for _ in range(10):
        access.new_link(read_only=True)
    assert len(access.links) == 6
    assert access.use_link(first) is None
    assert access.use_link(last) is not None  # read-only ones replace none of the others


def test_signing_out_ends_the_sign_in(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        first = dict(client.cookies), sign_in(client)
        first = dict(client.cookies), first[1]
        client.cookies.clear()
        sign_in(client)
        assert client.delete("/v1/session").status_code == 403  # not from another origin
        response = client.delete("/v1/session", headers=ORIGIN)
        assert (response.status_code, "Max-Age=0" in response.headers["set-cookie"]) == (200, True)
        assert client.get("/v1/project").status_code == 401
        cookie = "; ".join(f"{name}={value}" for name, value in first[0].items())
        signed_in = {"cookie": cookie, "x-awatt-key": first[1]}
        assert client.get("/v1/project", headers=signed_in).status_code == 200  # the other browser
        token = {"authorization": f"Bearer {TOKEN}"}
        assert client.delete("/v1/session", headers=token).status_code == 200
        assert client.get("/v1/project", headers=signed_in).status_code == 401


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from awatt.server.access import GUESS_SECONDS

    waits: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds == GUESS_SECONDS:
            waits.append(seconds)
        else:  # of another task, such as the regular backup
            await really_sleep(seconds)

    monkeypatch.setattr("awatt.server.access.asyncio.sleep", sleep)
    with make_client(tmp_path, token=None) as client:
        wrong = {"authorization": "Bearer wrong"}
        statuses = [client.get("/v1/project", headers=wrong).status_code for _ in range(8)]
        assert (statuses, waits) == ([401] * 8, [GUESS_SECONDS] * 3)
        assert client.get("/?token=guess", follow_redirects=False).status_code == 401
        assert len(waits) == 4
        assert client.get("/v1/project").status_code == 401  # without a token there is nothing to slow down
        assert client.get("/v1/project", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert len(waits) == 4
        client.guard.access.waiting = 32
        response = client.get("/v1/project", headers=wrong)
        assert (response.status_code, response.json()["code"]) == (429, "too_many_guesses")
        assert response.headers["retry-after"] == "60"


def test_too_many_requests_at_once_give_json_and_the_security_headers(client: Any) -> None:
    client.guard._running = client.guard.limits.requests
    response = client.get("/v1/project")
    client.guard._running = 0
    assert (response.status_code, response.json()["code"]) == (503, "busy")
    assert response.headers["retry-after"] == "1"
    assert "default-src 'none'" in response.headers["content-security-policy"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream", ""])
def test_a_wrong_content_type_is_415(client: Any, kind: str) -> None:
    response = client.post("/v1/detect", content=b'{"texts": ["a"]}', headers={"content-type": kind})
    assert (response.status_code, response.json()["code"]) == (415, "content_type")
    assert "takes application/json" in response.json()["error"]
    response = client.post("/v1/project/columns?format=txt", content=b"a", headers={"content-type": "text/plain"})
    assert (response.status_code, response.json()["code"]) == (415, "content_type")


def test_a_browser_without_a_token_gets_a_page_that_asks_for_it(tmp_path: Path) -> None:
    browser = {"accept": "text/html,application/xhtml+xml"}
    with make_client(tmp_path, token=None) as client:
        for path, reason in (("/", "This page needs a token."), ("/?token=used", "This link has been used already")):
            response = client.get(path, headers=browser)
            assert (response.status_code, response.headers["content-type"]) == (401, "text/html; charset=utf-8")
            assert reason in response.text
            assert 'type="password"' in response.text
            assert "content-security-policy" in response.headers
        for path in re.findall(r"/static/[a-z.-]+", response.text):  # what the page needs
            assert client.get(path).status_code == 200
        assert client.get("/static/app.js").status_code == 401
        assert client.get("/").json()["code"] == "unauthorized"  # a program still gets JSON
        assert client.get("/v1/project", headers=browser).json()["code"] == "unauthorized"


def test_a_connection_that_was_answered_already_is_no_error(client: Any) -> None:
    sent: list[int] = []

    async def send(message: Any) -> None:
        sent.append(message["status"])
        raise RuntimeError("Response when the connection must close")

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"evil.example")]}
    asyncio.run(client.guard(scope, receive, send))
    assert sent == [421]  # tried once, and no more
    assert client.guard._running == 0


def test_a_browser_that_is_signed_in_can_sign_in_again(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        sign_in(client)
        html = {"accept": "text/html"}
        assert "This page needs a token." not in client.get("/", headers=html).text
        assert "This page needs a token." in client.get("/?sign-in&project=hotels", headers=html).text
        assert client.get("/?sign-in", headers={**html, "host": "evil.example"}).status_code == 421


def test_a_link_keeps_the_project(tmp_path: Path) -> None:
    with make_client(tmp_path, token=None) as client:
        new_link = client.guard.access.new_link
        opened = client.get(f"/?token={new_link()}&project=%C3%89t%C3%A9%0d%0ax", follow_redirects=False)
        assert opened.headers["location"].startswith("/?project=%C3%89t%C3%A9%0D%0Ax#key=")
        read_only = client.get(f"/?token={new_link(True, 'id', 'hotels')}&view=overview", follow_redirects=False)
        assert read_only.headers["location"] == "/?project=hotels#view=overview"  # the present sign-in sees all of them
        client.cookies.clear()
        read_only = client.get(f"/?token={new_link(True, 'id', 'hotels')}", follow_redirects=False)
        assert read_only.headers["location"].startswith("/#key=")  # sees no other


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "OPTIONS"])
def test_a_program_that_checks_a_link_uses_it_up(tmp_path: Path, method: str) -> None:
    with make_client(tmp_path, token=None) as client:
        link = f"/?token={client.guard.access.new_link()}"  # type: ignore[attr-defined]
        checked = client.request(method, link, follow_redirects=False)
        assert (checked.status_code, "set-cookie" in checked.headers) == (401, False)
        assert client.get(link, follow_redirects=False).status_code == 303


def test_a_read_only_link_opens_repeatedly_and_changes_nothing(tmp_path: Path) -> None:
    with make_client(tmp_path) as client:
        made = client.post("/v1/link", json={"read_only": True, "view": "overview?c.city=São Paulo\r\nx: y"})
        path = made.json()["path"]
        del client.headers["authorization"]
        for _ in range(2):
            client.cookies.clear()
            opened = client.get(path, follow_redirects=False)
            assert opened.status_code == 303
            key, _, view = opened.headers["location"].removeprefix("/#key=").partition("&view=")
            assert view == "overview%3Fc.city%3DS%C3%A3o%20Paulo%0D%0Ax%3A%20y"  # never a header of its own
            headers = {"x-awatt-key": key, "origin": f"http://{HOST}"}
            assert client.get("/v1/session", headers=headers).json() == {"read_only": True}
            assert client.get("/v1/project", headers=headers).status_code == 200
            assert client.post("/v1/project/words", json={"ids": []}, headers=headers).status_code == 200
            changes = (
                ("DELETE", "/v1/project"),
                ("POST", "/v1/project/undo"),
                ("POST", "/v1/link"),
                ("POST", "/v1/aspects"),
            )
            for method, changed in changes:
                refused = client.request(method, changed, headers=headers)
                assert (refused.status_code, refused.json()["code"]) == (403, "read_only"), changed
