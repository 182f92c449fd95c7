"""``awatt models`` and ``awatt encoders``: list them, one per line."""

from __future__ import annotations

import dataclasses
import inspect
import json

import typer


def models() -> None:
    """List the methods and their settings. Each with its paper and its parameter count with 50-dimensional vectors."""
    from awatt.errors import require

    require("torch", "train")
    from awatt.models import MODELS

    for name, kind in MODELS.items():
        model = kind(50, kind.config_type())
        count = sum(value.numel() for value in model.parameters())
        first, link = inspect.cleandoc(kind.__doc__ or "").split("https://", 1)  # the conformance tests require both
        paper, address = first.splitlines()[0].strip(), link.split()[0]
        settings = _settings(kind.config_type, "model")
        typer.echo(f"{name:<16} {count:>7,} parameters  {paper}  https://{address}  {settings}".rstrip())


def encoders() -> None:
    """List the encoders, what they need, and their settings."""
    from awatt.errors import require

    require("torch", "train")
    from awatt.encoders import ENCODERS

    for name, kind in ENCODERS.items():
        what = inspect.cleandoc(kind.__doc__ or "").splitlines()[0]
        typer.echo(f"{name:<12} {what}  Needs {kind.needs}.  {_settings(kind.config_type, 'encoder')}".rstrip())


def _settings(config: type, section: str) -> str:
    """Settings for --set, with their defaults."""
    values = dataclasses.asdict(config())
    return " ".join(f"{section}.{name}={json.dumps(value)}" for name, value in values.items())
