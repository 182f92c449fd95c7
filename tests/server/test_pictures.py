"""The pictures of the documentation: ``AWATT_SCREENSHOTS=docs/images pytest tests/server/test_pictures.py``."""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections.abc import Iterator
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from .browsing import Server, needs_chromium, settle

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not os.environ.get("AWATT_SCREENSHOTS"), reason="set AWATT_SCREENSHOTS to a folder"),
]
FOLDER = Path(os.environ.get("AWATT_SCREENSHOTS", "."))
VIEWS = ("start", "aspects", "sentences", "overview", "export")
QUIET = """() => ['message', 'progress'].every((id) => document.getElementById(id).hidden)
  && !document.getElementById('status').textContent.startsWith('Detecting')"""
CHOSEN = "async () => { const { state } = await import('/static/state.js'); return state.texts[state.chosen]; }"
CITIES, NAMES = ("Ghent", "Lyon", "Porto", "Turin"), "food, drinks, service, price, ambience, location"
COLOURS = 256  # of a picture: enough for the page, and small


def read_sample() -> list[dict[str, Any]]:
    lines = (files("awatt.data") / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(json.loads, lines))


def read_truth() -> dict[str, list[str]]:
    """The aspects of each text of the sample."""
    return {row["text"]: row["aspects"] for row in read_sample()}


def make_reviews(count: int = 400) -> bytes:
    """Reviews of the bundled sample's sentences, with columns on which their aspects depend."""
    rows = read_sample()
    by_aspect: dict[str, list[str]] = {}
    for row in rows:
        for aspect in (row["aspects"] or ["none"]) if row["domain"] == "restaurant" else ():
            by_aspect.setdefault(aspect, []).append(row["text"])
    rng, content = random.Random(7), io.StringIO()
    decks = {aspect: cycle(rng.sample(texts, len(texts))) for aspect, texts in by_aspect.items()}
    writer = csv.writer(content)
    writer.writerow(["stars", "city", "visited", "text"])
    for _ in range(count):
        stars, city, month = rng.randint(1, 5), rng.choice(CITIES), rng.randint(1, 12)
        extra = {
            "food": 3 * (stars > 3),
            "service": 3 * (stars < 3),
            "price": month / 4,
            "ambience": 2 * (city == "Porto"),
        }
        weights = [1 + extra.get(aspect, 0) for aspect in by_aspect]
        said = rng.choices(list(by_aspect), weights, k=rng.randint(1, 2))
        text = " ".join(next(decks[aspect]) for aspect in said)
        writer.writerow([stars, city, f"2024-{month:02}-{rng.randint(1, 28):02}", text])
    return content.getvalue().encode()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[tuple[Any, Server]]:
    server = Server(tmp_path / "restaurants.sqlite")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_selector("body[data-ready]")
    yield page, server
    context.close()
    server.stop()


def choose_file(page: Any) -> None:
    page.click("#tab-start")
    page.set_input_files("#file", {"name": "reviews.csv", "mimeType": "text/csv", "buffer": make_reviews()})
    page.wait_for_selector("#load:enabled")


def take(page: Any, name: str) -> Path:
    from PIL import Image

    page.wait_for_function(QUIET, timeout=60_000)
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def show(page: Any, view: str) -> None:
    page.click(f"#tab-{view}")
    if view == "overview":
        page.wait_for_selector("#by-column .panel")
        page.wait_for_function("() => Number(document.querySelector('canvas').dataset.names) > 0")
    elif view == "aspects":
        page.wait_for_selector("#course svg", timeout=60_000)
        page.wait_for_selector(".quality p")
    elif view == "sentences":
        settle(page)
        page.wait_for_selector("#rows mark")


def test_every_view_at_two_widths_in_both_themes(opened: tuple[Any, Server]) -> None:
    page, server = opened
    page.click("#sample-restaurant")
    settle(page)
    choose_file(page)
    page.click("#load")
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
    truth = read_truth()
    project = server.ask("GET", "v1/project")[1]
    texts = server.ask("GET", "v1/project/sentences")[1]
    text_of, ids = (
        dict(zip(texts["ids"], texts["texts"], strict=True)),
        {a["name"]: a["id"] for a in project["aspects"]},
    )
    for key in server.ask("GET", "v1/project/quality")[1]["next"]:  # a person labels the first random sentences
        if text_of[key] in truth:  # not a part of a longer text, whose own aspects are not known
            labels = [ids[name] for name in truth[text_of[key]] if name in ids]
            server.ask("PUT", f"v1/project/sentences/{key}", {"aspects": labels})
    page.reload()
    settle(page)
    for theme in ("light", "dark"):
        for width in (1440, 400):
            page.set_viewport_size({"width": width, "height": 900})
            page.reload()  # as it begins at this width
            page.wait_for_selector("body[data-ready]")
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            for view in VIEWS:
                page.set_viewport_size({"width": width, "height": 900})
                show(page, view)
                if view == "overview":  # as tall as it is
                    tall = page.evaluate("document.getElementById('view-overview').scrollHeight + 100")
                    page.set_viewport_size({"width": width, "height": min(tall, 2400)})
                    show(page, view)
                take(page, f"{view}-{theme}-{width}")


def test_a_film_strip_of_the_first_five_minutes(opened: tuple[Any, Server]) -> None:
    from PIL import Image

    page, _ = opened
    page.set_viewport_size({"width": 1000, "height": 640})
    frames, truth = [], read_truth()

    def frame() -> None:
        frames.append(Image.open(take(page, "frame")).convert("RGB").resize((600, 384), Image.Resampling.LANCZOS))

    choose_file(page)
    frame()  # a file and its preview
    page.click("#load")
    page.wait_for_selector("#view-aspects:not([hidden])")
    page.fill("#names", NAMES)
    frame()  # names
    page.click("#by-name button")
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
    page.wait_for_selector("#rows mark")
    frame()  # guesses
    for _ in range(8):  # a person accepts or corrects them
        text = page.evaluate(CHOSEN)
        page.locator("#table").focus()
        if text not in truth:  # a part of a longer text
            page.keyboard.press("ArrowDown")
            continue
        for number, name in enumerate(NAMES.split(", "), 1):
            is_found = page.locator("#detail .toggle").nth(number - 1).get_attribute("aria-pressed") == "true"
            if is_found != (name in truth[text]):
                page.keyboard.press(str(number))
        page.keyboard.press("Enter")
    page.wait_for_selector("#rows .row.labelled:not(.saving)")
    frame()  # accepted
    page.click("#tab-overview")
    page.wait_for_selector("#by-column .panel")
    frame()  # the whole
    page.locator("#by-column").scroll_into_view_if_needed()
    page.select_option("#column", "visited")
    page.wait_for_selector("#by-column .panel svg")
    frame()  # over time
    strip = Image.new("RGB", (3 * 608, 2 * 392), "white")
    for number, picture in enumerate(frames):
        strip.paste(picture, (608 * (number % 3), 392 * (number // 3)))
    strip.quantize(COLOURS, dither=Image.Dither.NONE).save(FOLDER / "first-minutes.png", optimize=True)
    (FOLDER / "frame.png").unlink()
