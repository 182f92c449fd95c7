"""Take the pictures of a notebook and of the site again: make docs && python tools/pictures.py. Needs Chromium."""

from __future__ import annotations

import json
import shutil
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "reviews-to-insight.ipynb"
CELLS = slice(1, 4)  # code cells
SITE = ROOT / "site" / "index.html"
PICTURES = ROOT / "docs" / "images"
STYLE = """
body { font: 14px sans-serif; margin: 16px; width: 960px }
pre { background: #f5f5f5; border: 1px solid #ddd; margin: 16px 0 8px; padding: 6px 8px; font-size: 14px }
pre b { color: #307fc1; font-weight: normal } .out { margin-left: 48px }
table { border-collapse: collapse } td, th { padding: 7px 8px; border-bottom: 1px solid #e8e8e8 }
"""


def notebook_html() -> str:
    """Some cells of the notebook, with what they show, as Jupyter would show them."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    parts = []
    for cell in cells[CELLS]:
        number, source = f"[{cell['execution_count']}]: ", "".join(cell["source"])
        code = escape(source).replace("\n", "\n" + " " * len(number))
        shown = ["".join(output["data"]["text/html"]) for output in cell["outputs"]]
        parts.append(f"<pre><b>{number}</b>{code}</pre><div class=out>{''.join(shown)}</div>")
    return f"<meta charset=utf-8><style>{STYLE}</style>{''.join(parts)}"


def main() -> int:
    """Write both pictures."""
    from playwright.sync_api import sync_playwright

    if not SITE.exists():
        raise SystemExit(f"{SITE} is missing. Run make docs first.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 300})
        page.set_content(notebook_html())
        page.screenshot(path=PICTURES / "notebook.png", full_page=True)
        page.set_viewport_size({"width": 1300, "height": 860})
        page.goto(SITE.as_uri())
        page.screenshot(path=PICTURES / "site.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
