"""Kernel plans evaluated with NumPy, point by point as they are defined, and run through the lowering on each target."""

import ctypes
import struct
from collections.abc import Mapping, Sequence

import numpy as np
from emitted import ptx_of
from numpy.lib.stride_tricks import as_strided
from ptx_machine import Machine, Memory

from blockarray.fusion.lower import Argument, SlotConstant, SlotNumber, SlotPointer, lower
from blockarray.fusion.lower_analysis import closure, dtype_of
from blockarray.fusion.plan import (
    Apply,
    Convert,
    Fold,
    KernelPlan,
    Number,
    Position,
    Read,
    RunningFold,
    Take,
)
from codegen.compiler import compile_kernel
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import BufferParameter, Kernel
from codegen.ir.printer import print_kernel
from codegen.passes import pipeline
from codegen.scalar.numpy_core import evaluate
from codegen.target import Target
from codegen.targets.cpu.backend import CpuBackend

HOST = CpuBackend(threads=1)
Values = dict[int, "np.ndarray"]

_ALIGNMENT = 64


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at an aligned address."""
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    copy = raw[start : start + array.nbytes].view(array.dtype)
    copy[...] = array.reshape(-1)
    return copy


def evaluate_plan(plan: KernelPlan, memory: Values) -> Values:
    """What the plan leaves in memory: values by number, flat; the given arrays are not changed.

    Float folds are computed in float64, as the value that every order of additions approximates.
    """
    shape = tuple(axis.extent for axis in plan.axes)
    grids = np.indices(shape, dtype=np.int64, sparse=True)
    found: list[np.ndarray] = []
    for statement in plan.statements:
        found.append(_evaluate(plan, statement, found, memory, shape, grids))
    result = {number: array.copy() for number, array in memory.items()}
    for write in plan.writes:
        dtype = dtype_of(plan.statements[write.value])
        varies = plan.varies()[write.value]
        folded = any(isinstance(plan.statements[n], Fold) for n in closure(plan, [write.value]))
        once = tuple(axis.reduced and not axis.piece and write.strides[k] == 0 for k, axis in enumerate(plan.axes))
        stored = tuple(1 if flag else extent for flag, extent in zip(once, shape, strict=True))
        grids = np.indices(stored, dtype=np.int64)
        value = np.broadcast_to(found[write.value].astype(dtype.numpy, copy=False), stored)
        places = np.full(stored, write.offset, np.int64)
        for k, (axis, stride) in enumerate(zip(plan.axes, write.strides, strict=True)):
            by_piece = axis.piece and folded and not varies[k]
            places += (grids[k] // axis.piece if by_piece else grids[k]) * stride
        result[write.target][places.reshape(-1)] = value.reshape(-1)
    return result


def _evaluate(
    plan: KernelPlan,
    statement: object,
    found: list[np.ndarray],
    memory: Values,
    shape: tuple[int, ...],
    grids: tuple[np.ndarray, ...],
) -> np.ndarray:
    def places(offset: int, strides: tuple[int, ...]) -> np.ndarray:
        total = np.full((1,) * len(shape), offset, np.int64)
        for grid, stride in zip(grids, strides, strict=True):
            if stride:
                total = total + grid * stride
        return total

    match statement:
        case Read(source=source, offset=offset, strides=strides):
            return memory[source][places(offset, strides)]
        case Number(source=source):
            return memory[source][:1].reshape((1,) * len(shape))
        case Position(offset=offset, strides=strides):
            return places(offset, strides)
        case Apply(function=name, operands=operands, dtype=dtype):
            return evaluate(name, *(found[k].astype(_narrow(plan, k), copy=False) for k in operands)).astype(
                dtype.numpy
            )
        case Convert(operand=operand, dtype=dtype):
            with np.errstate(all="ignore"):
                return found[operand].astype(_narrow(plan, operand), copy=False).astype(dtype.numpy)
        case Take(source=source, offset=offset, positions=positions, position_strides=steps, rest=rest):
            total = places(offset, rest)
            for k, step in zip(positions, steps, strict=True):
                total = total + found[k] * step
            return memory[source][total]
        case Fold(combiner=name, operands=operands, output=output):
            return _fold(plan, name, [found[k] for k in operands], output)
        case RunningFold(combiner=name, operand=operand, before=before):
            full = np.broadcast_to(found[operand], (*found[operand].shape[:-1], shape[-1]))
            return _running(plan, name, full, before, memory)
    raise TypeError(statement)


def _narrow(plan: KernelPlan, number: int) -> np.dtype:
    return dtype_of(plan.statements[number]).numpy


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _pieces(plan: KernelPlan) -> list[tuple[slice, ...]]:
    whole: list[tuple[slice, ...]] = [()]
    for axis in plan.axes:
        step = axis.piece or max(1, axis.extent)
        parts = [slice(start, min(start + step, axis.extent)) for start in range(0, max(1, axis.extent), step)]
        whole = [(*head, part) for head in whole for part in parts]
    return whole


def _fold(plan: KernelPlan, name: str, operands: list[np.ndarray], output: int) -> np.ndarray:
    axes = tuple(k for k, axis in enumerate(plan.axes) if axis.reduced)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    shape = np.broadcast_shapes(shape, tuple(axis.extent for axis in plan.axes))
    result_shape = tuple(1 if axis.reduced and not axis.piece else n for axis, n in zip(plan.axes, shape, strict=True))
    result = np.empty(result_shape, np.int64 if output else _wide(operands[0]).dtype)
    for part in _pieces(plan):
        pieces = [np.broadcast_to(operand, shape)[part] for operand in operands]
        part = tuple(slice(None) if n == 1 else row for n, row in zip(result_shape, part, strict=True))
        if name in ("argmax", "argmin"):
            result[part] = _first(name, pieces, axes, output)
        else:
            ufunc = getattr(np, name)
            with np.errstate(all="ignore"):
                result[part] = ufunc.reduce(_wide(pieces[0]), axis=axes, keepdims=True, dtype=_wide(pieces[0]).dtype)
    return result


def _first(name: str, pieces: list[np.ndarray], axes: tuple[int, ...], output: int) -> np.ndarray:
    kept = [k for k in range(pieces[0].ndim) if k not in axes]
    order = (*kept, *axes)
    values = pieces[0].transpose(order)
    flat = values.reshape(*values.shape[: len(kept)], -1)
    positions = pieces[1].transpose(order).reshape(flat.shape)
    chosen = getattr(np, name)(flat, axis=-1)[..., None]
    taken = np.take_along_axis(positions if output else flat, chosen, -1)[..., 0]
    for axis in axes:
        taken = np.expand_dims(taken, axis)
    return taken


def _running(plan: KernelPlan, name: str, operand: np.ndarray, before: Read | None, memory: Values) -> np.ndarray:
    ufunc = getattr(np, name)
    result = np.empty(operand.shape, _wide(operand).dtype)
    for part in _pieces(plan):
        with np.errstate(all="ignore"):
            result[part] = ufunc.accumulate(_wide(operand[part]), axis=-1, dtype=result.dtype)
        first = part[-1].start
        if before is None or first == 0:
            continue
        previous = first // plan.axes[-1].piece - 1
        grids = np.indices(operand.shape[:-1], dtype=np.int64)
        place = before.offset + sum((g * s for g, s in zip(grids, before.strides, strict=False)), np.int64(0))
        carried = memory[before.source][place + previous * before.strides[-1]]
        result[part] = ufunc(carried[..., None], result[part])
    return result


def slots_of(
    arguments: Sequence[Argument], memory: Mapping[int, np.ndarray], places: Mapping[int, int] | None = None
) -> bytes:
    """The launch's arguments, 8 bytes each; `places` are the arrays' addresses if they are not their own."""
    addresses = {number: array.ctypes.data for number, array in memory.items()}
    words = []
    for argument in arguments:
        match argument:
            case SlotNumber(value=value):
                words.append(struct.pack("<q", value))
            case SlotPointer(value_number=number, byte_offset=offset):
                words.append(struct.pack("<Q", (places or addresses)[number] + offset))
            case SlotConstant(value_number=number):
                words.append(memory[number][:1].tobytes().ljust(8, b"\0"))
    return b"".join(words)


def run_on_host(plan: KernelPlan, memory: Values, backend: CpuBackend = HOST) -> Values:
    """What the compiled plan leaves in memory."""
    result: Values = {number: aligned(array) for number, array in memory.items()}
    for lowered in lower(plan, backend.target):
        executable = compile_kernel(lowered.kernel, backend)
        words = slots_of(lowered.arguments, result)
        slots = ctypes.create_string_buffer(words, max(8, len(words)))
        executable.launch(ctypes.addressof(slots), lowered.programs, parallel=False)
    return result


def run_as_ptx(plan: KernelPlan, memory: Values, target: Target) -> Values:
    """What the plan's PTX leaves in memory, run on the machine that checks every access."""
    result = {number: array.copy() for number, array in memory.items()}
    for lowered in lower(plan, target):
        result = run_lowered_as_ptx(lowered.kernel, lowered.arguments, lowered.programs, result, target)
    return result


def run_lowered_as_ptx(
    kernel: Kernel, arguments: Sequence[Argument], programs: int, memory: Values, target: Target
) -> Values:
    """What one kernel's PTX leaves in memory."""
    result = {number: array.copy() for number, array in memory.items()}
    places, size = _places(result)
    machine_memory = Memory(size)
    for number, place in places.items():
        raw = result[number].view(np.uint8)
        machine_memory.bytes[place : place + len(raw)] = raw
        machine_memory.exists[place : place + len(raw)] = True
        machine_memory.initialized[place : place + len(raw)] = True
    words = slots_of(arguments, result, places)
    slots = [words[start : start + 8] for start in range(0, len(words), 8)]
    Machine(ptx_of(pipeline.run(kernel, target), target)).run(slots, machine_memory, programs)
    for number, place in places.items():
        raw = result[number].view(np.uint8)
        raw[:] = machine_memory.bytes[place : place + len(raw)]
    return result


def _places(memory: Values) -> tuple[dict[int, int], int]:
    """An aligned address for each array, with memory that does not exist between them."""
    places: dict[int, int] = {}
    place = 4096
    for number, array in memory.items():
        places[number] = place
        place += -(-array.nbytes // 256) * 256 + 256
    return places, place


def compare(expected: Values, found: Values, tolerance: float = 0.0) -> None:
    """Raise AssertionError where memory differs."""
    assert expected.keys() == found.keys()
    for number, wanted in expected.items():
        got = found[number]
        if tolerance == 0.0 or wanted.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted, err_msg=f"value {number}")
        else:
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"value {number}")


def run_in_interpreter(plan: KernelPlan, memory: Values, target: Target) -> Values:
    """What the plan's kernel means: block IR run on NumPy, with all the interpreter's checks."""
    result = {number: array.copy() for number, array in memory.items()}
    for lowered in lower(plan, target):
        interpret(lowered.kernel, _arguments_by_name(lowered.kernel, lowered.arguments, result))
    return result


def _arguments_by_name(
    kernel: Kernel, arguments: Sequence[Argument], memory: Values
) -> dict[str, "int | np.generic | np.ndarray"]:
    waiting = iter(arguments)
    found: dict[str, int | np.generic | np.ndarray] = {}
    pointers: list[tuple[BufferParameter, SlotPointer, list[int]]] = []
    for parameter in kernel.parameters:
        argument = next(waiting)
        match argument:
            case SlotNumber(value=value):
                found[parameter.name] = value
            case SlotConstant(value_number=number):
                found[parameter.name] = memory[number][0]
            case SlotPointer():
                assert isinstance(parameter, BufferParameter)
                strides = [_stride(next(waiting)) if known is None else known for known in parameter.type.strides]
                pointers.append((parameter, argument, strides))
    for parameter, pointer, strides in pointers:
        array = memory[pointer.value_number]
        itemsize = array.itemsize
        first = pointer.byte_offset // itemsize
        names = parameter.type.extents
        if isinstance(names[0], str) and names[0].endswith("_elements"):
            found[names[0]] = len(array) - first
        shape = [extent if isinstance(extent, int) else int(found[extent]) for extent in names]
        found[parameter.name] = as_strided(array[first:], shape, [stride * itemsize for stride in strides])
    return found


def _stride(argument: Argument) -> int:
    assert isinstance(argument, SlotNumber)
    return argument.value


def target_text(plan: KernelPlan, target: Target) -> str:
    """The text of a plan's kernels for a target."""
    return "\n".join(print_kernel(lowered.kernel) for lowered in lower(plan, target))
