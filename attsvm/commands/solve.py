"""``attsvm solve``: the attention SVM of a problem of your own, with its certificate."""

from __future__ import annotations

import argparse

from attsvm.commands import FAILED, OK, Commands, add, problems
from attsvm.errors import ArgumentError

__all__ = ["register"]

DESCRIPTION = """\
Solve the attention SVM: the W of least norm with
(x_selected - x_t)' W z >= 1 for every other token t of every sequence.

The file, .npz (numpy.savez) or .json (an object of nested lists), holds
  tokens    (n, T, d)  n sequences of T tokens in dimension d
  queries   (n, d)     one for each sequence
  selected  (n,)       which token of each sequence is to be kept, from 0
  mask      (n, T)     optional: true where a token exists, for sequences of different lengths
What `attsvm train` reads may be there too: one file can serve both.

Nothing of the answer has to be believed: objective, bound and gap are computed from the data, W and
the multipliers. Where no W exists, the tokens whose constraints contradict each other are named.
"""
EPILOG = """\
Exit codes: 0 solved; 1 no W exists, or float64 does not reach a certificate; 2 the file or an
option is not as described.
"""


# What only `attsvm train` makes use of.
TRAINED = ["labels", "v", "V", "ridge", "W", "K", "Q"]


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "Solve the attention SVM of a problem in a file."
    parser = add(commands, "solve", run, summary, DESCRIPTION, EPILOG)
    parser.add_argument("problem", metavar="FILE", help="the problem, .npz or .json")
    help = "Frobenius, as training W finds it, or nuclear, as key and query do (default: fro)"
    parser.add_argument("--norm", choices=["fro", "nuc"], default="fro", help=help)
    with_files(parser)


def with_files(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the files to write."""
    parser.add_argument("--json", metavar="FILE", help="write all of the answer as JSON")
    parser.add_argument("--npz", metavar="FILE", help="write all of the answer as arrays")


def run(options: argparse.Namespace) -> int:
    """Solve, report, write."""
    import numpy as np

    from attsvm import _checks, svm

    arrays = problems.read(options.problem, ["tokens", "queries", "selected"], ["mask"], TRAINED)
    n, T, d = problems.token_shape(arrays)
    tokens = _checks.array("tokens", arrays["tokens"])
    queries = _checks.array("queries", arrays["queries"], shape=(n, d))
    selected = _checks.integers("selected", arrays["selected"], shape=(n,), low=0, high=T)
    mask = arrays.get("mask")
    if mask is not None:
        mask = _checks.booleans("mask", mask, shape=(n, T))
        for i in np.flatnonzero(~mask[np.arange(n), selected]):
            what = f"token {selected[i]} does not exist" if mask[i].any() else "no token exists"
            expected = "the selected token of each sequence to exist"
            raise ArgumentError("mask", expected, f"sequence {i}, where {what}")
    solution = svm.solve(
        tokens, queries, selected, norm=options.norm, mask=mask, on_infeasible="return"
    )
    print(f"{options.problem}: {n} sequences of {T} tokens in dimension {d}")
    print(problems.line("selected", problems.listed(selected)))
    print("\n".join(problems.solution_report(solution)))
    problems.write(problems.solution_record(solution), options.json, options.npz)
    return OK if solution.solved else FAILED
