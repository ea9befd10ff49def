"""Instructions of tensor cores for `ptx_machine`: asynchronous copies, ``ldmatrix``, ``mma.sync``.

Copies happen at once: what the machine shows of them is that a barrier stands between a copy and those who read it.
"""

import re
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from ptx_machine import Instruction, Lanes, Machine

WARP = 32
_KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def copy_async(machine: "Machine", instruction: "Instruction", lanes: "Lanes") -> None:
    """``cp.async``: bytes from global to shared memory, zeros behind those that the source has."""
    if instruction.opcode[2] in ("commit_group", "wait_group"):
        return
    target, source, size, valid = instruction.operands
    count = machine._read(valid, lanes, np.uint32).astype(int)
    rows = np.zeros((len(lanes), int(size)), np.uint8)
    addresses = machine._address(source, lanes)
    for place in range(0, int(size), 2):
        chosen = count > place
        if chosen.any():
            part = machine._global.load(addresses[chosen] + place, lanes[chosen], 2, instruction.text)
            rows[chosen, place : place + 2] = part
    if (machine._address(target, lanes) % int(size)).any() or (addresses[count > 0] % int(size)).any():
        raise ValueError(f"{instruction.text}: misaligned")
    machine._shared.store(machine._address(target, lanes), lanes, rows, instruction.text)


def load_matrices(machine: "Machine", instruction: "Instruction", lanes: "Lanes") -> None:
    """``ldmatrix``: four 8 x 8 matrices, whose rows lie where the lanes say."""
    _whole_warps(instruction, lanes)
    names = re.findall(r"%\w+", instruction.operands[0])
    place = re.sub(r"\s", "", "".join(instruction.operands[1:]))
    rows = machine._shared.load(machine._address(place, lanes), lanes, 16, instruction.text).view(np.uint16)
    for warp in range(0, len(lanes), WARP):
        for number, name in enumerate(names):
            matrix = rows[warp + 8 * number : warp + 8 * number + 8]
            if "trans" in instruction.opcode:
                matrix = matrix.T
            words = np.ascontiguousarray(matrix).view(np.uint32).reshape(WARP)
            machine._write(name, lanes[warp : warp + WARP], words)


def multiply_matrices(machine: "Machine", instruction: "Instruction", lanes: "Lanes") -> None:
    """``mma.sync.m16n8k16``, accumulated in float32."""
    _whole_warps(instruction, lanes)
    kind = _KINDS[instruction.opcode[-2]]
    targets, a, b, c = (re.findall(r"%\w+", group) for group in instruction.operands)
    for start in range(0, len(lanes), WARP):
        warp = lanes[start : start + WARP]
        left = np.block(
            [[_matrix(machine, a[0], warp, kind), _matrix(machine, a[2], warp, kind)],
             [_matrix(machine, a[1], warp, kind), _matrix(machine, a[3], warp, kind)]]
        )  # fmt: skip
        right = np.concatenate([_matrix(machine, name, warp, kind) for name in b], axis=1)
        product = left.astype(np.float32) @ right.astype(np.float32).T
        lane = np.arange(WARP)
        for number, name in enumerate(targets):
            part = product[lane // 4 + 8 * (number // 2), 2 * (lane % 4) + number % 2]
            machine._write(name, warp, machine._read(c[number], warp, np.float32) + part)


def _matrix(machine: "Machine", name: str, warp: "Lanes", kind: type) -> np.ndarray:
    """An 8 x 8 matrix from a register of two neighbours in each lane."""
    return machine._read(name, warp, np.uint32).astype(np.uint32).view(kind).reshape(8, 8)


def _whole_warps(instruction: "Instruction", lanes: "Lanes") -> None:
    if len(lanes) % WARP or (lanes.reshape(-1, WARP)[:, 0] % WARP).any():
        raise ValueError(f"{instruction.text}: not all lanes of a warp take part")


TENSOR_INSTRUCTIONS = {"cp": copy_async, "ldmatrix": load_matrices, "mma": multiply_matrices}
