"""The options that every command has, and what was said of them before the command's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Where the sessions are: bundles:DIR, sqlite:FILE", show_default=False),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Write nothing to stderr but errors")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error")]

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@dataclass(frozen=True, slots=True)
class Shared:
    """What was said before the command's name, as in `playhead --store URL list`."""

    store: str | None = None
    is_quiet: bool = False
    is_debugging: bool = False
