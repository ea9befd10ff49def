"""What stands between text and machine code: declarations, symbols, and the code's shape on the host."""

import re
from dataclasses import replace

import emitted
import pytest

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, Value
from codegen.ir.layout import Layout
from codegen.llvm.module import Module, check_declarations, undefined_symbols
from codegen.targets.cpu.description import describe_host, host_target

HOST = host_target()
TRIPLE = f'target triple = "{HOST.triple}"\n'
AVX512 = ("sse4.1", "avx", "avx2", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl")


@pytest.mark.parametrize("name", ["llvm.exp.v8f32", "llvm.sin.f64", "llvm.pow.f32", "expf", "llvm.fma.f32"])
def test_undeclared_functions_are_refused(name: str) -> None:
    text = TRIPLE + f"declare float @{name}(float)\n"
    without = replace(HOST, functions=HOST.functions - {"fma"})
    with pytest.raises(InternalCompilerError, match=f"kernel k calls {re.escape(name)}, which cpu does not lower"):
        check_declarations(text, without, "k")


def test_a_function_of_the_target_is_allowed() -> None:
    text = TRIPLE + "declare <8 x float> @llvm.floor.v8f32(<8 x float>)\ndeclare i64 @llvm.smin.i64(i64, i64)\n"
    check_declarations(text, replace(HOST, functions=frozenset({"floor"})), "k")
    with pytest.raises(InternalCompilerError, match="llvm.floor.v8f32"):
        check_declarations(text, replace(HOST, functions=frozenset()), "k")


def test_text_that_does_not_parse_names_the_kernel() -> None:
    with pytest.raises(InternalCompilerError, match="the text of kernel k does not parse"):
        Module(TRIPLE + "define void @k() { nonsense }", HOST, "k")


def test_code_that_calls_a_library_is_refused() -> None:
    # LLVM turns frem into fmod, which no declaration shows.
    text = TRIPLE + "define double @k(double %a, double %b) {\n  %r = frem double %a, %b\n  ret double %r\n}\n"
    module = Module(text, HOST, "k")
    module.verify()
    module.optimize()
    with pytest.raises(InternalCompilerError, match="code of kernel k calls fmod"):
        module.object_code()


def test_symbols_of_other_files_are_not_guessed() -> None:
    assert list(undefined_symbols(b"not an object file")) == []


def chain_kernel(dtype: DType, register: int, checked: bool) -> Kernel:
    """Twelve operations over four registers."""
    builder = Builder()
    count = IndexParameter("count")
    block = 4 * register
    x = emitted.buffer("x", dtype, ("count",), (1,))
    y = emitted.buffer("y", dtype, ("count",), (1,))
    out = emitted.buffer("out", dtype, ("count",), (1,), written=True)
    start = builder.map("multiply", builder.program_index(0), builder.index(block))
    value, other = (builder.load(buffer.value, (start,), (block,), (checked,)) for buffer in (x, y))
    for name in ("add", "multiply", "subtract", "multiply", "add", "divide") * 2:
        value = builder.map(name, value, other)
    builder.store(out.value, (start,), value, (checked,))
    return builder.kernel("chain", (count, x, y, out), (GridAxis("count", block),), Layout((1,), (1,), register))


def described(*features: str):
    """An x86-64 processor with these features."""
    return describe_host(HOST.triple, "x86-64", dict.fromkeys(features, True), "x86_64")


needs_x86 = pytest.mark.skipif("x86_64" not in HOST.triple, reason="reads x86-64 assembly")


@needs_x86
@pytest.mark.parametrize(
    ("features", "register", "name"), [(AVX512, 16, "zmm"), (AVX512[:4], 8, "ymm"), ((), 4, "xmm")], ids=str
)
def test_registers_are_as_wide_as_the_machine(features: tuple[str, ...], register: int, name: str) -> None:
    assembly = emitted.host_module(chain_kernel(dtypes.float32, register, False), described(*features)).assembly()
    body = assembly[assembly.index("LBB0_") :]
    operations = re.findall(r"v?(?:add|sub|mul|div)ps\s.*%(\wmm)\d+$", body, re.MULTILINE)
    assert len(operations) == 48
    assert set(operations) == {name}
    assert "call" not in assembly
    assert "(%rsp)" not in assembly


@needs_x86
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_checked_accesses_are_not_taken_apart(dtype: DType) -> None:
    """The edge costs a masked access or one small loop, never a branch for each element."""
    if dtype is dtypes.boolean:
        return
    builder = Builder()
    count = IndexParameter("count")
    x = emitted.buffer("x", dtype, ("count",), (1,))
    out = emitted.buffer("out", dtype, ("count",), (1,), written=True)
    start = builder.map("multiply", builder.program_index(0), builder.index(32))
    builder.store(out.value, (start,), builder.load(x.value, (start,), (32,)))
    kernel = builder.kernel("copy", (count, x, out), (GridAxis("count", 32),), Layout((1,), (1,), 16))
    for features in (AVX512, AVX512[:4], ()):
        assembly = emitted.host_module(kernel, described(*features)).assembly()
        assert len(re.findall(r"^\s+j\w+", assembly, re.MULTILINE)) <= 16
        assert "call" not in assembly


@needs_x86
def test_sums_keep_independent_accumulators() -> None:
    builder = Builder()
    count = IndexParameter("count")
    x = emitted.buffer("x", dtypes.float32, ("count",), (1,))
    out = emitted.buffer("out", dtypes.float32, (1,), (1,), written=True)
    zero = builder.index(0)

    def turn(index: Value, total: Value) -> tuple[Value, ...]:
        return (builder.map("add", total, builder.load(x.value, (index,), (64,), (False,))),)

    (total,) = builder.loop(zero, count.value, 64, [builder.constant(dtypes.float32, 0, (64,))], turn)
    builder.store(out.value, (zero,), builder.reduce("add", [total], 0)[0], (False,))
    kernel = builder.kernel("sum", (count, x, out), (GridAxis(1),), Layout((1,), (1,), 16))
    assembly = emitted.host_module(kernel, described(*AVX512)).assembly()
    accumulators = re.findall(r"vaddps\s+\d*\(.*\), %zmm(\d+), %zmm\1$", assembly, re.MULTILINE)
    assert len(set(accumulators)) == 4


def test_loads_and_stores_of_restricted_buffers_are_told_apart() -> None:
    """LLVM may keep a value that it loaded across a store to another buffer."""
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (1,), (1,))
    out = emitted.buffer("out", dtypes.float32, (2,), (1,), written=True)
    zero, one = builder.index(0), builder.index(1)
    for place in (zero, one):
        builder.store(out.value, (place,), builder.load(x.value, (zero,), (1,), (False,)), (False,))
    kernel = builder.kernel("twice", (x, out), (GridAxis(1),), Layout((1,), (1,), 4))
    text = emitted.host_module(kernel).text()
    assert len(re.findall(r"load float", text)) == 1
