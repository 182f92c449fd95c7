"""Seeing the whole in a real browser: columns, charts that answer, the map, links to a view, and the report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .browsing import Server, needs_chromium, settle, until

pytestmark = needs_chromium
TEXTS = {"food": "The pasta was tasty.", "service": "A rude waiter.", "none": "We left."}
MAPPED = "() => Number(document.querySelector('canvas')?.dataset.names) > 0"
ADDRESS = "([pattern]) => new RegExp(pattern).test(decodeURIComponent(location.hash))"
STATE = "const { state } = await import('/static/state.js');"
ROWS = f"async () => {{ {STATE} return state.rows.map((row) => state.texts[row]); }}"
OVERLAPPING = """() => [...document.querySelectorAll('#view-overview svg')].slice(0, 2).map((chart) => {
  const texts = [...chart.querySelectorAll('text:not([transform])')].map((node) => node.getBoundingClientRect());
  const before = (a, b) => a.right - 1 <= b.left || a.bottom <= b.top + 6;
  const beside = (a, b) => before(a, b) || before(b, a);
  return texts.filter((a, i) => texts.some((b, j) => i < j && !beside(a, b))).length;
})"""
CHANGE = """async () => {
  const api = await import('/static/api.js');
  try { await api.put('/v1/project/sentences/1', { aspects: [] }); } catch (error) { return error.status; }
}"""


def make_reviews() -> bytes:
    """60 reviews: food with 5 stars, service with 1; more service in later months."""
    rows = ["stars,city,day,guest,text"]
    for n in range(60):
        month, stars = 1 + n % 6, 5 if n % 2 else 1
        text = TEXTS["food"] if n % 2 else TEXTS["service"] if n % 6 > 1 else TEXTS["none"]
        rows.append(f"{stars},{'Porto' if n % 3 else 'Ghent'},2024-{month:02}-05,guest {n},{text}")
    return "\n".join(rows).encode()


def wait_for_status(page: Any, text: str) -> None:
    page.wait_for_function("(text) => document.getElementById('status').textContent.startsWith(text)", arg=text)


def wait_for_address(page: Any, pattern: str) -> None:
    page.wait_for_function(ADDRESS, arg=[pattern])


@pytest.fixture
def loaded(page: Any) -> Any:
    """A page with reviews that have columns, and the sample's aspects."""
    page.click("#tab-start")
    page.set_input_files("#file", {"name": "reviews.csv", "mimeType": "text/csv", "buffer": make_reviews()})
    page.click("#load:enabled")
    wait_for_status(page, "60 sentences")
    settle(page)
    return page


def aspect_id(page: Any, name: str) -> int:
    found = "async (name) => (await import('/static/state.js')).state.project.aspects.find((a) => a.name === name).id"
    return int(page.evaluate(found, name))


def test_bars_and_lines_by_column_list_their_sentences_and_back_returns(loaded: Any) -> None:
    food, service = aspect_id(loaded, "food"), aspect_id(loaded, "service")
    loaded.click("#tab-overview")
    loaded.wait_for_selector("#by-column .panel")
    first = loaded.locator("#by-column caption").first.inner_text()
    assert first == "food"  # in every review with 5 stars and in none with 1: it differs most
    label = loaded.get_attribute(f"#share-{food}-1", "aria-label")
    assert re.match(r"food, 5: 100\s%, 95 % interval 89\s% to 100\s%, 30 reviews", label)
    loaded.click(f"#share-{food}-1")
    wait_for_status(loaded, "30 of 60")
    wait_for_address(loaded, r"^#sentences\?aspect=food&c\.stars=5")
    assert set(loaded.evaluate(ROWS)) == {TEXTS["food"]}
    loaded.go_back()
    loaded.wait_for_selector("#view-overview:not([hidden])")
    wait_for_status(loaded, "60 sentences")
    loaded.select_option("#column", "day")
    loaded.wait_for_selector("#by-column .panel svg path")  # a line over time, with its band
    assert loaded.locator("#by-column svg").first.locator("[role=button]").count() == 6
    wait_for_address(loaded, r"^#overview\?by=day")
    loaded.locator(f"#share-{service}-2").focus()
    loaded.keyboard.press("ArrowRight")  # to the next point that there is
    loaded.wait_for_function(f"() => document.activeElement.id === 'share-{service}-3'")
    loaded.keyboard.press("ArrowRight")
    loaded.keyboard.press("Enter")
    wait_for_status(loaded, "10 of 60")
    wait_for_address(loaded, r"aspect=service&c\.day=2024-05")


def test_a_bar_a_cell_and_a_legend_entry_list_their_sentences(page: Any) -> None:
    drinks, price = aspect_id(page, "drinks"), aspect_id(page, "price")
    counts = page.evaluate(f"async () => {{ {STATE} return [state.counts, state.pairs, state.none]; }}")
    for mark, count in (
        (f"#bar-{price}", counts[0][3]),
        ("#bar-none", counts[2]),
        (f"#pair-{drinks}-{price}", counts[1][1][3]),
        (f"#legend-{drinks}", counts[0][1]),
    ):
        page.click("#tab-overview")
        page.wait_for_function(MAPPED)
        page.click(mark)
        page.wait_for_selector("#view-sentences:not([hidden])")
        wait_for_status(page, f"{count} of 86")
        page.go_back()
        page.wait_for_selector("#view-overview:not([hidden])")
        wait_for_status(page, "86")
    page.click("#tab-overview")
    page.locator(f"#bar-{price}").focus()
    page.keyboard.press("Enter")
    wait_for_status(page, f"{counts[0][3]} of 86")


def test_filters_combine_and_a_link_to_them_shows_the_same(loaded: Any, server: Server) -> None:
    loaded.select_option("#in-list-column", "city")
    loaded.click("#in-list-group-1")  # Porto
    wait_for_status(loaded, "40 of 60")
    loaded.click(f"#pick-{aspect_id(loaded, 'food')}")
    wait_for_status(loaded, "20 of 60")
    loaded.select_option("#in-list-column", "stars")
    loaded.click("#in-list-group-0")
    wait_for_status(loaded, "0 of 60")  # food has 5 stars
    loaded.click("#in-list-group-1")  # or 5
    wait_for_status(loaded, "20 of 60")
    loaded.select_option("#in-list-column", "guest")  # every guest differs: by what the name contains
    loaded.fill("#in-list-contains", "guest 1")
    loaded.keyboard.press("Enter")
    loaded.fill("#search", "pasta")
    wait_for_address(loaded, r"aspect=food&text=pasta&c\.city=Porto&c\.stars=1&c\.stars=5&t\.guest=guest\+1")
    shown = loaded.evaluate(ROWS)
    assert len(shown) == 5  # of the guests 1 and 10 to 19 those with an odd number have food, and 15 is in Ghent
    other = loaded.context.new_page()
    other.goto(loaded.url)
    wait_for_status(other, f"{len(shown)} of 60")
    assert other.evaluate(ROWS) == shown
    assert other.locator("#filters .chip.active").all_inner_texts()[0].startswith("city: Porto")
    other.click("#tab-overview")  # the charts are about the same sentences, and so are the shares by column
    other.wait_for_function("() => document.querySelector('#view-overview .lead')?.textContent.startsWith('5 of 60')")
    reviews = "([mark, count]) => document.getElementById(mark)?.ariaLabel.endsWith(`, ${count} reviews`)"
    share = f"share-{aspect_id(other, 'food')}-1"  # of the reviews with 5 stars
    other.wait_for_function(reviews, arg=[share, 5])
    other.click("#in-overview-where-0")  # not only Porto
    other.wait_for_function(reviews, arg=[share, 6])
    other.click("#in-overview-text")
    other.wait_for_function("() => !document.getElementById('in-overview-text')")
    other.close()
    loaded.click("#pick-all")
    wait_for_status(loaded, "60 sentences")
    wait_for_address(loaded, r"^#sentences(\?row=\d+)?$")


def drag(page: Any, corners: list[tuple[float, float]]) -> None:
    """Over the map, between places given as parts of its width and height."""
    page.locator("canvas").scroll_into_view_if_needed()
    area = page.locator("canvas").bounding_box()
    places = [(area["x"] + area["width"] * x, area["y"] + area["height"] * y) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def test_the_map_zooms_pans_and_selects_with_a_lasso(page: Any) -> None:
    page.click("#tab-overview")
    page.wait_for_function(MAPPED)
    page.click("#lasso")
    drag(page, [(0.01, 0.01), (0.5, 0.01), (0.5, 0.99), (0.01, 0.99)])  # the left half
    page.wait_for_selector("#see-area")
    left = page.evaluate(
        "async () => { const { mapPositions } = await import('/static/scope.js'), spots = mapPositions();"
        " return [...Array(spots.length / 2).keys()].filter((row) => spots[2 * row] < 0).length; }"
    )
    assert abs(int(page.inner_text(".selected strong").split()[0]) - left) <= 2
    wait_for_address(page, r"^#overview\?area=")
    page.click("#see-area")
    wait_for_status(page, f"{page.evaluate(ROWS).__len__()} of 86")
    page.click("#in-list-area")
    wait_for_status(page, "86")
    page.click("#tab-overview")
    page.wait_for_function(MAPPED)
    page.click("#zoom-in")
    wait_for_address(page, r"map=0\.000\+0\.000\+1\.600")
    drag(page, [(0.5, 0.5), (0.3, 0.5)])
    until(page, "state.camera.x > 0.1")  # what was right of it
    page.locator("canvas").focus()
    page.keyboard.press("0")
    until(page, "state.camera === null")
    assert page.locator("#view-overview").is_visible()  # dragging opened no sentence


def test_many_aspects_and_sentences_stay_readable(page: Any) -> None:
    names = [f"aspect {n}" for n in range(19)]
    page.click("#tab-aspects")
    page.fill("#names", ", ".join(names))
    page.click("#by-name button")
    page.wait_for_selector("#view-sentences:not([hidden])")
    until(page, "hasScores()")
    page.click("#tab-overview")
    for width in (1440, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(MAPPED)
        overlapping = page.evaluate(OVERLAPPING)
        assert overlapping == [0, 0], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_read_only_link_shows_the_view_and_changes_nothing(loaded: Any, browser: Any, server: Server) -> None:
    loaded.click(f"#pick-{aspect_id(loaded, 'food')}")
    wait_for_status(loaded, "30 of 60")
    loaded.click("#share")
    loaded.click("#make-read-only")
    link = loaded.input_value("#read-only-link")
    before = server.ask("GET", "v1/project/version")[1]
    for _ in range(2):  # it can be opened again
        context = browser.new_context()
        reader = context.new_page()
        reader.goto(link)
        wait_for_status(reader, "30 of 60")
        assert reader.locator("#read-only").is_visible()
        for control in ("#tab-start", "#undo", "#next", "#accept", "#share", "#threshold-all"):
            assert not reader.locator(control).is_visible(), control
        reader.keyboard.press("0")
        reader.wait_for_function("() => document.getElementById('message').textContent.includes('read-only')")
        assert reader.evaluate(CHANGE) == 403
        reader.goto(f"{server.base}?project=another")  # a reader sees one project, whatever the address names
        wait_for_status(reader, "60 sentences")
        context.close()
    assert server.ask("GET", "v1/project/version")[1] == before
    loaded.goto(link)  # who may change things still may
    wait_for_status(loaded, "30 of 60")
    assert not loaded.locator("#read-only").is_visible()


def test_the_report_is_one_page_that_prints(loaded: Any, browser: Any, tmp_path: Path) -> None:
    loaded.click("#tab-export")
    loaded.fill("#report-title", "Pasta & co <1>")
    with loaded.expect_download() as saved:
        loaded.click("a[href$='report.html']")
    path = tmp_path / "report.html"
    saved.value.save_as(path)
    context = browser.new_context(viewport={"width": 400, "height": 800}, offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.inner_text("h1") == "Pasta & co <1>"
    titles = page.locator("h2").all_inner_texts()
    assert {"By stars", "By city", "By day", "Typical sentences", "How good the detection is"} <= set(titles)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.pdf(format="A4").startswith(b"%PDF")
    context.close()


def test_a_sample_that_is_fully_labelled_offers_no_more(page: Any, server: Server) -> None:
    last = server.ask("GET", "v1/project/quality")[1]["next"][0]
    ids = server.ask("GET", "v1/project/sentences")[1]["ids"]
    labels = [{"id": key, "aspects": []} for key in ids if key != last]
    assert server.ask("POST", "v1/project/labels", {"labels": labels})[0] == 200
    page.click("#tab-aspects")
    page.click("#measure:has-text('Label 1 random sentence')")
    page.wait_for_selector("#queue:not([hidden])")
    page.keyboard.press("0")
    page.click("#queue-more")
    page.wait_for_function("() => document.getElementById('message').textContent === 'Every sentence is labelled.'")
    page.click("#tab-aspects")
    page.wait_for_selector("#measured:has-text('Every sentence is labelled.')")
    assert not page.locator("#measure").count()


def test_a_random_sample_is_labelled_and_the_course_of_its_quality_drawn(page: Any, server: Server) -> None:
    for key in server.ask("GET", "v1/project/quality")[1]["next"][:19]:
        server.ask("PUT", f"v1/project/sentences/{key}", {"aspects": [aspect_id(page, "food")]})
    page.click("#tab-aspects")
    page.click("#measure:has-text('Label 1 more sentence')")
    page.wait_for_selector("#queue:not([hidden])")
    page.keyboard.press("0")
    page.wait_for_function("() => document.getElementById('message').textContent.startsWith('The sample is labelled')")
    page.keyboard.press("n")  # the next 20 of the sample, not those that are most useful
    page.wait_for_function("() => document.getElementById('queue-count').textContent === '0 of 20'")
    assert page.inner_text("#queue strong") == "Random sample"
    page.click("#tab-aspects")
    page.wait_for_selector("#course svg")
    assert page.locator("#course svg").count() == 3  # F1, precision, recall
    assert "20 random sentences" in page.inner_text("#measured")
    assert re.search(r"50 examples\s*\d\d:\d\d", page.locator("#course svg").first.text_content())  # added today
    page.select_option("#course-of", "food")
    page.wait_for_function("() => document.getElementById('course-of').value === 'food'")
