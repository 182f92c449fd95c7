"""Loading and labelling on the page, in a real Chromium: suggestions, the queue, notes, people, projects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .browsing import PATIENCE, SAVED, Server, make_xlsx, needs_chromium, settle, until

pytestmark = needs_chromium
#: The ids of the aspects that the project's label of a text has, once it is saved; None without a label.
LABEL = """async (text) => {
  const { state } = await import('/static/state.js');
  return state.project.examples.find((each) => each.text === text)?.aspects ?? null;
}"""

#: From now on, requests with this in their path fail.
FAIL = """(part) => {
  window.realFetch = window.fetch;
  window.fetch = (path, options) => (path.includes(part) ? Promise.reject(new Error()) : realFetch(path, options));
}"""

#: Where the buttons are on the screen.
PLACES = """() => [...document.querySelectorAll('#accept, #accept-none, #detail .toggle')]
  .map((each) => each.getBoundingClientRect().toJSON())"""


def wait_for_text(page: Any, selector: str, wanted: str) -> None:
    page.wait_for_function(
        "([selector, wanted]) => document.querySelector(selector)?.textContent.includes(wanted)", arg=[selector, wanted]
    )


def wait_for_count(page: Any, selector: str, wanted: int) -> None:
    page.wait_for_function(
        "([selector, wanted]) => document.querySelectorAll(selector).length === wanted", arg=[selector, wanted]
    )


def empty(page: Any) -> None:
    page.click("#tab-start")
    page.click("#start-over")
    wait_for_text(page, "#message", "Undo brings back")


def load(page: Any, name: str, content: bytes) -> None:
    page.click("#tab-start")
    page.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": content})
    page.click("#load:enabled")


def load_list(page: Any, texts: list[str]) -> None:
    """Reviews of a sentence each, and the list in which to label them."""
    load(page, "list.csv", "\n".join(["text", *texts]).encode())
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
    page.keyboard.press("n")
    wait_for_text(page, "#queue-count", f"0 of {len(texts)}")


ROWS = [
    ["stars", "city", "secret", "body"],
    ["5", "Porto", "x", "The waiter was kind. The parking was free. The wine was good."],
    ["1", "Oslo", "y", "The waiter was rude. The parking was full."],
    ["2", "Oslo", "z", "The waitress forgot us. We paid for the parking. The wine was warm."],
]


def test_an_excel_file_is_loaded_with_the_chosen_columns_and_its_reviews_are_seen_whole(page: Any) -> None:
    page.click("#tab-start")
    page.set_input_files("#file", {"name": "summer.xlsx", "mimeType": "x", "buffer": make_xlsx(ROWS)})
    page.wait_for_selector("#load:enabled")
    assert page.input_value("#text-column") == "body"
    page.click("th input[aria-label='Keep the column secret']")
    assert page.locator("td.dropped").first.inner_text() == "x"
    page.click("#load")
    wait_for_text(page, "#status", "8 sentences")
    wait_for_text(page, "#project", "summer.xlsx")
    assert page.title().startswith("summer.xlsx")
    settle(page)
    page.locator("#rows .row", has_text="The wine was good.").click()
    wait_for_text(page, "#detail .columns", "Porto")
    assert "secret" not in page.inner_text("#detail .columns")
    assert page.inner_text("#detail .around").split("\n") == [" ".join(ROWS[1][3].split())]
    assert page.inner_text("#detail mark.here") == "The wine was good."
    page.click("#detail .other >> nth=0")
    page.wait_for_function("() => document.querySelector('#detail mark.here').textContent === 'The waiter was kind.'")


def test_a_load_that_is_cancelled_changes_nothing(page: Any) -> None:
    held: list[Any] = []
    page.route("**/v1/project/reviews?*", lambda route: held.append(route))
    load(page, "big.csv", b"text\nThe soup was cold.\n")
    for _ in range(PATIENCE // 20):
        if held:
            break
        page.wait_for_timeout(20)
    page.click("#cancel")
    wait_for_text(page, "#progress-text", "Cancelling")
    held[0].continue_()  # the file arrives nevertheless
    wait_for_text(page, "#message", "Cancelled. The reviews have not changed.")
    page.wait_for_selector("#progress", state="hidden")
    wait_for_text(page, "#status", "86 sentences")
    page.unroute("**/v1/project/reviews?*")


def test_suggested_aspects_are_renamed_merged_dismissed_and_accepted(page: Any) -> None:
    empty(page)
    load(page, "reviews.xlsx", make_xlsx(ROWS))
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.wait_for_selector(".suggestion")
    names = page.evaluate("[...document.querySelectorAll('.suggestion .title')].map((each) => each.value)")
    assert names == ["parking", "waiter", "wine"]
    parking = page.locator(".suggestion[aria-label='Suggestion parking']")
    assert parking.locator(".link").inner_text() == "3 sentences"
    assert parking.locator("li").count() == 3
    page.select_option("#merge-parking", "wine")
    wait_for_count(page, ".suggestion", 2)
    assert page.locator(".suggestion .link").first.inner_text() == "5 sentences"  # 3 with parking, 2 with wine
    page.locator(".suggestion[aria-label='Suggestion waiter'] button", has_text="Dismiss").click()
    wait_for_count(page, ".suggestion", 1)
    page.fill("#suggestion-parking", "extras")
    page.locator(".suggestion input[type=checkbox]").first.uncheck()
    page.locator(".suggestion .main").click()
    page.wait_for_selector("article[aria-label=extras]")
    wait_for_count(page, ".suggestion", 0)
    assert page.locator("article[aria-label=extras] li").count() == 4  # of five, one was not ticked
    page.click("#undo")
    wait_for_count(page, ".suggestion", 1)  # accepted and merged: undone together; "waiter" stays dismissed
    page.click("#undo")
    wait_for_count(page, ".suggestion", 2)


def test_a_queue_counts_goes_on_and_back_and_finished_sentences_leave_it(page: Any) -> None:
    page.keyboard.press("n")
    wait_for_text(page, "#queue-count", "0 of 20")
    first = page.inner_text("#detail .full")
    places = page.evaluate(PLACES)
    page.keyboard.press("0")
    wait_for_text(page, "#queue-count", "1 of 20")
    page.wait_for_function("(first) => document.querySelector('#detail .full').textContent !== first", arg=first)
    assert first not in page.locator("#rows .row .text").all_inner_texts()
    second = page.inner_text("#detail .full")
    for _ in range(3):  # from row to row, what is clicked stays where it is
        before = page.inner_text("#detail .full")
        page.keyboard.press("s")
        page.wait_for_function("(text) => document.querySelector('#detail .full').textContent !== text", arg=before)
        assert page.evaluate(PLACES) == places
    wait_for_text(page, "#queue-count", "1 of 20")  # what is skipped stays in the list
    for _ in range(3):
        page.keyboard.press("b")
    page.wait_for_function("(text) => document.querySelector('#detail .full').textContent === text", arg=second)
    page.keyboard.press("b")  # the labelled one comes back
    page.wait_for_function("(text) => document.querySelector('#detail .full').textContent === text", arg=first)
    wait_for_text(page, "#queue-count", "0 of 20")
    page.keyboard.press("1")  # another label than none, whatever was detected
    page.wait_for_selector("#detail .toggle[aria-pressed=true]")
    page.keyboard.press("Enter")
    wait_for_text(page, "#queue-count", "1 of 20")
    page.click("#undo")
    wait_for_text(page, "#queue-count", "1 of 20")  # it still has its first label
    page.click("#undo")
    wait_for_text(page, "#queue-count", "0 of 20")
    page.click("#queue-leave")
    page.wait_for_selector("#queue", state="hidden")
    wait_for_text(page, "#status", "86 sentences")


def test_a_list_that_is_done_does_not_blame_the_filter(page: Any) -> None:
    load_list(page, ["The soup was cold.", "A rude waiter."])
    page.keyboard.press("Enter")
    wait_for_text(page, "#queue-count", "1 of 2")
    page.keyboard.press("Enter")
    said = "This list is done: 2 sentences labelled. Choose Next 20 to go on, or Leave to see all sentences."
    page.wait_for_function("(said) => document.getElementById('nothing').textContent === said", arg=said)
    page.click("#queue-leave")
    wait_for_count(page, "#rows .row", 2)
    page.fill("#search", "no such text")
    wait_for_text(page, "#nothing", "No sentence matches the filter.")


def test_a_selection_that_was_accepted_stayed_in_the_list(page: Any) -> None:
    load_list(page, ["The soup was cold.", "A rude waiter.", "Far too dear."])
    page.keyboard.press("Shift+ArrowDown")
    wait_for_text(page, "#detail", "2 sentences selected")
    page.keyboard.press("Enter")
    wait_for_text(page, "#queue-count", "2 of 3")
    wait_for_count(page, "#rows .row", 1)
    page.keyboard.press("0")
    wait_for_text(page, "#nothing", "This list is done: 3 sentences labelled.")


def test_many_sentences_are_labelled_at_once_and_notes_are_kept(page: Any) -> None:
    rows = page.locator("#rows .row")
    texts = [rows.nth(place).locator(".text").inner_text() for place in range(4)]
    rows.nth(0).click()
    rows.nth(2).click(modifiers=["Shift"])
    wait_for_text(page, "#detail", "3 sentences selected")
    page.locator("#rows .row .tick").nth(3).click()
    wait_for_text(page, "#detail", "4 sentences selected")
    before = page.locator("#detail .toggle.many .value").nth(5).inner_text()
    assert before.endswith("of 4")
    page.locator("#detail .toggle.many").nth(5).click()
    wait_for_text(page, "#message", "4 sentences: ")
    wait_for_count(page, SAVED, 4)
    assert all(page.evaluate(LABEL, text) for text in texts)
    page.click("#undo")
    wait_for_count(page, "#rows .row.labelled", 0)
    page.keyboard.press("Escape")
    page.wait_for_selector("#detail #accept")
    page.fill("#note", "ask the cook")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rows .noted")
    page.click("#pick-noted")
    wait_for_count(page, "#rows .row", 1)
    page.reload()
    settle(page)
    assert page.input_value("#note") == "ask the cook"


def test_keys_do_nothing_when_several_sentences_are_selected(page: Any) -> None:
    texts = page.locator("#rows .row .text").all_inner_texts()[:3]
    ids = page.evaluate("async () => (await import('/static/state.js')).aspects().map((aspect) => aspect.id)")
    labels = f"async (texts) => Promise.all(texts.map({LABEL}))"
    page.keyboard.press("Backspace")  # nothing to remove
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    wait_for_text(page, "#detail", "3 sentences selected")
    page.keyboard.press("Enter")
    wait_for_text(page, "#message", "3 sentences: accepted as shown.")
    shown = page.evaluate(labels, texts)
    page.keyboard.press("6")
    wait_for_text(page, "#message", "3 sentences: ")
    wait_for_text(page, f"#many-{ids[5]} .value", "3 of 3")
    assert page.evaluate(labels, texts) == [sorted({*each, ids[5]}) for each in shown]
    page.keyboard.press("6")
    wait_for_text(page, f"#many-{ids[5]} .value", "0 of 3")
    page.keyboard.press("0")
    wait_for_text(page, "#message", "3 sentences: mention none.")
    assert page.evaluate(labels, texts) == [[], [], []]
    page.keyboard.press("a")
    page.keyboard.type(page.inner_text(f"#many-{ids[1]} .name")[:4])
    wait_for_count(page, "#detail .toggle", 1)
    page.keyboard.press("Enter")
    wait_for_text(page, f"#many-{ids[1]} .value", "3 of 3")
    assert page.evaluate(labels, texts) == [[ids[1]]] * 3
    page.keyboard.press("Delete")
    wait_for_text(page, "#message", "3 sentences: labels removed.")
    assert page.evaluate(labels, texts) == [None] * 3
    page.keyboard.press("Delete")  # nothing to remove
    page.keyboard.press("Control+z")
    wait_for_text(page, "#message", "Undone: label 3 sentences.")
    assert page.evaluate(labels, texts) == [[ids[1]]] * 3


def test_a_note_that_could_not_be_saved_is_sent_again(page: Any, server: Server) -> None:
    page.evaluate(FAIL, "/notes/")
    page.fill("#note", "ask the cook")
    page.keyboard.press("Enter")
    wait_for_text(page, "#message", "does not respond")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.getElementById('note').value === ''")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("() => document.getElementById('note').value === 'ask the cook'")
    page.evaluate("() => { window.fetch = window.realFetch; }")
    page.focus("#note")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rows .noted")
    assert list(server.ask("GET", "v1/project")[1]["notes"].values()) == ["ask the cook"]


def test_labels_of_others_are_not_said_to_be_removed(page: Any, server: Server) -> None:
    first = server.ask("GET", "v1/project/sentences")[1]["ids"][0]
    server.ask("PUT", f"v1/project/sentences/{first}", {"aspects": [], "person": "Bob"})
    page.evaluate("localStorage.setItem('awatt-person', 'Ann')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("0")
    wait_for_count(page, SAVED, 2)
    page.locator("#rows .row .tick").nth(0).click()
    page.locator("#rows .row .tick").nth(1).click()
    page.click("#remove-all")
    said = "1 sentence keeps its label, made by others."
    wait_for_text(page, "#message", f"1 sentence: labels removed. {said} Undo takes it back.")
    wait_for_count(page, SAVED, 1)
    page.click("#remove-all")
    wait_for_text(page, "#message", f"No label is removed. {said}")
    assert "Undo" not in page.inner_text("#message")


def test_only_sentences_that_are_listed_stay_selected(page: Any) -> None:
    texts = page.locator("#rows .row .text").all_inner_texts()
    page.keyboard.press("Shift+ArrowDown")
    wait_for_text(page, "#detail", "2 sentences selected")
    page.fill("#search", texts[0])
    wait_for_count(page, "#rows .row", 1)
    wait_for_text(page, "#detail .full", texts[0])
    page.fill("#search", "")
    page.focus("#table")
    page.keyboard.press("Shift+ArrowDown")
    wait_for_text(page, "#detail", "2 sentences selected")
    page.keyboard.press("n")  # a list begins without a selection: its keys label the sentence that is shown
    wait_for_text(page, "#queue-count", "0 of 20")
    page.keyboard.press("Enter")
    wait_for_text(page, "#queue-count", "1 of 20")


def test_beyond_nine_aspects_names_are_typed_and_a_sentence_becomes_an_example(page: Any) -> None:
    page.click("#tab-aspects")
    page.fill("#names", "zebra, zoo, yard, yeti")
    page.click("#by-name button")
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
    page.wait_for_function("() => document.querySelectorAll('#detail .toggle').length === 10")
    text = page.inner_text("#detail .full")
    name = "zebra" if "zoo" in page.inner_text("#rows .row.chosen") else "zoo"  # one that was not found there
    page.locator("#table").focus()
    page.keyboard.press("a")
    page.keyboard.type(name[:2])
    wait_for_count(page, "#detail .toggle", 1)
    page.keyboard.press("Enter")
    wait_for_text(page, "#rows .row.chosen", name)
    wait_for_count(page, "#detail .toggle", 10)
    assert page.evaluate("document.activeElement.id") == "table"
    wait_for_count(page, SAVED, 1)
    page.select_option("#use-as", label="yeti")
    wait_for_text(page, "#message", "An example of yeti now")
    wait_for_text(page, "#rows .row.chosen", "yeti")
    page.select_option("#use-as", label="a new aspect …")
    page.fill("#use-as-name", "weather")
    page.keyboard.press("Enter")
    wait_for_text(page, "#message", "An example of weather now")
    page.click("#tab-aspects")
    page.wait_for_selector("article[aria-label=weather]")
    assert text in page.inner_text("article[aria-label=weather]")


def test_exported_labels_are_imported_and_what_two_people_said_is_compared(page: Any) -> None:
    empty(page)
    page.click("#tab-aspects")
    labels = b"text,aspects\nThe waiter was kind.,staff\nThe parking was free.,\nWe paid for the parking.,cars\n"
    page.set_input_files("#import-file", {"name": "old.csv", "mimeType": "text/csv", "buffer": labels})
    wait_for_text(page, "#message", "3 labelled sentences imported from old.csv")
    page.set_input_files("#import-file", {"name": "old.csv", "mimeType": "text/csv", "buffer": labels})
    wait_for_text(page, "#message", "Nothing new: all that old.csv has is here already.")
    load(page, "reviews.xlsx", make_xlsx(ROWS))
    settle(page)
    page.click("#tab-aspects")
    page.fill("#person", "Ann")
    page.keyboard.press("Tab")
    page.click("#tab-sentences")
    for text, key in (("The waiter was rude.", "Enter"), ("The wine was warm.", "0")):
        page.locator("#rows .row", has_text=text).click()
        page.keyboard.press(key)
        until(page, "state.project.examples.some((each) => each.text === wanted)", text)
    page.click("#tab-aspects")
    wait_for_text(page, "#people", "Ann (you): 2 sentences")
    page.fill("#person", "Ben")
    page.keyboard.press("Tab")
    wait_for_text(page, "#people", "Ann: 2 sentences")
    page.click("#second-opinion")
    wait_for_text(page, "#queue-count", "0 of 2")
    assert "hidden" in page.inner_text("#detail .origin")
    assert page.locator("#rows .chip, #rows .person, #detail .toggle[aria-pressed=true]").count() == 0
    page.keyboard.press("0")
    wait_for_text(page, "#queue-count", "1 of 2")
    page.keyboard.press("0")
    wait_for_text(page, "#queue-count", "2 of 2")
    page.click("#tab-aspects")
    wait_for_text(page, "#people", "Ann and Ben (you): 2 sentences labelled by both")
    assert "0.75" in page.inner_text("#people .agreement tbody tr >> nth=0")  # one of four decisions differs
    page.click("#see-differing")
    wait_for_count(page, "#rows .row", 1)
    page.locator("#rows .row").click()
    wait_for_text(page, "#detail .opinions", "Ann: staff; you: none")
    page.click("#tab-aspects")
    for _ in range(2):  # the same file can be chosen again
        page.set_input_files("#import-file", {"name": "labels.docx", "mimeType": "x", "buffer": b"hi"})
        wait_for_text(page, "#message", "The suffix of labels.docx is unknown.")
        assert page.input_value("#import-file") == ""


def test_projects_are_created_switched_and_back_leads_to_the_first(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path)
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_selector("body[data-ready]")
    page.fill("#paste", "The soup was cold.")
    page.click("#load")
    wait_for_text(page, "#status", "1 sentence")
    page.click("#project")
    page.fill("#new-project", "hotels 2024")
    page.click("#projects button[type=submit]")
    wait_for_text(page, "#project", "hotels 2024")
    page.wait_for_function("() => document.getElementById('status').textContent === ''")
    page.fill("#paste", "The bed was hard.\nThe pool was warm.")
    page.click("#load")
    wait_for_text(page, "#status", "2 sentences")
    page.click("#project")
    page.click("#projects li a >> nth=1")
    wait_for_text(page, "#status", "1 sentence")
    assert page.inner_text("#project").startswith("project")
    page.go_back()
    wait_for_text(page, "#project", "hotels 2024")
    wait_for_text(page, "#status", "2 sentences")
    context.close()
    server.stop()


def test_a_project_that_cannot_be_opened_does_not_change_the_first(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.base}?project=hotels#aspects")
    page.fill("#token", server.token)
    page.click("#sign-in button")
    wait_for_text(page, "#project", "hotels")  # the one that the address names
    page.click("#project")
    page.fill("#new-project", "Hotels (2024)")
    page.click("#projects button[type=submit]")
    wait_for_text(page, "#not-created", "a name has letters")
    page.goto(f"{server.base}?project=Hotels%20(2024)")
    wait_for_text(page, "#message", "a name has letters")
    page.click("#tab-start")
    page.fill("#paste", "My own review of Porto.")
    page.click("#load")
    wait_for_text(page, "#message", "The project “Hotels (2024)” is not open")
    assert server.ask("GET", "v1/project/sentences")[1]["texts"] == []
    page.goto(f"{server.base}?project=hotels")
    wait_for_text(page, "#project", "hotels")
    page.evaluate("localStorage.removeItem('awatt-key')")  # the cookie stays
    page.click("#message a")
    page.wait_for_selector("#token")
    assert page.url == f"{server.base}?sign-in&project=hotels#start"
    context.close()
    server.stop()


def test_the_new_parts_follow_the_rules(page: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}

    def check(where: str) -> None:
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            found = axe.Axe().run(page, options=rules).response["violations"]
            assert [(where, width, each["id"], each["nodes"][0]["html"][:200]) for each in found] == []

    empty(page)
    load(page, "reviews.xlsx", make_xlsx(ROWS))
    page.wait_for_selector(".suggestion")
    page.wait_for_selector("#people p")
    check("aspects")
    page.locator(".suggestion .main").first.click()
    page.wait_for_selector("article[aria-label=parking]")
    page.click("#tab-sentences")
    settle(page)
    page.click("#next")
    page.wait_for_selector("#queue:not([hidden])")
    check("queue")
    page.click("#queue-leave")
    page.locator("#rows .row .tick").nth(0).click()
    page.locator("#rows .row .tick").nth(1).click()
    page.wait_for_selector("#accept-all")
    check("selection")
    page.click("#project")
    page.wait_for_selector("#projects[open]")
    check("projects")
    page.keyboard.press("Escape")
    page.click("#tab-start")
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "x", "buffer": b"text,aspects,stars\nGood.,food,5\n"})
    page.wait_for_selector("#import-labels")
    check("preview")
