"""The commands of ``attsvm``, one module each.

A command is a module here with a function ``register(commands)`` that adds its parser to those of
the command line and names the function to run.  Modules import argparse and little else when they
are loaded: ``attsvm --help`` loads all of them.  No chapter imports anything from here, so that
editing a command makes no chapter out of date.
"""

from __future__ import annotations

import importlib

from attsvm.commands.common import Commands

__all__ = ["COMMANDS", "register"]

#: Modules in the order in which ``attsvm --help`` lists them.
COMMANDS = (
    "params",
    "run",
    "sweep",
    "solve",
    "train",
    "build",
    "listing",
    "serve",
    "clean",
    "cache",
    "pdf",
    "drift",
)


def register(commands: Commands) -> None:
    """Add all commands to a parser.

    Parameters
    ----------
    commands
        What ``ArgumentParser.add_subparsers`` returned.
    """
    for name in COMMANDS:
        importlib.import_module(f"attsvm.commands.{name}").register(commands)
