"""The page when responses are slow or fail, and when another user or the user themselves is faster."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from .browsing import SAVED, Server, needs_chromium, settle, until

pytestmark = needs_chromium

TOLERATED = ("Failed to load resource",)  # requests that fail on purpose
#: Lets a test hold back requests, or responses, until it releases them, or make them fail.
INIT_SCRIPT = """
  const real = window.fetch.bind(window), waiting = [];
  window.faults = [];
  window.letGo = () => waiting.splice(0).forEach((go) => go());
  window.held = () => waiting.length;
  window.fetch = async (path, options = {}) => {
    const fits = (f) => f.times > 0 && f.method === (options.method ?? 'GET') && new RegExp(f.path).test(path);
    const fault = window.faults.find(fits);
    if (fault) fault.times -= 1;
    if (fault?.status) return new Response('{"error": "made up for the test"}', { status: fault.status });
    const response = fault?.late ? await real(path, options) : null;
    if (fault) await new Promise((go) => waiting.push(go));
    return response ?? real(path, options);
  };
"""


def hold(page: Any, method: str, path: str) -> None:
    page.evaluate("(fault) => faults.push(fault)", {"method": method, "path": path, "times": 1})


def hold_response(page: Any, method: str, path: str) -> None:
    page.evaluate("(fault) => faults.push(fault)", {"method": method, "path": path, "times": 1, "late": True})


def fail(page: Any, method: str, path: str) -> None:
    page.evaluate("(fault) => faults.push(fault)", {"method": method, "path": path, "times": 1, "status": 500})


def await_held(page: Any) -> None:
    page.wait_for_function("() => held() > 0")


def let_go(page: Any) -> None:
    page.evaluate("letGo()")


def refresh(page: Any) -> None:
    """Make the page refresh, as it does every four seconds."""
    page.evaluate("dispatchEvent(new Event('focus'))")


def project(server: Server) -> Any:
    return server.ask("GET", "v1/project")[1]


def await_revision(page: Any, server: Server) -> None:
    """Wait until the page has the server's current project and scores."""
    until(
        page,
        "state.project.revision >= wanted && state.learned === state.project.learned && !state.busy",
        project(server)["revision"],
    )


def labelled(page: Any) -> int:
    return int(page.locator("#rows .row.labelled").count())


def test_what_is_being_typed_stays(page: Any, server: Server) -> None:
    hold(page, "GET", "/v1/report")
    page.click("#tab-aspects")
    await_held(page)
    more = page.locator("input.more").first
    more.type("The bread was")
    let_go(page)
    page.wait_for_selector(".quality strong")  # everything is redrawn
    page.keyboard.type(" stale.")
    page.keyboard.press("Enter")
    for text in ("The salad was fresh.", "My steak was raw."):  # faster than the responses
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('article:first-of-type li').length === 8")
    assert [example["text"] for example in project(server)["examples"]][-3:] == [
        *("The bread was stale.", "The salad was fresh.", "My steak was raw."),
    ]


def test_a_name_is_sent_when_it_is_complete(page: Any, server: Server) -> None:
    page.click("#tab-aspects")
    title = page.locator("input.title").first
    title.press("End")
    page.keyboard.type(" and")
    server.ask("PATCH", "v1/project/settings", {"threshold": 0.4})
    refresh(page)
    await_revision(page, server)
    assert page.evaluate("document.activeElement.value") == "food and"
    assert project(server)["aspects"][0]["name"] == "food"
    page.keyboard.type(" drinks")
    page.keyboard.press("Tab")
    page.wait_for_selector("article[aria-label='food and drinks']")
    fail(page, "PATCH", "/v1/aspects")
    page.locator("input.title").first.fill("meals")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message.bad")
    page.wait_for_function("() => document.querySelector('input.title').value === 'food and drinks'")


def test_a_form_is_cleared_at_once_and_restored_after_a_failure(page: Any, server: Server) -> None:
    page.click("#tab-aspects")
    hold(page, "POST", "/v1/aspects$")
    page.fill("#new-name", "waiting")
    page.fill("#new-examples", "We waited an hour.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    await_held(page)
    page.fill("#new-name", "parking")
    let_go(page)
    page.wait_for_selector("article[aria-label=waiting]")
    assert page.input_value("#new-name") == "parking"
    fail(page, "POST", "/v1/aspects$")
    page.fill("#new-examples", "No place for the car.")
    page.click("#by-examples button")
    page.wait_for_selector("#message.bad")
    page.wait_for_function("() => document.getElementById('new-name').value === 'parking'")
    assert page.input_value("#new-examples") == "No place for the car."


def test_label_next_of_other_reviews(page: Any, server: Server) -> None:
    hold(page, "POST", "/v1/suggest")
    page.keyboard.press("n")
    await_held(page)
    server.ask("POST", "v1/project/sample", {"domain": "hotel"})
    let_go(page)
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('89 ')")


def test_label_next_does_not_interrupt_a_user_who_moved_on(page: Any, server: Server) -> None:
    hold(page, "POST", "/v1/suggest")
    page.keyboard.press("n")
    page.keyboard.press("Enter")  # meant for a sentence that is not shown yet
    await_held(page)
    assert labelled(page) == 0
    page.focus("#search")
    page.keyboard.type("the 1")
    let_go(page)
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    assert page.input_value("#search") == "the 1"
    assert page.evaluate("document.activeElement.id") == "search"
    assert len(project(server)["examples"]) == 30


def test_a_threshold_that_was_not_saved_is_not_shown(page: Any, server: Server) -> None:
    counts, own = page.locator("#filters .count").all_text_contents(), page.input_value("#threshold-all")
    fail(page, "PATCH", "/v1/project/settings")
    page.locator("#threshold-all").fill("0.9")
    page.wait_for_selector("#message.bad")
    page.wait_for_function("(own) => document.getElementById('threshold-all').value === own", arg=own)
    assert page.locator("#filters .count").all_text_contents() == counts
    assert project(server)["threshold"] is None


def test_a_slider_that_is_moved_back(page: Any, server: Server) -> None:
    box = page.locator("#threshold-all").bounding_box()
    own = float(page.input_value("#threshold-all"))
    x, y = box["x"] + 8 + (box["width"] - 16) * own, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y)
    assert float(page.input_value("#threshold-all")) > own + 0.2
    page.mouse.move(x, y)
    page.mouse.up()
    page.click("#pick-none")  # the filters are redrawn
    page.wait_for_selector("#pick-none[aria-pressed=true]")
    until(page, "!state.previews.size")  # otherwise it could arrive after the next one
    server.ask("PATCH", "v1/project/settings", {"threshold": 0.7})
    refresh(page)
    page.wait_for_function("() => document.getElementById('threshold-all').value === '0.7'")


def test_a_sentence_cannot_be_labelled_before_it_is_detected(page: Any, server: Server) -> None:
    page.click("#tab-start")
    hold(page, "GET", "/v1/project/scores")
    page.click("#sample-laptop")
    await_held(page)
    page.click("#tab-sentences")
    page.wait_for_selector("#rows .chip.pending")
    page.locator("#table").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('message').textContent.startsWith('Not detected yet')")
    page.keyboard.press("1")
    let_go(page)
    settle(page)
    assert labelled(page) == 0
    assert project(server)["undo"] == "load the sample"


def test_failed_requests_are_repeated(page: Any, server: Server) -> None:
    page.click("#tab-aspects")
    fail(page, "GET", "/v1/project/scores")
    page.fill("#new-name", "bread")
    page.fill("#new-examples", "Good bread.\nThe bread was stale.")
    page.click("#by-examples button")
    page.wait_for_selector("#message.bad")
    assert page.input_value("#new-name") == ""  # it was added nevertheless
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('86 ')")
    refresh(page)
    await_revision(page, server)
    page.click("#tab-start")
    fail(page, "GET", "/v1/project/sentences")
    page.fill("#paste", "Good bread.\nWarm soup.")
    page.click("#load")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('made up')")
    refresh(page)
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('2 ')")


def test_a_page_whose_first_request_failed_starts_later(page: Any) -> None:
    page.add_init_script("faults.push({ method: 'GET', path: 'v1/project$', times: 1, status: 500 })")
    page.reload()
    page.wait_for_selector("#message.bad")
    refresh(page)
    settle(page)


def test_enter_opens_the_thresholds_and_labels_nothing(page: Any) -> None:
    page.focus("#thresholds")
    page.keyboard.press("Enter")
    page.wait_for_selector("#filters details:not([open])", state="attached")
    assert labelled(page) == 0


def test_without_aspects_nothing_can_be_labelled(page: Any, server: Server) -> None:
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Undo brings back')")
    page.fill("#paste", "Good bread.\nWarm soup.")
    page.click("#load")
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.click("#tab-sentences")
    page.click("#rows .row")
    page.keyboard.press("Enter")
    page.keyboard.press("0")
    page.keyboard.press("Control+z")  # in turn: after whatever the keys did
    page.wait_for_function("() => document.getElementById('message').textContent.startsWith('Undone')")
    assert page.inner_text("#message") == "Undone: load reviews."


def test_two_clicks_load_once(page: Any, server: Server) -> None:
    page.click("#tab-start")
    page.dblclick("#sample-hotel")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('89 ')")
    assert server.ask("POST", "v1/project/undo")[1]["n_sentences"] == 86


def test_the_file_that_was_chosen_last_is_shown(page: Any) -> None:
    page.click("#tab-start")
    hold(page, "POST", "/v1/project/columns")
    for name in ("first", "second"):
        content = f"{name}\nGood bread.\n".encode()
        page.set_input_files("#file", {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": content})
        await_held(page)
    page.wait_for_selector(".choice option[value=second]", state="attached")
    let_go(page)
    page.click("#load")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('1 ')")
    assert page.locator(".choice option[value=first]").count() == 0


def test_quick_keys_do_not_conflict_with_each_other(page: Any, server: Server) -> None:
    hold(page, "PUT", "/v1/project/sentences")
    for key in ("1", "Backspace", "2"):
        page.keyboard.press(key)
    await_held(page)
    let_go(page)
    page.wait_for_selector(SAVED)
    await_revision(page, server)
    assert not page.locator("#message.bad").is_visible()
    example = project(server)["examples"][-1]
    assert project(server)["aspects"][1]["id"] in example["aspects"]


@pytest.mark.parametrize(("method", "act"), [("PATCH", "slider"), ("PUT", "label")])
def test_closing_warns_about_unsaved_changes(page: Any, method: str, act: str) -> None:
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.click("#rows .row")  # a page without user interaction cannot ask
    hold(page, method, "/v1/project")
    if act == "label":
        page.keyboard.press("1")
    else:
        page.locator("#threshold-all").fill("0.5")
    await_held(page)
    with page.expect_event("dialog"):
        page.close(run_before_unload=True)
    assert asked == ["beforeunload"]
    let_go(page)
    until(page, "state.project.undo !== 'load the sample'")  # it was saved after all


def test_the_map_keeps_the_focus_and_shows_the_current_sentences(page: Any, server: Server) -> None:
    hold(page, "GET", "/v1/project/map")
    page.click("#tab-overview")
    await_held(page)
    server.ask("POST", "v1/project/sample", {"domain": "hotel"})
    refresh(page)
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('89 ')")
    let_go(page)  # whichever map it is: what is drawn matches the sentences
    page.locator("canvas").focus()
    press = "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))"
    until(page, f"{press}, state.texts.some((text) => document.getElementById('tip').textContent.startsWith(text))")
    server.ask("PATCH", "v1/project/settings", {"threshold": 0.4})
    refresh(page)
    await_revision(page, server)
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"


def test_an_aspect_may_have_any_name(page: Any, server: Server) -> None:
    server.ask("POST", "v1/aspects", {"name": "constructor"})
    refresh(page)
    await_revision(page, server)
    page.keyboard.press("7")
    page.wait_for_selector(SAVED)
    assert page.locator("#rows .row.labelled .chip", has_text="constructor").count() == 1


def test_a_row_that_leaves_the_list_keeps_its_position(page: Any) -> None:
    page.click("#pick-none")
    page.locator("#table").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    following = page.locator("#rows .row").nth(4).locator(".text").inner_text()
    page.keyboard.press("1")
    page.wait_for_selector("#rows .row.labelled", state="detached")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#detail .full") == following


def test_another_project_at_the_same_address(page: Any, server: Server) -> None:
    """As if another project were served here with the same cookie: the tab is outdated."""
    page.evaluate(
        """async () => {
          window.old = true;
          (await import('/static/state.js')).state.project.project = 'another';
          (await import('/static/api.js')).setProject('another');
        }"""
    )
    page.keyboard.press("1")
    page.wait_for_function("() => !window.old")  # reloaded
    settle(page)
    assert labelled(page) == 0
    assert len(project(server)["examples"]) == 30


def test_scores_that_never_match_are_requested_with_pauses(page: Any) -> None:
    page.evaluate(
        """() => {
          const ask = window.fetch;
          window.asked = 0;
          window.fetch = async (path, options) => {
            if (!path.endsWith('/scores')) return ask(path, options);
            window.asked += 1;
            return new Response(new ArrayBuffer(0), { headers: { 'x-awatt-reviews': '0', 'x-awatt-learned': '0' } });
          };
        }"""
    )
    page.keyboard.press("1")
    until(page, "window.asked >= 20")
    page.wait_for_timeout(1000)
    assert page.evaluate("window.asked") < 100  # without pauses it would be several hundred


def test_words_come_back_after_quick_labels_and_after_an_error(page: Any) -> None:
    page.wait_for_selector("#rows mark")
    hold(page, "POST", "/v1/project/words")
    page.keyboard.press("0")
    await_held(page)
    page.keyboard.press("0")  # learned again while the previous words are being loaded
    page.wait_for_function("(saved) => document.querySelectorAll(saved).length === 2", arg=SAVED)
    until(page, "!state.busy && state.learned === state.project.learned")
    let_go(page)
    page.wait_for_function("() => document.querySelectorAll('#rows mark').length > 3")
    fail(page, "POST", "/v1/project/words")
    page.keyboard.press("0")
    page.wait_for_selector("#message.bad")
    page.wait_for_function("() => document.querySelectorAll('#rows mark').length > 3")


def test_enter_continues_from_a_row_that_left_the_list(page: Any) -> None:
    page.click("#pick-none")
    page.locator("#table").press("Home")  # draws the rows immediately
    following = page.locator("#rows .row").nth(1).locator(".text").inner_text()
    page.keyboard.press("1")
    page.wait_for_selector("#rows .row.labelled", state="detached")
    page.keyboard.press("Enter")  # it has a label already
    assert page.inner_text("#detail .full") == following
    until(page, "state.project.examples.length === 31")


def test_removing_an_example_leaves_the_focus_where_the_user_moved_it(page: Any) -> None:
    page.click("#tab-aspects")
    hold(page, "GET", "/v1/project/scores")
    page.locator("article").first.locator("li button").first.click()
    assert page.evaluate("document.activeElement.className") == "more"
    await_held(page)
    page.locator("input.title").nth(2).press("End")
    page.keyboard.type(" and so on")
    let_go(page)
    until(page, "!state.busy && state.learned === state.project.learned")
    assert page.evaluate("document.activeElement.value").endswith(" and so on")


def test_the_newest_report_is_shown_and_a_failed_one_requested_again(page: Any) -> None:
    fail(page, "GET", "/v1/report")
    page.click("#tab-aspects")
    page.wait_for_selector(".quality strong")
    hold(page, "GET", "/v1/report")
    for text in ("The bread was stale.", "The salad was fresh."):
        page.locator("input.more").first.fill(text)
        page.keyboard.press("Enter")
        page.wait_for_function(
            "(text) => [...document.querySelectorAll('li')].some((li) => li.innerText.includes(text))", arg=text
        )
        if "bread" in text:
            await_held(page)
    page.wait_for_function("() => document.querySelector('.quality').textContent.includes('32 examples')")
    let_go(page)
    page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
    assert "32 examples" in page.inner_text(".quality")


def test_a_corrected_file_can_be_chosen_again(page: Any) -> None:
    page.click("#tab-start")
    wrong = {"name": "reviews.jsonl", "mimeType": "", "buffer": b"nonsense"}
    page.set_input_files("#file", wrong)
    page.wait_for_selector("#message.bad")
    page.set_input_files("#file", {**wrong, "buffer": b'{"review": "Good bread."}\n'})
    page.wait_for_selector(".choice option[value=review]", state="attached")
    page.set_input_files("#file", {**wrong, "name": "reviews.exe"})
    page.wait_for_selector(".choice option[value=review]", state="detached")


def test_the_lines_of_python_work(page: Any, server: Server, tmp_path: Any) -> None:
    """Thresholds of aspects without examples would be refused."""
    server.ask("POST", "v1/aspects", {"name": "empty"})
    for aspect in project(server)["aspects"]:
        server.ask("PATCH", f"v1/aspects/{aspect['id']}", {"threshold": 0.5})
    refresh(page)
    await_revision(page, server)
    page.click("#tab-export")
    for name in ("examples.jsonl", "results.jsonl"):
        with page.expect_download() as saved:
            page.click(f"a[href$='/{name}']")
        saved.value.save_as(tmp_path / f"awatt-{name}")
    code = page.locator("pre").first.inner_text()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_values_of_another_column_cannot_be_clicked_before_they_are_there(page: Any) -> None:
    page.click("#tab-start")
    rows = b"city,stars,text\n" + b"Porto,1,A rude waiter.\nGhent,5,Tasty pasta.\nPorto,5,Best soup ever.\n" * 4
    page.set_input_files("#file", {"name": "reviews.csv", "mimeType": "text/csv", "buffer": rows})
    page.click("#load:enabled")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('12 ')")
    page.select_option("#in-list-column", "city")
    page.wait_for_selector("#in-list-group-1")
    hold(page, "GET", "column=stars")
    page.select_option("#in-list-column", "stars")
    await_held(page)
    assert page.locator("#in-list-group-0").count() == 0
    page.select_option("#in-list-column", "city")  # chosen again before the other one is there
    let_go(page)
    page.click("#in-list-group-1")
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('c.city=')")
    assert page.input_value("#in-list-column") == "city"


def test_an_accepted_suggestion_does_not_come_back_with_an_older_response(page: Any) -> None:
    page.click("#tab-aspects")
    page.click("#suggest-aspects")
    page.wait_for_selector(".suggestion")
    names = "[...document.querySelectorAll('.suggestion .title')].map((title) => title.value)"
    dismissed, accepted, *rest = page.evaluate(names)
    hold_response(page, "GET", "/suggested-aspects")
    page.locator(".suggestion button", has_text="Dismiss").first.click()
    await_held(page)
    page.locator(".suggestion .main").first.click()
    page.wait_for_selector(f"article.card[aria-label='{accepted}']")
    until(page, "!state.busy && state.learned === state.project.learned")
    let_go(page)
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    left = page.evaluate(names)
    assert dismissed not in left
    assert accepted not in left
    assert set(rest[:3]) <= set(left)


def test_back_twice_shows_the_second_address_although_the_first_needs_longer(page: Any) -> None:
    page.click("#tab-start")
    rows = b"city,stars,text\n" + b"Porto,1,A rude waiter.\nGhent,5,Tasty pasta.\nPorto,5,Best soup ever.\n" * 4
    page.set_input_files("#file", {"name": "reviews.csv", "mimeType": "text/csv", "buffer": rows})
    page.click("#load:enabled")
    shows = "(count) => document.getElementById('status').textContent.startsWith(count)"
    page.wait_for_function(shows, arg="12 ")
    for column, count in (("city", "4 of"), ("stars", "0 of")):
        page.select_option("#in-list-column", column)
        page.click("#in-list-group-0")  # Ghent, then 1 star
        page.wait_for_function(shows, arg=count)
    page.click("#in-list-where-0")  # any city
    page.wait_for_function(shows, arg="4 of")
    page.go_back()
    page.wait_for_function(shows, arg="0 of")
    page.go_forward()
    page.wait_for_function("() => !location.hash.includes('c.city')")
    page.reload()  # from here on only the column of this address is known
    page.wait_for_selector("body[data-ready]")
    page.wait_for_function(shows, arg="4 of")
    hold_response(page, "GET", "column=city")
    for _ in range(3):  # to both filters, to the city alone, and to none
        page.go_back()
    page.wait_for_function("() => !location.hash.includes('c.')")
    page.wait_for_function(shows, arg="12 ")
    let_go(page)
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    assert page.inner_text("#status").startswith("12 ")
    assert "c." not in page.evaluate("location.hash")
