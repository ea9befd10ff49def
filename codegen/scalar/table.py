"""THE table: one row per scalar function, by name."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from codegen.scalar.arithmetic_rows import ARITHMETIC_ROWS
from codegen.scalar.comparison_rows import COMPARISON_ROWS
from codegen.scalar.elementary_rows import ELEMENTARY_ROWS
from codegen.scalar.function import ScalarFunction


def _by_name(*groups: tuple[ScalarFunction, ...]) -> Mapping[str, ScalarFunction]:
    table: dict[str, ScalarFunction] = {}
    for row in (row for group in groups for row in group):
        if row.name in table:
            raise ValueError(f"the scalar table has two rows called {row.name!r}; names are unique, remove one of them")
        table[row.name] = row
    return MappingProxyType(table)


TABLE: Mapping[str, ScalarFunction] = _by_name(ARITHMETIC_ROWS, COMPARISON_ROWS, ELEMENTARY_ROWS)


def function(name: str) -> ScalarFunction:
    """The row called `name`; KeyError suggests similar names."""
    row = TABLE.get(name)
    if row is not None:
        return row
    near = difflib.get_close_matches(name, TABLE, n=3)
    advice = f"; similar: {', '.join(near)}" if near else ""
    raise KeyError(f"no scalar function is called {name!r}{advice}")
