"""Run a function under NumPy and under ``blockarray`` on drawn inputs, and compare all that a caller can see."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import hypothesis
import numpy
from hypothesis import HealthCheck, Phase, strategies
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

import blockarray
from blockarray.testing.arguments import Arguments
from blockarray.testing.comparison import MaximumUlp, assert_equal_arrays, check_max_ulp, check_tolerance
from blockarray.testing.layouts import ArrayNamespace, copy_with_layout, layout_of

_PUBLIC_MODULES = frozenset({"builtins", "numpy.exceptions", "numpy.linalg"})


@dataclass(frozen=True)
class _Rules:
    """How results are compared."""

    max_ulp: MaximumUlp
    relative_tolerance: float
    absolute_tolerance: float
    signed_zeros: bool
    check_messages: bool


@dataclass(frozen=True)
class _Outcome:
    """What one call gave: a result or an exception, and its arguments' memory afterwards."""

    result: object
    error: Exception | None
    memory: tuple[object, ...]


def assert_matches_numpy(
    function: Callable[..., object] | str,
    *inputs: object,
    examples: int = 100,
    max_ulp: MaximumUlp = 4,
    relative_tolerance: float = 0.0,
    absolute_tolerance: float = 0.0,
    signed_zeros: bool = True,
    check_messages: bool = False,
    allow_only_errors: bool = False,
    keywords: Mapping[str, object] | None = None,
    seed: int | None = None,
    namespace: ArrayNamespace = blockarray,
) -> None:
    """Raise unless ``function`` does under ``blockarray`` what it does under NumPy, on every input that is drawn.

    Compared are the values (floating point by ULP, everything else exactly), dtypes and shapes of what is returned,
    tuples, lists and dictionaries item by item; the type of an exception; and the arguments afterwards, so that
    functions that write to them can be checked as well. An array of no dimension and a scalar of NumPy are the same.
    Floating point warnings are ignored.

    Parameters
    ----------
    function : callable or str
        What to check. It gets its array library in one of three ways:

        * its first parameter is called ``xp``: NumPy, and then ``blockarray``, is passed there;
        * it has no such parameter: it works on the arrays that it gets, by operators, methods, or functions of NumPy,
        which hand arrays of
          ``blockarray`` over to it;
        * it is a name, such as ``"hypot"`` or ``"linalg.norm"``: that function of either library.
    *inputs : strategies or plain values
        The arguments. A strategy draws one, or several if it draws `Arguments`; anything else, but texts, is passed as it is.
        Arrays of NumPy, within tuples, lists and dictionaries too, reach ``blockarray`` as arrays of its own with the
        same strides (see `as_blockarray`).
    examples : int
        How many inputs to draw.
    max_ulp : number or mapping from dtype name to number
        Units in the last place by which floating point results may differ; in a mapping, dtypes that are not named
        must be exact.
    relative_tolerance, absolute_tolerance : float
        Results within ``absolute_tolerance + relative_tolerance * abs(expected)`` agree too: for sums whose order may
        differ.
    signed_zeros : bool
        Whether 0.0 and -0.0 differ.
    check_messages : bool
        Whether the text of exceptions must be NumPy's too.
    allow_only_errors : bool
        Whether it is enough that both raise the same exception on every input. Without it a function that never
        returns, because of a mistake of its own, fails.
    keywords : mapping, optional
        Keyword arguments, strategies or plain values.
    seed : int, optional
        Draw the same inputs every time. Without it the active profile of Hypothesis decides.
    namespace : module
        What to check in the place of ``blockarray``.

    Raises
    ------
    AssertionError
        The two differ. The message shows the smallest input that was found, how it lies in memory, and the first
        differences. Or every input made both raise, so that no result was compared.
    TypeError, ValueError
        An argument of this function is wrong; a text among `inputs`, for example, which is likelier a dtype than an argument.

    Examples
    --------
    >>> from blockarray.testing import arrays, broadcastable_arrays, dtypes
    >>> assert_matches_numpy("maximum", broadcastable_arrays(2), examples=20)

    >>> def clamp(xp, x):
    ...     return xp.where(x > 1, xp.ones_like(x), x)
    >>> assert_matches_numpy(clamp, arrays(dtypes("float")), examples=20)

    >>> def halve(x):
    ...     x //= 2
    >>> assert_matches_numpy(halve, arrays("int32", layouts=["contiguous", "reversed"]), examples=20)

    >>> assert_matches_numpy(lambda xp, x: x + (0 if xp is numpy else 1), arrays("int8", 3), examples=20, seed=1)
    Traceback (most recent call last):
        ...
    AssertionError: <lambda> differs from NumPy: result: 3 of 3 elements differ (int8, shape (3,)):
      index  expected  found
        (0)         0      1
        (1)         0      1
        (2)         0      1
    for the arguments
      0: array([0, 0, 0], dtype=int8)
    """
    call, name = _callable(function)
    rules = _rules(max_ulp, relative_tolerance, absolute_tolerance, signed_zeros, check_messages)
    if isinstance(examples, bool) or not isinstance(examples, int):
        raise TypeError(f"examples: expected an int, found {examples!r}")
    if examples < 1:
        raise ValueError(f"examples: expected at least 1, found {examples}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise TypeError(f"seed: expected an int or None, found {seed!r}")
    for required in ("asarray", "broadcast_to"):
        if not hasattr(namespace, required):
            raise TypeError(f"namespace: expected an array library with {required!r}, found {namespace!r}")
    if not isinstance(allow_only_errors, bool):
        raise TypeError(f"allow_only_errors: expected a bool, found {allow_only_errors!r}")
    positional = strategies.tuples(*(_strategy(f"input {index}", item) for index, item in enumerate(inputs)))
    named = strategies.fixed_dictionaries(
        {key: _strategy(f"keyword {key!r}", item) for key, item in (keywords or {}).items()}
    )

    outcomes: list[Exception | None] = []  # what NumPy raised on each input

    def matches(drawn: tuple[object, ...], named_drawn: dict[str, object]) -> None:
        arguments = tuple(_spread(drawn))
        problem = _compare_calls(call, arguments, named_drawn, namespace, rules, outcomes)
        if problem is not None:
            raise AssertionError(f"{name} differs from NumPy: {problem}\n{_describe(arguments, named_drawn)}")

    _run(matches, positional, named, examples, seed)
    last = outcomes[-1] if outcomes else None
    if last is not None and None not in outcomes and not allow_only_errors:
        raise AssertionError(
            f"{name}: no result was compared: NumPy and the other library raised alike on every input, the last time "
            f"{_error_text(last)}{_raised_at(last)}. If errors are what is to be checked, pass allow_only_errors=True"
        )


def _run(
    matches: Callable[[tuple[object, ...], dict[str, object]], None],
    positional: SearchStrategy[tuple[object, ...]],
    named: SearchStrategy[dict[str, object]],
    examples: int,
    seed: int | None,
) -> None:
    # No database: it knows tests by their source, and every function checked here would share this one. The message
    # has all that Hypothesis would add to it, so it stays quiet.
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=[Phase.generate, Phase.target, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.nested_given],
        verbosity=hypothesis.Verbosity.quiet,
    )
    test = settings(hypothesis.given(positional, named)(matches))
    if seed is not None:
        test = hypothesis.seed(seed)(test)
    test()


def _callable(function: Callable[..., object] | str) -> tuple[Callable[..., object], str]:
    """``function`` as one that takes the array library first, and its name."""
    if isinstance(function, str):
        _attribute(numpy, function)  # a name that NumPy has not is a mistake of the caller: said at once

        def by_name(xp: object, *arguments: object, **keywords: object) -> object:
            found: Callable[..., object] = _attribute(xp, function)
            return found(*arguments, **keywords)

        return by_name, function
    if not callable(function):
        raise TypeError(f"function: expected a callable or the name of a NumPy function, found {function!r}")
    name = getattr(function, "__name__", repr(function))
    if _takes_library(function):
        return function, name
    return lambda xp, *arguments, **keywords: function(*arguments, **keywords), name


def _attribute(library: object, name: str) -> Callable[..., object]:
    value: object = library
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise AttributeError(f"{getattr(library, '__name__', library)} has no {name!r}") from None
    if not callable(value):
        raise TypeError(f"function: {name!r} is not a function: {value!r}")
    return value


def _takes_library(function: Callable[..., object]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # compiled functions may have no signature: they are NumPy's or the like
        return False
    return bool(parameters) and parameters[0] == "xp"


def _rules(
    max_ulp: MaximumUlp, relative_tolerance: float, absolute_tolerance: float, signed_zeros: bool, check_messages: bool
) -> _Rules:
    check_max_ulp(max_ulp)
    check_tolerance("relative_tolerance", relative_tolerance)
    check_tolerance("absolute_tolerance", absolute_tolerance)
    for name, value in (("signed_zeros", signed_zeros), ("check_messages", check_messages)):
        if not isinstance(value, bool):
            raise TypeError(f"{name}: expected a bool, found {value!r}")
    return _Rules(max_ulp, relative_tolerance, absolute_tolerance, signed_zeros, check_messages)


def _strategy(place: str, item: object) -> SearchStrategy[object]:
    if isinstance(item, SearchStrategy):
        return item
    if inspect.isfunction(item) and (item.__module__ or "").startswith(("hypothesis.", "blockarray.testing.")):
        raise TypeError(
            f"{place}: expected a strategy, found the function {item.__name__}: call it, as in {item.__name__}()"
        )
    if isinstance(item, str) and place.startswith("input"):
        raise TypeError(
            f"{place}: expected a strategy or a plain value, found the text {item!r}: for arrays of that dtype pass "
            f"arrays({item!r}); for the text itself pass strategies.just({item!r}), or give it by its keyword"
        )
    return strategies.just(item)


def _spread(drawn: Sequence[object]) -> Iterator[object]:
    for item in drawn:
        if isinstance(item, Arguments):
            yield from item
        else:
            yield item


def _compare_calls(
    call: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: Mapping[str, object],
    namespace: ArrayNamespace,
    rules: _Rules,
    outcomes: list[Exception | None],
) -> str | None:
    """What is different about the two calls; None if nothing is. What NumPy raised, or None, is added to ``outcomes``."""
    expected = _call(call, arguments, keywords, numpy)
    outcomes.append(expected.error)
    found = _call(call, arguments, keywords, namespace)
    problem = _compare_errors(expected.error, found.error, rules)
    if problem is not None:
        return problem
    if expected.error is None:
        problem = _compare("result", expected.result, found.result, rules)
    if problem is not None:
        return problem
    return _compare("arguments afterwards", expected.memory, found.memory, rules)


def _call(
    call: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: Mapping[str, object],
    namespace: ArrayNamespace,
) -> _Outcome:
    memory: list[object] = []
    positional = [_converted(item, namespace, memory) for item in arguments]
    named = {key: _converted(item, namespace, memory) for key, item in keywords.items()}
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            # Read at once: what is wrong with a recorded operation may only come out when it is computed.
            result = _read(call(namespace, *positional, **named))
        except HypothesisException:
            raise  # an assumption of the function's own that does not hold for this input
        except Exception as error:
            return _Outcome(None, error, tuple(_read(row) for row in memory))
        return _Outcome(result, None, tuple(_read(row) for row in memory))


def _converted(value: object, namespace: ArrayNamespace, memory: list[object]) -> object:
    """A copy of ``value`` whose arrays belong to ``namespace``; the rows that they lie in are added to ``memory``."""
    if isinstance(value, numpy.ndarray):
        array, row = copy_with_layout(value, namespace)
        memory.append(row)
        return array
    if type(value) in (tuple, list):
        items = [_converted(item, namespace, memory) for item in value]  # type: ignore[attr-defined]
        return tuple(items) if isinstance(value, tuple) else items
    if type(value) is dict:
        return {key: _converted(item, namespace, memory) for key, item in value.items()}
    return value


def _read(value: object) -> object:
    """``value`` with every array of any library, and NumPy's scalars, as arrays of NumPy; a copy."""
    if isinstance(value, (tuple, list)):
        return [_read(item) for item in value]
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    if isinstance(value, numpy.generic) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
        return numpy.array(value)
    return value


def _compare_errors(expected: Exception | None, found: Exception | None, rules: _Rules) -> str | None:
    if expected is None and found is None:
        return None
    if expected is None:
        return f"expected no exception, found {_error_text(found)}{_raised_at(found)}"
    if found is None:
        return f"expected {_error_text(expected)}, found no exception"
    public = next(kind for kind in type(expected).__mro__ if kind.__module__ in _PUBLIC_MODULES)
    if not isinstance(found, public):
        return f"expected {_error_text(expected)}, found {_error_text(found)}{_raised_at(found)}"
    if rules.check_messages and str(expected).strip() != str(found).strip():
        return f"exceptions differ in their text:\n  expected {expected}\n  found    {found}"
    return None


def _error_text(error: Exception | None) -> str:
    return f"{type(error).__name__}: {error}"


def _raised_at(error: Exception | None) -> str:
    """Where ``error`` was raised: the line of the library that a report of the defect should name."""
    traceback = None if error is None else error.__traceback__
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f" (raised at {traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})"


def _compare(place: str, expected: object, found: object, rules: _Rules) -> str | None:
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{place}: expected {len(expected)} items, found {_kind(found)}"
        pairs = zip(expected, found, strict=True)
        items = [(f"{place}[{index}]", one, other) for index, (one, other) in enumerate(pairs)]
        return next((problem for item in items if (problem := _compare(*item, rules)) is not None), None)
    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(found) != list(expected):
            return f"{place}: expected the keys {list(expected)}, found {_kind(found)}"
        items = [(f"{place}[{key!r}]", value, found[key]) for key, value in expected.items()]
        return next((problem for item in items if (problem := _compare(*item, rules)) is not None), None)
    if isinstance(expected, numpy.ndarray):
        if not isinstance(found, numpy.ndarray):
            return f"{place}: expected {_kind(expected)}, found {_kind(found)}"
        return _compare_arrays(place, expected, found, rules)
    if isinstance(expected, (bool, int, float, complex)):
        if type(found) is not type(expected):
            return f"{place}: expected {_kind(expected)}, found {_kind(found)}"
        return _compare_arrays(place, numpy.asarray(expected), numpy.asarray(found), rules)
    return (
        None
        if type(expected) is type(found) and expected == found
        else f"{place}: expected {expected!r}, found {found!r}"
    )


def _compare_arrays(place: str, expected: numpy.ndarray, found: numpy.ndarray, rules: _Rules) -> str | None:
    try:
        assert_equal_arrays(
            found,
            expected,
            max_ulp=rules.max_ulp,
            relative_tolerance=rules.relative_tolerance,
            absolute_tolerance=rules.absolute_tolerance,
            signed_zeros=rules.signed_zeros,
        )
    except AssertionError as error:
        return f"{place}: {error}"
    return None


def _kind(value: object) -> str:
    if isinstance(value, numpy.ndarray):
        return f"an array of {value.dtype.name} and shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} items"
    return f"{type(value).__name__} {value!r}"


def _describe(arguments: Sequence[object], keywords: Mapping[str, object]) -> str:
    """The arguments, so that a reader can type them in."""
    named = [(str(index), item) for index, item in enumerate(arguments)] + list(keywords.items())
    lines = ["for the arguments"]
    for name, item in named:
        text = numpy.array_repr(item) if isinstance(item, numpy.ndarray) else repr(item)
        lines.append(f"  {name}: " + text.replace("\n", "\n     "))
        if isinstance(item, numpy.ndarray) and not _is_plain(item):
            lines.append(f"     which lies in memory as {layout_of(item) or f'strides {item.strides}'}")
    return "\n".join(lines)


def _is_plain(array: numpy.ndarray) -> bool:
    layout = layout_of(array)
    return layout is not None and array.flags.c_contiguous and layout.offset == 0
