"""The ``forebay`` command; one file per subcommand."""

from importlib.metadata import version
from typing import Annotated

import typer

from forebay.cli.convert import convert
from forebay.cli.demo import demo
from forebay.cli.inspect import inspect

app = typer.Typer(help="Forebay: input pipelines for training.", no_args_is_help=True, add_completion=False)
app.command()(demo)
app.command()(inspect)
app.command()(convert)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forebay {version('forebay')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Forebay: input pipelines for training."""
