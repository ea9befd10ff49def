"""`json` writes lazy float64 scalars as it writes NumPy's, which are Python floats.

Its encoders look at the memory of what says that it is a float, so they get a real one. They are wrapped where `json.encoder` keeps them, since the hook for
unknown objects (``default``) may be the caller's own, and is not asked for NumPy's scalars either.
"""

import json.encoder
from collections.abc import Callable
from typing import Any

from blockarray.ndarray import Scalar


def _with_numbers(make_encoder: Callable[..., Any]) -> Callable[..., Any]:
    """The C encoder: what it does not know goes to `default`, lazy scalars among it."""

    def make(markers: Any, default: Callable[[Any], Any], *rest: Any) -> Any:
        def number_or_default(value: Any) -> Any:
            if isinstance(value, Scalar) and isinstance(value, float):
                return float(value)
            return default(value)

        return make_encoder(markers, number_or_default, *rest)

    return make


def _with_number_texts(make_encoder: Callable[..., Any]) -> Callable[..., Any]:
    """The encoder in Python: it asks with `isinstance`, and then for the text of a float."""

    def make(markers: Any, default: Any, encoder: Any, indent: Any, text: Callable[[float], str], *rest: Any) -> Any:
        return make_encoder(markers, default, encoder, indent, lambda value: text(float(value)), *rest)

    return make


def install() -> None:
    """Wrap the encoders of `json`, if they are where they have been since Python 3.0."""
    module: Any = json.encoder
    if getattr(module, "c_make_encoder", None) is not None:
        module.c_make_encoder = _with_numbers(module.c_make_encoder)
    if getattr(module, "_make_iterencode", None) is not None:
        module._make_iterencode = _with_number_texts(module._make_iterencode)


install()
