"""What a kernel's parameters are: arrays, numbers, static values; and a call's arguments by parameter."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.language import Static
from codegen.frontend.signature import ScalarKind, ShapeSignature

# Keywords of the call itself.
RESERVED = ("grid", "dtype")


class Absent:
    """An output that the call makes."""

    def __repr__(self) -> str:
        return "<made by the call>"


ABSENT = Absent()


@dataclass(frozen=True)
class Declaration:
    """A kernel's parameters.

    Attributes
    ----------
    name : str
    parameters : mapping
        Of the function, in order.
    positional : tuple of str
        Those that may be passed without their names.
    statics : frozenset of str
    scalars : mapping
        Numbers whose dtype is stated.
    shapes : ShapeSignature or None
    inputs, outputs : tuple of str
        Array parameters, if `shapes` says so.
    """

    name: str
    parameters: Mapping[str, inspect.Parameter]
    positional: tuple[str, ...]
    statics: frozenset[str]
    scalars: Mapping[str, ScalarKind]
    shapes: ShapeSignature | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def bind(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter; TypeError if one is missing or too many."""
        found = dict(zip(self.positional, positional, strict=False))
        is_plain = len(positional) <= len(self.positional)
        if not is_plain or any(name in found or name not in self.parameters for name in named):
            self._refuse(positional, named)
        found.update(named)
        if len(found) < len(self.parameters):
            for name, parameter in self.parameters.items():
                if name not in found:
                    found[name] = self._default(name, parameter)
        for name in self.statics:
            try:
                hash(found[name])
            except TypeError:
                raise TypeError(
                    f"{self.name}(): the static parameter {name!r} must be hashable, found {type(found[name]).__name__}; "
                    "pass a tuple instead of a list"
                ) from None
        return {name: found[name] for name in self.parameters}

    def _default(self, name: str, parameter: inspect.Parameter) -> Any:
        if parameter.default is not inspect.Parameter.empty:
            return parameter.default
        if name in self.outputs:
            return ABSENT
        if name in self.statics:
            raise TypeError(f"{self.name}() missing the static parameter {name!r}: pass {name}=…")
        raise TypeError(f"{self.name}() missing a required argument: {name!r}; its parameters are {self._listed()}")

    def _refuse(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Say in Python's words which argument is one too many."""
        try:
            inspect.Signature(list(self.parameters.values())).bind_partial(*positional, **named)
        except TypeError as error:
            raise TypeError(f"{self.name}() {error}; its parameters are {self._listed()}") from None

    def _listed(self) -> inspect.Signature:
        empty = inspect.Parameter.empty
        return inspect.Signature([one.replace(annotation=empty) for one in self.parameters.values()])


def declare(function: FunctionType, shapes: str | None) -> Declaration:
    """Read a function's parameters; TypeError or ValueError if they are not a kernel's."""
    name = function.__name__
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, AttributeError):
        signature = inspect.signature(function)
    statics, scalars, arrays = set(), {}, []
    for parameter in signature.parameters.values():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise TypeError(f"kernel {name}: expected parameters with names of their own, found {parameter}")
        if parameter.name in RESERVED:
            raise TypeError(
                f"kernel {name}: a parameter cannot be called {parameter.name!r}, which is a keyword of the call"
            )
        if _is_static(parameter.annotation):
            statics.add(parameter.name)
        elif parameter.annotation is not inspect.Parameter.empty:
            scalars[parameter.name] = _scalar_kind(name, parameter)
        else:
            arrays.append(parameter.name)
    parsed = None if shapes is None else ShapeSignature.parse(shapes)
    inputs, outputs = (), ()
    if parsed is not None:
        count = len(parsed.inputs) + len(parsed.outputs)
        if len(arrays) < count:
            raise ValueError(
                f"kernel {name}: shapes {shapes!r} describe {count} arrays, the function has {len(arrays)} ({', '.join(arrays)}); "
                "what is annotated is none"
            )
        inputs, outputs = tuple(arrays[: len(parsed.inputs)]), tuple(arrays[len(parsed.inputs) : count])
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    positional = tuple(one.name for one in signature.parameters.values() if one.kind is not keyword_only)
    return Declaration(name, signature.parameters, positional, frozenset(statics), scalars, parsed, inputs, outputs)


def _is_static(annotation: Any) -> bool:
    return annotation is Static or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Static")


def _scalar_kind(kernel: str, parameter: inspect.Parameter) -> ScalarKind:
    annotation = parameter.annotation
    if annotation is float or annotation == "float":
        return ScalarKind(dtypes.float64, float)
    if annotation is int or annotation == "int":
        return ScalarKind(dtypes.int64, int)
    try:
        dtype = annotation if isinstance(annotation, DType) else dtypes.find(np.dtype(annotation))
    except TypeError:
        dtype = None
    if dtype is None:
        raise TypeError(
            f"kernel {kernel}: parameter {parameter.name!r} is annotated with {annotation!r}; expected Static, a dtype for a number, or "
            "nothing for an array"
        )
    return ScalarKind(dtype)
