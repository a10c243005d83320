"""The errors attsvm raises on purpose; everything else is a bug."""

from __future__ import annotations

from typing import Any

__all__ = ["ArgumentError", "AttsvmError", "InfeasibleError"]


class AttsvmError(Exception):
    """Base class: ``except AttsvmError`` catches whatever this package raises knowingly."""


class ArgumentError(AttsvmError, ValueError):
    """An argument is not what the function takes.

    Parameters
    ----------
    argument
        Name of the argument, as the caller wrote it.
    expected
        What was expected, in words.
    got
        What came instead, in words.
    """

    def __init__(self, argument: str, expected: str, got: str) -> None:
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(f"{argument}: expected {expected}, got {got}")

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, str, str]]:
        # Exception pickles `args`, which here is the joined message; workers of a pool need this.
        return (type(self), (self.argument, self.expected, self.got))


class InfeasibleError(AttsvmError):
    """No W separates the selected tokens from the others; the certificate proves it.

    Parameters
    ----------
    message
        What is infeasible, in words.
    certificate
        Whatever proves it: for an SVM the multipliers λ ≥ 0, Σλ > 0, whose combination of the
        constraints vanishes (Farkas' lemma).
    """

    def __init__(self, message: str, certificate: Any = None) -> None:
        self.certificate = certificate
        super().__init__(message)

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[str, Any]]:
        return (type(self), (str(self), self.certificate))
