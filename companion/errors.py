"""What a build refuses. Wrong usage is an :class:`~attsvm.errors.ArgumentError` instead."""

from __future__ import annotations

from collections.abc import Sequence

from attsvm.errors import AttsvmError

__all__ = ["BuildError", "ChapterError"]


class BuildError(AttsvmError):
    """The build cannot go on: a chapter, a claim, a figure or the rendering failed.

    Parameters
    ----------
    message
        What failed, in words.
    details
        Further lines for the reader: a traceback, the list of problems, where the log lies.
    """

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        self.message = message
        self.details = list(details)
        super().__init__("\n".join([message, *self.details]))

    def __reduce__(self) -> tuple[type[BuildError], tuple[str, list[str]]]:
        # Exception pickles `args`, which here is the joined text.
        return (type(self), (self.message, self.details))


class ChapterError(BuildError):
    """One chapter cannot be built, as it stands or because a cell of it failed."""
