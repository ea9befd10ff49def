"""Kernels run by the interpreter, on copies of the arguments in NumPy arrays."""

from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from blockarray.language.calling import Call
from blockarray.language.operands import Operand, check_output, operand_of
from blockarray.language.words import word_of
from blockarray.ndarray import borrowed_value, from_numpy, ndarray, read, write
from codegen.frontend.translator import Translation, translate
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import ScalarParameter
from codegen.target import Target
from codegen.targets import backend


@dataclass
class HostRun:
    """A kernel with its arguments as NumPy arrays, by the names of its parameters.

    Attributes
    ----------
    translation : Translation
    arguments : dict
    copies : dict
        By array parameter of the function.
    """

    translation: Translation
    arguments: dict[str, Any]
    copies: dict[str, np.ndarray]


def prepare(function: FunctionType, call: Call, target: Target) -> HostRun:
    """A kernel for `target`, with row-major copies of a call's arrays."""
    host = backend("cpu")
    copies = {}
    for name, array in call.arrays.items():
        value = borrowed_value(array) if isinstance(array, ndarray) else array
        copies[name] = np.array(value, order="C")
    operands = {name: operand_of(name, copy, host, False) for name, copy in copies.items()}
    translation = translate(function, call.specialisation(operands), target, word_of)
    arguments: dict[str, Any] = dict(call.lengths())
    for parameter in translation.kernel.parameters:
        if isinstance(parameter, ScalarParameter):
            arguments[parameter.name] = call.numbers[parameter.name]
    for buffer, view in translation.views.items():
        arguments[buffer] = _shown(copies[view.parameter], operands[view.parameter], view.axes)
    known = {parameter.name for parameter in translation.kernel.parameters}
    return HostRun(translation, {name: value for name, value in arguments.items() if name in known}, copies)


def _shown(array: np.ndarray, operand: Operand, axes: tuple[int | None, ...]) -> np.ndarray:
    """The array with its axes as a buffer parameter has them."""
    shape = [1 if axis is None else array.shape[axis] for axis in axes]
    strides = [0 if axis is None else operand.strides[axis] * array.itemsize for axis in axes]
    return as_strided(array, shape, strides)


def run_by_interpreter(function: FunctionType, call: Call) -> None:
    """Run a call by the interpreter, and put the results into its outputs."""
    run = prepare(function, call, backend("cpu").target)
    for name in sorted(run.translation.stored):
        array = call.arrays[name]
        check_output(operand_of(name, array, call.device, True))
    interpret(run.translation.kernel, run.arguments)
    for name in sorted(run.translation.stored):
        array = call.arrays[name]
        if isinstance(array, ndarray):
            write(array, read(from_numpy(run.copies[name], call.device)))
        else:
            array[...] = run.copies[name]
