"""The random and planted instances of :cite:t:`tarzanagh2023transformers`, seeded.

Every generator draws from one ``torch.Generator`` with the given seed, in single precision and in a
fixed order, and casts to float64 afterwards: that is what the authors' scripts do, and so an
instance here is theirs, number by number, whatever batch it is drawn in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Concatenate, Literal, ParamSpec

import numpy as np

from attsvm import _checks
from attsvm._typing import FloatArray
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead, QuadraticHead, ReLUHead
from attsvm.problem import AttentionProblem, linear_head, stack

__all__ = [
    "compressed",
    "equal_score_problem",
    "equal_score_problems",
    "orthonormal_problem",
    "orthonormal_problems",
    "planar_problem",
    "random_problem",
    "random_problems",
    "relu_problem",
    "relu_problems",
    "sequence_problem",
    "sequence_problems",
]

Attention = Literal["cross", "self"]
Labels = Literal["position", "sequence"]
Sizes = ParamSpec("Sizes")


class _Draws:
    """Draws of one seed in the order they are asked for, in single precision, cast to float64."""

    def __init__(self, seed: int, **sizes: int) -> None:
        import torch  # here: importing torch takes seconds, and only the generators need it

        for name, value in sizes.items():
            _checks.integer(name, value, low=1)
        self._torch = torch
        self._generator = torch.Generator().manual_seed(_checks.integer("seed", seed, low=0))

    def normal(self, *shape: int) -> FloatArray:
        """Independent standard normals."""
        return self._torch.randn(*shape, generator=self._generator).double().numpy()

    def unit(self, *shape: int, axes: int = 1) -> FloatArray:
        """Standard normals, each row (the last `axes` axes) divided by its length, by torch."""
        rows = self._torch.randn(*shape, generator=self._generator)
        length = self._torch.linalg.vector_norm(rows, dim=tuple(range(-axes, 0)), keepdim=True)
        return (rows / length).double().numpy()


def _for_each_seed(
    one: Callable[Concatenate[int, Sizes], AttentionProblem],
) -> Callable[Concatenate[Iterable[int], Sizes], AttentionProblem]:
    """The generator of many instances from that of one, with its name, signature and docstring."""

    def many(seeds: Iterable[int], *args: Sizes.args, **sizes: Sizes.kwargs) -> AttentionProblem:
        chosen = list(seeds)
        if not chosen:
            raise ArgumentError("seeds", "at least one seed", "none")
        return stack(one(int(seed), *args, **sizes) for seed in chosen)

    many.__name__ = many.__qualname__ = f"{one.__name__}s"
    many.__doc__ = f"""`{one.__name__}` for each seed, stacked along a leading instance axis.

    Parameters
    ----------
    seeds
        Seeds of the instances; the other arguments are those of `{one.__name__}`.

    Returns
    -------
    AttentionProblem
        Tokens (seeds, n, T, d).

    Raises
    ------
    ArgumentError
        If there is no seed, or where `{one.__name__}` raises it.
    """
    seed, *others = inspect.signature(one).parameters.values()
    signature = inspect.Signature([seed.replace(name="seeds"), *others])
    many.__signature__ = signature  # type: ignore[attr-defined]
    return many


def random_problem(
    seed: int, n: int, T: int, d: int, attention: Attention = "cross"
) -> AttentionProblem:
    """Tokens and queries on the unit sphere, a random linear head, random labels.

    The instance of the experiments on rank, local convergence and convergence types (Sections 2
    and 5).  Draws in order: v (d), Y (n), X (n, T, d), Z (n, d); v and all rows have length one, Y
    is a sign.

    Parameters
    ----------
    seed, n, T, d
        Seed of the instance; sequences, tokens in each, dimension.
    attention
        ``"cross"``: free queries; ``"self"``: the first token of each sequence asks.

    Returns
    -------
    AttentionProblem
        Tokens (n, T, d), queries (n, d).

    Raises
    ------
    ArgumentError
        If a size is below one, the seed is negative, or `attention` is another word.
    """
    _checks.choice("attention", attention, ("cross", "self"))
    draws = _Draws(seed, n=n, T=T, d=d)
    v, labels, tokens = draws.unit(d), np.sign(draws.normal(n)), draws.unit(n, T, d)
    queries = draws.unit(n, d) if attention == "cross" else tokens[:, 0]
    return AttentionProblem(tokens, queries, labels, LinearHead(v))


random_problems = _for_each_seed(random_problem)


def planar_problem(T: Literal[3, 5]) -> AttentionProblem:
    """Two sequences in the plane whose trajectories one can see (Section 1).

    ``T=5`` (seed 3): both first tokens lie to the right, at (1, ±½), the others are shifted to the
    left by one. ``T=3`` (seed 1): two tight clusters, shifted to the left and to the right by one.
    Labels are +1.

    Parameters
    ----------
    T
        3 or 5.

    Returns
    -------
    AttentionProblem
        Tokens (2, T, 2), queries (2, 2).

    Raises
    ------
    ArgumentError
        If T is neither 3 nor 5.
    """
    if T not in (3, 5):
        raise ArgumentError("T", "3 or 5", repr(T))
    draws = _Draws(3 if T == 5 else 1)
    v = draws.unit(2)
    scale = np.float32(0.5 if T == 5 else 0.3)  # in single precision, as the authors do
    tokens = scale * draws.normal(2, T, 2).astype(np.float32)
    if T == 5:
        tokens[:, 0] = [[1.0, 0.5], [1.0, -0.5]]
        tokens[:, 1:, 0] -= 1.0
    else:
        tokens[..., 0] += [[-1.0], [1.0]]
    return AttentionProblem(tokens.astype(float), draws.unit(2, 2), np.ones(2), LinearHead(v))


def relu_problem(seed: int, n: int, T: int, d: int) -> AttentionProblem:
    """The instance of the experiment on several selected tokens (Section 6).

    Draws in order: V (d, d), X (n, T, d), Y (n), Z (n, d).  V has Frobenius norm one; rows of X and
    Z have length one; h(x) = Σ_j max(0, V_j'x).

    Parameters
    ----------
    seed, n, T, d
        Seed of the instance; sequences, tokens in each, dimension.

    Returns
    -------
    AttentionProblem
        Tokens (n, T, d), queries (n, d).

    Raises
    ------
    ArgumentError
        If a size is below one or the seed is negative.
    """
    draws = _Draws(seed, n=n, T=T, d=d)
    V, tokens = draws.unit(d, d, axes=2), draws.unit(n, T, d)
    labels = np.sign(draws.normal(n))
    return AttentionProblem(tokens, draws.unit(n, d), labels, ReLUHead(V))


relu_problems = _for_each_seed(relu_problem)


def orthonormal_problem(seed: int, n: int, T: int, d: int, ridge: float) -> AttentionProblem:
    """Orthonormal tokens with the quadratic head h(x) = v'x − λ‖x‖² (Section 6).

    The tokens of a sequence are T orthonormal vectors in dimension d ≥ T (the orthogonal factor of
    a matrix of normals), labels are +1.  The optimal attention is then known in closed form: the
    projection of γ/(2λ) onto the simplex.

    Parameters
    ----------
    seed, n, T, d
        Seed of the instance; sequences, tokens in each (at most d), dimension.
    ridge
        λ ≥ 0 of the head.

    Returns
    -------
    AttentionProblem
        Tokens (n, T, d), queries (n, d).

    Raises
    ------
    ArgumentError
        If a size is below one, T exceeds d, or λ is negative.
    """
    draws = _Draws(seed, n=n, T=T, d=d)
    if d < T:
        raise ArgumentError("T", f"at most d = {d} orthonormal tokens", str(T))
    v = draws.unit(d)
    # U V' of the singular value decomposition: the orthonormal rows nearest to the Gaussian ones;
    # for T = d this is as uniform as the left singular vectors alone.
    left, _, right = np.linalg.svd(draws.normal(n, T, d), full_matrices=False)
    return AttentionProblem(left @ right, draws.unit(n, d), np.ones(n), QuadraticHead(v, ridge))


orthonormal_problems = _for_each_seed(orthonormal_problem)


def equal_score_problem(seed: int, n: int, T: int, d: int, spread: float = 0.0) -> AttentionProblem:
    """A random instance whose non-optimal tokens have equal scores (Section 4, condition B.2).

    Draws in order: Y (n), X (n, T, d), Z (n, d), rows of length one; the head is v = e_1, so that
    the score of a token is ± its first coordinate, without rounding.  In each sequence the scores
    of the tokens other than the optimal one are then drawn together: their distance from their mean
    is multiplied by `spread`.  The optimal token, and all that is orthogonal to v, stay as drawn.

    Parameters
    ----------
    seed, n, T, d
        Seed of the instance; sequences, tokens in each, dimension.
    spread
        0: equal scores (B.2); 1: scores as drawn, an instance with the law of `random_problem`.

    Returns
    -------
    AttentionProblem
        Tokens (n, T, d), queries (n, d).

    Raises
    ------
    ArgumentError
        If a size is below one, the seed is negative, or the spread is outside [0, 1].
    """
    spread = _checks.number("spread", spread, at_least=0.0, at_most=1.0)
    draws = _Draws(seed, n=n, T=T, d=d)
    labels = np.sign(draws.normal(n))
    tokens = draws.unit(n, T, d)
    best = (labels[:, None] * tokens[..., 0]).argmax(-1)
    rest = np.arange(T) != best[:, None]
    for i in range(n if T > 1 else 0):
        drawn = tokens[i, rest[i], 0]
        tokens[i, rest[i], 0] = drawn.mean() + spread * (drawn - drawn.mean())
    return AttentionProblem(tokens, draws.unit(n, d), labels, LinearHead(np.eye(d)[0]))


equal_score_problems = _for_each_seed(equal_score_problem)


def compressed(problem: AttentionProblem) -> tuple[AttentionProblem, FloatArray]:
    """The same instances in coordinates of the span of their tokens and queries.

    With d above n(T + 1) the loss does not depend on most directions of the space.  Descent on the
    compressed problem from U'W(0)U makes the same logits as descent from W(0), in a fraction of the
    time, and SVM solutions have the same norms.

    Parameters
    ----------
    problem
        Instances with a linear head, leading axes ….

    Returns
    -------
    AttentionProblem
        Tokens X U, queries U'z and head U'v, of dimension r = min(d, n(T + 1)).
    ndarray
        U (…, d, r), orthonormal columns; W ↦ U'W U compresses, and C ↦ U C U' goes back.

    Raises
    ------
    ArgumentError
        If the head is not linear.
    """
    head = linear_head(problem)
    d = problem.d
    rows = problem.tokens.reshape(*problem.batch_shape, -1, d)
    rows = np.concatenate([rows, problem.queries], axis=-2)
    _, _, vectors = np.linalg.svd(rows, full_matrices=False)
    U = vectors.mT
    v = np.broadcast_to(head.v, (*problem.batch_shape, d))
    small = AttentionProblem(
        tokens=problem.tokens @ U[..., None, :, :],
        queries=problem.queries @ U,
        labels=problem.labels,
        head=LinearHead(np.einsum("...dr,...d->...r", U, v)),
        mask=problem.mask,
    )
    return small, np.ascontiguousarray(U)


def sequence_problem(
    seed: int, n: int, T: int, d: int, causal: bool = False, labels: Labels = "position"
) -> AttentionProblem:
    """Every position asks: a sequence-to-sequence data set as an attention problem (Section 7).

    Position k of sequence i is a query z = x_ik over the tokens of its own sequence.  That is an
    ordinary problem with n T rows, the row of position (i, k) being i T + k; in the causal case the
    mask leaves it the tokens t ≤ k.  Draws in order: v (d), Y (n, T) or (n,), X (n, T, d); v and
    all tokens have length one, labels are signs.

    Parameters
    ----------
    seed, n, T, d
        Seed of the instance; sequences, tokens in each, dimension.
    causal
        Whether position k sees the tokens up to k only.  The first position then has no choice.
    labels
        ``"position"``: each position has a label of its own; ``"sequence"``: one for the sequence.

    Returns
    -------
    AttentionProblem
        Tokens (n T, T, d), queries (n T, d).

    Raises
    ------
    ArgumentError
        If a size is below one, the seed is negative, or `labels` is another word.
    """
    _checks.choice("labels", labels, ("position", "sequence"))
    draws = _Draws(seed, n=n, T=T, d=d)
    v = draws.unit(d)
    signs = np.sign(draws.normal(n, T if labels == "position" else 1))
    tokens = draws.unit(n, T, d)
    return AttentionProblem(
        tokens=np.repeat(tokens, T, axis=0),
        queries=tokens.reshape(n * T, d),
        labels=np.broadcast_to(signs, (n, T)).reshape(n * T),
        head=LinearHead(v),
        mask=np.tile(np.tri(T, dtype=bool), (n, 1)) if causal else None,
    )


sequence_problems = _for_each_seed(sequence_problem)
