"""Tensor maps of a launch: what tells the copy engine where a buffer lies, made from the slots and kept while they stay the same."""

import ctypes
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from codegen.ir.kernel import BufferParameter, Kernel
from codegen.targets.nvptx.device import Device
from codegen.targets.nvptx.launch_plan import TensorMap

_KEPT = 64
SLOT_BYTES = 8
_LARGEST_EXTENT = 2**32 - 1


@dataclass(frozen=True)
class MapSlots:
    """Where a tensor map's numbers lie among the slots.

    Attributes
    ----------
    pointer : int
        Slot of the address.
    extents : tuple of int
        For each axis the slot of its extent, or ``~number`` for one that is known.
    strides : tuple of int
        The same of the strides, in elements, for each axis but the first.
    box : tuple of int
    itemsize : int
    dtype : str
    """

    pointer: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    itemsize: int
    dtype: str


def map_slots(kernel: Kernel, map_: TensorMap) -> MapSlots:
    """The slots that a tensor map of a kernel is made from."""
    first_slot: dict[str, int] = {}
    slot = 0
    for parameter in kernel.parameters:
        first_slot[parameter.name] = slot
        slot += 1
        if isinstance(parameter, BufferParameter):
            slot += parameter.type.strides.count(None)
    type_ = map_.parameter.type
    pointer = first_slot[map_.parameter.name]
    stride_slots: list[int] = []
    following = pointer + 1
    for stride in type_.strides:
        stride_slots.append(following if stride is None else ~stride)
        following += stride is None
    extents = [~extent if isinstance(extent, int) else first_slot[extent] for extent in type_.extents]
    return MapSlots(
        pointer,
        tuple(extents[axis] for axis in map_.axes),
        tuple(stride_slots[axis] for axis in map_.axes[1:]),
        map_.box,
        type_.dtype.itemsize,
        type_.dtype.name,
    )


class LaunchMaps:
    """The tensor maps of one bound launch.

    Parameters
    ----------
    device : Device
    slots_address : int
        Of the first slot.
    maps : sequence of MapSlots
    name : str
        Of the kernel, for messages.
    """

    def __init__(
        self, device: Device, slots_address: int, slot_count: int, maps: Sequence[MapSlots], name: str
    ) -> None:
        self._device = device
        self._slots = slots_address
        self._bytes = SLOT_BYTES * slot_count
        self._maps = maps
        self._name = name
        self._made: OrderedDict[bytes, tuple[list[int], list[object]]] = OrderedDict()

    def addresses(self) -> list[int]:
        """Addresses of the maps for what the slots hold now; the maps live until this has been called many times again."""
        key = ctypes.string_at(self._slots, self._bytes)
        found = self._made.get(key)
        if found is None:
            made = [self._encode(map_) for map_ in self._maps]
            found = self._made[key] = [int(one.getPtr()) for one in made], made  # type: ignore[attr-defined]
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return found[0]

    def _number(self, slot: int) -> int:
        return ~slot if slot < 0 else ctypes.c_int64.from_address(self._slots + SLOT_BYTES * slot).value

    def _encode(self, map_: MapSlots) -> object:
        bindings = self._device.driver.bindings
        rank, pointer = len(map_.extents), self._number(map_.pointer)
        extents, strides = map(self._number, map_.extents), map(self._number, map_.strides)
        kinds = bindings.CUtensorMapDataType
        kind = {
            "float16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            "bfloat16": kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        }.get(map_.dtype, kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16)
        # An axis without elements is gone along by no turn of the loop; the driver wants one all the same.
        sizes = [bindings.cuuint64_t(min(max(extent, 1), _LARGEST_EXTENT)) for extent in extents]
        steps = [bindings.cuuint64_t(stride * map_.itemsize) for stride in strides]
        return self._device.call(
            f"tensor map of {self._name}",
            "cuTensorMapEncodeTiled",
            kind,
            rank,
            pointer,
            sizes,
            steps,
            [bindings.cuuint32_t(size) for size in map_.box],
            [bindings.cuuint32_t(1)] * rank,
            bindings.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            bindings.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            bindings.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
