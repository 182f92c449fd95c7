"""The ``awatt`` command: parse, call, print. Data goes to stdout or ``--out``, everything else to stderr.

Exit codes: 0 fine, 1 a fault of the machine (disk, memory), 2 usage or bad input, 3 some rows failed, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import click
import typer

from awatt.cli import data, demo
from awatt.errors import AwattError

app = typer.Typer(
    help="Find aspects in review sentences from a few examples of each.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data.app, name="data")
app.command("demo")(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        from awatt import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find aspects in review sentences from a few examples of each."""


def main() -> None:
    """Run the command; a fault that a person can mend is one line, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        typer.echo("awatt: interrupted.", err=True)
        code = 130
    except AwattError as error:
        typer.echo(f"awatt: {error}", err=True)
        code = 2
    except BrokenPipeError:  # the reader of our output (head, less) has had enough
        sys.stderr.close()
        code = 0
    except OSError as error:
        typer.echo(f"awatt: {error}", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
