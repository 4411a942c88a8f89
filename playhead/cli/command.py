"""What a command is: a function, its help, and what it is handed when it is called."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand
from typer.main import get_command

from playhead.cli.failures import EXIT_CODES, Failure, guarded
from playhead.cli.options import CONTEXT_SETTINGS, DebugOption, QuietOption, Shared, StoreOption
from playhead.cli.settings import Settings, StorePlace, store_place
from playhead.cli.terminal import Terminal, here_and_now
from playhead.session import Sessions, open as open_sessions

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object with the same facts")]


def _completed_sessions(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    # Loaded on use: only a shell that completes a word asks.
    from playhead.cli.completing import completed_sessions

    return completed_sessions(ctx, incomplete)


SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A whole id, the first four or more characters of one, @last, @-2 (the one before), or a title",
        show_default=False,
        autocompletion=_completed_sessions,
    ),
]
SessionsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SESSION",
        help="Each a whole id, the first four or more characters of one, @last, @-2, or a title",
        show_default=False,
        autocompletion=_completed_sessions,
    ),
]


@dataclass(frozen=True, slots=True)
class Here:
    """What a command may touch: the terminal, the environment, the current folder, the settings, the clock.

    store_flag: what `--store` says, None where it was not given.
    """

    terminal: Terminal
    environment: Mapping[str, str]
    folder: str
    settings: Settings
    store_flag: str | None = None
    now: Callable[[], float] = time.time

    @property
    def store_url(self) -> str:
        """The URL of the store. Raises `Failure` for a settings file that cannot be understood."""
        return self._store_place().url

    @property
    def is_store_named(self) -> bool:
        """True where this call names the store, by a flag or a variable."""
        return self._store_place().named_by in ("--store", "PLAYHEAD_STORE")

    def setting(self, name: str) -> str | None:
        """Return what the environment or a settings file says of a setting, None where neither does.

        What the project's file may not say is passed over with a note. Raises `Failure` for a file that cannot be
        understood.
        """
        value = self.settings.found(name).value
        if refusal := self.settings.refusal(name):
            self.terminal.note(refusal)
        return value if isinstance(value, str) else None

    def open(self) -> Sessions:
        """Open the store; to be closed by a `with` block."""
        return open_sessions(self.store_url)

    def open_existing(self) -> Sessions:
        """Open the store to look at it or to go on in it: where there is none, nothing is made.

        A store that was named and is not there is a `Failure`; the default one, before its first session, is empty.
        """
        scheme, _, path = self.store_url.partition(":")
        if scheme in ("bundles", "sqlite") and not Path(path).exists():
            if self.is_store_named:
                raise Failure(f"there is no store at {path}; `playhead run` or `playhead import` makes one", code=3)
            return open_sessions("memory:")
        return self.open()

    def _store_place(self) -> StorePlace:
        place = store_place(self.store_flag, self.settings)
        if self.store_flag is None and (refusal := self.settings.refusal("store")):
            self.terminal.note(refusal)
        return place


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    run: takes a `Here`, then its own options as Typer annotations; returns an exit code, or None for 0.
    examples: whole command lines. about: the help below the summary, paragraphs parted by empty lines.
    exits: the exit codes it may end with, besides 0, 1 and 2, which any command may. needs_settings: False for a
    command that also runs where a settings file cannot be understood.
    """

    run: Callable[..., int | None]
    examples: tuple[str, ...]
    about: str = ""
    exits: tuple[int, ...] = ()
    needs_settings: bool = True

    def epilog(self) -> str:
        """Return the end of the help: examples and exit codes. The \\b keeps lines from being joined and wrapped."""
        examples = "\n".join(f"  {line}" for line in self.examples)
        codes = "\n".join(f"  {code:<4} {EXIT_CODES[code]}" for code in sorted({0, 1, 2, *self.exits}))
        return f"\b\nExamples:\n{examples}\n\n\b\nExit codes:\n{codes}"


def built(name: str, summary: str, command: Command) -> Any:
    """Return the command as Typer runs it and prints its help. `Any`: Typer keeps the type of this to itself."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(
        name=name,
        cls=_HelpWithoutTypes,
        help="\n\n".join(text for text in (summary, command.about) if text),
        epilog=command.epilog(),
        context_settings=CONTEXT_SETTINGS,
    )(_with_shared_options(command))
    return get_command(app)


class _HelpWithoutTypes(TyperCommand):
    """A command whose help calls an argument by its name: `SESSION`, and not `{SESSION}` or `SESSION <str>`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                arguments.append((parameter.metavar or record[0], record[1]))
            elif record is not None:
                options.append(record)
        for heading, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=max(formatter.width // 2 - 4, 10))


def _with_shared_options(command: Command) -> Callable[..., int]:
    """Return the function that Typer calls: it takes the command's options and the shared ones, and guards the call."""
    run = command.run

    @wraps(run)
    def call(ctx: typer.Context, *, store: str | None, quiet: bool, debug: bool, **options: Any) -> int:
        said_before = ctx.obj if isinstance(ctx.obj, Shared) else Shared()
        environment = dict(os.environ)
        terminal = here_and_now(environment)
        terminal.is_quiet = quiet or said_before.is_quiet

        def work() -> int | None:
            named = store if store is not None else said_before.store
            if named is not None and not named.strip():
                # An unset variable in a script: going on with another store is not what anybody meant.
                raise Failure("--store is empty; give a URL such as bundles:DIR, or leave it out", code=2)
            folder = _current_folder()
            settings = Settings(environment, folder)
            if command.needs_settings and settings.found("quiet").value:
                terminal.is_quiet = True
            return run(Here(terminal, environment, folder, settings, named), **options)

        return guarded(work, terminal, debug=debug or said_before.is_debugging)

    hints = get_type_hints(run, include_extras=True)
    own = list(inspect.signature(run).parameters.values())[1:]
    shared = {"store": (StoreOption, None), "quiet": (QuietOption, False), "debug": (DebugOption, False)}
    parameters = [
        _parameter("ctx", typer.Context, inspect.Parameter.empty),
        *(_parameter(one.name, hints[one.name], one.default) for one in own),
        *(_parameter(name, kind, default) for name, (kind, default) in shared.items()),
    ]
    # Typer reads the options from the signature, so the signature says what `call` takes.
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise Failure("the current folder is gone; change to another one and run it again", code=1) from error


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
