"""Ufuncs and operators where an operand of another library has the first word (``__array_ufunc__``, ``__array_priority__``)."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from blockarray.fallback import call_numpy
from blockarray.foreign import decides, goes_first, speaks_ours, takes_no_ufunc
from blockarray.ndarray import Array

NO_WORD: Final = object()
"""What `met` answers where the other operand is plain data."""


def any_decides(inputs: Iterable[Any], out: Any = None) -> bool:
    """Whether an operand or an output decides what the ufunc does."""
    for one in inputs:
        if decides(type(one)):
            return True
    if out is None:
        return False
    return any(decides(type(one)) for one in (out if isinstance(out, tuple) else (out,)))


def decided(function: Any, host: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What the foreign operands make of a ufunc.

    Parameters
    ----------
    function, host
        Our ufunc, and NumPy's of the same name. Operands whose code knows our arrays get ours; else NumPy asks them, with its own ufunc
        and with NumPy arrays in place of ours.
    method : str
        ``"__call__"``, ``"reduce"`` …

    Raises
    ------
    TypeError
        If every one of them returns NotImplemented, or one takes no ufuncs.
    """
    if method == "__call__" and len(inputs) > host.nin:
        keywords = {**keywords, "out": inputs[host.nin :]}
        inputs = inputs[: host.nin]
    outs = keywords.get("out")
    if outs is not None and not isinstance(outs, tuple):
        outs = (outs,)
    foreign = [one for one in (*inputs, *(outs or ())) if decides(type(one))]
    if not all(speaks_ours(type(one), "__array_ufunc__") for one in foreign):
        changes = (0,) if method == "at" else ()
        name = host.__name__ if method == "__call__" else f"{host.__name__}.{method}"
        return call_numpy(
            getattr(host, method), inputs, keywords, name=name, changes=changes, by_design=True, keeps=True
        )
    given = keywords if outs is None else {**keywords, "out": outs}
    for one in _in_turn(foreign):
        answer = type(one).__array_ufunc__(one, function, method, *inputs, **given)
        if answer is not NotImplemented:
            return answer
    shown = ", ".join([repr(one) for one in inputs] + [f"{key}={value!r}" for key, value in given.items()])
    kinds = ", ".join(f"'{type(one).__name__}'" for one in foreign)
    raise TypeError(
        f"operand type(s) all returned NotImplemented from __array_ufunc__({function!r}, '{method}', {shown}): {kinds}"
    )


def _in_turn(foreign: list[Any]) -> list[Any]:
    """One operand of each kind: from left to right, subclasses before what they derive from."""
    order: list[Any] = []
    for one in foreign:
        kinds = [type(other) for other in order]
        if type(one) in kinds:
            continue
        place = next((k for k, kind in enumerate(kinds) if issubclass(type(one), kind)), len(order))
        order.insert(place, one)
    return order


def met(
    function: Any, host: np.ufunc, python: Callable[..., Any], mirrored: str, operands: tuple[Any, Any], reflected: bool
) -> Any:
    """A binary operator of Python between an array of ours and something else.

    Parameters
    ----------
    function, host
        The operator's ufunc, ours and NumPy's.
    python : callable
        The operator as a function.
    mirrored : str
        The method by which the right operand answers, such as ``"__radd__"``.
    operands : tuple
        As they stand.
    reflected : bool
        Whether the array of ours is on the right.

    Returns
    -------
    object
        The result; NotImplemented where Python must ask the other; `NO_WORD` where the other is plain data.
    """
    other = operands[0] if reflected else operands[1]
    kind = type(other)
    if takes_no_ufunc(kind):
        return NotImplemented
    if decides(kind):
        if isinstance(other, np.ndarray):
            # Subclasses such as `numpy.matrix` have operators of their own, which know NumPy's arrays.
            return call_numpy(python, operands, {}, name=host.__name__, by_design=True, keeps=True)
        return decided(function, host, "__call__", operands, {})
    if not goes_first(kind):
        return NO_WORD
    answer = NotImplemented
    if not reflected and hasattr(kind, mirrored):
        answer = getattr(kind, mirrored)(other, operands[0])
    if answer is NotImplemented:
        # Such as a sparse matrix that insists on a NumPy array.
        answer = call_numpy(python, operands, {}, name=host.__name__, by_design=True, keeps=True)
    return answer


def by_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of the namespace call the method of that name of foreign operands, as NumPy's function does."""
    name = function.__name__
    host = getattr(np, name)

    @functools.wraps(function)
    def asking(*arguments: Any, **keywords: Any) -> Any:
        kind = type(arguments[0]) if arguments else Array
        if kind is Array or not decides(kind):
            return function(*arguments, **keywords)
        if not speaks_ours(kind, "__array_ufunc__"):
            return call_numpy(host, arguments, keywords, name=name, by_design=True, keeps=True)
        method = getattr(arguments[0], name, None)
        return function(*arguments, **keywords) if method is None else method(*arguments[1:], **keywords)

    return asking
