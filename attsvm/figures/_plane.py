"""Drawings in the plane, d = 2: tokens, rays, separating lines and trajectories (Section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike
from attsvm.figures._style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tokens(ax: Axes, X: ArrayLike, optimal: int, colour: str, label: str = "") -> None:
    """Mark the tokens of a sequence, the optimal one with a star.

    Parameters
    ----------
    ax, colour, label
        Panel, a name from `COLOURS`, text of the legend.
    X, optimal
        (T, 2), and the index of the optimal token.
    """
    points = _checks.array("X", X, shape=(None, 2))
    others = np.delete(points, optimal, axis=0)
    look: dict[str, Any] = dict(ls="", color=COLOURS[colour], zorder=4)
    ax.plot(*others.T, marker="o", ms=4.5, **look)
    ax.plot(*points[optimal], marker="*", ms=13, mec=COLOURS["ink"], mew=0.6, label=label, **look)


def ray(ax: Axes, direction: ArrayLike, colour: str, label: str = "", **options: Any) -> None:
    """A ray from the origin in the direction of W z, long enough to leave the panel.

    Parameters
    ----------
    ax, colour, label
        As for `tokens`.
    direction
        (2,), not zero.
    **options
        Passed on to `matplotlib.axes.Axes.plot`.
    """
    towards = _checks.array("direction", direction, shape=(2,))
    ends = np.array([[0, 0], 1e4 / np.linalg.norm(towards) * towards])
    look: dict[str, Any] = {"lw": 5, "alpha": 0.28, "solid_capstyle": "butt"} | options
    ax.plot(*ends.T, color=COLOURS[colour], label=label, scalex=False, scaley=False, **look)


def boundary(ax: Axes, direction: ArrayLike, through: ArrayLike, colour: str) -> None:
    """The line orthogonal to a direction through a point, dotted: where W z separates.

    Parameters
    ----------
    ax, colour
        As for `tokens`.
    direction, through
        (2,) each: W z, and a point on the line.
    """
    normal = _checks.array("direction", direction, shape=(2,))
    point = _checks.array("through", through, shape=(2,))
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    ends = point + np.array([[-1e4], [1e4]]) * along
    ax.plot(*ends.T, color=COLOURS[colour], ls=":", lw=1.3, scalex=False, scaley=False)


def path(ax: Axes, points: ArrayLike, colour: str, every: int, label: str = "") -> None:
    """A trajectory with an arrow head every few records.

    Parameters
    ----------
    ax, colour, label
        As for `tokens`.
    points, every
        (records, 2), and how many records lie between two arrow heads.
    """
    steps = _checks.array("points", points, shape=(None, 2))
    ax.plot(*steps.T, color=COLOURS[colour], lw=1.4, label=label, zorder=3)
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    arrow = {"arrowstyle": "-|>", "color": COLOURS[colour], "lw": 0, "mutation_scale": 9}
    arrow |= {"shrinkA": 0, "shrinkB": 0}
    for k in range(every, len(steps), every):
        tail, head = steps[k - 1], steps[k]
        # Outside the panel an arrow would only make the file larger.
        if ((head >= low) & (head <= high)).all() and not np.array_equal(tail, head):
            ax.annotate("", xy=head, xytext=tail, annotation_clip=True, arrowprops=arrow)
