"""Accessibility: axe-core's rules, contrast, headings, and use by keyboard only."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from .browsing import SAVED, Server, needs_chromium, open_sample, settle

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the package axe-playwright-python")
pytestmark = needs_chromium

VIEWS = ("start", "aspects", "sentences", "overview", "export")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
#: Texts whose contrast with the blended background behind them is too low.
CONTRAST = """() => {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const painted = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const low = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, style = getComputedStyle(node);
    const text = walker.currentNode.textContent.trim().slice(0, 30);
    if (!text || !node.checkVisibility() || node.closest('.spoken, .wide, :disabled, svg, option')) continue;
    const behind = [];
    for (let at = node; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const [one, two] = [light(painted([...behind, style.color])), light(painted(behind))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    seen++;
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${node.tagName} ${node.className} ${text}`);
  }
  return { low, seen };
}"""


def set_theme(page: Any, theme: str) -> None:
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")


def violations(page: Any) -> list[str]:
    found = axe.Axe().run(page, options=RULES).response["violations"]
    return [f"{each['id']}: {node['html'][:150]} {node['failureSummary']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_every_view_follows_the_rules(page: Any, theme: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    set_theme(page, theme)
    page.wait_for_selector("#rows mark")
    page.keyboard.press("0")  # so that there is a label
    page.wait_for_selector("#rows .row.labelled")
    for view in VIEWS:
        page.click(f"#tab-{view}")
        if view == "aspects":
            page.wait_for_selector(".quality strong")
        assert violations(page) == [], view
        for painted in ("light", "dark"):
            set_theme(page, painted)
            contrast = page.evaluate(CONTRAST)
            assert contrast["low"] == [], (view, painted)
            assert contrast["seen"] > 10, view
        set_theme(page, theme)
    page.click("#share")
    page.click("#make-read-only")
    page.wait_for_selector("#read-only-link")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.wait_for_selector("#sharing", state="hidden")
    page.keyboard.press("?")
    page.wait_for_selector("#keys")
    assert violations(page) == []


def test_an_empty_project_and_messages_follow_the_rules(page: Any) -> None:
    def check_contrast(where: str) -> None:
        for theme in ("light", "dark"):
            set_theme(page, theme)
            assert page.evaluate(CONTRAST)["low"] == [], (where, theme)

    page.click("#tab-start")
    page.click("#start-over")
    page.wait_for_selector("#message:not([hidden])")
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert violations(page) == [], view
        check_contrast(view)
    page.click("#tab-start")
    page.set_input_files("#file", {"name": "reviews.exe", "mimeType": "", "buffer": b"x"})
    page.wait_for_selector("#message.bad:not([hidden])")
    check_contrast("message")


def test_headings_go_down_one_step_at_a_time(page: Any) -> None:
    for view in VIEWS:
        page.click(f"#tab-{view}")
        levels = page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3, h4')].filter(h => h.checkVisibility()).map(h => +h.tagName[1])"
        )
        assert levels.count(1) == 1, view
        assert levels[0] == 1, view
        assert all(two - one <= 1 for one, two in pairwise(levels)), (view, levels)


def test_the_focus_is_visible_wherever_tab_leads(page: Any) -> None:
    for view in VIEWS:
        page.click(f"#tab-{view}")
        reached = set()
        for _ in range(100):
            page.keyboard.press("Tab")
            here = page.evaluate(
                """() => {
                  const node = document.activeElement;
                  if (node === document.body) return null;
                  const place = [...document.querySelectorAll('*')].indexOf(node), html = node.outerHTML.slice(0, 120);
                  const shown = node.id === 'table' ? node.querySelector('.chosen') : node;
                  const seen = ['light', 'dark'].map((theme) => {
                    document.documentElement.dataset.theme = theme;
                    const { outlineStyle, outlineWidth } = getComputedStyle(shown);
                    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
                  });
                  return { place, html, seen };
                }"""
            )
            if here is None or here["place"] in reached:
                break
            reached.add(here["place"])
            assert here["seen"] == [True, True], here
        assert len(reached) > 5, view


def test_without_a_mouse_from_the_sample_to_the_export(context: Any, server: Server) -> None:
    page = context.new_page()
    page.goto(server.base)
    page.wait_for_selector("body[data-ready]")

    def tab_to(selector: str, key: str = "Tab") -> None:
        for _ in range(120):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press(key)
        raise AssertionError(f"Tab does not lead to {selector}")

    tab_to("[role=tab]")
    while page.evaluate("document.activeElement.id") != "tab-start":
        page.keyboard.press("ArrowRight")
    tab_to("#sample-restaurant")
    page.keyboard.press("Enter")
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
    tab_to("#threshold-all")
    before = float(page.input_value("#threshold-all"))
    for _ in range(3):  # the focus stays on the slider while everything around it is redrawn
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(150)
    assert page.evaluate("document.activeElement.id") == "threshold-all"
    assert float(page.input_value("#threshold-all")) == pytest.approx(before + 0.03)
    tab_to("#table")
    page.keyboard.press("ArrowDown")
    tab_to(".toggle")
    held = page.evaluate("document.activeElement.id")
    page.keyboard.press("Space")
    page.wait_for_selector("#rows .row.labelled")
    page.wait_for_function("() => document.getElementById('status').textContent.includes('detected again')")
    assert page.evaluate("document.activeElement.id") == held
    tab_to("[role=tab]", "Shift+Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#view-export").is_visible()
    tab_to("a[href$='results.csv']")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert saved.value.suggested_filename == "awatt-results.csv"
    page.close()


def test_undo_and_redo_pass_the_focus_on(page: Any) -> None:
    page.keyboard.press("0")
    page.wait_for_selector(SAVED)
    page.focus("#undo")
    page.keyboard.press("Enter")
    page.wait_for_selector("#redo:not(:disabled)")
    page.focus("#redo")
    page.keyboard.press("Enter")
    page.wait_for_selector("#redo:disabled")
    assert page.evaluate("document.activeElement.id") == "undo"


def test_a_new_detection_is_announced(page: Any) -> None:
    page.evaluate(
        """() => {
          const status = document.querySelector('[role=status]'), heard = window.heard = [];
          const listen = new MutationObserver(() => heard.push(status.textContent));
          listen.observe(status, { childList: true, subtree: true });
        }"""
    )
    page.keyboard.press("1")
    page.wait_for_function("() => heard.some((text) => /86 sentences · detected again, \\d+ changed/.test(text))")


def test_the_sentences_are_a_list_of_options(page: Any) -> None:
    page.locator("#table").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.row.chosen')?.getAttribute('aria-posinset') === '86'")
    assert page.get_attribute("#table", "role") == "listbox"
    active = page.get_attribute("#table", "aria-activedescendant")
    chosen = page.locator(f"#{active}")
    assert chosen.get_attribute("role") == "option"
    assert chosen.get_attribute("aria-selected") == "true"
    assert chosen.get_attribute("aria-setsize") == "86"
    assert page.locator("[role=option][aria-selected=true]").count() == 1


def test_nothing_moves_with_reduced_motion(browser: Any, server: Server) -> None:
    moving = """[...document.querySelectorAll('*')].map((node) => getComputedStyle(node))
      .filter((style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none').length"""
    seen = {}
    for wish in ("reduce", "no-preference"):
        context = browser.new_context(reduced_motion=wish)
        page = context.new_page()
        page.goto(server.new_link())
        open_sample(page, "restaurant")
        page.wait_for_selector(".toggle .bar i")
        seen[wish] = page.evaluate(moving)
        context.close()
    assert seen["reduce"] == 0
    assert seen["no-preference"] > 0
