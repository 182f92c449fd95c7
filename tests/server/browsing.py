"""``awatt serve`` as a process, and Chromium to open it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SAVED = "#rows .row.labelled:not(.saving)"  # rows with a label that the server has saved
PATIENCE = 120_000  # milliseconds: a busy machine is no fault of the page
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


class Server:
    """``awatt serve`` as a process, with the link that it printed."""

    def __init__(self, project: Path, *options: str, **environment: str) -> None:
        command = [sys.executable, "-c", "from awatt.cli import main; main()", "serve", "--port", "0", "--project"]
        self.process = subprocess.Popen(
            [*command, project, *options], stderr=subprocess.PIPE, text=True, env=os.environ | environment
        )
        assert self.process.stderr is not None
        self.lines = [self.process.stderr.readline() for _ in range(3)]
        self.link = re.search(r"https?://\S+", self.lines[0])[0]  # type: ignore[index]
        self.base = self.link.partition("?")[0]
        self.token = environment.get("AWATT_TOKEN") or self.lines[1].rpartition(" ")[2].strip()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of the response."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def new_link(self) -> str:
        return str(self.base + self.ask("POST", "v1/link")[1]["path"].lstrip("/"))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)


def make_xlsx(rows: Sequence[Sequence[str]]) -> bytes:
    """A workbook with one sheet of texts."""
    cells = [[f'<c t="inlineStr"><is><t>{escape(text)}</t></is></c>' for text in row] for row in rows]
    sheet = "".join(f"<row>{''.join(row)}</row>" for row in cells)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "xl/workbook.xml", '<workbook xmlns:r="r"><sheets><sheet name="a" r:id="1"/></sheets></workbook>'
        )
        archive.writestr("xl/_rels/workbook.xml.rels", '<R><Relationship Id="1" Target="worksheets/sheet1.xml"/></R>')
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{sheet}</sheetData></worksheet>")
    return out.getvalue()


def until(page: Any, holds: str, wanted: object = None) -> None:
    """Wait until a condition on the page's ``state`` holds. Playwright's `wait_for_function` awaits no promise."""
    script = f"async (wanted) => {{ const {{ hasScores, state }} = await import('/static/state.js'); return {holds}; }}"
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(script, wanted):
        assert time.monotonic() < end, f"never: {holds}"
        page.wait_for_timeout(20)


def settle(page: Any) -> None:
    """Wait until the sentences are shown with the aspects found in them."""
    page.wait_for_selector("#rows .row .chip:not(.pending)")
    page.wait_for_function("() => document.getElementById('status').textContent.includes('sentence')")


def open_sample(page: Any, domain: str) -> None:
    """Replace the content of the project with a sample."""
    page.wait_for_selector("body[data-ready]")
    page.click("#tab-start")
    page.click(f"#sample-{domain}")
    page.wait_for_selector("#view-sentences:not([hidden])")
    settle(page)
