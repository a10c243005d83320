"""``attsvm clean``: remove what builds made."""

from __future__ import annotations

import argparse
import shutil

from attsvm.commands.common import OK, Commands, add, complain, layout_of, with_book

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    parser = with_book(add(commands, "clean", run, "Remove the site and the executed chapters."))
    parser.add_argument("--keep-cache", action="store_true", help="keep the executed chapters")


def run(options: argparse.Namespace) -> int:
    """Remove the site, scratch space, logs and, unless they are to be kept, executed chapters."""
    from attsvm.book.guard import exclusive

    layout = layout_of(options, writes=True)
    # Only what a build makes, by name: the folder may hold other things.
    made = [layout.site, layout.work, layout.logs, layout.settings, layout.times]
    if not options.keep_cache:
        made += [layout.chapters, layout.chunks]
    with exclusive(layout, complain):
        for path in made:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        layout.guard.unlink(missing_ok=True)
    if not any(layout.output.iterdir()):
        layout.output.rmdir()
    return OK
