"""PTX that ptxas takes on three generations, without spills, with the accesses and folds that it should have."""

import importlib.util
import re
import subprocess
from pathlib import Path

import emitted
import pytest

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, Value
from codegen.ir.layout import Layout
from codegen.targets.nvptx.description import nvptx_target

GENERATIONS = ("sm_80", "sm_90a", "sm_100a")


def find_ptxas() -> Path | None:
    """The assembler in the nvidia-cuda-nvcc wheel."""
    namespace = importlib.util.find_spec("nvidia")
    for folder in namespace.submodule_search_locations if namespace else ():
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return found
    return None


PTXAS = find_ptxas()
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed: pip install nvidia-cuda-nvcc")


def assemble(text: str, cpu: str, folder: Path) -> str:
    """What ptxas says of a module."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [str(PTXAS), "-v", f"-arch={cpu}", str(source), "-o", str(folder / "kernel.cubin")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, f"{result.stderr}\n{text}"
    return result.stderr


def elementwise_kernel(dtype: DType, run: int, aligned: bool, peeled: bool = False) -> Kernel:
    builder = Builder()
    block = 128 * run * 2
    count = IndexParameter("count", divisible=run if aligned else 1)
    alignment = 16 if aligned else dtype.itemsize
    x = emitted.buffer("x", dtype, ("count",), (1,), alignment=alignment)
    y = emitted.buffer("y", dtype, ("count",), (1,), alignment=alignment)
    out = emitted.buffer("out", dtype, ("count",), (1,), written=True, alignment=alignment)
    start = builder.map("multiply", builder.program_index(0), builder.index(block))

    def body(checked: bool) -> tuple[Value, ...]:
        operands = [builder.load(buffer.value, (start,), (block,), (checked,)) for buffer in (x, y)]
        total = builder.map("multiply", builder.map("add", *operands), operands[0])
        builder.store(out.value, (start,), builder.map("maximum", total, operands[1]), (checked,))
        return ()

    if peeled:
        end = builder.map("add", start, builder.index(block))
        builder.branch(builder.map("less_equal", end, count.value), lambda: body(False), lambda: body(True))
    else:
        body(True)
    return builder.kernel("elementwise", (count, x, y, out), (GridAxis("count", block),), Layout((128,), (run,)))


def rows_kernel(dtype: DType, layout: Layout, tile: tuple[int, int], function: str = "add") -> Kernel:
    builder = Builder()
    rows, columns = IndexParameter("rows"), IndexParameter("columns", divisible=16)
    x = emitted.buffer("x", dtype, ("rows", "columns"), (None, 1), alignment=16)
    out = emitted.buffer("out", dtype, ("rows", "columns"), (None, 1), written=True, alignment=16)
    totals = emitted.buffer("totals", dtype, ("rows", "columns"), (1, 0), written=True)
    row = builder.map("multiply", builder.program_index(0), builder.index(tile[0]))
    zero = builder.index(0)
    value = builder.load(x.value, (row, zero), tile)
    (total,) = builder.reduce(function, [value], 1)
    difference = builder.map("subtract", value, builder.broadcast(total, tile))
    (squares,) = builder.reduce("add", [builder.map("multiply", difference, difference)], 1)
    builder.store(out.value, (row, zero), builder.map("multiply", difference, builder.broadcast(squares, tile)))
    builder.store(totals.value, (row, zero), squares, (True, False))
    return builder.kernel("rows", (rows, columns, x, out, totals), (GridAxis("rows", tile[0]),), layout)


KERNELS = {
    "float32": elementwise_kernel(dtypes.float32, 4, True),
    "float32 unaligned": elementwise_kernel(dtypes.float32, 4, False),
    "float32 peeled": elementwise_kernel(dtypes.float32, 4, False, peeled=True),
    "float16": elementwise_kernel(dtypes.float16, 8, True),
    "bfloat16": elementwise_kernel(dtypes.bfloat16, 8, True),
    "uint8": elementwise_kernel(dtypes.uint8, 16, True),
    "float64": elementwise_kernel(dtypes.float64, 2, True),
    "rows by block": rows_kernel(dtypes.float32, Layout((1, 256), (1, 4)), (1, 4096)),
    "rows by warp": rows_kernel(dtypes.float32, Layout((4, 32), (1, 4)), (4, 256)),
    "rows float64": rows_kernel(dtypes.float64, Layout((1, 128), (1, 2)), (1, 2048)),
    "rows int16": rows_kernel(dtypes.int16, Layout((1, 128), (1, 8)), (1, 2048), "maximum"),
}


@needs_ptxas
@pytest.mark.parametrize("name", KERNELS)
def test_ptxas_takes_it_without_spills(name: str, tmp_path: Path) -> None:
    for cpu in GENERATIONS:
        said = assemble(emitted.ptx_of(KERNELS[name], nvptx_target(cpu)), cpu, tmp_path)
        assert "0 bytes spill stores, 0 bytes spill loads" in said, said
        assert int(re.search(r"Used (\d+) registers", said).group(1)) <= 128


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "uint8", "float64", "rows by block"])
def test_neighbours_move_sixteen_bytes_at_once(name: str) -> None:
    text = emitted.ptx_of(KERNELS[name])
    loads = re.findall(r"ld\.global\.nc\.(v\d\.)?(\w\d+)", text)
    stores = [found for found in re.findall(r"st\.global\.(v\d\.)?(\w\d+)", text) if found[0]]
    assert loads and stores
    for several, kind in loads + stores:
        assert int(several[1:2] or 1) * int(kind[1:]) == 128, text


def test_no_function_is_called() -> None:
    for kernel in KERNELS.values():
        text = emitted.ptx_of(kernel)
        assert "call" not in text
        assert ".local" not in text


def test_lanes_that_hold_copies_do_not_store() -> None:
    text = emitted.ptx_of(KERNELS["rows by block"])
    assert re.search(r"@%p\d+ st\.global\.b32", text)


def test_a_fold_across_warps_takes_one_barrier() -> None:
    text = emitted.ptx_of(KERNELS["rows by block"])
    assert text.count("bar.sync") == 2
    assert emitted.ptx_of(KERNELS["rows by warp"]).count("bar.sync") == 0


def test_memory_that_may_be_written_is_not_read_through_the_constant_path() -> None:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (64,), (1,), restrict=False)
    out = emitted.buffer("out", dtypes.float32, (64,), (1,), written=True, restrict=False)
    zero = builder.index(0)
    builder.store(out.value, (zero,), builder.load(x.value, (zero,), (64,), (False,)), (False,))
    kernel = builder.kernel("copy", (x, out), (GridAxis(1),), Layout((32,), (2,)))
    text = emitted.ptx_of(kernel)
    assert "ld.global" in text
    assert ".nc" not in text


@needs_ptxas
@pytest.mark.parametrize("cpu", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("lanes", [2048, 8192])
def test_rows_of_several_blocks(cpu: str, lanes: int, tmp_path: Path) -> None:
    kernel = rows_kernel(dtypes.float32, Layout((1, lanes), (1, 4)), (1, 32 * lanes))
    text = emitted.ptx_of(kernel, nvptx_target(cpu))
    assert re.search(rf"\.reqnctapercluster {lanes // 1024}\b", text)
    assert "bar.sync" not in text
    assert "st.shared::cluster" in text
    said = assemble(text, cpu, tmp_path)
    assert "0 bytes spill stores" in said


def test_generations_without_clusters_refuse_programs_of_several_blocks() -> None:
    kernel = rows_kernel(dtypes.float32, Layout((1, 2048), (1, 4)), (1, 65536))
    with pytest.raises(InternalCompilerError, match="2048 lanes in a program, but sm_80 has at most 1024"):
        emitted.ptx_of(kernel, nvptx_target("sm_80"))


def test_what_is_needed_behind_a_barrier_is_loaded_there() -> None:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (4096,), (1,), alignment=16)
    scale = emitted.buffer("scale", dtypes.float32, (4096,), (1,), alignment=16)
    out = emitted.buffer("out", dtypes.float32, (4096,), (1,), written=True, alignment=16)
    zero = builder.index(0)
    value = builder.load(x.value, (zero,), (4096,), (False,))
    (total,) = builder.reduce("add", [value], 0)
    factor = builder.load(scale.value, (zero,), (4096,), (False,))
    scaled = builder.map("multiply", builder.map("divide", value, builder.broadcast(total, (4096,))), factor)
    builder.store(out.value, (zero,), scaled, (False,))
    kernel = builder.kernel("scaled", (x, scale, out), (GridAxis(1),), Layout((256,), (4,)))
    before, behind = emitted.ptx_of(kernel).split("bar.sync")
    assert len(re.findall(r"ld\.global\.nc\S*\.v4", before)) == 4
    assert len(re.findall(r"ld\.global\.v4", behind)) == 4
    # one after the other, each with what is computed from it
    first_store = behind.index("st.global")
    assert len(re.findall(r"ld\.global\.v4", behind[:first_store])) == 1
