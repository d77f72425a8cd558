"""What the commands share: plain text on a terminal or in a pipe, progress, and errors without tracebacks."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from forebay.errors import ForebayError, PlanError
from forebay.formats.format import UsageError
from forebay.sizes import memory_left, parse_size

# In a pipe nobody is there to tell how wide lines may be.
_PIPE_WIDTH = 160


def console(errors: bool = False) -> Console:
    """The standard output, or that for errors."""
    file = sys.stderr if errors else sys.stdout
    return Console(file=file, highlight=False, width=None if file.isatty() else _PIPE_WIDTH)


def plain(text: object, style: str = "") -> Text:
    """Text as it is: nothing in it is a command, to Rich or to the terminal."""
    return Text("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(text)), style)


def memory_size(value: str | None) -> str | None:
    """Checks an option that is a size."""
    if value is not None:
        try:
            parse_size("memory", value, memory_left)
        except PlanError as error:
            raise typer.BadParameter(str(error)) from None
    return value


@contextmanager
def told() -> Iterator[None]:
    """What goes wrong is told in a line. Exit code 2 if the command was given wrongly, 1 for everything else."""
    try:
        yield
    except ForebayError as error:
        _tell(str(error))
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except MemoryError:
        _tell("there is not enough memory")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _tell("stopped")
        raise typer.Exit(130) from None
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        if os.environ.get("FOREBAY_TRACEBACK"):
            raise
        _tell(f"{type(error).__name__}: {error}\nThis is a bug of Forebay's; FOREBAY_TRACEBACK=1 shows where it is.")
        raise typer.Exit(1) from None


def _tell(text: str) -> None:
    console(errors=True).print(Text("error: ", "bold red").append_text(plain(text)), soft_wrap=True)


@contextmanager
def progress(what: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """A bar, if somebody is looking; gives what is told how much is done."""
    out = console(errors=True)
    columns = (TextColumn("{task.description}"), BarColumn(24), TaskProgressColumn(show_speed=True))
    with Progress(*columns, TimeRemainingColumn(), console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
