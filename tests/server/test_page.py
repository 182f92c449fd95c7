"""The page in a real Chromium, from the sample to the export."""

from __future__ import annotations

import base64
import signal
from pathlib import Path
from typing import Any

import pytest

from awatt.detector.opening import parse_names
from awatt.detector.report_charts import percent
from awatt.errors import AwattError

from .browsing import SAVED, Server, needs_chromium, settle, until

pytestmark = needs_chromium
VIEWS = ("start", "aspects", "sentences", "overview", "export")
SCRIPT = "<script>document.body.dataset.hacked = 1</script><img src=x onerror=alert(1)> the soup was cold"


GUESSES = """async () => {
  const { score, state } = await import('/static/state.js'), newest = state.project.aspects.at(-1);
  return [...state.filter.only].map((id) => state.ids.indexOf(id)).map((row) => [score(row, newest), state.texts[row]]);
}"""
PLACE = """async () => {
  const { state } = await import('/static/state.js');
  const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');
  const { values } = await (await import('/static/api.js')).floats('/v1/project/map');
  const area = canvas.getBoundingClientRect(), colour = (x, y) => [...pen.getImageData(x, y, 1, 1).data].join();
  const places = state.texts.map((_, row) => [0.5 + 0.47 * values[2 * row], 0.5 - 0.46 * values[2 * row + 1]]);
  return {
    texts: state.texts, dots: places.map(([x, y]) => [area.width * x, area.height * y]),
    inked: places.every(([x, y]) => colour(canvas.width * x, canvas.height * y) !== colour(0, 0)),
  };
}"""
REVISION = "async () => (await import('/static/state.js')).state.project.revision"
INKED = """() => {
  const canvas = document.querySelector('canvas');
  const pixels = canvas?.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer;
  return pixels && new Set(new Uint32Array(pixels)).size > 20;
}"""
PAINTED = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  [canvas.width, canvas.height] = [image.width, image.height];
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height), seen = new Map();
  const shown = (at) => `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
  for (let at = 0; at < data.length; at += 4) seen.set(shown(at), (seen.get(shown(at)) ?? 0) + 1);
  return { corner: shown(0), colours: seen.size, wide: image.width, all: [...seen.keys()] };
}"""


def counts(page: Any) -> list[int]:
    return [
        int(text.split()[0].replace(",", "")) for text in page.locator("#filters .aspect .count").all_text_contents()
    ]


def chosen(page: Any) -> Any:
    return page.locator("#detail .toggle")


def load_pasted(page: Any, text: str) -> None:
    page.click("#tab-start")
    page.fill("#paste", text)
    page.click("#load")


def test_from_the_sample_to_the_export(page: Any) -> None:
    page.wait_for_selector("#rows mark")  # words are coloured
    assert page.locator("#rows mark").first.get_attribute("title")
    page.click("#tab-export")
    for kind, begin in (
        ("results.csv", b"review,text,aspects"),
        ("results.jsonl", b"{"),
        ("results.parquet", b"PAR1"),
        ("detector.zip", b"PK"),
    ):
        with page.expect_download() as saved:
            page.click(f"a[href$='{kind}']")
        assert Path(saved.value.path()).read_bytes().startswith(begin)
    assert "from awatt import AspectDetector" in page.inner_text("#view-export")


def test_a_label_applies_at_once_and_can_be_undone(page: Any) -> None:
    pressed = chosen(page).first.get_attribute("aria-pressed")
    page.keyboard.press("1")
    page.wait_for_selector("#rows .row.chosen.labelled")
    assert chosen(page).first.get_attribute("aria-pressed") != pressed
    text = page.inner_text("#rows .row.chosen .text")
    page.click("#undo")
    page.wait_for_function("() => !document.querySelector('#rows .row.labelled')")
    said = "(begin) => document.getElementById('message').textContent.startsWith(begin)"
    page.wait_for_function(said, arg=f"Undone: label “{text[:55]}")
    again = "(pressed) => document.querySelector('#detail .toggle').getAttribute('aria-pressed') === pressed"
    page.wait_for_function(again, arg=pressed)  # once it has been detected again


def test_what_an_action_changed_is_listed_with_what_was_found_before(page: Any) -> None:
    page.click("#tab-aspects")
    page.fill("#names", "soup")
    page.click("#by-name button")
    page.wait_for_selector("#pick-only")
    assert page.inner_text("#pick-only .name") == "Guesses"  # what was found, the surest first
    until(page, "state.chosen === state.rows[0]")  # Enter labelled a sentence that was not on the screen
    scores = [float(text) for text in page.locator("#rows .chip.guess small").all_inner_texts()]
    assert scores[0] == max(scores)
    page.wait_for_selector("#pick-changed")
    changed = int(page.inner_text("#see-changed").split()[0])
    assert 0 < changed < 86
    for width in (1440, 1280, 1100):
        page.set_viewport_size({"width": width, "height": 800})
        page.locator("#see-changed").click(trial=True)  # it can be clicked although a filter lengthens what is said
    page.click("#tab-overview")
    page.click("#see-changed")
    page.wait_for_function(f"() => document.getElementById('status').textContent.startsWith('{changed} of 86')")
    assert page.inner_text("#pick-only .name") == "Just changed"
    assert page.locator("#rows .row").count() == page.locator("#rows .row .earlier").count() > 0
    new = page.locator("#rows .row", has_text="soup?").first
    assert new.locator(".earlier").inner_text().startswith("was ")
    assert "soup" not in new.locator(".earlier").inner_text()
    page.click("#pick-only")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('86')")


def test_quick_keys_build_on_each_other(page: Any) -> None:
    before = [each.get_attribute("aria-pressed") for each in chosen(page).all()]
    revision = page.evaluate(REVISION)
    for key in "1234":  # faster than the server responds
        page.keyboard.press(key)
    until(page, "state.project.revision >= wanted", revision + 4)
    page.reload()
    settle(page)
    after = [each.get_attribute("aria-pressed") for each in chosen(page).all()]
    assert [one != two for one, two in zip(before, after, strict=True)] == [True] * 4 + [False] * 2


def test_loading_and_starting_over_can_be_undone(page: Any) -> None:
    before = counts(page)
    load_pasted(page, "Good bread.\nWarm soup.")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('2 ')")
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Undo brings back')")
    page.click("#tab-sentences")
    assert page.inner_text("#nothing .button") == "Load reviews"
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('empty already')")
    page.click("#tab-sentences")
    page.click("#undo")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('2 ')")
    page.click("#undo")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('86 ')")
    settle(page)
    assert counts(page) == before
    assert page.inner_text("#message") == "Undone: load reviews."


def test_thresholds_apply_at_once_overall_and_per_aspect(page: Any) -> None:
    before = counts(page)
    sliders = page.locator("#filters input[type=range]")
    sliders.first.fill("0.05")
    low = counts(page)
    assert all(one >= two for one, two in zip(low, before, strict=True))
    assert sum(low) > sum(before)
    sliders.nth(1).fill("1")  # before the server has confirmed the first: neither is lost
    assert counts(page)[0] == 0
    assert counts(page)[1:] == low[1:]
    page.wait_for_function("() => document.getElementById('undo').title.includes('threshold of food')")
    assert counts(page) == [0, *low[1:]]
    page.reload()
    settle(page)
    assert counts(page) == [0, *low[1:]]


def test_a_score_below_the_threshold_is_not_rounded_up_to_it(page: Any) -> None:
    shown = page.evaluate(
        """async () => {
          const { aspects, scoreText, state } = await import('/static/state.js');
          state.autoThresholds.set(aspects()[0].id, 0.3);
          return [0.2968, 0.29999, 0.3, 0.304, 0.1].map((score) => {
            state.scores[0] = score;
            return scoreText(0, aspects()[0]);
          });
        }"""
    )
    assert shown == ["0.297", "0.29999", "0.30", "0.30", "0.10"]  # at the threshold 0.30


def test_one_review_is_not_called_1_reviews(page: Any) -> None:
    load_pasted(page, "Good bread.")
    page.wait_for_function(
        "() => document.getElementById('message').textContent.startsWith('1 review, 1 sentence. Undo')"
    )
    page.wait_for_function("() => document.getElementById('status').textContent === '1 sentence'")


def test_by_keyboard_only(page: Any) -> None:
    page.locator("#table").focus()
    first = page.inner_text("#detail .full")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#detail .full") != first
    page.keyboard.press("0")  # label it as none, and go to the next
    page.wait_for_function("() => document.querySelectorAll('#rows .row.labelled').length === 1")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+z")  # before the server has responded: the last label is undone
    page.wait_for_function("() => document.getElementById('message').textContent.startsWith('Undone: label')")
    page.wait_for_function("() => document.querySelectorAll('#rows .row.labelled').length === 1")
    page.keyboard.press("n")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('20 of')")
    page.keyboard.press("/")
    page.keyboard.type("the")
    page.wait_for_function("() => !document.getElementById('status').textContent.startsWith('20 of')")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "table"
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Enter")
    assert not page.locator("#keys").is_visible()


def test_a_new_aspect_is_found(page: Any) -> None:
    page.click("#tab-aspects")
    page.fill("#new-name", "waiting")
    page.fill("#new-examples", "We waited an hour.\nThe queue was endless.\nNo wait at all.")
    page.click("#by-examples button")
    page.wait_for_selector("article[aria-label=waiting]")
    page.wait_for_selector(".quality strong")  # the report, by leaving one out
    page.click("#tab-sentences")
    page.wait_for_function("() => document.querySelectorAll('#filters .aspect').length === 7")
    assert counts(page)[-1] < 86
    page.locator("#filters input[type=range]").last.fill("0")
    every = "() => [...document.querySelectorAll('#filters .aspect .count')].at(-1).textContent.startsWith('86 ')"
    page.wait_for_function(every)  # once it has been detected, every sentence has a score for it


def test_guesses_are_the_surest_then_one_from_the_middle_and_so_on(page: Any) -> None:
    page.click("#tab-aspects")
    page.fill("#names", "meal")
    page.click("#by-name button")
    page.wait_for_selector("#pick-only")
    listed = page.evaluate(GUESSES)
    scores = [score for score, text in listed if len(text.split()) >= 5]  # shorter ones come last
    bits = (len(scores) - 1).bit_length()
    places = [int(format(number, f"0{bits}b")[::-1], 2) for number in range(2**bits)]
    ranked = sorted(scores, reverse=True)
    assert len(scores) > 4
    assert scores == [ranked[place] for place in places if place < len(scores)]


def test_names_alone_find_sentences_at_once_marked_as_guesses(page: Any) -> None:
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Undo brings back')")
    load_pasted(page, "The battery died.\nA bright screen.\nCheap for what it does.\nWe left.")
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.fill("#names", "battery, screen, price")
    page.click("#by-name button")
    page.wait_for_selector("#view-sentences:not([hidden])")
    page.wait_for_selector("#rows .chip.guess")
    assert page.locator("#rows .row", has_text="The battery died.").locator(".chip").inner_text().startswith("battery?")
    assert "Guessed from the names" in page.inner_text("#detail")
    page.click("#tab-export")
    assert "awatt detect reviews.csv --aspects 'battery,screen,price' --out" in page.inner_text("#view-export")
    page.click("#tab-sentences")
    page.locator("#rows .row", has_text="The battery died.").click()
    page.keyboard.press("Enter")
    page.wait_for_selector(SAVED)
    page.wait_for_function("() => !document.querySelector('#filters').textContent.includes('battery?')")
    assert "screen?" in page.inner_text("#filters")  # still a guess
    page.click("#tab-export")
    assert "--examples awatt-examples.jsonl --aspects 'screen,price'" in page.inner_text("#view-export")
    page.click("#tab-aspects")
    page.fill("#names", "battery")
    page.click("#by-name button")
    wanted = "Nothing to guess: battery has examples already."
    page.wait_for_function("(wanted) => document.getElementById('message').textContent === wanted", arg=wanted)


NAMES = '''battery, screen,price
"food, drinks", service
service,"food, drinks"
"say ""cheese""", a
a "b" c, d"
a; b
,, a
a,
,
"a
"a" b, c
"a" ,b
  "a"
"",a
""
"a""
x, "a b
["food, drinks", "service"]
 ["a"]
["a", 1]
["a", null]
["a"
[]
{"a": 1}
a,["b"]
"[a]", b'''.splitlines()


def test_quotes_around_a_name_with_a_comma_were_not_read(page: Any) -> None:
    def read(given: str) -> list[str]:
        try:
            return parse_names(given)
        except AwattError:
            return []

    script = "async (cases) => cases.map((await import('/static/aspects.js')).parseNames)"
    assert page.evaluate(script, NAMES) == [read(each) for each in NAMES]
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Undo brings back')")
    load_pasted(page, "The battery died.\nA bright screen.\nGood food and drinks.")
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.fill("#names", '"food, drinks')
    page.click("#by-name button")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('needs quotes')")
    page.fill("#names", '"food, drinks", battery')
    page.click("#by-name button")
    page.wait_for_selector("#rows .chip.guess")
    until(page, "state.project.aspects.map((each) => each.name).join('|') === wanted", "food, drinks|battery")
    page.click("#tab-export")
    assert """--aspects '"food, drinks",battery' --out""" in page.inner_text("#view-export")


def test_an_aspect_that_was_not_learned_is_not_shown_as_none(page: Any) -> None:
    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Undo brings back')")
    load_pasted(page, "Good bread.\nWarm soup.")
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.fill("#names", "!!!")  # no word that the model could read
    page.click("#by-name button")
    page.wait_for_selector("#view-sentences:not([hidden])")
    page.wait_for_function("() => document.getElementById('filters').textContent.includes('not learned')")
    page.wait_for_function("() => !document.querySelector('#rows .chip')")
    assert "Nothing is learned yet" in page.inner_text("#detail")
    assert "Detected" not in page.inner_text("#detail")
    assert "None found" not in page.inner_text("#filters")


def test_a_dot_of_the_map_names_its_sentence(page: Any) -> None:
    for height in (800, 500):  # on a low screen the map is scaled
        page.set_viewport_size({"width": 1280, "height": height})
        page.click("#tab-overview")
        page.wait_for_function(INKED)
        place = page.evaluate(PLACE)
        assert place["inked"]  # there is a dot at each position used below
        for row in (0, 40, 85):
            x, y = place["dots"][row]
            page.locator("canvas").hover(position={"x": x, "y": y})
            shown = page.inner_text("#view-overview .tip").rpartition(" → ")[0]
            assert shown in {place["texts"][each] for each in near(place["dots"], x, y)}
        alone = next(n for n, (x, y) in enumerate(place["dots"]) if len(near(place["dots"], x, y, 16)) == 1)
        x, y = place["dots"][alone]
        page.locator("canvas").hover(position={"x": x, "y": y})
        assert page.inner_text("#view-overview .tip").startswith(place["texts"][alone] + " → ")
        page.locator("canvas").click(position={"x": x, "y": y})
        assert page.inner_text("#detail .full") == place["texts"][alone]


def test_the_map_is_read_by_keyboard(page: Any) -> None:
    page.click("#tab-overview")
    page.wait_for_function(INKED)
    place = page.evaluate(PLACE)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")  # starts at the chosen sentence
    row, seen = 0, [0]
    for key, (dx, dy) in {"ArrowRight": (1, 0), "ArrowDown": (0, 1), "ArrowLeft": (-1, 0), "ArrowUp": (0, -1)}.items():
        page.keyboard.press(key)
        x, y = place["dots"][row]
        along = [(a - x) * dx + (b - y) * dy for a, b in place["dots"]]
        aside = [abs((a - x) * dy) + abs((b - y) * dx) for a, b in place["dots"]]
        there = [n for n in range(86) if along[n] > 0 and aside[n] <= along[n]]
        row = min(there, key=lambda n: along[n] ** 2 + aside[n] ** 2, default=row)
        assert page.inner_text("#tip").startswith(place["texts"][row] + " → ")
        seen.append(row)
    assert len(set(seen)) > 2
    ring = page.evaluate("document.querySelector('.ring').getBoundingClientRect().toJSON()")
    area = page.evaluate("document.querySelector('canvas').getBoundingClientRect().toJSON()")
    middle = ring["x"] + ring["width"] / 2 - area["x"], ring["y"] + ring["height"] / 2 - area["y"]
    assert middle == pytest.approx(place["dots"][row], abs=1)
    page.keyboard.press("Enter")
    assert page.inner_text("#detail .full") == place["texts"][row]
    assert page.locator("#rows .row.labelled").count() == 0  # it was opened, not accepted


def test_on_a_filtered_map_the_arrow_keys_reach_what_is_drawn(page: Any) -> None:
    page.click("#tab-overview")
    page.wait_for_function(INKED)
    page.click("#tab-sentences")
    page.fill("#search", "was")
    page.click("#tab-overview")
    page.locator("canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        assert "was" in page.inner_text("#tip").rpartition(" → ")[0].lower()


def near(dots: list[list[float]], x: float, y: float, most: float = 2) -> list[int]:
    return [n for n, (a, b) in enumerate(dots) if (a - x) ** 2 + (b - y) ** 2 <= most**2]


def test_saved_pictures_look_like_the_page(page: Any) -> None:
    page.click("#tab-overview")
    page.wait_for_function(INKED)
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page.click("#tab-overview")  # drawn again
        pictures = {}
        for name in ("aspects", "together", "map"):
            with page.expect_download() as saved:
                page.click(f"#save-{name}")
            kind = "image/png" if name == "map" else "image/svg+xml"
            content = base64.b64encode(Path(saved.value.path()).read_bytes()).decode()
            pictures[name] = page.evaluate(PAINTED, f"data:{kind};base64,{content}")
        paper = page.evaluate("getComputedStyle(document.querySelector('header')).backgroundColor")
        for name, picture in pictures.items():
            assert picture["corner"] == paper, (name, theme)
            assert picture["colours"] > 20, (name, theme)
            assert picture["wide"] > 300, (name, theme)
        assert ("255, 255, 255" in paper) == (theme == "light")
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert ink in pictures["aspects"]["all"]  # the text has the colour of the page's text


def test_the_page_and_the_report_round_halves_alike(page: Any) -> None:
    shares = sorted({n / m for m in range(1, 201) for n in range(m + 1)})
    script = "async (shares) => shares.map((await import('/static/dom.js')).percent)"
    shown = dict(zip(shares, page.evaluate(script, shares), strict=True))
    assert shown == {share: percent(share).replace(" ", "\xa0") for share in shares}
    assert [shown[share].split("\xa0")[0] for share in (0, 1 / 16, 0.125, 0.625, 1)] == ["0", "6.3", "13", "63", "100"]


def test_aspects_are_compared_by_the_columns_of_the_file(page: Any) -> None:
    texts = ["The pasta was tasty.", "A rude waiter."]
    rows = "".join(f"{1 + n % 2},{'ab'[n // 10]},{texts[n % 2]}\n" for n in range(20))
    page.click("#tab-start")
    content = {"name": "reviews.csv", "mimeType": "text/csv", "buffer": f"stars,shop,text\n{rows}".encode()}
    page.set_input_files("#file", content)
    page.click("#load:enabled")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('20 sentences')")
    page.click("#tab-overview")
    page.wait_for_selector("#by-column .panel")
    assert page.input_value("#column") == "stars"
    food = page.locator("#by-column .panel", has=page.locator("caption", has_text="food"))
    assert food.locator("tr").all_text_contents()[0].startswith("1100")  # of the reviews with 1 star: 100 %
    page.select_option("#column", "shop")
    page.wait_for_function("() => document.querySelector('#by-column .panel th').textContent === 'a'")


def test_on_a_narrow_screen_a_message_covers_nothing_and_names_no_keys(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.click("#next")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('Tap the aspects')")
    message, filters = (page.locator(each).bounding_box() for each in ("#message", "#filters"))
    assert message["y"] + message["height"] <= filters["y"]


def test_the_charts_fill_their_cards(page: Any) -> None:
    for width in (1440, 1100):
        page.set_viewport_size({"width": width, "height": 900})
        page.click("#tab-overview")
        for chart in page.locator("figure.card:not(.span)").all():
            card, picture = chart.bounding_box(), chart.locator("svg").bounding_box()
            assert picture["width"] > 0.6 * card["width"]
            assert picture["height"] > 0.6 * card["height"]


def test_on_a_narrow_screen_thresholds_leave_room_for_rows(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.reload()
    settle(page)
    assert page.locator("#detail").is_visible()
    page.click("#thresholds")
    assert not page.locator("#detail").is_visible()
    assert page.locator("#table").bounding_box()["height"] > 3 * 88
    page.click("#thresholds")
    assert page.locator("#detail").is_visible()


def test_a_review_is_never_html(page: Any) -> None:
    load_pasted(page, f"{SCRIPT}\nGood bread.")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('2')")
    settle(page)
    assert "<script>" in page.inner_text("#rows")
    assert page.evaluate("document.body.dataset.hacked ?? null") is None
    assert page.locator("#rows img, #rows script, #detail img").count() == 0


def test_it_fits_a_narrow_screen_and_controls_have_names(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, textarea, select, [role=listbox]')]"
            ".filter(e => e.offsetParent && !e.labels?.length && !(e.ariaLabel || e.textContent.trim())"
            " && e.type !== 'file').length"
        )
        assert unnamed == 0


DROP = """([name, bytes]) => {
  const given = new DataTransfer();
  given.items.add(new File([new Uint8Array(bytes)], name));
  dispatchEvent(new DragEvent('dragover', { dataTransfer: given, bubbles: true }));
  dispatchEvent(new DragEvent('drop', { dataTransfer: given, bubbles: true }));
}"""


WATCH_PROGRESS = """() => {
  const box = document.getElementById('progress-text');
  window.seen = [];
  new MutationObserver(() => seen.push(box.textContent.trim())).observe(box, { subtree: true, childList: true });
}"""


def test_a_file_dropped_anywhere_is_previewed_and_loaded(page: Any) -> None:
    content = "Note;Bewertung\n5;Schöner Käse. Nice bread.\n1;Très cher, and the soup was cold.\n".encode("latin-1")
    page.click("#tab-overview")
    page.evaluate(DROP, ["hôtel.csv", list(content)])
    page.wait_for_selector("#load:enabled")
    assert page.inner_text("#file-name") == "hôtel.csv"  # not "No file chosen"
    assert page.locator("#view-start button.main:visible").count() == 1  # a single Load button
    assert page.input_value(".choice select") == "Bewertung"
    assert page.locator("td.read").first.inner_text() == "Schöner Käse. Nice bread."
    page.evaluate(WATCH_PROGRESS)
    page.click("#load")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('3 sentences')")
    page.wait_for_selector("#progress", state="hidden")
    seen = page.evaluate("seen")  # until the end; how far it is may be said in between
    assert (seen[0], seen[-1]) == ("Reading hôtel.csv …", "")
    assert "Detecting in 2 reviews …" in seen
    page.go_back()  # to the view before the sentences
    page.wait_for_selector("#view-start:not([hidden])")


def test_ten_thousand_rows_stay_few_in_the_page(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("id,review\n" + "".join(f'{n},"The soup number {n} was cold."\n' for n in range(10_000)))
    page.click("#tab-start")
    page.set_input_files("#file", path)
    page.wait_for_selector(".choice select")
    assert page.input_value(".choice select") == "review"
    page.click("#load")
    page.wait_for_function("() => document.getElementById('status').textContent === '10,000 sentences'", timeout=60_000)
    settle(page)
    drawn = page.evaluate(
        """async () => {
          const table = document.getElementById('table'), step = () => new Promise(requestAnimationFrame), drawn = [];
          for (let place = 0; place <= table.scrollHeight; place += table.scrollHeight / 40) {
            table.scrollTop = place;
            await step(); await step();  // the event, then the drawing
            const rows = [...document.querySelectorAll('#rows .row')], area = table.getBoundingClientRect();
            const seen = rows.map((row) => row.getBoundingClientRect()).sort((one, two) => one.top - two.top);
            const whole = seen[0].top <= area.top && seen.at(-1).bottom >= area.bottom - 1;
            drawn.push({ rows: rows.length, whole });
          }
          return drawn;
        }"""
    )
    assert max(each["rows"] for each in drawn) < 60
    assert all(each["whole"] for each in drawn)  # and no gap is visible
    page.locator("#table").focus()
    page.keyboard.press("End")
    assert "9999" in page.inner_text("#detail .full")
    page.locator("#threshold-all").fill("0.01")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#rows .row')].every((row) => row.querySelector('.chip'))"
    )
    assert page.locator("#rows .row").count() < 60


def test_a_token_typed_before_the_page_is_ready_is_not_lost(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path / "p.sqlite")
    context = browser.new_context()
    page = context.new_page()
    held: list[Any] = []
    page.route("**/static/sign-in.js", lambda route: held.append(route))
    page.goto(server.base, wait_until="commit")
    page.wait_for_selector("#sign-in button[disabled]")
    page.fill("#token", server.token)
    page.press("#token", "Enter")  # the browser would send the form itself, and load the page again
    assert page.input_value("#token") == server.token
    assert len(held) == 1
    held[0].continue_()
    page.click("#sign-in button")  # waits until it is enabled
    page.wait_for_selector("#sample-hotel")
    context.close()
    server.stop()


def test_work_survives_kill_9(browser: Any, tmp_path: Path) -> None:
    first = Server(tmp_path / "p.sqlite")
    context = browser.new_context()
    page = context.new_page()
    page.goto(first.link)
    page.click("#sample-hotel")
    settle(page)
    page.keyboard.press("0")
    page.wait_for_selector(SAVED)
    first.process.send_signal(signal.SIGSTOP)
    page.keyboard.press("0")  # the next: shown at once, but not saved
    page.wait_for_selector("#rows .row.labelled.saving")
    first.stop(signal.SIGKILL)
    page.wait_for_selector("#message.bad")
    page.wait_for_function(
        "() => document.querySelectorAll('#rows .row.labelled').length === 1"
    )  # the unsaved one is no longer shown
    page.wait_for_function("() => document.getElementById('message').textContent.includes('does not respond')")
    second = Server(tmp_path / "p.sqlite", "--port", first.base.rpartition(":")[2].strip("/"))
    page.click("#message a")  # a restart is said without a click, with a link to sign in again
    page.fill("#token", "wrong")
    page.click("#sign-in button")
    page.wait_for_function("() => document.getElementById('refused').textContent.includes('not the token')")
    page.fill("#token", second.token)
    page.click("#sign-in button")
    settle(page)
    assert page.locator(SAVED).count() == page.locator("#rows .row.labelled").count() == 1
    context.close()
    assert second.stop() in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
