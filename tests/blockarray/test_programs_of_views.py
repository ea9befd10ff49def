"""Random programs of views, writes, expressions and evaluation points, against NumPy.

Each step is done in both libraries. Nothing is looked at unless the program says so, so that writes, the views of what is written and
the expressions recorded before meet in every order.
"""

import os
import re

import numpy
import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule, run_state_machine_as_test

import blockarray as np
from blockarray import assignment
from blockarray.execution import evaluate
from blockarray.testing import assert_equal_arrays

SHAPES = [(12,), (4, 3), (3, 2, 4), (40, 30), (70,), (1, 5), (2, 0, 3)]
EXAMPLES = int(os.environ.get("BLOCKARRAY_PROGRAMS", "40"))
NUMBERS = strategies.integers(-3, 5)
BINARY = ["add", "subtract", "multiply", "maximum"]


@strategies.composite
def slices(draw):
    bounds = strategies.none() | strategies.integers(-8, 8)
    return slice(draw(bounds), draw(bounds), draw(strategies.sampled_from([None, None, 1, 2, -1, -3])))


KEYS = strategies.lists(slices() | strategies.just(...) | strategies.just(None), min_size=1, max_size=3).filter(
    lambda items: items.count(...) < 2
)


def fitting(key, ndim):
    """The key without what is too much for an array of `ndim` axes."""
    kept, axes = [], 0
    for item in key:
        if isinstance(item, slice):
            axes += 1
            if axes > ndim:
                continue
        kept.append(item)
    return tuple(kept)


def first_byte(array):
    """Where the memory begins that an array is a view of."""
    while array.base is not None and isinstance(array.base, numpy.ndarray):
        array = array.base
    return array.__array_interface__["data"][0]


class Programs(RuleBasedStateMachine):
    """Pairs of an array of ours and one of NumPy's that must always be equal."""

    pairs = Bundle("pairs")

    def __init__(self):
        super().__init__()
        self.made = []

    def kept(self, ours, theirs):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        pair = (ours, theirs)
        self.made.append(pair)
        return pair

    @initialize(
        target=pairs, shape=strategies.sampled_from(SHAPES), dtype=strategies.sampled_from(["int64", "float32"])
    )
    def first(self, shape, dtype):
        return self.make(shape, dtype)

    @rule(
        target=pairs, shape=strategies.sampled_from(SHAPES), dtype=strategies.sampled_from(["int64", "float32", "int8"])
    )
    def another(self, shape, dtype):
        return self.make(shape, dtype)

    def make(self, shape, dtype):
        values = (numpy.arange(numpy.prod(shape)) % 7 - 2).astype(dtype).reshape(shape)
        return self.kept(np.array(values), values.copy())

    @rule(target=pairs, pair=pairs, key=KEYS)
    def slice_of(self, pair, key):
        ours, theirs = pair
        key = fitting(key, theirs.ndim)
        return self.kept(ours[key], theirs[key])

    @rule(
        target=pairs,
        pair=pairs,
        how=strategies.sampled_from(["T", "flip", "ravel", "reshape", "diagonal", "row", "wide"]),
    )
    def other_view(self, pair, how):
        found = []
        for xp, x in zip((np, numpy), pair, strict=True):
            if how == "T":
                found.append(x.T)
            elif how == "flip":
                found.append(xp.flip(x))
            elif how == "ravel":
                found.append(x.ravel())
            elif how == "reshape":
                found.append(x.reshape(x.shape[::-1]))
            elif how == "diagonal" and x.ndim >= 2:
                found.append(xp.diagonal(x))
            elif how == "row" and x.ndim >= 2 and x.shape[0]:
                found.append(x[-1])
            elif how == "wide" and x.ndim < 3:
                found.append(xp.broadcast_to(x, (2, *x.shape)))
            else:
                found.append(x[...])
        return self.kept(*found)

    @rule(target=pairs, pair=pairs, dtype=strategies.sampled_from(["int8", "int16", "int32", "int64"]))
    def seen_as(self, pair, dtype):
        """The memory as integers of another size: never as floats, whose NaNs have no defined bits."""
        ours, theirs = pair
        wanted = numpy.dtype(dtype)
        offset = (theirs.__array_interface__["data"][0] - first_byte(theirs)) % wanted.itemsize
        aligned = not offset and all(stride % wanted.itemsize == 0 for stride in theirs.strides[:-1])
        try:
            seen = theirs.view(wanted)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                ours.view(wanted)
            return self.kept(ours[...], theirs[...])
        if not aligned and seen.size:
            return self.kept(ours[...], theirs[...])
        return self.kept(ours.view(wanted), seen)

    @rule(
        target=pairs,
        pair=pairs,
        how=strategies.sampled_from(["windows", "squeeze", "expand", "part", "strided", "rot90"]),
    )
    def rarer_view(self, pair, how):
        found = []
        for xp, x in zip((np, numpy), pair, strict=True):
            tricks = xp.lib.stride_tricks
            if how == "windows" and x.ndim and x.shape[-1] >= 2 and x.ndim < 3:
                found.append(tricks.sliding_window_view(x, 2, axis=-1))
            elif how == "squeeze":
                found.append(xp.squeeze(x))
            elif how == "expand" and x.ndim < 3:
                found.append(xp.expand_dims(x, -1))
            elif how == "part" and x.ndim:
                found.append(xp.array_split(x, 3)[1])
            elif how == "strided" and x.ndim and x.size and x.shape[0] > 1:
                found.append(tricks.as_strided(x, (x.shape[0] // 2, *x.shape[1:]), (2 * x.strides[0], *x.strides[1:])))
            elif how == "rot90" and x.ndim >= 2:
                found.append(xp.rot90(x))
            else:
                found.append(x.view())
        return self.kept(*found)

    @rule(pair=pairs, number=NUMBERS, how=strategies.sampled_from(["key", "all", "lists"]))
    def write_flat(self, pair, number, how):
        if not pair[1].flags.writeable or pair[1].size < 2:
            return
        for x in pair:
            if how == "key":
                x.flat[1 - x.size] = number
            elif how == "all":
                x.flat[::2] = [number, 1]
            else:
                x.flat[[0, -1, 0]] = [number, 2, 3]

    @rule(
        pair=pairs, number=NUMBERS, how=strategies.sampled_from(["at", "put", "place", "putmask", "diagonal", "copyto"])
    )
    def write_by_function(self, pair, number, how):
        if not pair[1].flags.writeable or not pair[1].size or not pair[1].ndim:
            return
        for xp, x in zip((np, numpy), pair, strict=True):
            if how == "at":
                xp.add.at(x, [0, -1, 0], number)
            elif how == "put":
                xp.put(x, [0, -1, 0], [number, 1, 2])
            elif how == "place":
                xp.place(x, x > number, [number, 1])
            elif how == "putmask":
                xp.putmask(x, x > number, number)
            elif how == "diagonal" and x.ndim == 2:
                xp.fill_diagonal(x, number)
            else:
                xp.copyto(x, number, where=x < 1, casting="unsafe")

    @rule(target=pairs, pair=pairs, key=KEYS, number=NUMBERS)
    def remember_bits_and_write(self, pair, key, number):
        """An expression of the bytes of an array that outlives a write."""
        found = []
        for x in pair:
            octets = x.reshape(-1).view("int8") if x.flags.c_contiguous else x.reshape(-1)
            found.append(octets ^ octets.dtype.type(1) if octets.dtype != "float32" else -octets)
            if x.flags.writeable:
                x[fitting(key, x.ndim)] = number
        return self.kept(*found)

    @rule(target=pairs, pair=pairs, other=pairs, name=strategies.sampled_from(BINARY))
    def expression(self, pair, other, name):
        if pair[1].shape != other[1].shape:
            other = (3, 3)
        return self.kept(*(getattr(xp, name)(a, b) for xp, a, b in zip((np, numpy), pair, other, strict=True)))

    @rule(
        target=pairs,
        pair=pairs,
        name=strategies.sampled_from(["sum", "max", "copy", "cumsum", "astype", "where", "roll"]),
    )
    def other_expression(self, pair, name):
        found = []
        for xp, x in zip((np, numpy), pair, strict=True):
            if name in ("sum", "max") and x.ndim > 1 and x.size:
                # The extremes of few distinct values: the order of additions does not matter.
                found.append(getattr(xp.minimum(xp.maximum(x, -9), 9), name)(axis=0))
            elif name == "cumsum" and x.ndim and x.size < 200:
                found.append(xp.cumsum(xp.minimum(xp.maximum(x, -9), 9), axis=-1))
            elif name == "astype":
                found.append((x > 1).astype("int16"))
            elif name == "where":
                found.append(xp.where(x > 2, x, -x))
            elif name == "roll":
                found.append(xp.roll(x, 2))
            else:
                found.append(x.copy())
        return self.kept(*found)

    @rule(pair=pairs, key=KEYS, number=NUMBERS)
    def write_number(self, pair, key, number):
        for x in pair:
            if x.flags.writeable:
                x[fitting(key, x.ndim)] = number

    @rule(pair=pairs, key=KEYS, other=pairs)
    def write_array(self, pair, key, other):
        key = fitting(key, pair[1].ndim)
        if pair[1].flags.writeable and pair[1][key].shape == other[1].shape:
            for x, y in zip(pair, other, strict=True):
                x[key] = y

    @rule(pair=pairs, first=KEYS, second=KEYS, name=strategies.sampled_from(["+", "-", "="]))
    def write_own_window(self, pair, first, second, name):
        first, second = fitting(first, pair[1].ndim), fitting(second, pair[1].ndim)
        if not pair[1].flags.writeable or pair[1][first].shape != pair[1][second].shape:
            return
        for x in pair:
            if name == "+":
                x[first] += x[second]
            elif name == "-":
                x[first] -= x[second] * 2
            else:
                x[first] = x[second]

    @rule(target=pairs, pair=pairs, key=KEYS, number=NUMBERS, direct=strategies.booleans())
    def remember_and_write(self, pair, key, number, direct):
        """An expression of a window that outlives what is written there, from the expression itself or from something on top of it."""
        key = fitting(key, pair[1].ndim)
        found = []
        for x in pair:
            found.append(x[key] * 2 + number)
            if x.flags.writeable:
                x[key] = found[-1] if direct else found[-1] - 1
        return self.kept(*found)

    @rule(pair=pairs, place=strategies.integers(0, 5), number=NUMBERS)
    def write_element(self, pair, place, number):
        if not pair[1].flags.writeable or not pair[1].size:
            return
        for x in pair:
            x[tuple(place % extent for extent in x.shape)] = number

    @rule(pair=pairs, number=NUMBERS, how=strategies.sampled_from(["mask", "lists", "picked"]))
    def write_chosen(self, pair, number, how):
        if not pair[1].flags.writeable or not pair[1].size or not pair[1].ndim:
            return
        for x in pair:
            if how == "mask":
                x[x > number] = number
            elif how == "lists":
                x[[0, -1]] = number
            else:
                x[[0, -1, 0]] = x[[-1, 0, -1]] + number

    @rule(pair=pairs, other=pairs, name=strategies.sampled_from(BINARY))
    def in_place(self, pair, other, name):
        a, b = pair[1], other[1]
        if a.flags.writeable and numpy.can_cast(numpy.result_type(a, b), a.dtype, "same_kind"):
            if a.shape == b.shape:
                for xp, x, y in zip((np, numpy), pair, other, strict=True):
                    getattr(xp, name)(x, y, out=x)
            elif a.ndim and b.shape == a.shape[1:]:
                for xp, x, y in zip((np, numpy), pair, other, strict=True):
                    getattr(xp, name)(y, x, out=x)

    @rule(pair=pairs, other=pairs, third=pairs, name=strategies.sampled_from(BINARY))
    def into(self, pair, other, third, name):
        a, b, c = pair[1], other[1], third[1]
        if a.shape == b.shape == c.shape and c.flags.writeable:
            if numpy.can_cast(numpy.result_type(a, b), c.dtype, "same_kind"):
                for xp, x, y, z in zip((np, numpy), pair, other, third, strict=True):
                    getattr(xp, name)(x, y, out=z)

    @rule(pair=pairs, number=NUMBERS)
    def augmented(self, pair, number):
        ours, theirs = pair
        if theirs.flags.writeable:
            ours += number
            theirs += number

    @rule(pair=pairs, place=strategies.integers(0, 5))
    def look_at_elements(self, pair, place):
        ours, theirs = pair
        if theirs.size:
            key = tuple(place % extent for extent in theirs.shape)
            assert ours[key] == theirs[key] and ours.item(key) == theirs.item(key)
            if theirs.ndim == 1:
                assert [one.item() for one in ours] == theirs.tolist()

    @rule(pair=pairs)
    def look(self, pair):
        assert_equal_arrays(*pair)

    @rule(pair=pairs, other=pairs)
    def compute_together(self, pair, other):
        np.evaluate(pair[0], other[0])

    @rule(pair=consumes(pairs))
    def forget(self, pair):
        """Let an array go: what only it held may be taken over by a write."""
        self.made = [one for one in self.made if one[0] is not pair[0]]

    def teardown(self):
        for ours, theirs in self.made:
            assert_equal_arrays(ours, theirs)


@pytest.mark.parametrize(("at_once", "found_again"), [(0, 1), (20, 16), (1 << 14, 2)])
def test_programs(at_once, found_again, monkeypatch):
    # Writes to small arrays are done at once, others are recorded: both on arrays of all sizes. Replays are written early or late.
    monkeypatch.setattr(assignment, "_AT_ONCE", at_once)
    monkeypatch.setattr(evaluate, "FOUND_AGAIN", found_again)
    with numpy.errstate(all="ignore"):
        run_state_machine_as_test(
            Programs,
            settings=settings(
                max_examples=EXAMPLES,
                report_multiple_bugs=False,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
