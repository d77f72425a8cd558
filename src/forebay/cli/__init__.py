"""The ``forebay`` command; one file per subcommand."""

import typer

from forebay.cli.demo import demo

app = typer.Typer(help="Forebay: input pipelines for training.", no_args_is_help=True, add_completion=False)
app.command()(demo)


@app.callback()
def main() -> None:
    """Forebay: input pipelines for training."""
