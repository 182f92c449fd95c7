"""Behind a proxy with TLS: ``--public-url``, by a plain client and in Chromium."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from awatt.errors import AwattError
from awatt.server.access import check_public_url
from awatt.server.run import allowed_hosts, choose_token

from .browsing import CHROMIUM, SAVED, Server, needs_chromium, open_sample
from .tls_proxy import NAME, TlsProxy, needs_openssl

TOKEN = "nine-Quiet-otters-22"
PUBLIC = f"https://{NAME}"
NOT_ORIGINS = ("reviews.org", "https://", "https://a/b", "ftp://a", "https://u:p@a", "https://a:x", "https://a?b")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, TlsProxy]]:
    folder = tmp_path_factory.mktemp("tls")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(folder / "p.sqlite", "--public-url", PUBLIC, "--port", str(port), AWATT_TOKEN=TOKEN)
    server.base = f"http://127.0.0.1:{port}/"
    proxy = TlsProxy(folder, port)
    yield server, proxy
    proxy.stop()
    server.stop()


def ask(proxy: TlsProxy, method: str, path: str, body: object = None, **headers: str) -> http.client.HTTPResponse:
    """The response through the proxy; the certificate is checked, and Host has no port, as at port 443."""
    context = ssl.create_default_context(cafile=str(proxy.certificate))
    plain = socket.create_connection(("127.0.0.1", proxy.port), timeout=300)
    connection = http.client.HTTPConnection(NAME)
    connection.sock = context.wrap_socket(plain, server_hostname=NAME)
    sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Host": NAME}
    sent |= {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, path, None if body is None else json.dumps(body), sent)
    return connection.getresponse()


@needs_openssl
def test_behind_tls_the_page_does_not_work(proxied: tuple[Server, TlsProxy]) -> None:
    server, proxy = proxied
    assert server.lines[0].split()[-1].startswith(f"{PUBLIC}/?token=")
    assert TOKEN not in "".join(server.lines)  # it comes from the environment
    path = json.loads(ask(proxy, "POST", "/v1/link", Authorization=f"Bearer {TOKEN}").read())["path"]
    opened = ask(proxy, "GET", path)
    cookie, key = str(opened.headers["set-cookie"]), str(opened.headers["location"]).partition("#key=")[2]
    assert cookie.startswith("__Host-awatt_")
    assert "; Secure" in cookie
    signed_in = {"Cookie": cookie.partition(";")[0], "x_awatt_key": key}
    assert ask(proxy, "GET", "/", **signed_in).status == 200
    assert ask(proxy, "GET", "/v1/project", **signed_in).status == 200
    named = {"name": "food"}
    assert ask(proxy, "POST", "/v1/aspects", named, Origin=PUBLIC, **signed_in).status == 200
    for origin in (f"http://{NAME}", f"{PUBLIC}:444", "https://evil.example", "null"):
        assert ask(proxy, "POST", "/v1/aspects", named, Origin=origin, **signed_in).status == 403
    assert ask(proxy, "GET", "/health/ready").status == 200


@needs_openssl
@needs_chromium
def test_the_page_works_behind_tls(proxied: tuple[Server, TlsProxy]) -> None:
    server, proxy = proxied
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright, and Chromium")
    rules = f"--host-resolver-rules=MAP {NAME}:443 127.0.0.1:{proxy.port}"
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
        page: Any = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(PUBLIC + server.ask("POST", "v1/link")[1]["path"])
        open_sample(page, "restaurant")
        assert page.evaluate("location.href") == f"{PUBLIC}/#sentences"  # the key is no longer there
        page.keyboard.press("0")
        page.wait_for_selector(SAVED)
        page.reload()
        page.wait_for_selector("#rows .row.labelled")
        page.click("#sign-out")
        page.wait_for_function("() => document.body.textContent.startsWith('You are signed out')")
        page.goto(f"{PUBLIC}/?")
        assert "This page needs a token" in page.inner_text("body")
        browser.close()


def test_a_public_url_is_an_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, wanted in (
        ("https://reviews.example.org", "https://reviews.example.org"),
        ("https://Reviews.Example.org:443/", "https://reviews.example.org"),
        ("https://reviews.example.org:8443", "https://reviews.example.org:8443"),
        ("http://[::1]:80", "http://[::1]"),
    ):
        assert check_public_url(given) == wanted
    for given in NOT_ORIGINS:
        with pytest.raises(AwattError, match="--public-url"):
            check_public_url(given)
    hosts = allowed_hosts("127.0.0.1", 8377, [], "https://reviews.example.org")
    assert hosts == {"127.0.0.1:8377", "localhost:8377", "[::1]:8377", "reviews.example.org"}
    monkeypatch.delenv("AWATT_TOKEN", raising=False)
    with pytest.raises(AwattError, match="AWATT_TOKEN"):
        choose_token("127.0.0.1", "https://reviews.example.org")
