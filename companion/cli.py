"""The tool's commands, added to those of ``attsvm`` by the entry point of this distribution."""

from __future__ import annotations

from attsvm.cli import Commands
from companion.build import commands as build
from companion.run import commands as run
from companion.ship import commands as ship

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the commands that rebuild the book, run its chapters and ship what came out."""
    run.register(commands)
    build.register(commands)
    ship.register(commands)
