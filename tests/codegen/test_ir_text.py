"""The text form: what it says, that it says all that decides code, and what is told about text that is wrong."""

import math
from dataclasses import replace

import pytest
from ir_texts import kernel_of, text_of

from codegen import dtypes
from codegen.errors import VerificationError
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel, ScalarParameter
from codegen.ir.layout import Layout
from codegen.ir.location import Location
from codegen.ir.operations import OPERATIONS
from codegen.ir.parser import ParseError, parse
from codegen.ir.printer import number_text, print_kernel, print_operation
from codegen.ir.types import BufferType

SCALE = """\
kernel scale(
  n: index divisible 16
  factor: scalar float32
  x: buffer float32[n] strides (?) align 64
  y: buffer float32[n] strides (1) align 64 written aliased
) grid (n by 16) layout lanes 1 run 1 register 16 {
  %row: int64 = program_index axis=0
  %0: int64 = constant dtype=int64 number=16 shape=()
  %begin: int64 = map multiply %row, %0
  %1: float32[16] = load %x, %begin shape=(16) checked=(true) fill=0
  %2: float32[16] = broadcast %factor shape=(16)
  %3: float32[16] = map multiply %1, %2
  store %y, %begin, %3 checked=(true)
}
"""


def scale(location: Location | None = None) -> Kernel:
    n, factor = IndexParameter("n", 16), ScalarParameter("factor", dtypes.float32)
    x = BufferParameter("x", BufferType(dtypes.float32, ("n",), (None,), 64))
    y = BufferParameter("y", BufferType(dtypes.float32, ("n",), (1,), 64), written=True, restrict=False)
    builder = Builder()
    builder.location = location
    begin = builder.map("multiply", builder.program_index(0, "row"), builder.index(16), name="begin")
    value = builder.load(x.value, [begin], (16,))
    builder.store(y.value, [begin], builder.map("multiply", value, builder.broadcast(factor.value, (16,))))
    return builder.kernel("scale", (n, factor, x, y), (GridAxis("n", 16),), Layout((1,), (1,), 16))


def test_text_of_a_kernel() -> None:
    assert print_kernel(scale()) == SCALE


def test_locations_are_not_in_the_text() -> None:
    assert print_kernel(scale(Location("model.py", 3))) == SCALE


def test_text_of_an_operation_in_a_message() -> None:
    assert print_operation(scale().body.operations[3]) == (
        "%0: float32[16] = load %x, %begin shape=(16) checked=(true) fill=0"
    )


ALL_OPERATIONS = """\
kernel everything(
  n: index
  x: buffer float32[n, 4] strides (4, 1) align 16
  p: buffer int64[] strides () align 8
  y: buffer float32[n, 4] strides (-4, 1) align 16 written
) grid (n by 4, 1 by 1) layout lanes 1x1 run 1x1 register 4 {
  %0: int64 = constant dtype=int64 number=0 shape=()
  %1: float32[4, 4] = constant dtype=float32 number=-0.0 shape=(4, 4)
  %2: int64[4, 4] = iota shape=(4, 4) axis=1
  %3: float32[4, 4] = cast %2 dtype=float32
  %4: int64 = program_index axis=1
  %k: buffer float32[4, 4] strides (4, 1) align 16 = allocate dtype=float32 shape=(4, 4)
  store %k, %0, %0, %3 checked=(false, false)
  %5: float32[4, 4] = gather %x, %2, %2 checked=true fill=nan
  %6: float32[4, 4] = dot %1, %3, %5
  %d: float32[4, 4] = dot_loop %0, %n, %6, %x, %0, %k, %0 step=4 a_shape=(4, 4) b_shape=(4, 4) instruction=mma
  %7: float32[4, 1] = reduce add %6 axis=1
  %8: float32[4, 4], %9: float32[4, 1] = scan maximum %6 axis=1
  %q: int64 = load %p shape=() checked=() fill=0
  %r: float32[4, 1] = reshape %7 shape=(4, 1)
  %s: float32[4, 4], %t: float32[4, 4] = for %0, %n, %8, %6 step=2 (%i: int64, %s.2: float32[4, 4], %t.2: float32[4, 4]) {
    %10: bool = map less %i, %n
    %11: float32[4, 4] = if %10 {
      yield %t.2
    } else {
      %12: float32[4, 4] = broadcast %9 shape=(4, 4)
      yield %12
    }
    yield %11, %s.2
  }
  scatter %y, %2, %2, %s
}
"""


def test_text_of_all_operations_reads_back() -> None:
    assert print_kernel(parse(ALL_OPERATIONS)) == ALL_OPERATIONS
    assert all(f" {name} " in ALL_OPERATIONS for name in OPERATIONS)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (True, "true"),
        (3, "3"),
        (2**63, "9223372036854775808"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (5e-324, "5e-324"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (math.copysign(math.nan, -1.0), "-nan"),
    ],
)
def test_numbers_are_exact(number: float, text: str) -> None:
    assert number_text(number) == text
    if number is True or number == 2**63:
        return
    line = f"%w: float64[16] = constant dtype=float64 number={text} shape=(16)"
    constant = kernel_of(line).body.operations[-1]
    assert number_text(constant.number) == text  # type: ignore[attr-defined]


def test_hexadecimal_floats_are_read() -> None:
    constant = kernel_of("%w = constant dtype=float32 number=-0x1.8p+1 shape=(16)").body.operations[-1]
    assert constant.number == -3.0  # type: ignore[attr-defined]


CHANGES = [
    ("name", lambda kernel: replace(kernel, name="scale2")),
    ("grid block", lambda kernel: replace(kernel, grid=(GridAxis("n", 32),))),
    ("grid extent", lambda kernel: replace(kernel, grid=(GridAxis(64, 16),))),
    ("lanes", lambda kernel: replace(kernel, layout=Layout((2,), (1,), 16))),
    ("run", lambda kernel: replace(kernel, layout=Layout((1,), (2,), 16))),
    ("register", lambda kernel: replace(kernel, layout=Layout((1,), (1,), 8))),
    ("divisible", lambda kernel: _with(kernel, 0, IndexParameter("n", 8))),
    ("scalar", lambda kernel: _with(kernel, 1, ScalarParameter("factor", dtypes.float64))),
    ("alignment", lambda kernel: _with_buffer(kernel, alignment=32)),
    ("stride", lambda kernel: _with_buffer(kernel, strides=(1,))),
    ("extent", lambda kernel: _with_buffer(kernel, extents=(64,))),
    ("dtype", lambda kernel: _with_buffer(kernel, dtype=dtypes.int32)),
    ("written", lambda kernel: _with(kernel, 3, BufferParameter("y", kernel.parameters[3].type, False, False))),
    ("restrict", lambda kernel: _with(kernel, 3, BufferParameter("y", kernel.parameters[3].type, True, True))),
    ("checked", lambda kernel: _with_attribute(kernel, 3, checked=(False,))),
    ("fill", lambda kernel: _with_attribute(kernel, 3, fill=0.0)),
    ("function", lambda kernel: _with_attribute(kernel, 5, function="add")),
    ("number", lambda kernel: _with_attribute(kernel, 1, number=17)),
]


def _with(kernel: Kernel, position: int, parameter: object) -> Kernel:
    parameters = list(kernel.parameters)
    parameters[position] = parameter
    return replace(kernel, parameters=tuple(parameters))


def _with_buffer(kernel: Kernel, **changes: object) -> Kernel:
    old = kernel.parameters[2]
    return _with(kernel, 2, BufferParameter("x", replace(old.type, **changes)))


def _with_attribute(kernel: Kernel, position: int, **changes: object) -> Kernel:
    operations = list(kernel.body.operations)
    operations[position] = replace(operations[position], **changes)
    return replace(kernel, body=replace(kernel.body, operations=tuple(operations)))


@pytest.mark.parametrize(("what", "change"), CHANGES, ids=[what for what, _ in CHANGES])
def test_what_decides_code_is_in_the_text(what: str, change: object) -> None:
    assert print_kernel(change(scale())) != SCALE


def test_hand_written_text_is_numbered_anew() -> None:
    text = """
# Types of results may be left out.
kernel scale(
  n: index divisible 16
  factor: scalar float32
  x: buffer float32[n] strides (?) align 64
  y: buffer float32[n] strides (1) align 64 written aliased
) grid (n by 16) layout lanes 1 run 1 register 16 {

  %row = program_index axis=0
  %7 = constant dtype=int64 number=16 shape=()
  %begin = map multiply %row, %7
  %3 = load %x, %begin shape=(16) checked=(true) fill=0
  %2 = broadcast %factor shape=(16)
  # The product.
  %5 = map multiply %3, %2
  store %y, %begin, %5 checked=(true)
}
"""
    assert print_kernel(parse(text)) == SCALE


ERRORS = [
    ("%w = map sine %v", "no row of the scalar table is called 'sine'", "map"),
    ("%w = mop add %v, %v", "no operation is called `mop`; there are constant, iota", "mop"),
    ("%w = map add %v, %u", "%u is not defined before this line", "%u"),
    ("%v = map add %v, %v", "%v is defined twice", "%v ="),
    ("%w = map add %v", "expected 2 operands, found 1", "map"),
    (
        "%w = load %x, %place shape=(16) checkd=(true)",
        "`load` has no further attribute `checkd`; it has shape",
        "checkd",
    ),
    ("%w = load %x, %place shape=(16)", "`load` lacks attributes: checked", "load"),
    ("%w = load %x, %place shape=16) checked=(true)", "expected the end of the line, found `) checked", ")"),
    ("%w: float64[16] = map add %v, %v", "%w is stated as float64[16], but the result is float32[16]", "%w"),
    ("%w, %u = map add %v, %v", "`map` has 1 results, but 2 are named", "map"),
    ("%w = cast %v dtype=float31", "no dtype is called 'float31'", "float31"),
    ("%w = cast %v dtype=float64 extra", "`cast` has no further attribute `extra`", "extra"),
    ("%w = map add %v, 3", "expected a value such as %sum or %0, found `3`", "3"),
    ("for %zero, %n step=4 (%i, %j) {\n}", "expected 1 body parameters, found 2", "%i"),
    ("yield %v", "a kernel yields nothing", None),
]


@pytest.mark.parametrize(("body", "message", "at"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_point_at_their_place(body: str, message: str, at: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        kernel_of(body)
    problem, line, caret = str(caught.value).split("\n")
    assert message in problem
    if at is not None:
        assert problem.startswith("line 14: ")
        assert line.removeprefix("  ") == body.split("\n")[0]
        assert caret.index("^") == line.index(at)


def test_text_that_ends_too_early() -> None:
    with pytest.raises(ParseError, match="line 13: expected more lines, found the end of the text"):
        parse(text_of("").removesuffix("}\n").rstrip())
    with pytest.raises(ParseError, match="found the end of the text"):
        parse("")


def test_more_than_one_kernel() -> None:
    with pytest.raises(ParseError, match="expected one kernel, found more text"):
        parse(SCALE + SCALE)


def test_parsed_kernels_are_verified() -> None:
    with pytest.raises(VerificationError, match="expected a buffer parameter that is `written`"):
        kernel_of("store %x, %place, %v checked=(true)")
