"""Which agent answers: the one place that turns `--agent`, `--model` and their settings into an agent.

An agent is chosen by a flag, the environment or the person's own settings. A session only says who answered in it: a
name, which is shown and never looked up, imported or contacted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from playhead.agents.protocol import Agent
from playhead.cli.command import Here
from playhead.cli.failures import Failure
from playhead.cli.loading import ACCEPTED, loaded
from playhead.cli.text import one_line

if TYPE_CHECKING:
    from playhead.agents.documents import Documents

BUILT_IN = "built-in"
INSTRUCTIONS_BYTES_MAX = 1_000_000
KEY_VARIABLES = ("PLAYHEAD_API_KEY", "OPENAI_API_KEY")
"""Where the key of a model's endpoint is looked for, the first that is set. It is nowhere else, and never stored."""

ANSWERED_BY = "answered_by"
STATE_SCOPE = "agent:command-line"
"""Where a session remembers, on its path, who answered last: a name and nothing else."""

AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="MODULE:NAME", help="An agent of yours, such as mine:agent in mine.py"),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="A model, which answers and may use tools")
]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="The model's endpoint, if it is not OpenAI's")
]
DocumentsOption = Annotated[
    str | None, typer.Option("--documents", metavar="FOLDER", help="Let it look things up in this folder too")
]
InstructionsOption = Annotated[
    str | None,
    typer.Option("--instructions", metavar="TEXT", help="What the model is told first; @FILE reads it from a file"),
]

ABOUT = (
    "Who answers: the built-in agent, which works offline and has no model; with --model a model behind any "
    "OpenAI-compatible endpoint, whose key is in PLAYHEAD_API_KEY or OPENAI_API_KEY; with --agent one of your own: "
    f"{ACCEPTED}. A flag counts before PLAYHEAD_AGENT and PLAYHEAD_MODEL, and these before your "
    "settings, whose agent is looked for among installed packages alone, not in the current folder."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags say; None where one was not given."""

    agent: str | None = None
    model: str | None = None
    base_url: str | None = None
    documents: str | None = None
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The agent that answers, and the name by which a session remembers it."""

    agent: Agent
    name: str


def chosen(here: Here, wanted: Wanted, *, stays_open: bool = False) -> Chosen:
    """Return the agent that flags, environment and settings ask for, in this order; the built-in one where none does.

    stays_open: it answers in a session that is open between prompts, so that triggers fire and channels are read.
    Where a setting names both an agent and a model, the agent counts. Raises `Failure` that says what is accepted, what
    is missing, or what went wrong in the person's own module. Nothing was written then.
    """
    _check_filled(wanted)
    if wanted.agent is not None and wanted.model is not None:
        raise Failure("--agent and --model exclude each other; give one of them", code=2)
    agent, model = wanted.agent, wanted.model
    if agent is None and model is None:
        agent = here.setting("agent")
        model = here.setting("model") if agent in (None, BUILT_IN) else None
    agent = None if agent == BUILT_IN else agent
    _check_companions(wanted, agent=agent, model=model)
    if agent is not None:
        # A settings file speaks in every folder, also in one that somebody else filled.
        is_named_here = wanted.agent is not None or bool(here.environment.get("PLAYHEAD_AGENT"))
        return Chosen(loaded(agent, here.folder if is_named_here else None), agent)
    # Where the session stays open, the job that reads them has a line of its own.
    on_long = None if stays_open else here.terminal.note
    documents = _documents(_either(wanted.documents, here.setting("documents")), here.folder, on_long)
    if model is not None:
        return Chosen(_model(here, wanted, model, documents, stays_open=stays_open), model)
    return Chosen(_built_in(documents, here.environment), BUILT_IN)


def last_answered_by(state: Mapping[str, Mapping[str, Any]], started: Mapping[str, Any]) -> str | None:
    """Return the name of who answered in a session last, from its state and the body of its first event.

    An imported session was answered by the program it comes from. None where nothing tells.
    """
    config = started.get("config")
    named = (
        state.get(STATE_SCOPE, {}).get(ANSWERED_BY),
        config.get(ANSWERED_BY) if isinstance(config, dict) else None,
        started.get("origin"),
    )
    return next((name for name in named if isinstance(name, str) and name), None)


def goes_on_note(before: str | None, now: str) -> str | None:
    """Return the sentence that tells a person that another agent goes on; None where it is the same, or unknown."""
    if before is None or before == now:
        return None
    return f"This session was last answered by {one_line(before)}; you are going on with {one_line(now)}."


def _check_filled(wanted: Wanted) -> None:
    """Refuse a flag with nothing in it, as a variable that is not set leaves it: what it was to choose is not chosen
    by something else. Instructions may be empty: the model is then told none."""
    flags = {
        "--agent": (wanted.agent, "MODULE:NAME, or built-in"),
        "--model": (wanted.model, "the model's name"),
        "--base-url": (wanted.base_url, "the endpoint's URL"),
        "--documents": (wanted.documents, "a folder"),
    }
    for flag, (value, what) in flags.items():
        if value is not None and not value.strip():
            raise Failure(f"{flag} is empty; give {what}, or leave it out", code=2)


def _either(flag: str | None, setting: str | None) -> str | None:
    return setting if flag is None else flag


def _check_companions(wanted: Wanted, *, agent: str | None, model: str | None) -> None:
    """Refuse a flag that would have no effect on who answers."""
    if wanted.base_url is not None and model is None:
        raise Failure("--base-url is the endpoint of a model; give --model as well", code=2)
    if wanted.instructions is not None and model is None:
        raise Failure("--instructions are for a model; give --model as well", code=2)
    if wanted.documents is not None and agent is not None:
        raise Failure(
            "--documents is for the built-in agent and for models; your own agent reads what it likes", code=2
        )


def _documents(folder: str | None, current: str, on_long: Callable[[str], None] | None) -> Documents | None:
    if folder is None:
        return None
    # Loaded on use, like the agents below.
    from playhead.agents.documents import Documents

    return Documents(Path(current) / Path(folder).expanduser(), on_long=on_long)


# The built-in agent, and models.


def _built_in(documents: Documents | None, environment: Mapping[str, str]) -> Agent:
    # Loaded on use: an agent brings modules that no other command needs.
    try:
        from playhead.agents.built_in.default import DefaultAgent
    except ModuleNotFoundError as error:
        raise Failure(f"the built-in agent cannot be loaded: there is no {error.name}", code=1) from error
    return DefaultAgent(documents=documents, zone=local_zone(environment))


def _model(here: Here, wanted: Wanted, model: str, documents: Documents | None, *, stays_open: bool) -> Agent:
    from playhead.agents.default_tools import default_tools
    from playhead.agents.model.agent import INSTRUCTIONS, ModelAgent

    if find_spec("openai") is None:
        raise Failure("a model needs the openai package: pip install 'playhead[openai]'", code=1)
    base_url = _either(wanted.base_url, here.setting("base_url"))
    key = next((here.environment[name] for name in KEY_VARIABLES if here.environment.get(name)), None)
    if key is None and base_url is None:
        raise Failure(
            f"there is no key for {one_line(model)}: set {' or '.join(KEY_VARIABLES)}, or name an endpoint that wants "
            "none with --base-url",
            code=1,
        )
    said = wanted.instructions
    instructions = INSTRUCTIONS if said is None else _instructions(said, here.folder)
    tools = default_tools(documents=documents, stays_open=stays_open, zone=local_zone(here.environment))
    return ModelAgent(
        model,
        base_url=base_url,
        api_key=key,
        instructions=instructions,
        tools=tools,
        delegates=True,
        on_wait=here.terminal.note,
    )


def local_zone(environment: Mapping[str, str], *, link: Path = Path("/etc/localtime")) -> str:
    """Return the name of this machine's time zone, such as Europe/Berlin; UTC where nothing names one."""
    named = [environment.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        named.append(os.readlink(link).partition("zoneinfo/")[2])
    for name in named:
        with suppress(ZoneInfoNotFoundError, ValueError, OSError):
            if name:
                return ZoneInfo(name).key
    return "UTC"


def _instructions(text: str, folder: str) -> str:
    """Return the text, or with `@FILE` what the file holds."""
    if not text.startswith("@"):
        return text
    path = Path(folder) / Path(text[1:]).expanduser()
    try:
        if path.stat().st_size > INSTRUCTIONS_BYTES_MAX:
            raise Failure(f"{one_line(str(path))} is too long for instructions", code=2)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise Failure(f"the instructions cannot be read from {one_line(str(path))}: {why}", code=2) from error
