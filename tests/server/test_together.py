"""Several users of one project: two tabs of a server, and two servers on one file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .browsing import SAVED, Server, needs_chromium, open_sample, settle

TOLERATED = ("Failed to load resource",)  # what is refused on purpose


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    both = Server(tmp_path / "p.sqlite"), Server(tmp_path / "p.sqlite")
    yield both
    for each in both:
        each.stop()
    with closing(sqlite3.connect(tmp_path / "p.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_two_servers_change_one_project_at_once(servers: tuple[Server, Server]) -> None:
    assert servers[0].ask("POST", "v1/project/sample", {})[0] == 200
    revision = servers[1].ask("GET", "v1/project")[1]["revision"]
    responses: list[tuple[int, Any]] = []
    start = threading.Barrier(2)

    def work(number: int, server: Server) -> None:
        start.wait(60)
        for turn in range(15):
            responses.append(
                server.ask("POST", "v1/aspects", {"name": f"shared {turn}", "examples": [f"Shared {turn}."]})
            )
            responses.append(server.ask("POST", "v1/aspects", {"name": f"own {number} {turn}"}))

    threads = [threading.Thread(target=work, args=(n, server)) for n, server in enumerate(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [response for status, response in responses if status == 409]
    assert [status for status, _ in responses].count(200) == 45
    assert len(refused) == 15  # one of the two was first, and the other is refused
    assert all("there is an aspect 'shared" in response["error"] for response in refused)
    one, two = (server.ask("GET", "v1/project")[1] for server in servers)
    assert one == two
    assert len(one["aspects"]) == 6 + 45
    assert one["revision"] == revision + 45  # each change counted once: none was overwritten
    for _ in range(45):  # both share one history
        assert servers[1].ask("POST", "v1/project/undo")[0] == 200
    assert len(servers[0].ask("GET", "v1/project")[1]["aspects"]) == 6


def test_two_servers_label_one_sentence_differently(servers: tuple[Server, Server]) -> None:
    one, two = servers
    project = one.ask("POST", "v1/project/sample", {})[1]
    food, drinks = (aspect["id"] for aspect in project["aspects"][:2])
    sentence = one.ask("GET", "v1/project/sentences")[1]["ids"][0]
    assert one.ask("PUT", f"v1/project/sentences/{sentence}", {"aspects": [food], "seen": None})[0] == 200
    status, response = two.ask("PUT", f"v1/project/sentences/{sentence}", {"aspects": [drinks], "seen": None})
    assert status == 409
    assert "Look again" in response["error"]
    label = {"aspects": [food, drinks], "seen": [food]}
    assert two.ask("PUT", f"v1/project/sentences/{sentence}", label)[0] == 200
    assert one.ask("DELETE", f"v1/aspects/{drinks}")[0] == 200
    status, response = two.ask("PUT", f"v1/project/sentences/{sentence}", {"aspects": [drinks]})
    assert (status, "no aspect with the id" in response["error"]) == (404, True)
    assert two.ask("POST", "v1/project/sample", {"domain": "hotel"})[0] == 200
    status, response = one.ask("PUT", f"v1/project/sentences/{sentence}", {"aspects": []})
    assert (status, "Other reviews" in response["error"]) == (404, True)
    assert one.ask("POST", "v1/detect", {"texts": ["The room was dirty."]})[1]["detections"][0]["scores"].keys() == {
        aspect["name"] for aspect in two.ask("GET", "v1/project")[1]["aspects"]
    }


@needs_chromium
def test_two_tabs_see_each_other(page: Any, context: Any, server: Server) -> None:
    one, two = page, context.new_page()
    two.goto(server.base)
    settle(two)
    one.keyboard.press("0")  # label it as none, and go to the next
    one.wait_for_selector(SAVED)
    two.evaluate("dispatchEvent(new Event('focus'))")
    two.wait_for_selector("#rows .row.labelled")
    two.locator("#table").focus()
    two.keyboard.press("ArrowDown")
    two.keyboard.press("0")
    two.wait_for_function("(saved) => document.querySelectorAll(saved).length === 2", arg=SAVED)
    one.keyboard.press("ArrowDown")
    one.keyboard.press("1")  # acts before it has refreshed
    one.wait_for_function("(saved) => document.querySelectorAll(saved).length === 3", arg=SAVED)
    assert len(server.ask("GET", "v1/project")[1]["examples"]) == 30 + 3
    two.close()


def fall_behind(page: Any, server: Server) -> str:
    """A colleague labels the first sentence, which the page does not notice; the name of the aspect."""
    open_sample(page, "laptop")
    first = server.ask("GET", "v1/project/sentences")[1]["ids"][0]
    last = server.ask("GET", "v1/project")[1]["aspects"][-1]
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")  # no polling
    server.ask("PUT", f"v1/project/sentences/{first}", {"aspects": [last["id"]]})
    return str(last["name"])


@needs_chromium
def test_a_tab_that_is_behind_does_not_overwrite(page: Any, server: Server) -> None:
    name = fall_behind(page, server)
    page.keyboard.press("1")
    page.wait_for_selector("#message.bad")
    assert "Look again" in page.inner_text("#message")
    page.wait_for_selector(f"#rows .row.chosen.labelled .chip[title='{name}']")
    assert page.locator("#rows .row.chosen .chip").count() == 1
    page.keyboard.press("1")
    page.wait_for_function("() => document.querySelectorAll('.toggle[aria-pressed=true]').length === 2")


@needs_chromium
def test_many_labels_of_a_tab_that_is_behind_overwrite_those_of_a_colleague(page: Any, server: Server) -> None:
    name = fall_behind(page, server)
    page.keyboard.press("Shift+ArrowDown")
    page.click("#none-all")
    page.wait_for_selector("#message.bad:has-text('the label of a sentence has been changed')")
    page.wait_for_selector(f"#rows .row.labelled .chip[title='{name}']")
    page.click("#none-all")  # now that it is shown
    page.wait_for_function("(saved) => document.querySelectorAll(saved).length === 2", arg=SAVED)
    labels = {each["text"]: each["aspects"] for each in server.ask("GET", "v1/project")[1]["examples"]}
    texts = server.ask("GET", "v1/project/sentences")[1]["texts"]
    assert [labels[text] for text in texts[:2]] == [[], []]


@needs_chromium
def test_what_a_colleague_did_is_not_undone(page: Any, server: Server) -> None:
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")  # no polling
    server.ask("POST", "v1/aspects", {"name": "parking"})
    page.click("#undo")
    page.wait_for_selector("#message.bad:has-text('changed since')")
    page.wait_for_selector("#undo[title^='Undo: add aspect parking']")
    held: list[Any] = []
    page.route("**/v1/project/reviews?*", lambda route: held.append(route))
    page.click("#tab-start")
    page.fill("#paste", "The soup was cold.")
    with page.expect_request("**/v1/project/reviews?*"):
        page.click("#load")
    page.click("#cancel")
    response = held[0].fetch()
    server.ask("POST", "v1/aspects", {"name": "garden"})  # after the load that is to be cancelled
    held[0].fulfill(response=response)
    page.wait_for_selector("#message.bad:has-text('before they could be cancelled')")
    found = server.ask("GET", "v1/project")[1]
    assert [aspect["name"] for aspect in found["aspects"][-2:]] == ["parking", "garden"]
    page.unroute("**/v1/project/reviews?*")
