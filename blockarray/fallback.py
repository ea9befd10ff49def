"""What no kernel computes goes through NumPy on the host: said aloud, and refused where that is wanted.

Two kinds of function come here. Some are NumPy's by design (sorting, decompositions, random streams, sets …): on the host they only
move data when the arrays are on a GPU, and warn only then. Others have no native path yet, or got arguments that no kernel takes:
they always warn.
"""

import warnings
from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any, Final, Literal

import numpy as np

from blockarray.execution.device import current_device
from blockarray.execution.memory import buffer_of
from blockarray.execution.statistics import run as statistics
from blockarray.foreign import array_given, gives_ours
from blockarray.graph.nodes import Source
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    from_numpy,
    host_value,
    ndarray,
    user_frame,
    write,
)
from codegen import dtypes
from codegen.targets.backend import Backend

Policy = Literal["warn", "error", "allow"]

_policy: Policy = "warn"


class HostFallbackWarning(UserWarning):
    """A function ran through NumPy on the host. The message names it and the bytes that were moved."""


class HostFallbackError(RuntimeError):
    """A function would have run through NumPy on the host, and the policy is "error"."""


def set_fallback_policy(policy: Policy) -> None:
    """What happens when a function has no native path.

    Parameters
    ----------
    policy : {"warn", "error", "allow"}
        Warn with `HostFallbackWarning` (from the start), raise `HostFallbackError`, or say nothing.

    Raises
    ------
    ValueError
        For any other word.

    Examples
    --------
    >>> import blockarray as np
    >>> np.set_fallback_policy("warn")
    """
    global _policy
    if policy not in ("warn", "error", "allow"):
        raise ValueError(f"policy: expected 'warn', 'error' or 'allow', found {policy!r}")
    _policy = policy


def _to_host(value: Any, found: list[ndarray], keeps: bool) -> Any:
    if isinstance(value, ndarray):
        found.append(value)
        if isinstance(value, Scalar):
            return value.numpy_value()
        return host_value(value) if keeps else borrowed_value(value)
    if type(value) is list:
        return [_to_host(one, found, keeps) for one in value]
    if type(value) is tuple:
        return tuple(_to_host(one, found, keeps) for one in value)
    if type(value) is dict:
        return {key: _to_host(one, found, keeps) for key, one in value.items()}
    if not keeps and gives_ours(value):
        return _to_host(array_given(value), found, keeps)
    return value


def from_host(value: Any, device: Backend | None = None) -> Any:
    """A result of NumPy as ours: arrays and scalars of dtypes that kernels have; tuples and lists element by element."""
    if type(value) is np.ndarray:
        return from_numpy(value, device) if dtypes.find(value.dtype.newbyteorder("=")) is not None else value
    if isinstance(value, np.generic):
        if dtypes.find(value.dtype) is None:
            return value
        return value
    if type(value) is tuple:
        return tuple(from_host(one, device) for one in value)
    if type(value) is list:
        return [from_host(one, device) for one in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(from_host(one, device) for one in value))
    return value


def _announce(name: str, moved: int, by_design: bool, device: bool) -> None:
    if by_design and not device:
        return
    message = (
        f"{name} ran through NumPy on the host, {moved} bytes were moved; "
        "blockarray.set_fallback_policy('allow') silences this, 'error' makes it an error"
    )
    if _policy == "error":
        raise HostFallbackError(message.replace(" ran ", " would run ").replace(" were moved", " would be moved"))
    if _policy == "warn":
        warnings.warn(message, HostFallbackWarning, stacklevel=_depth())


def _depth() -> int:
    frame, depth = user_frame(), 1
    here = user_frame.__globals__["_get_frame"](1)
    while here is not None and here is not frame:
        here = here.f_back
        depth += 1
    return depth


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's program."""
    warnings.warn(message, category, stacklevel=_depth())


def _at_the_users_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, called from a frame that has the place of the user's line: what it warns of points there, not in here.

    (Catching warnings to give them again is no way: it changes a state that all threads share.)
    """
    frame = user_frame()
    if frame is None:
        return function
    code = _CALL.replace(
        co_filename=frame.f_code.co_filename, co_name=frame.f_code.co_name, co_firstlineno=frame.f_lineno
    )
    return FunctionType(code, frame.f_globals, closure=(CellType(function),))


def _calling(function: Callable[..., Any]) -> FunctionType:
    call: Any = lambda *arguments, **keywords: function(*arguments, **keywords)  # noqa: E731  # one line: the user's
    return call


# All of it is on one line, so moving the first line moves it all.
_CALL: Final = _calling(print).__code__


def call_numpy(
    function: Callable[..., Any],
    arguments: Iterable[Any],
    keywords: dict[str, Any],
    name: str | None = None,
    changes: tuple[int, ...] = (),
    by_design: bool = False,
    keeps: bool = False,
) -> Any:
    """Call a function of NumPy on the values of arrays.

    Parameters
    ----------
    function : callable
        Of NumPy, or an operator on its arrays.
    arguments, keywords
        Arrays of ours among them, in lists and tuples too, are replaced by their values. ``out`` may be an array of ours.
    name : str, optional
        For the warning.
    changes : tuple of int
        Positions of arguments that the function changes in place.
    by_design : bool
        The function is NumPy's by design: on the host nothing is said.
    keeps : bool
        Objects of others among the arguments may keep what they are given, so arrays are copied for them.

    Returns
    -------
    object
        Arrays that kernels can have are ours, on the device of the first argument that was.
    """
    positional = tuple(arguments)
    outs = keywords.get("out")
    targets: list[ndarray] = [positional[k] for k in changes if isinstance(positional[k], ndarray)]
    listed = outs if isinstance(outs, tuple) else (outs,)
    targets += [one for one in listed if isinstance(one, ndarray)]
    found: list[ndarray] = []
    rest = {key: value for key, value in keywords.items() if key != "out"}
    host_arguments = [_to_host(one, found, keeps) for one in positional]
    host_keywords = {key: _to_host(value, found, keeps) for key, value in rest.items()}
    device = found[0]._cell.node.device if found else (targets[0]._cell.node.device if targets else current_device())
    on_device = device.target.kind != "cpu"
    moved = sum(one.nbytes for one in found) if on_device else 0
    shown = name or getattr(function, "__name__", str(function))
    _announce(shown, moved, by_design or not found, on_device)
    copies: dict[int, np.ndarray] = {}
    given: tuple[Any, ...] = ()
    for target in targets:
        if not target._writeable:
            raise ValueError("assignment destination is read-only")
        copies[id(target)] = host_value(target)
    for k in changes:
        if isinstance(positional[k], ndarray):
            host_arguments[k] = copies[id(positional[k])]
    if outs is not None:
        given = tuple(copies.get(id(one), one) for one in listed)
        host_keywords["out"] = given if isinstance(outs, tuple) else given[0]
    result = _at_the_users_line(function)(*host_arguments, **host_keywords)
    for target in targets:
        replace_value(target, copies[id(target)])
    if outs is not None and not isinstance(outs, tuple) and isinstance(outs, ndarray):
        return outs
    if isinstance(outs, tuple) and len(outs) == 1 and isinstance(outs[0], ndarray):
        return outs[0]
    # What was given for `out` comes back as the object that it is, NumPy arrays too.
    given_back = {id(host): one for host, one in zip(given, listed, strict=True)} if outs is not None else {}
    if type(result) is tuple:
        return tuple(given_back[id(one)] if id(one) in given_back else from_host(one, device) for one in result)
    return given_back[id(result)] if id(result) in given_back else from_host(result, device)


def replace_value(array: ndarray, value: np.ndarray) -> None:
    """Make `value`, of the array's shape, the array's new value; its views see it."""
    if value.size:
        dtype, device = array._row, array._cell.node.device
        write(array, Source(value.shape, dtype, device, buffer_of(value, dtype, device)))


def record_transfer(nbytes: int) -> None:
    """Count a copy between host and device."""
    statistics.transfers += 1
    statistics.transfer_bytes += nbytes
