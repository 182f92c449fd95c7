"""What mkdocs does besides its plugins: generated references, formulas as MathML, no links out of the site."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", flags=re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"^```math\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
INLINE_FORMULA = re.compile(r"\$([^$\n]+(?:\n[^$\n]+)?)\$")
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:results|src|benchmarks)/[^)]+|[A-Z]+\.md)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with what is generated in its place."""
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", command_reference())
    if "<!-- rest -->" in markdown:
        markdown = markdown.replace("<!-- rest -->", rest_reference())
    if FORMULA.search(markdown):  # elsewhere a dollar is a dollar
        markdown = FORMULA.sub(lambda found: mathml(found[1], "block"), markdown)
        parts = CODE.split(markdown)  # every other part is code
        parts[::2] = [INLINE_FORMULA.sub(lambda found: mathml(found[1], "inline"), part) for part in parts[::2]]
        markdown = "".join(parts)
    # The site can be read without the repository: a file of the repository is named, not linked.
    return OUTSIDE.sub(lambda found: f"{found[1]} (`{found[2]}` in the repository)", markdown)


def mathml(formula: str, display: str) -> str:
    """A formula as the browser draws it by itself, without scripts."""
    from latex2mathml.converter import convert

    return convert(" ".join(formula.split()), display=display)


def command_reference() -> str:
    """Every command with its arguments and options, from the command itself."""
    import typer

    from awatt.cli import app

    found = _commands(typer.main.get_command(app))
    return "\n".join(line for path, command in found for line in _describe(path, command))


def _commands(command: Any, path: str = "awatt") -> Iterator[tuple[str, Any]]:
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield f"{path} {name}", child
            yield from _commands(child, f"{path} {name}")


def _describe(path: str, command: Any) -> list[str]:
    lines = [f"## {path}", "", command.help or "", ""]
    rows = []
    for each in command.params:
        if each.param_type_name == "argument":
            rows.append((f"`{each.metavar or each.name.upper()}`", each.help, ""))
        elif not each.hidden and each.name != "help":
            value = "" if each.is_flag else f" {each.metavar or each.name.upper()}"
            known = not each.is_flag and each.default not in (None, "")
            default = "required" if each.required else f"`{each.default}`" if known else ""
            rows.append((f"`{each.opts[0]}{value}`", each.help, default))
    if rows:
        lines += ["| | | default |", "|---|---|---|"]
        lines += [f"| {name} | {_cell(text)} | {default} |" for name, text, default in rows]
    return [*lines, ""]


def _cell(text: str | None) -> str:
    return " ".join(escape(text or "", quote=False).replace("|", "&#124;").split())


def rest_reference() -> str:
    """Every endpoint with its request and response, from the server's own description."""
    from awatt.server.app import create_app
    from awatt.server.security import Access
    from awatt.server.store import ProjectStore

    with tempfile.TemporaryDirectory() as folder:
        store = ProjectStore(Path(folder) / "project.sqlite")
        guard: Any = create_app(store, Access("a-token-for-the-docs", frozenset({"localhost"}), "awatt"))
        schema = guard.app.first.app.openapi()
    lines = ["| endpoint | what it does | request | response |", "|---|---|---|---|"]
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            answers = described["responses"]
            answer = next(answers[code] for code in answers if code.startswith("2")).get("content", {})
            made = answer.get("application/json", {}).get("schema")
            text = described.get("description") or described.get("summary", "")
            lines.append(f"| `{method.upper()} {path}` | {_cell(text)} | {_shape(body)} | {_shape(made)} |")
    lines += ["", "## Shapes", ""]
    for name, shape in schema["components"]["schemas"].items():
        lines += [f"### {name}", "", shape.get("description", "").partition("\n")[0], ""]
        required = shape.get("required", [])
        for field, kind in shape.get("properties", {}).items():
            optional = "" if field in required else ", optional"
            lines.append(f"- `{field}`: {_shape(kind)}{optional}")
        lines.append("")
    return "\n".join(lines)


def _shape(schema: dict[str, Any] | None) -> str:
    """A type in short, with a link to its fields."""
    if not schema:
        return ""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_shape(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_shape(schema.get('items')) or 'values'}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_shape(schema['additionalProperties'])}"
    return str(schema.get("const", schema.get("type", "value")))
