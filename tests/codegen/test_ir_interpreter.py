"""What operations mean, and the mistakes of kernels that only a run on real numbers shows."""

import ml_dtypes
import numpy as np
import pytest
from ir_texts import kernel_of

from codegen import dtypes
from codegen.ir.builder import Builder
from codegen.ir.interpreter import apply_row, fold, interpret
from codegen.ir.interpreter_memory import InterpretationError
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.ir.types import BufferType

F32 = dtypes.float32


def run(body: str, n: int = 37, m: int = 48) -> np.ndarray:
    """Run a kernel of `ir_texts`; what it leaves in y."""
    arguments = {
        "n": n,
        "m": m,
        "f": 2.0,
        "x": np.arange(n, dtype=np.float32),
        "y": np.full(n, -1, np.float32),
        "even": np.arange(m, dtype=np.float32),
    }
    interpret(kernel_of(body), arguments)
    return arguments["y"]


def stored(lines: str) -> np.ndarray:
    """Run `lines`, which define %w, and store that."""
    return run(lines + "\nstore %y, %place, %w checked=(true)")


X = np.arange(37, dtype=np.float32)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("%w = map add %v, %v", X + X),
        ("%s = broadcast %f shape=(16)\n%w = map multiply %v, %s", X * 2),
        ("%i = iota shape=(16) axis=0\n%w = cast %i dtype=float32", X % 16),
        ("%p = cast %program dtype=float32\n%w = broadcast %p shape=(16)", X // 16),
        ("%t = reduce maximum %v axis=0\n%w = broadcast %t shape=(16)", np.repeat([15, 31, 36], 16)[:37]),
        ("%w, %t = scan add %v axis=0", np.concatenate([np.cumsum(X[k : k + 16]) for k in (0, 16, 32)])),
        ("%c = constant dtype=bool number=true shape=()\n%w = if %c {\nyield %v\n} else {\n%u = map negative %v\nyield %u\n}", X),
        ("%w = for %zero, %tile, %v step=4 (%i, %u) {\n%t = map add %u, %v\nyield %t\n}", X * 5),
        ("%w = for %tile, %zero, %v step=4 (%i, %u) {\n%t = map add %u, %v\nyield %t\n}", X),
        ("%i = iota shape=(16) axis=0\n%w = gather %x, %i checked=true fill=0", np.tile(X[:16], 3)[:37]),
        ("%w = load %x, %zero shape=(16) checked=(true) fill=0", np.tile(X[:16], 3)[:37]),
    ],
)  # fmt: skip
def test_meaning(lines: str, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(stored(lines), expected)


def test_windows_reach_over_both_ends() -> None:
    minus = "%c = constant dtype=int64 number=-3 shape=()\n%o = map add %place, %c\n"
    found = stored(minus + "%w = load %x, %o shape=(16) checked=(true) fill=9")
    np.testing.assert_array_equal(found, np.concatenate([[9, 9, 9], X[:-3]]))
    plus = "%c = constant dtype=int64 number=30 shape=()\n%o = map add %place, %c\n"
    found = stored(plus + "%w = load %x, %o shape=(16) checked=(true) fill=nan")
    np.testing.assert_array_equal(found, np.concatenate([X[30:], np.full(30, np.nan)]))


def test_gather_outside_gives_the_fill() -> None:
    lines = "%i = iota shape=(16) axis=0\n%c = constant dtype=int64 number=-2 shape=(16)\n%j = map add %i, %c\n"
    found = stored(lines + "%w = gather %x, %j checked=true fill=5")
    np.testing.assert_array_equal(found[:4], [5, 5, 0, 1])


def test_scatter_skips_what_is_outside() -> None:
    lines = "%i = iota shape=(16) axis=0\n%o = broadcast %place shape=(16)\n%c = constant dtype=int64 number=35 shape=(16)\n"
    found = run(lines + "%r = map subtract %c, %i\n%j = map subtract %r, %o\nscatter %y, %j, %v")
    np.testing.assert_array_equal(found, np.concatenate([X[:36][::-1], [-1]]))


def test_private_memory() -> None:
    lines = "%k = allocate dtype=float32 shape=(16)\nstore %k, %zero, %v checked=(false)\n"
    found = stored(lines + "%w = load %k, %zero shape=(16) checked=(false) fill=0")
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "%w = load %x, %place shape=(16) checked=(false) fill=0",
            "program 2, `%w: float32[16] = load %x, %place shape=(16) checked=(false) fill=0`: axis 0 is unchecked, "
            "but elements 32 to 48 are not all inside x with extents (37,)",
        ),
        ("store %y, %place, %v checked=(false)", "axis 0 is unchecked, but elements 32 to 48"),
        (
            "%i = iota shape=(16) axis=0\n%o = broadcast %n shape=(16)\n%j = map add %i, %o\n"
            "%w = gather %x, %j checked=false fill=0",
            "an unchecked position is outside of x with extents (37,)",
        ),
        ("store %y, %zero, %v checked=(true)", "program 1, `store %y, %zero, %v checked=(true)`: writes an element of y that program 0 writes too"),
        ("%w = load %y, %zero shape=(16) checked=(true) fill=0\nstore %y, %place, %w checked=(true)", "program 1, `%w: float32[16] = load %y"),
        (
            "%one = constant dtype=int64 number=1 shape=()\n%o = map add %place, %one\n"
            "%w = load %y, %o shape=(16) checked=(true) fill=0\nstore %y, %place, %w checked=(true)",
            "writes an element of y that program 0 reads",
        ),
        ("%j = constant dtype=int64 number=3 shape=(16)\nscatter %y, %j, %v", "writes one element of y more than once"),
        ("%k = allocate dtype=float32 shape=(32)\n%w = load %k, %zero shape=(16) checked=(true) fill=0", "reads elements of k that were never written"),
        (
            "%k = allocate dtype=float32 shape=(16)\n%c = map less %program, %tile\nif %c {\n} else {\nstore %k, %zero, %v checked=(true)\n}\n"
            "%w = load %k, %zero shape=(16) checked=(true) fill=0",
            "reads elements of k that were never written",
        ),
    ],
)  # fmt: skip
def test_mistakes_of_kernels(lines: str, message: str) -> None:
    with pytest.raises(InterpretationError) as caught:
        run(lines)
    assert message in str(caught.value)


def test_overlapping_buffers_are_watched_together() -> None:
    memory = np.zeros(40, np.float32)
    arguments = {"n": 37, "m": 48, "f": 2.0, "x": memory[:37], "y": memory[3:], "even": np.zeros(48, np.float32)}
    with pytest.raises(InterpretationError, match="an element of . that program . (reads|writes)"):
        interpret(kernel_of("store %y, %place, %v checked=(true)"), arguments)


def test_one_program_may_update_in_place() -> None:
    memory = np.arange(37, dtype=np.float32)
    arguments = {"n": 37, "m": 48, "f": 2.0, "x": memory, "y": memory, "even": np.zeros(48, np.float32)}
    interpret(kernel_of("%w = map add %v, %v\nstore %y, %place, %w checked=(true)"), arguments)
    np.testing.assert_array_equal(memory, 2 * X)


def copy_kernel(extents: tuple, strides: tuple, tile: tuple[int, ...]) -> Kernel:
    """Copies x to y with one program for everything."""
    x = BufferParameter("x", BufferType(F32, extents, strides, 4))
    y = BufferParameter("y", BufferType(F32, extents, (None,) * len(extents), 4), written=True)
    builder = Builder()
    zeros = [builder.index(0)] * len(tile)
    builder.store(y.value, zeros, builder.load(x.value, zeros, tile))
    rank = len(tile)
    return builder.kernel("copy", [IndexParameter("n"), x, y], [], Layout((1,) * rank, (1,) * rank))


def test_strided_reversed_and_repeated_arrays() -> None:
    base = np.arange(60, dtype=np.float32).reshape(6, 10)
    for array in (base[::-1, ::2], base.T[:5, :5], np.broadcast_to(base[0], (3, 10))):
        found = np.zeros((array.shape[1], array.shape[0]), np.float32).T
        interpret(copy_kernel(array.shape, (None, None), (16, 16)), {"n": 1, "x": array, "y": found})
        np.testing.assert_array_equal(found, array)


def test_rank_zero_buffers() -> None:
    found = np.array(0, np.float32)
    interpret(copy_kernel((), (), ()), {"n": 1, "x": np.array(3, np.float32), "y": found})
    assert found == 3


def test_store_to_an_axis_of_stride_zero() -> None:
    kernel = copy_kernel(("n",), (1,), (16,))
    y = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (5,), (0,))
    with pytest.raises(InterpretationError, match="writes one element of y more than once: axis 0 has stride 0"):
        interpret(kernel, {"n": 5, "x": np.zeros(5, np.float32), "y": y})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros(36, np.float32)}, r"x: expected shape \(37,\), found \(36,\)"),
        ({"x": np.zeros(37, np.float64)}, "x: expected an array of float32, found float64"),
        ({"x": np.zeros(74, np.float32)[::2]}, "x: expected stride 1 on axis 0, found 2"),
        ({"x": 3}, "x: expected an array of float32, found int"),
        ({"m": 40}, "m: 40 is no multiple of 16"),
        ({"n": 3.5}, "expected an integer, found 3.5"),
        ({"z": 1}, "kernel example: expected arguments"),
    ],
)
def test_arguments_that_do_not_fit(changes: dict, message: str) -> None:
    arguments = {"n": 37, "m": 48, "f": 2.0, "x": X, "y": X.copy(), "even": np.zeros(48, np.float32)}
    with pytest.raises(InterpretationError, match=message):
        interpret(kernel_of("store %y, %place, %v checked=(true)"), arguments | changes)


def test_read_only_results() -> None:
    y = X.copy()
    y.flags.writeable = False
    arguments = {"n": 37, "m": 48, "f": 2.0, "x": X, "y": y, "even": np.zeros(48, np.float32)}
    with pytest.raises(InterpretationError, match="y: the kernel writes it, but the array is read-only"):
        interpret(kernel_of("store %y, %place, %v checked=(true)"), arguments)


def test_halves_are_widened_and_rounded_once() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        a, b = (np.array(values, dtype) for values in ([1.0, 3.0, 250.0], [1e-3, 7.0, 250.0]))
        found = apply_row("add", (a, b))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, (a.astype(np.float32) + b.astype(np.float32)).astype(dtype))
        assert apply_row("less", (a, b)).dtype == np.bool_


def test_rows_without_a_ufunc_and_of_booleans() -> None:
    np.testing.assert_array_equal(apply_row("modf_fraction", (np.array([2.5, -1.25]),)), [0.5, -0.25])
    np.testing.assert_array_equal(apply_row("absolute", (np.array([True, False]),)), [True, False])
    base, exponent = np.array([3, 2]), np.array([2, -1])
    assert apply_row("power", (base, exponent))[0] == 9


def test_folds_are_pairwise() -> None:
    values = np.array([[1e8, 1, -1e8, 1, 5]], np.float32)
    (total,) = fold("add", (values,), 1)
    pairs = (values[0, 0] + values[0, 1]) + (values[0, 2] + values[0, 3])
    assert total.shape == (1, 1)
    assert total[0, 0] == pairs + values[0, 4]


def test_fold_of_two_operands() -> None:
    values = np.array([3, np.nan, 7, np.nan], np.float32)
    best, place = fold("argmax", (values, np.arange(4)), 0)
    assert np.isnan(best[0])
    assert place[0] == 1


def test_dot_in_the_accumulators_dtype() -> None:
    builder = Builder()
    y = BufferParameter("y", BufferType(F32, (4, 4), (4, 1), 4), written=True)
    a = builder.constant(dtypes.float16, 0.1, (4, 8))
    b = builder.constant(dtypes.float16, 3.0, (8, 4))
    zero = builder.index(0)
    builder.store(y.value, [zero, zero], builder.dot(a, b, builder.constant(F32, 1.0, (4, 4))))
    found = np.zeros((4, 4), np.float32)
    interpret(builder.kernel("product", [y], [GridAxis(1, 1)], Layout((1, 1), (1, 1))), {"y": found})
    np.testing.assert_allclose(found, 1 + 8 * np.float32(np.float16(0.1)) * 3, rtol=1e-6)
