"""The form of chapters: few cells of code, and none too long to be read at once."""

from __future__ import annotations

import booktools
import pytest

from companion.build.chapters import Chapter, discover
from companion.build.layout import Layout

CHAPTERS = discover(Layout.of(booktools.REPOSITORY, "/tmp/unused"))
MOST_CELLS, MOST_LINES = 7, 60


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_code_is_read_in_few_short_cells(chapter: Chapter) -> None:
    cells = [cell for cell in chapter.notebook["cells"] if cell["cell_type"] == "code"]
    lines = [len("".join(cell["source"]).splitlines()) for cell in cells]
    assert len(lines) <= MOST_CELLS, f"{len(lines)} code cells"
    assert max(lines) <= MOST_LINES, f"lines in its code cells: {lines}"
