"""What is done with a finished site: serving, printing, comparing."""

from __future__ import annotations

from pathlib import Path

from companion.build.layout import Layout
from companion.errors import BuildError

__all__ = ["last_site"]


def last_site(layout: Layout) -> Path:
    """The site that was built last.

    Raises
    ------
    BuildError
        If there is none.
    """
    if not (layout.site / "index.html").is_file():
        raise BuildError(f"no site in {layout.site}", ["build it first: attsvm build"])
    return layout.site
