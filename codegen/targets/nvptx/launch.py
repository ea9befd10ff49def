"""Launches: the arguments are read from the slots through an array of pointers that is made once."""

import ctypes
import weakref
from collections.abc import Sequence

from codegen.errors import TargetError
from codegen.targets.backend import BoundLaunch, Launcher
from codegen.targets.nvptx.device import Device
from codegen.targets.nvptx.launch_plan import LaunchPlan
from codegen.targets.nvptx.tensor_maps import SLOT_BYTES, LaunchMaps, MapSlots

GRID_X = 2**31 - 1
GRID_Y = 65535
"""Most thread blocks along the first and the second axis of a grid (CUDA programming guide)."""

_OTHER_CONTEXT = frozenset({201, 400, 709})
"""Invalid context, invalid handle, destroyed context: what a launch says in a thread where another context, or none,
is current. Rather than ask before each launch, set the context and try again when it says so."""


def grid_of(programs: int, blocks: int = 1) -> tuple[int, int]:
    """Thread blocks along both axes for so many programs of `blocks` each; those from number `programs` on do nothing.

    The linear number of a program is ``(blockIdx.y * gridDim.x + blockIdx.x) // blocks``.
    """
    most = GRID_X // blocks
    if programs <= most:
        return programs * blocks, 1
    rows = -(-programs // most)
    if rows > GRID_Y:
        raise TargetError(
            f"launch: {programs} programs were asked for, a GPU has at most {most * GRID_Y}; use larger blocks"
        )
    # As even as possible, so that fewer than `rows` programs have nothing to do.
    return -(-programs // rows) * blocks, rows


def parameter_pointers(slots_address: int, slot_count: int) -> ctypes.Array[ctypes.c_void_p]:
    """The driver's view of the arguments: one pointer to each slot."""
    addresses = [slots_address + SLOT_BYTES * slot for slot in range(slot_count)]
    return (ctypes.c_void_p * max(1, slot_count))(*addresses)


class DeviceLauncher(Launcher):
    """A kernel loaded on a GPU.

    Parameters
    ----------
    device : Device
    module : object
        The loaded module, unloaded when the launcher is gone.
    function : object
        Handle of the entry point (``CUfunction``).
    name : str
        Of the kernel, for messages.
    slot_count : int
    plan : LaunchPlan
        Threads and shared memory.
    maps : sequence of MapSlots
        Tensor maps, which follow the slots among the arguments.
    """

    def __init__(
        self,
        device: Device,
        module: object,
        function: object,
        name: str,
        slot_count: int,
        plan: LaunchPlan,
        maps: Sequence[MapSlots] = (),
    ) -> None:
        self._device = device
        self._function = function
        self._name = name
        self._slot_count = slot_count
        self._plan = plan
        self._maps = maps
        if plan.dynamic_shared_bytes:
            attribute = device.driver.bindings.CUfunction_attribute
            device.call(
                f"ask for shared memory for {name}",
                "cuFuncSetAttribute",
                function,
                attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                plan.dynamic_shared_bytes,
            )
        # Not at exit: the driver may be gone by then, and everything with it.
        weakref.finalize(self, device.unload, module).atexit = False

    @property
    def function(self) -> object:
        """Handle of the entry point (``CUfunction``)."""
        return self._function

    def bind(self, slots_address: int) -> BoundLaunch:
        """Prepare launches with the slots at `slots_address`; see `Launcher.bind`."""
        if self._plan.ring is not None:
            return self._bind_ring(slots_address)
        driver, device, function, lanes = self._device.driver, self._device, self._function, self._plan.threads
        shared, blocks = self._plan.dynamic_shared_bytes, self._plan.blocks
        most_in_a_row = GRID_X // blocks
        # Called without `Driver.call`, with all handles as cuda-python's own objects: 0.35 microseconds on top of the
        # driver's work, where ctypes takes 1 (benchmarks/launch_overhead.py shows both).
        launch, success = driver.bindings.cuLaunchKernel, driver.bindings.CUresult.CUDA_SUCCESS
        stream = driver.bindings.CUstream(device.stream)
        pointers = parameter_pointers(slots_address, self._slot_count)
        address = ctypes.addressof(pointers)

        def run(programs: int, parallel: bool = True) -> None:
            if programs > most_in_a_row:
                columns, rows = grid_of(programs, blocks)
            elif programs > 0:
                columns, rows = programs * blocks, 1
            else:
                return
            if driver.forked:
                driver.require_unforked(f"launch {self._name}")
            code = launch(function, columns, rows, 1, lanes, 1, 1, shared, stream, address, 0)[0]
            if code == success:
                return
            if int(code) in _OTHER_CONTEXT:
                device.activate()
                code = launch(function, columns, rows, 1, lanes, 1, 1, shared, stream, address, 0)[0]
            if code != success:
                raise driver.error(f"launch {self._name} on {device.name}, {programs} programs", int(code))

        # The driver reads the array at each launch: it must live as long as the function. So must the module, which
        # `self` keeps.
        run.pointers = pointers  # type: ignore[attr-defined]
        return run

    def _bind_ring(self, slots_address: int) -> BoundLaunch:
        """Launches of thread blocks that stay: one for each multiprocessor, or as many as there are tiles."""
        device, driver = self._device, self._device.driver
        launch, success = driver.bindings.cuLaunchKernel, driver.bindings.CUresult.CUDA_SUCCESS
        stream = driver.bindings.CUstream(device.stream)
        maps = LaunchMaps(device, slots_address, self._slot_count, self._maps, self._name)
        pointers = parameter_pointers(slots_address, self._slot_count + len(self._maps))
        address, first_map = ctypes.addressof(pointers), self._slot_count
        threads, shared, blocks = self._plan.threads, self._plan.dynamic_shared_bytes, device.target.cores
        ring, function = self._plan.ring, self._function
        together, sharers = (ring.together, ring.sharers) if ring is not None else (1, 1)
        blocks -= blocks % together

        def run(programs: int, parallel: bool = True) -> None:
            if programs <= 0:
                return
            if programs * sharers > GRID_X:
                raise TargetError(
                    f"launch {self._name}: {programs} tiles were asked for, expected at most {GRID_X}; multiply fewer "
                    "matrices at a time"
                )
            driver.require_unforked(f"launch {self._name}")
            for position, place in enumerate(maps.addresses()):
                pointers[first_map + position] = place
            grid = programs * sharers if sharers > 1 else min(-(-programs // together) * together, blocks)
            code = launch(function, grid, 1, 1, threads, 1, 1, shared, stream, address, 0)[0]
            if int(code) in _OTHER_CONTEXT:
                device.activate()
                code = launch(function, grid, 1, 1, threads, 1, 1, shared, stream, address, 0)[0]
            if code != success:
                raise driver.error(f"launch {self._name} on {device.name}, {programs} programs", int(code))

        run.kept = (pointers, self)  # type: ignore[attr-defined]
        return run
