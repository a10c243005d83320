"""``attsvm params``: the parameters of a chapter, with type, default, range and meaning."""

from __future__ import annotations

import argparse
import json

from attsvm.commands.common import OK, Commands, add

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    parser = add(
        commands,
        "params",
        run,
        "List the parameters of a chapter: type, default, full scale, range and meaning.",
    )
    parser.add_argument("chapter", metavar="CHAPTER", help="its id, or the last part of it")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")


def run(options: argparse.Namespace) -> int:
    """Print one line for each parameter."""
    from attsvm.book.chapters import discover, select
    from attsvm.book.layout import Layout
    from attsvm.book.parameters import parameters_of, shown

    (chapter,) = select(discover(Layout.of(options.root)), [options.chapter])
    rows = [
        {
            "name": parameter.name,
            "type": parameter.type,
            "default": parameter.default,
            "full": parameter.full,
            "range": str(parameter.range),
            "meaning": parameter.meaning,
        }
        for parameter in parameters_of(chapter)
    ]
    if options.json:
        print(json.dumps({"chapter": chapter.id, "parameters": rows}, indent=1, ensure_ascii=False))
        return OK
    print(f"{chapter.id}: attsvm run {chapter.id.rpartition('/')[2]} -p NAME=VALUE")
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        scale = "" if row["full"] == row["default"] else f" (full scale {shown(row['full'])})"
        print(f"\n  {row['name']:<{width}}  {row['type']}, default {shown(row['default'])}{scale}")
        print(f"  {'':<{width}}  {row['meaning']}{'; ' if row['range'] else ''}{row['range']}")
    return OK
