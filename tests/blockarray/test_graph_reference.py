"""The meaning of nodes, the text of recordings, and the rules of the graph."""

import numpy as np
import pytest
from graphs import NO_DEVICE, apply, constant, fold, graphs, leaf_array, positions, source, view_like
from hypothesis import given, settings

from blockarray.graph import reference
from blockarray.graph.nodes import Cast, Contract, Gather, Iota, Map, Node, Scan, Update, View, token
from blockarray.graph.printer import print_recording
from blockarray.graph.recording import linearize
from blockarray.graph.simplify import holds_every_value, simplified
from codegen import dtypes

TABLE_2_3 = np.array([[5.0, -1.0, 2.0], [0.0, 7.0, -3.0]])


def value(node: Node) -> np.ndarray:
    """What one node comes to."""
    return reference.evaluate(linearize((node,)), leaf_array)[0]


def value_or_leaf(node: Node) -> np.ndarray:
    """What one node comes to, or is."""
    return leaf_array(node) if node.is_leaf else value(node)


def test_each_class_of_node_means_what_numpy_does() -> None:
    x = source(TABLE_2_3)
    assert value(apply("add", x, constant(1, dtypes.float64))).tolist() == (TABLE_2_3 + 1).tolist()
    assert value(Cast(x, dtypes.int8)).dtype == np.int8
    assert value(fold("maximum", x, 1)).tolist() == [[5.0], [7.0]]
    assert value(fold("argmax", x, 0, 1, output=1)).tolist() == [[4]]
    assert value(fold("argmin", x, 0)).tolist() == [[0.0, -1.0, -3.0]]
    assert value(Scan("add", x, 1)).tolist() == TABLE_2_3.cumsum(axis=1).tolist()
    assert value(view_like(x, positions(x)[::-1, 1:])).tolist() == TABLE_2_3[::-1, 1:].tolist()
    assert value(Iota(4, NO_DEVICE)).tolist() == [0, 1, 2, 3]
    index = source(np.array([1, 0, 1]))
    assert value(Gather(x, (index,))).tolist() == TABLE_2_3[[1, 0, 1]].tolist()
    changed = value(Update(x, constant(9.0, dtypes.float64), 1, (2,), (3,)))
    assert changed.tolist() == [[5.0, 9.0, 2.0], [0.0, 9.0, -3.0]]
    assert leaf_array(x) is not changed and leaf_array(x)[0, 1] == -1.0
    product = Contract(x, view_like(x, positions(x).T))
    np.testing.assert_array_equal(value(product), TABLE_2_3 @ TABLE_2_3.T)


def test_halves_are_folded_in_float32() -> None:
    ones = source(np.ones(5000, np.float16))
    assert value(fold("add", ones, 0)).tolist() == [5000.0]
    # In float16 itself a running sum stays at 2048.
    assert value(Scan("add", ones, 0))[-1] == np.float16(5000)


def test_rows_without_a_ufunc_use_their_definition() -> None:
    x, y = source(np.array([1, 5])), source(np.array([3, 2]))
    assert value(apply("where", apply("less", x, y), x, y)).tolist() == [1, 2]


def test_node_whose_value_has_another_shape_is_refused() -> None:
    x = source(TABLE_2_3)
    wrong = Map("add", (x, x), (3, 2), dtypes.float64, token("wrong"), NO_DEVICE)
    with pytest.raises(ValueError, match="could not be broadcast|recorded wrongly"):
        value(wrong)


def test_text_of_a_recording() -> None:
    x = source(TABLE_2_3)
    centred = apply("subtract", x, fold("maximum", x, 1))
    changed = Update(centred, constant(0.0, dtypes.float64), 0, (2,), (3,))
    taken = Gather(changed, (Iota(2, NO_DEVICE),))
    root = Cast(Scan("add", view_like(taken, positions(taken).T), 1), dtypes.float32)
    assert print_recording(linearize((root,))) == "\n".join(
        (
            "0 = iota() int64[2]",
            "1 = constant(0.0) float64[]",
            "2 = source() float64[2, 3]",
            "3 = fold maximum(2, axes (1,)) float64[2, 1]",
            "4 = subtract(2, 3) float64[2, 3]",
            "5 = update(4, 1, offset 0, shape (2,), strides (3,)) float64[2, 3]",
            "6 = take(5, 0) float64[2, 3]",
            "7 = view(6, offset 0, strides (1, 3)) float64[3, 2]",
            "8 = running add(7, axis 1) float64[3, 2]",
            "9 = cast(8) float32[3, 2]",
            "roots 9",
        )
    )


# -- rules -------------------------------------------------------------------------------------------------------------


def test_cast_to_own_dtype() -> None:
    x = source(TABLE_2_3)
    assert simplified(Cast(x, dtypes.float64), [x]) is x
    assert simplified(Cast(x, dtypes.float32), [x]) is None


def test_cast_there_and_back() -> None:
    x = source(np.array([1, -7], np.int16))
    there = Cast(x, dtypes.float32)
    assert simplified(Cast(there, dtypes.int16), [there]) is x
    lossy = Cast(x, dtypes.int8)
    assert simplified(Cast(lossy, dtypes.int16), [lossy]) is None


@pytest.mark.parametrize("narrow", [d for d in dtypes.ALL if d.bits <= 16 and d.kind != "float"])
@pytest.mark.parametrize("wide", dtypes.ALL)
def test_dtypes_said_to_hold_every_value_do(narrow: dtypes.DType, wide: dtypes.DType) -> None:
    if narrow is dtypes.boolean:
        every = np.array([False, True])
    else:
        limits = np.iinfo(narrow.numpy)
        every = np.arange(limits.min, limits.max + 1).astype(narrow.numpy)
    with np.errstate(all="ignore"):
        kept = bool((every.astype(wide.numpy).astype(narrow.numpy) == every).all())
    if holds_every_value(wide, narrow):
        assert kept
    elif wide.kind != "float":
        assert not kept


def test_view_of_everything() -> None:
    x = source(np.arange(6.0).reshape(2, 1, 3))
    assert simplified(View(x, 0, (2, 1, 3), (3, 99, 1)), [x]) is x
    assert simplified(View(x, 0, (2, 3), (3, 1)), [x]) is None
    assert simplified(View(x, 2, (2, 1, 3), (3, 0, -1)), [x]) is None


def test_fold_of_one_element() -> None:
    x = source(np.array([[-2.0], [3.0]]))
    assert simplified(fold("add", x, 1), [x]) is x
    assert simplified(fold("argmax", x, 1, output=1), [x]) is None
    # The magnitude, not the element.
    assert simplified(fold("hypot", x, 1), [x]) is None


def test_positive_and_scan_of_one_element() -> None:
    x = source(np.array([[-2.0, 3.0]]))
    assert simplified(apply("positive", x), [x]) is x
    assert simplified(Scan("add", x, 0), [x]) is x
    assert simplified(Scan("add", x, 1), [x]) is None


def test_updates_of_nothing_and_of_everything() -> None:
    x, y = source(np.arange(6.0).reshape(2, 3)), source(np.arange(3.0))
    assert simplified(Update(x, y, 0, (0, 3), (3, 1)), [x, y]) is x
    flat = source(np.arange(6.0))
    assert simplified(Update(flat, flat, 0, (6,), (1,)), [flat, flat]) is flat
    whole = Update(x, y, 0, (2, 3), (3, 1))
    found = simplified(whole, [x, y])
    assert isinstance(found, View)
    np.testing.assert_array_equal(value(found), value(whole))
    # Backwards is not in order.
    assert simplified(Update(flat, flat, 5, (6,), (-1,)), [flat, flat]) is None


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_rules_keep_values(roots: tuple[Node, ...]) -> None:
    recording = linearize(roots)
    for node in recording.nodes:
        if node.is_leaf:
            continue
        found = simplified(node, node.inputs)
        if found is None:
            continue
        assert found.shape == node.shape and found.dtype is node.dtype
        np.testing.assert_array_equal(value_or_leaf(found), value(node))
