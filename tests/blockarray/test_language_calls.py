"""Calls of kernels: arguments, outputs made or passed, views and aliases, grids, devices."""

import gc
import pickle

import numpy
import pytest
from kernel_runs import ptx_device

import blockarray as np
from blockarray.language import KernelError, Static, cast, extent, load, program_index, store
from codegen.compiler import statistics as compilations
from codegen.ir.interpreter_memory import InterpretationError


@np.kernel("(n)->(n)")
def double(x, out, *, block: Static = 32):
    first = program_index(0) * block
    store(out, first, 2 * load(x, first, block))


@np.kernel
def increment(x, *, block: Static = 32):
    first = program_index(0) * block
    store(x, first, load(x, first, block) + 1)


@np.kernel
def copy_into(x, out, *, block: Static = 32):
    first = program_index(0) * block
    store(out, first, load(x, first, block))


@np.kernel("(m,n)->(n,m),(m)")
def turn_and_sum(x, turned, sums, *, block: Static = 32):
    row = program_index(0)
    values = load(x, (row, 0), (1, block))
    store(turned, (0, row), values.T)
    store(sums, row, values.sum())


X = numpy.arange(50, dtype=numpy.float32)


def test_outputs_are_made_or_passed() -> None:
    made = double(X)
    assert isinstance(made, np.ndarray) and made.dtype == numpy.float32
    numpy.testing.assert_array_equal(numpy.asarray(made), 2 * X)
    assert double(X, dtype="float64").dtype == numpy.float64
    passed = np.zeros(50, "float32")
    assert double(X, passed) is passed
    numpy.testing.assert_array_equal(numpy.asarray(passed), 2 * X)
    in_numpy = numpy.zeros(50)
    assert double(X, out=in_numpy) is in_numpy
    numpy.testing.assert_array_equal(in_numpy, 2 * X)
    assert increment(np.zeros(3)) is None


def test_several_outputs() -> None:
    x = numpy.arange(15, dtype=numpy.float32).reshape(3, 5)
    for turned, sums in (turn_and_sum(x), turn_and_sum.interpret(x)):
        numpy.testing.assert_array_equal(numpy.asarray(turned), x.T)
        numpy.testing.assert_array_equal(numpy.asarray(sums), x.sum(1))


def test_lazy_inputs_are_evaluated() -> None:
    x = np.asarray(X)
    numpy.testing.assert_array_equal(numpy.asarray(double(x * 3 + 1)), (X * 3 + 1) * 2)
    numpy.testing.assert_array_equal(numpy.asarray(double(x) + 1), 2 * X + 1)
    numpy.testing.assert_array_equal(numpy.asarray(double(np.zeros(5))), numpy.zeros(5))


def test_what_was_recorded_on_an_output_keeps_its_value() -> None:
    for way in (increment, increment.interpret):
        x = np.asarray(X)
        recorded = x * 10
        alias, view = x[:], x[10:]
        way(x)
        numpy.testing.assert_array_equal(numpy.asarray(recorded), X * 10)
        for seen, expected in ((x, X + 1), (alias, X + 1), (view, X[10:] + 1)):
            numpy.testing.assert_array_equal(numpy.asarray(seen), expected)


def test_memory_that_nobody_else_reads_is_written_in_place() -> None:
    x = np.asarray(X) + 0
    np.evaluate(x)
    gc.collect()
    address = x._cell.node.buffer.address
    increment(x)
    increment(x)
    assert x._cell.node.buffer.address == address
    y = x[5:]
    z = y * 2
    increment(x)
    assert x._cell.node.buffer.address != address
    numpy.testing.assert_array_equal(numpy.asarray(z), (X[5:] + 2) * 2)
    numpy.testing.assert_array_equal(numpy.asarray(x), X + 3)


def test_views_are_read_and_written() -> None:
    grid = numpy.arange(60, dtype=numpy.float32).reshape(6, 10)
    for part in (lambda a: a[2], lambda a: a[:, 3], lambda a: a[::-1, 0], lambda a: a[1, 1:8:3], lambda a: a[0, ::-1]):
        x, expected = np.asarray(grid), grid.copy()
        numpy.testing.assert_array_equal(numpy.asarray(double(part(x))), 2 * part(grid))
        increment(part(x))
        part(expected)[...] += 1
        numpy.testing.assert_array_equal(numpy.asarray(x), expected)
        in_numpy = grid.copy()
        increment(part(in_numpy))
        numpy.testing.assert_array_equal(in_numpy, expected)


def test_views_of_another_dtype() -> None:
    x = np.asarray(X)
    for _ in range(2):
        recorded = x * 1
        before = numpy.asarray(x)
        bits = x.view("int32")
        numpy.testing.assert_array_equal(numpy.asarray(double(bits)), before.view("int32") * 2)
        increment(bits[3:])
        before = before.copy()
        numpy.testing.assert_array_equal(numpy.asarray(recorded), before)
        before[3:].view("int32")[...] += 1
        numpy.testing.assert_array_equal(numpy.asarray(x), before)


def test_inputs_are_read_as_they_were_before() -> None:
    for make in (np.asarray, numpy.copy):
        x = make(X)
        copy_into(x[:-1], x[1:])
        expected = numpy.concatenate([X[:1], X[:-1]])
        numpy.testing.assert_array_equal(numpy.asarray(x), expected)
        x = make(X)
        copy_into(x[::-1], x)
        numpy.testing.assert_array_equal(numpy.asarray(x), X[::-1])
        x = make(X)
        double(x, x)
        numpy.testing.assert_array_equal(numpy.asarray(x), 2 * X)


def test_shared_memory_is_not_written_behind_numpys_back() -> None:
    x = X.copy()
    shared = np.asarray(x, copy=False)
    increment(shared)
    numpy.testing.assert_array_equal(x, X)
    numpy.testing.assert_array_equal(numpy.asarray(shared), X + 1)


def test_arrays_without_elements_or_axes() -> None:
    assert double(numpy.zeros(0, "float32")).shape == (0,)
    nothing = np.zeros(0)
    increment(nothing)

    @np.kernel("()->()")
    def square(x, out):
        store(out, (), load(x, (), ()) ** 2)

    assert float(square(np.asarray(3.0), grid=())) == 9
    assert float(square.interpret(numpy.array(3.0), grid=())) == 9


def test_outputs_that_cannot_be_written() -> None:
    locked = X.copy()
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="x: the kernel writes it, but the array is read-only"):
        increment(locked)
    with pytest.raises(ValueError, match="broadcast array share memory"):
        increment(
            np.broadcast_to(np.asarray(X[:1]), (50,)) if False else numpy.lib.stride_tricks.as_strided(X, (5,), (0,))
        )
    both = np.zeros(20, "float32")
    with pytest.raises(ValueError, match="turned and sums are both written and share memory"):
        turn_and_sum(numpy.zeros((3, 5), "float32"), both[:15].reshape(5, 3), both[:3])
    apart = np.zeros(20, "float32")
    turn_and_sum(numpy.ones((3, 5), "float32"), apart[:15].reshape(5, 3), apart[15:18])
    numpy.testing.assert_array_equal(numpy.asarray(apart), [1] * 15 + [5] * 3 + [0] * 2)


@np.kernel
def places(out):
    place = program_index(0)
    store(out, place, place * 10 + program_index(1))


def test_grids() -> None:
    out = numpy.zeros(6, numpy.int64)
    places(out, grid=(3, 1))
    numpy.testing.assert_array_equal(out, [0, 10, 20, 0, 0, 0])
    places(out, grid=lambda out: (out.shape[0], 1))
    numpy.testing.assert_array_equal(out, [0, 10, 20, 30, 40, 50])
    places(out, grid=(0, 5))
    with pytest.raises(KernelError, match=r"axis 1 of a grid that was given with 1 axes"):
        places(out, grid=3)
    with pytest.raises(ValueError, match="no negative counts, found -1"):
        places(out, grid=(-1, 1))
    with pytest.raises(TypeError, match="expected integers for the grid, found 1.5"):
        places(out, grid=1.5)
    with pytest.raises(TypeError, match="grid takes 'y', which is no parameter"):
        places(out, grid=lambda y: y)
    with pytest.raises(KernelError, match=r"grid axis 1 cannot be derived.*pass grid="):
        places(out)


def test_the_interpreter_finds_races() -> None:
    @np.kernel
    def race(x, *, block: Static = 8):
        first = program_index(0) * 4
        store(x, first, load(x, first, block) + 1)

    with pytest.raises(InterpretationError, match="program"):
        race.interpret(numpy.zeros(20), grid=4)


def test_the_same_call_compiles_nothing() -> None:
    double(X)
    before = compilations.compiled + compilations.from_disk + compilations.from_memory
    double(X + 1)
    double(np.asarray(X))
    assert compilations.compiled + compilations.from_disk + compilations.from_memory == before


def test_calls_like_an_earlier_one_are_told_from_others() -> None:
    @np.kernel("(n)->(n)")
    def add(x, out, number, *, block: Static = 32):
        first = program_index(0) * block
        store(out, first, cast(load(x, first, block) + number, out.dtype))

    grid = numpy.arange(64, dtype=numpy.float64).reshape(8, 8)
    whole = np.asarray(grid)
    for _ in range(2):
        for part in (lambda a: a[2], lambda a: a[3], lambda a: a[:, 3], lambda a: a[1, :5], lambda a: a[::-1, 0]):
            for number in (1, 2.5, numpy.float32(3), np.sum(np.ones(3))):
                for operand in (part(whole), part(whole) * 1, part(grid)):
                    out = np.zeros(operand.shape, operand.dtype)
                    recorded = out + 1
                    assert add(operand, out, number) is out
                    numpy.testing.assert_array_equal(numpy.asarray(out), part(grid) + float(number))
                    assert (numpy.asarray(recorded) == 1).all()
                    in_numpy = numpy.zeros(operand.shape, numpy.float32)
                    add(operand, in_numpy, number=number)
                    numpy.testing.assert_array_equal(in_numpy, part(grid) + float(number))
    swapped = numpy.arange(4.0).astype(">f8")
    for _ in range(2):
        assert numpy.asarray(add(swapped, numpy.zeros(4), 1)).tolist() == [1, 2, 3, 4]
    point = np.sum(np.asarray(grid))

    @np.kernel("()->()")
    def negated(x, out):
        store(out, (), -load(x, (), ()))

    for _ in range(2):
        assert float(negated(point, grid=())) == -grid.sum()
        assert float(negated(np.sum(np.asarray(grid) * 2), grid=())) == -2 * grid.sum()


def test_static_arguments_of_other_types_are_other_kernels() -> None:
    @np.kernel("(n)->(n)")
    def add(x, out, *, number: Static, block: Static = 32):
        first = program_index(0) * block
        store(out, first, load(x, first, block) + number)

    x = numpy.zeros(3, numpy.int32)
    assert numpy.asarray(add(x, number=1)).tolist() == [1, 1, 1]
    with pytest.raises(KernelError, match="cannot put a float64 block"):
        add(x, number=1.0)


def test_kernels_on_a_gpu_that_is_not_there() -> None:
    with ptx_device() as device:
        x = np.asarray(X).to_device(device)
        y = double(x)
        assert y.device == device
        numpy.testing.assert_array_equal(numpy.asarray(y), 2 * X)
        recorded = x + 5
        increment(x)
        numpy.testing.assert_array_equal(numpy.asarray(x), X + 1)
        numpy.testing.assert_array_equal(numpy.asarray(recorded), X + 5)
        mixed = np.zeros(50, "float32").to_device(device)
        copy_into(X, mixed)  # what NumPy holds is copied there
        numpy.testing.assert_array_equal(numpy.asarray(mixed), X)
        assert ".entry" in double.text(x, stage="ptx")
        with pytest.raises(
            TypeError, match=f"out: a NumPy array is written where it lies, but the kernel runs on {device}"
        ):
            copy_into(x, numpy.zeros(50, numpy.float32))
        with pytest.raises(ValueError, match=f"are on cpu and {device}; expected one device"):
            copy_into(x, np.zeros(50, "float32"))


def test_texts_of_a_kernel() -> None:
    text = double.text(X)
    assert text.startswith("kernel double_kernel(") and "load %x" in text
    assert "define" in double.text(X, stage="llvm")
    assert repr(double) == "<kernel double (n)->(n)>"
    assert "2 * load" in (double.__doc__ or "2 * load")
    with pytest.raises(KeyError, match="no stage is called 'ptx'"):
        double.text(X, stage="ptx")


def test_kernels_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(double)) is double


def test_named_lengths_are_fixed_or_leading() -> None:
    @np.kernel("(...,3)->(...)")
    def norms(x, out):
        place = [program_index(axis) for axis in range(out.ndim)]
        values = load(x, (*place, 0), 4)
        store(out, place, np.sqrt((values * values).sum()))

    x = numpy.arange(24, dtype=numpy.float64).reshape(2, 4, 3)
    numpy.testing.assert_allclose(numpy.asarray(norms(x)), numpy.sqrt((x * x).sum(-1)))
    numpy.testing.assert_allclose(numpy.asarray(norms.interpret(x[0])), numpy.sqrt((x[0] ** 2).sum(-1)))
    with pytest.raises(ValueError, match=r"x has length 4 along axis 1 \(3\), expected 3"):
        norms(numpy.zeros((5, 4)))
    with pytest.raises(ValueError, match=r"out has leading axes \(4,\), expected \(5,\), as x has them"):
        norms(numpy.zeros((5, 3)), numpy.zeros(4))


def test_arguments_of_the_wrong_kind() -> None:
    x = numpy.zeros(4, numpy.float32)
    with pytest.raises(
        TypeError, match=r"double\(\) missing a required argument: 'x'; its parameters are \(x, out, \*, block=32\)"
    ):
        double()
    with pytest.raises(TypeError, match=r"double\(\) too many positional arguments"):
        double(x, x, x)
    with pytest.raises(TypeError, match=r"double\(\) got an unexpected keyword argument 'blok'"):
        double(x, blok=3)
    with pytest.raises(
        TypeError, match=r"x: expected a blockarray or NumPy array, found list; convert it by blockarray.asarray"
    ):
        double([1.0])
    with pytest.raises(TypeError, match="x: kernels have no elements of dtype complex128"):
        double(numpy.zeros(3, complex))
    with pytest.raises(TypeError, match="static parameter 'block' must be hashable, found list; pass a tuple"):
        double(x, block=[32])
    with pytest.raises(ValueError, match=r"double: x has 2 axes, expected 1: \(n\) in \(n\)->\(n\)"):
        double(numpy.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"double: out has length 3 along axis 0 \(n\), expected 4, as x has it"):
        double(x, numpy.zeros(3))
    with pytest.raises(TypeError, match="dtype= is for outputs that the call makes"):
        increment(x, dtype="float32")
    with pytest.raises(
        TypeError, match=r"increment\(\): x: expected an array or a number, found str; annotate .* with Static"
    ):
        increment("x")


def test_numbers_that_do_not_fit() -> None:
    @np.kernel
    def fill(out, number: np.int8, *, block: Static = 32):
        store(out, program_index(0) * block, number + load(out, program_index(0) * block, block))

    @np.kernel("(n)->(n)")
    def shifted(x, out, number, *, block: Static = 32):
        store(out, program_index(0) * block, load(x, program_index(0) * block, block) + number)

    with pytest.raises(TypeError, match=r"number: expected a number, found an array; the shapes \(n\)->\(n\) describe"):
        shifted(X, number=X)
    out = numpy.zeros(4, numpy.int8)
    fill(out, 5)
    fill(out, numpy.int64(6))
    assert out.tolist() == [11] * 4
    with pytest.raises(OverflowError, match="number: Python integer 300 out of bounds for int8"):
        fill(out, 300)
    with pytest.raises(TypeError, match="number: expected a number that int8 holds, found 1.5"):
        fill(out, 1.5)
    with pytest.raises(TypeError, match=r"number: expected a number \(int8\), found str"):
        fill(out, "5")


def test_functions_that_are_no_kernels() -> None:
    def with_stars(*arrays):
        pass

    def with_grid(grid):
        pass

    def with_text(x: "no such name"):  # noqa: F722
        pass

    def two(x, y):
        pass

    with pytest.raises(
        TypeError, match=r"kernel with_stars: expected parameters with names of their own, found \*arrays"
    ):
        np.kernel(with_stars)
    with pytest.raises(TypeError, match="a parameter cannot be called 'grid', which is a keyword of the call"):
        np.kernel(with_grid)
    with pytest.raises(
        TypeError, match="'x' is annotated with 'no such name'; expected Static, a dtype for a number, or nothing"
    ):
        np.kernel(with_text)
    with pytest.raises(ValueError, match=r"shapes '\(n\)->\(n\),\(n\)' describe 3 arrays, the function has 2 \(x, y\)"):
        np.kernel("(n)->(n),(n)")(two)
    with pytest.raises(ValueError, match="'m' stands behind -> only"):
        np.kernel("(n)->(m)")(two)
    with pytest.raises(ValueError, match=r"expected groups such as \(m,k\),\(k,n\)->\(m,n\), found 'n'"):
        np.kernel("n->(m)")(two)
    with pytest.raises(ValueError, match=r"expected a name, a number or a leading ..., found 'a b'|found 'a-b'"):
        np.kernel("(a-b)->(n)")(two)
    with pytest.raises(TypeError, match="kernel: expected a Python function, found int"):
        np.kernel(3)


def test_functions_without_source() -> None:
    names: dict = {"np": np, "load": load, "extent": extent}
    exec("def hidden(x):\n    load(x, 0, 8)\n", names)
    with pytest.raises(KernelError, match="the source of hidden cannot be read from '<string>'"):
        np.kernel(names["hidden"])(X)


def test_words_outside_of_kernels() -> None:
    with pytest.raises(
        TypeError, match="load has a meaning inside of kernels only; decorate the function that calls it by @kernel"
    ):
        load(X, 0, 8)
