"""A server with its own project; the tests are skipped where the extra is not installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the packages of the server: pip install 'awatt[serve]'")

from fastapi.testclient import TestClient

from awatt.server.access import Access
from awatt.server.app import create_app
from awatt.server.limits import Limits
from awatt.server.store import ProjectStore

from .browsing import CHROMIUM, Server, open_sample

HOST = "127.0.0.1:8377"
#: Delays requests and responses by random times, which finds code and tests that rely on a fast server.
SLOW = """
  const real = window.fetch.bind(window), wait = () => new Promise((go) => setTimeout(go, Math.random() * %d));
  window.fetch = async (...request) => {
    await wait();
    const response = await real(...request);
    await wait();
    return response;
  };
"""
TOKEN = "a-token-for-the-tests"
SMALL = Limits(body=200_000, json_body=20_000, texts=20, characters=500, aspects=8, examples=60, sentences=300)


def make_client(
    folder: Path, limits: Limits = SMALL, token: str | None = TOKEN, model: str | Path = "fast"
) -> TestClient:
    """A client of a new server that serves the project in a folder."""
    access = Access(TOKEN, frozenset({HOST}))
    guard = create_app(ProjectStore(folder / "project.sqlite", limits), access, limits, model)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    client = TestClient(guard, base_url=f"http://{HOST}", headers=headers, raise_server_exceptions=False)
    client.guard = guard  # type: ignore[attr-defined]
    return client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    """A client with the token, and an empty project."""
    with make_client(tmp_path) as made:
        yield made


@pytest.fixture
def sample(client: Any) -> Any:
    """A client, and a project with the bundled restaurant sample."""
    assert client.post("/v1/project/sample", json={}).status_code == 200
    return client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window. AWATT_SLOW_PAGE=300 delays requests and responses by up to 300 ms each."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright, and Chromium")
    with playwright.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        if delay := os.environ.get("AWATT_SLOW_PAGE"):
            new_context = opened.new_context

            def new_slow_context(**options: Any) -> Any:
                context = new_context(**options)
                context.add_init_script(SLOW % int(delay))
                return context

            opened.new_context = new_slow_context
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server process for the tests of a module."""
    started = Server(tmp_path_factory.mktemp("page") / "project.sqlite")
    yield started
    started.stop()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    """A page with the restaurant sample; its scripts must raise no errors."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.goto(server.new_link())
    open_sample(opened, "restaurant")
    yield opened
    context.close()
    assert errors == []
