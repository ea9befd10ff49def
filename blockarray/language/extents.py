"""Lengths of axes by name: what the shapes of a kernel say, checked against the arrays of a call."""

from typing import Any

from blockarray.language.declaration import ABSENT, Declaration

Shape = tuple[int, ...]


class Extents:
    """Names and lengths of the axes of a call's arrays.

    Attributes
    ----------
    lengths : dict
        By name.
    names : dict
        For each array parameter, the names of its axes (numbers where the shapes state one).
    """

    def __init__(self, declaration: Declaration, arrays: dict[str, Any]) -> None:
        self._declaration = declaration
        self.lengths: dict[str, int] = {}
        self.names: dict[str, tuple[str | int, ...]] = {}
        self._origin: dict[str, str] = {}
        self._leading: Shape | None = None
        if declaration.shapes is None:
            for position, (name, array) in enumerate(arrays.items()):
                self._name_by_parameter(name if name.isascii() else f"array{position}", name, array.shape)
            return
        groups = zip(
            (*declaration.inputs, *declaration.outputs),
            (*declaration.shapes.inputs, *declaration.shapes.outputs),
            strict=True,
        )
        for name, group in groups:
            if arrays.get(name, ABSENT) is not ABSENT:
                self._match(name, group, arrays[name].shape)
        for name, group in zip(declaration.outputs, declaration.shapes.outputs, strict=True):
            if name not in self.names:
                self.names[name] = self._spelled(group)

    def _name_by_parameter(self, label: str, name: str, shape: Shape) -> None:
        self.names[name] = tuple(f"{label}_{axis}" for axis in range(len(shape)))
        self.lengths.update({f"{label}_{axis}": extent for axis, extent in enumerate(shape)})

    def _match(self, name: str, group: tuple[str, ...], shape: Shape) -> None:
        has_leading = bool(group) and group[0] == "..."
        named = group[1:] if has_leading else group
        text = self._declaration.shapes.text if self._declaration.shapes else ""
        if len(shape) < len(named) or (len(shape) > len(named) and not has_leading):
            wanted = f"{len(named)}{' or more' if has_leading else ''}"
            raise ValueError(
                f"{self._declaration.name}: {name} has {len(shape)} {'axis' if len(shape) == 1 else 'axes'}, expected {wanted}: {_listed(group)} in {text}"
            )
        skip = len(shape) - len(named)
        if has_leading:
            self._match_leading(name, shape[:skip], text)
        for axis, (label, extent) in enumerate(zip(named, shape[skip:], strict=True)):
            known = int(label) if label.isdigit() else self.lengths.setdefault(label, extent)
            if known != extent:
                origin = "" if label.isdigit() else f", as {self._origin[label]} has it"
                raise ValueError(
                    f"{self._declaration.name}: {name} has length {extent} along axis {skip + axis} ({label}), expected "
                    f"{known}{origin}: {text}"
                )
            self._origin.setdefault(label, name)
        self.names[name] = self._spelled(group)

    def _match_leading(self, name: str, leading: Shape, text: str) -> None:
        if self._leading is None:
            self._leading = leading
            self._origin["..."] = name
            self.lengths.update({f"leading{axis}": extent for axis, extent in enumerate(leading)})
        if self._leading != leading:
            raise ValueError(
                f"{self._declaration.name}: {name} has leading axes {leading}, expected {self._leading}, as {self._origin['...']} has "
                f"them: {text}"
            )

    def _spelled(self, group: tuple[str, ...]) -> tuple[str | int, ...]:
        found: list[str | int] = []
        for label in group:
            if label == "...":
                found += [f"leading{axis}" for axis in range(len(self._leading or ()))]
            else:
                found.append(int(label) if label.isdigit() else label)
        return tuple(found)

    def shape_of(self, name: str) -> Shape:
        """The shape of an array parameter, from the names of its axes."""
        return tuple(label if isinstance(label, int) else self.lengths[label] for label in self.names[name])


def _listed(group: tuple[str, ...]) -> str:
    return f"({','.join(group)})"
