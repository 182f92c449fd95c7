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

from .browsing import CHROMIUM, PATIENCE, Server, settle

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
#: Of a browser whose pages need neither a graphics processor nor a process each: half the work per page.
FRUGAL = ["--disable-gpu", "--in-process-gpu", "--renderer-process-limit=1", "--disable-site-isolation-trials"]
#: What a page keeps in the browser, but for the sign-in.
FORGET = "() => ['awatt-person', 'awatt-theme'].forEach((name) => localStorage.removeItem(name))"
#: After the changes that are on their way: otherwise the last ones would arrive during the next test.
FINISH = """async () => {
  window.letGo?.();
  await (await import('/static/state.js')).enqueue(async () => {});
}"""
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
            opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *FRUGAL])
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        new_context, delay = opened.new_context, os.environ.get("AWATT_SLOW_PAGE")

        def new_patient_context(**options: Any) -> Any:
            context = new_context(**options)
            context.set_default_timeout(PATIENCE)
            if delay:
                context.add_init_script(SLOW % int(delay))
            return context

        opened.new_context = new_patient_context
        yield opened
        opened.close()


def is_error(message: Any) -> bool:
    """Whether the page's console reports an error. That there are too few examples for a report is none."""
    return message.type == "error" and not message.location["url"].endswith("/v1/report")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server process with one project, which each test begins anew."""
    started = Server(tmp_path_factory.mktemp("page") / "project.sqlite")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def context(browser: Any, server: Server, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A signed-in browser profile for the tests of a module; its ``INIT_SCRIPT`` runs in every page."""
    made = browser.new_context()
    made.add_init_script(getattr(request.module, "INIT_SCRIPT", ""))
    keeper = made.new_page()
    keeper.goto(server.new_link())
    keeper.wait_for_selector("body[data-ready]")
    keeper.goto(f"{server.base}static/icon.svg")  # of the same origin, and does nothing
    made.keeper = keeper
    yield made
    made.close()


@pytest.fixture
def page(context: Any, server: Server, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page with the restaurant sample; its scripts must raise no errors but those that the module tolerates."""
    assert server.ask("POST", "v1/project/sample", {})[0] == 200
    context.keeper.evaluate(FORGET)
    opened = context.new_page()
    opened.set_viewport_size({"width": 1280, "height": 800})
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    opened.goto(server.base)
    opened.wait_for_selector("body[data-ready]")  # rows are shown before; keys that come so early act on another one
    settle(opened)
    yield opened
    opened.evaluate(FINISH)
    opened.close()
    tolerated: tuple[str, ...] = getattr(request.module, "TOLERATED", ())
    assert [error for error in errors if not error.startswith(tolerated)] == []
