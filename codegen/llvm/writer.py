"""Writing LLVM IR as text. Building objects for each instruction costs ten times as much as its line of text."""

import re
from collections.abc import Iterable, Iterator

_NAME = re.compile(r"%[\w.]+")


class Names:
    """Fresh names of one module."""

    def __init__(self) -> None:
        self._next = 0

    def fresh(self, prefix: str) -> str:
        """A name that nothing else in the module has, without its sigil."""
        self._next += 1
        return f"{prefix}{self._next}"


class FunctionWriter:
    """The text of one function, written block by block in order.

    Attributes
    ----------
    block : str
        Label of the block that is being written; phi nodes of a later block name it.
    """

    def __init__(self, header: str, names: Names) -> None:
        self.header = header
        self._names = names
        self._entry: list[str] = []
        self._lines: list[str | Phi] = []
        self.block = "entry"

    def fresh(self, prefix: str = "v") -> str:
        """A new local name."""
        return "%" + self._names.fresh(prefix)

    def new_label(self, prefix: str) -> str:
        """A name for a block that will be started later."""
        return self._names.fresh(prefix)

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append("  " + text)

    def value(self, text: str, prefix: str = "v") -> str:
        """Append an instruction; returns the name of its result."""
        name = self.fresh(prefix)
        self._lines.append(f"  {name} = {text}")
        return name

    def stack(self, type_: str, count: int, alignment: int) -> str:
        """Memory in the function's frame, made once on entry."""
        name = self.fresh("stack")
        self._entry.append(f"  {name} = alloca {type_}, i64 {count}, align {alignment}")
        return name

    def on_entry(self, text: str) -> str:
        """Append an instruction to the first block, so that its result can be used everywhere."""
        name = self.fresh("once")
        self._entry.append(f"  {name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin the block `label`; the one before must have been ended."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block by going to `label`."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str, unlikely: bool = False) -> None:
        """End the block by going to one of two labels."""
        weights = ", !prof !1" if unlikely else ""
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}{weights}")

    def phi(self, type_: str) -> "Phi":
        """A phi node whose incoming values may be added until the function is finished."""
        node = Phi(self.fresh("phi"), type_)
        self._lines.append(node)
        return node

    def free_names(self) -> list[str]:
        """Names that the function uses and does not define, in the order of their first use."""
        lines = [str(line) for line in self._lines]
        defined = {line.split(" = ", 1)[0].strip() for line in lines if " = " in line}
        used = dict.fromkeys(name for line in lines for name in _NAME.findall(line))
        return [name for name in used if name not in defined]

    def text(self) -> str:
        """The whole function."""
        return "\n".join(self._all_lines())

    def _all_lines(self) -> Iterator[str]:
        yield f"{self.header} {{"
        yield "entry:"
        yield from self._entry
        yield from map(str, self._lines)
        yield "}"


class Phi:
    """A phi node under construction."""

    def __init__(self, name: str, type_: str) -> None:
        self.name = name
        self._type = type_
        self._incoming: list[tuple[str, str]] = []

    def add(self, value: str, block: str) -> None:
        """`value` arrives from `block`."""
        self._incoming.append((value, block))

    def __str__(self) -> str:
        arriving = ", ".join(f"[ {value}, %{block} ]" for value, block in self._incoming)
        return f"  {self.name} = phi {self._type} {arriving}"


class ModuleWriter:
    """What stands at the top level of a module: declarations, globals, functions, attributes, metadata."""

    def __init__(self, triple: str, attributes: str) -> None:
        self.names = Names()
        self._head = [f'target triple = "{triple}"']
        self._globals: list[str] = []
        self._declarations: dict[str, str] = {}
        self._functions: list[str] = []
        self._attributes = attributes
        self._metadata: list[str] = ["!0 = !{}", '!1 = !{!"branch_weights", i32 1, i32 2000}']

    def declare(self, name: str, signature: str) -> None:
        """Declare the external function ``signature.format(name)`` once."""
        self._declarations[name] = f"declare {signature}"

    @property
    def declared(self) -> Iterable[str]:
        """Names of the external functions declared so far."""
        return self._declarations.keys()

    @property
    def globals(self) -> Iterable[str]:
        """Lines of the global variables so far."""
        return self._globals

    def add_global(self, text: str) -> None:
        """A global variable's whole line."""
        self._globals.append(text)

    def add_function(self, text: str) -> None:
        """A function's whole text."""
        self._functions.append(text)

    def metadata(self, text: str) -> str:
        """A new metadata node; returns its name. ``{self}`` in the text is that name."""
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = {text.replace('{self}', name)}")
        return name

    def text(self) -> str:
        """The whole module."""
        parts = [
            "\n".join(self._head),
            "\n".join(self._globals),
            "\n\n".join(self._functions),
            "\n".join(self._declarations.values()),
            f"attributes #0 = {{ {self._attributes} }}",
            "\n".join(self._metadata),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"
