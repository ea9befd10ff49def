"""Several arguments that were drawn together."""

from __future__ import annotations


class Arguments(tuple[object, ...]):
    """Several arguments of one call, drawn by one strategy because they depend on one another.

    `assert_matches_numpy` passes its items as arguments of their own, where any other tuple is one argument.

    Examples
    --------
    A matrix and a vector that fit:

    >>> from hypothesis import strategies
    >>> from blockarray.testing import arrays, assert_matches_numpy
    >>> @strategies.composite
    ... def matrix_and_vector(draw):
    ...     rows, columns = draw(strategies.integers(1, 5)), draw(strategies.integers(1, 5))
    ...     matrix = draw(arrays("float64", (rows, columns), values="moderate"))
    ...     vector = draw(arrays("float64", columns, values="moderate"))
    ...     return Arguments((matrix, vector))
    >>> assert_matches_numpy(lambda matrix, vector: (matrix * vector).sum(-1), matrix_and_vector(), max_ulp=64, examples=10)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Arguments({super().__repr__()})"
