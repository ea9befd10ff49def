"""What the verifier refuses, and what it says: kernel, operation, what was expected and found, place."""

from dataclasses import replace

import pytest
from ir_texts import kernel_of

from codegen import dtypes
from codegen.errors import VerificationError
from codegen.ir.builder import Builder
from codegen.ir.kernel import Body, BufferParameter, GridAxis, IndexParameter, Kernel, Value
from codegen.ir.layout import Layout
from codegen.ir.location import Location
from codegen.ir.operations import Map, Store
from codegen.ir.parser import ParseError
from codegen.ir.types import INDEX, BlockType, BufferType
from codegen.ir.verifier import verify

F32 = dtypes.float32
TILE = BlockType(F32, (16,))


def built(fill, *, parameters=(), grid=(), layout=Layout((1,), (1,), 16), name="example") -> Kernel:
    builder = Builder()
    fill(builder)
    return builder.kernel(name, parameters, grid, layout)


def refused(kernel: Kernel) -> str:
    with pytest.raises(VerificationError) as caught:
        verify(kernel)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%w = constant dtype=uint8 number=256 shape=(16)", "256 does not fit uint8"),
        ("%w = constant dtype=int8 number=-129 shape=(16)", "-129 does not fit int8"),
        ("%w = constant dtype=int8 number=1.5 shape=(16)", "1.5 is no int8"),
        ("%w = constant dtype=int8 number=nan shape=(16)", "nan is no int8"),
        ("%w = constant dtype=bool number=2 shape=(16)", "2 is no bool"),
        ("%w = constant dtype=float32 number=0 shape=(0)", "has an empty axis"),
        ("%w = constant dtype=float32 number=0 shape=(4, 4)", "expected rank 0 or the layout's rank 1"),
        ("%w = constant dtype=float32 number=0 shape=(12)", "axis 0 of the tile has extent 16; 12 does not fit it"),
        ("%w = program_index axis=1", "axis 1 of a grid with 1 axes"),
        ("%w = cast %v dtype=float64\n%u = map add %v, %w", "expected operands of one dtype, found float32, float64"),
        ("%u = map where %v, %v, %v", "expected a bool condition, found float32"),
        ("%u = reduce logical_or %v axis=0", "logical_or of float32 is bool; a fold keeps its dtype"),
        ("%u, %t = scan bitwise_or %v axis=0", "bitwise_or: not defined on operands of dtype float32"),
        (
            "store %x, %place, %v checked=(true)",
            "expected a buffer parameter that is `written`, or memory of the program",
        ),
        ("%w = load %even, %place shape=(16) checked=(true) fill=true\n%u = map bitwise_and %w, %w", "bitwise_and"),
    ],
)
def test_rules_of_operations(body: str, message: str) -> None:
    with pytest.raises((VerificationError, ParseError)) as caught:
        kernel_of(body)
    assert message in str(caught.value)


def test_message_names_kernel_operation_and_place() -> None:
    def fill(builder: Builder) -> None:
        builder.location = Location("model.py", 7)
        builder.constant(dtypes.uint8, 300, (16,))

    assert refused(built(fill)) == (
        "kernel example: `%0: uint8[16] = constant dtype=uint8 number=300 shape=(16)`: 300 does not fit uint8 – model.py:7"
    )


def test_use_before_definition() -> None:
    stray = Value(TILE, "stray")
    kernel = built(lambda builder: builder.map("negative", stray))
    assert "<stray: float32[16]> is used where it is not defined" in refused(kernel)


def test_use_outside_of_the_body_that_defines() -> None:
    def fill(builder: Builder) -> None:
        inner = []
        zero = builder.index(0)
        builder.loop(zero, zero, 1, [], lambda i: inner.append(builder.map("add", i, i)) or ())
        builder.map("add", inner[0], inner[0])

    assert "is used where it is not defined" in refused(built(fill))


def test_value_defined_twice() -> None:
    kernel = built(lambda builder: builder.constant(F32, 1.0, (16,), "one"))
    twice = replace(kernel, body=Body((), kernel.body.operations * 2))
    assert "<one: float32[16]> is defined twice" in refused(twice)


def test_yield_of_an_unknown_value() -> None:
    stray = Value(INDEX, "stray")
    kernel = built(
        lambda builder: builder.branch(builder.constant(dtypes.boolean, True), lambda: [stray], lambda: [stray])
    )
    assert "a body yields <stray: int64>, which is not defined there" in refused(kernel)


def test_stated_types_are_inferred_anew() -> None:
    kernel = built(lambda builder: builder.constant(F32, 1.0, (16,)))
    (constant,) = kernel.body.operations
    wrong = replace(constant, results=(Value(BlockType(dtypes.float64, (16,))),))
    found = refused(replace(kernel, body=Body((), (wrong,))))
    assert "expected results float32[16], found float64[16]" in found


def test_operation_that_is_none_of_the_ir() -> None:
    class Stranger(Map):
        pass

    def fill(builder: Builder) -> None:
        one = builder.constant(F32, 1.0)
        builder.add(Stranger(operands=(one,), function="negative"))

    assert "Stranger is no operation of the IR" in refused(built(fill))


def test_axes_in_lanes_have_powers_of_two() -> None:
    kernel = built(lambda builder: builder.constant(F32, 0.0, (12,)), layout=Layout((4,), (1,)))
    assert "axis 0 lies in lanes; expected a power of two, found 12" in refused(kernel)


def test_memory_of_the_program_is_writable() -> None:
    def fill(builder: Builder) -> None:
        memory = builder.allocate(F32, (16,))
        builder.store(memory, [builder.index(0)], builder.constant(F32, 1.0, (16,)))

    verify(built(fill))


def test_smaller_tiles_that_divide_the_large_one() -> None:
    def fill(builder: Builder) -> None:
        for extent in (16, 64, 32, 1):
            builder.constant(F32, 1.0, (extent,))

    verify(built(fill))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (built(lambda b: None, name="two words"), "the kernel name 'two words' is no ASCII identifier"),
        (
            built(lambda b: None, parameters=[IndexParameter("n"), IndexParameter("n")]),
            "parameter n: the name stands twice",
        ),
        (built(lambda b: None, parameters=[IndexParameter("π")]), "the parameter name 'π' is no ASCII identifier"),
        (built(lambda b: None, parameters=[IndexParameter("n", 0)]), "divisible by 0; expected at least 1"),
        (
            built(lambda b: None, parameters=[BufferParameter("x", BufferType(F32, ("n",), (1,), 4))]),
            "parameter x: the extent n is no index parameter of the kernel",
        ),
        (
            built(lambda b: None, parameters=[BufferParameter("x", BufferType(F32, (-1,), (1,), 4))]),
            "parameter x: the extent -1 is negative",
        ),
        (
            built(lambda b: None, parameters=[BufferParameter("x", BufferType(F32, (4,), (1,), 2))]),
            "alignment 2; expected a power of two, at least the item size 4",
        ),
        (built(lambda b: None, grid=[GridAxis("n", 4)]), "grid axis 0: the extent n is no index parameter"),
        (built(lambda b: None, grid=[GridAxis(4, 0)]), "grid axis 0: 4 by 0; expected a positive block"),
        (
            replace(built(lambda b: None), body=Body((Value(INDEX),), ())),
            "expected a body without parameters and yields",
        ),
    ],
)
def test_rules_of_kernels(kernel: Kernel, message: str) -> None:
    assert message in refused(kernel)


def test_value_names_are_identifiers() -> None:
    kernel = built(lambda builder: builder.constant(F32, 1.0, (16,), "a b"))
    assert "the value name 'a b' is no ASCII identifier" in refused(kernel)


def test_store_with_wrong_operands() -> None:
    kernel = kernel_of("store %y, %place, %v checked=(true)")
    store = kernel.body.operations[-1]
    assert isinstance(store, Store)
    wrong = replace(store, operands=store.operands[:1] + store.operands[2:])
    broken = replace(kernel, body=Body((), (*kernel.body.operations[:-1], wrong)))
    assert "expected 1 offsets, found 0" in refused(broken)
