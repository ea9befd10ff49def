"""What ``import numpy`` means in a program's own files.

The program is unmodified, so the import itself must give another answer. Which answer depends on *who* imports: the
program and the modules beside it get ``blockarray``; every package that it uses keeps the real NumPy that it was
built for. The importing module's globals are the one reliable witness of that, and ``__import__`` receives them.
`ProgramImports` therefore replaces ``builtins.__import__`` and looks at the file of the importer; it leaves
``sys.modules`` alone, where the real NumPy stays.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import sysconfig
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, ModuleType

import numpy

from blockarray.runner.boundary import ADAPTERS

_INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
_IDENTITY_NAMES = frozenset({"__builtins__", "__cached__", "__loader__", "__name__", "__package__", "__spec__"})


class ProgramFiles:
    """Tells a program's own files from the files of installed packages.

    Parameters
    ----------
    directories : sequence of Path
        Folders that hold the program's own modules, sub-folders included.
    foreign : sequence of Path
        Folders that are never the program's, even below ``directories``: where the libraries that run it live.
    """

    def __init__(self, directories: Sequence[Path], foreign: Sequence[Path] = ()) -> None:
        self._directories = tuple(directory.resolve() for directory in directories)
        standard_library = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
        self._foreign = (
            *(folder.resolve() for folder in foreign),
            *(Path(path).resolve() for path in standard_library),
        )
        self._answers: dict[str, bool] = {}

    def own(self, file: str) -> bool:
        """Whether ``file`` is part of the program."""
        answer = self._answers.get(file)
        if answer is None:
            answer = self._answers[file] = self._decide(Path(file))
        return answer

    def _decide(self, file: Path) -> bool:
        path = file.resolve()
        for directory in self._directories:
            if not path.is_relative_to(directory):
                continue
            if not _INSTALLED_FOLDERS.isdisjoint(path.relative_to(directory).parts):
                continue
            # A program may itself lie in such a folder; only what is in a *deeper* one than the program is foreign to
            # it.
            if any(path.is_relative_to(folder) and folder.is_relative_to(directory) for folder in self._foreign):
                continue
            return True
        return False


class SubstituteModule(ModuleType):
    """A module of NumPy's name with the content of ``native``, and of NumPy's own module where ``native`` has none.

    Names are looked up once: ``native``'s are copied in at the start, others are added when first asked for, so that
    an access costs what it costs on any module.
    """

    def __init__(self, name: str, native: ModuleType, real: ModuleType, imports: ProgramImports) -> None:
        super().__init__(name, native.__doc__)
        shown = {key: value for key, value in vars(native).items() if key not in _IDENTITY_NAMES}
        # A submodule of the same name must come back as a substitute too, so that it is completed by NumPy's: left to
        # __getattr__.
        shown = {key: value for key, value in shown.items() if not isinstance(value, ModuleType)}
        shown.pop("__getattr__", None)
        shown.pop("__dir__", None)
        self.__dict__.update(shown)
        self.__dict__["__all__"] = list(getattr(real, "__all__", [key for key in shown if not key.startswith("_")]))
        for key in ("__version__", "__path__", "__spec__", "__package__"):
            if hasattr(real, key):
                self.__dict__[key] = getattr(real, key)
        self.__dict__["_native"] = native
        self.__dict__["_real"] = real
        self.__dict__["_imports"] = imports

    def __getattr__(self, name: str) -> object:
        state = self.__dict__
        value = state["_imports"].attribute(self.__name__, state["_native"], state["_real"], name)
        state[name] = value
        return value

    def __dir__(self) -> list[str]:
        state = self.__dict__
        return sorted(set(dir(state["_native"])) | set(dir(state["_real"])))

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} as {self.__dict__['_native'].__name__!r}>"


class ProgramImports:
    """Gives a program's own files a substitute for ``numpy``; everybody else keeps the real one.

    Parameters
    ----------
    native : module
        The module that takes NumPy's place.
    files : ProgramFiles
        Which files are the program's own.

    Examples
    --------
    >>> import blockarray
    >>> imports = ProgramImports(blockarray, ProgramFiles([Path("/home/me/study")]))
    >>> imports.module("numpy").zeros is blockarray.zeros
    True
    """

    def __init__(self, native: ModuleType, files: ProgramFiles) -> None:
        self._native = native
        self._files = files
        self._modules: dict[str, ModuleType] = {}
        self._unadapted = set(ADAPTERS)
        self._import_before = builtins.__import__
        self._import_module_before = importlib.import_module

    def install(self) -> None:
        """Take over the import statement of this process."""
        self._import_before = builtins.__import__
        self._import_module_before = importlib.import_module
        builtins.__import__ = self._import
        importlib.import_module = self._import_module

    def remove(self) -> None:
        """Give the import statement back."""
        builtins.__import__ = self._import_before
        importlib.import_module = self._import_module_before

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name.partition(".")[0] in self._unadapted:
            return self._adapted(name, globals, locals, fromlist)
        concerned = level == 0 and (name == "numpy" or name.startswith("numpy."))
        if not concerned or not self._is_own(globals, sys._getframe(1)):
            return self._import_before(name, globals, locals, fromlist, level)
        # The real module is loaded in any case: an extension module that imports on behalf of a program's line looks
        # for it in sys.modules.
        self._import_before(name, globals, locals, fromlist, level)
        return self.module(name if fromlist else "numpy")

    def _adapted(
        self,
        name: str,
        globals: Mapping[str, object] | None,
        locals: Mapping[str, object] | None,
        fromlist: Sequence[str] | None,
    ) -> ModuleType:
        """Import what `ADAPTERS` lists, and adapt it the first time that one of the program's own files asks for it."""
        found = self._import_before(name, globals, locals, fromlist, 0)
        root = name.partition(".")[0]
        if root in self._unadapted and self._is_own(globals, sys._getframe(2)):
            self._unadapted.remove(root)
            ADAPTERS[root](sys.modules[root])
        return found

    def _import_module(self, name: str, package: str | None = None) -> ModuleType:
        caller = sys._getframe(1)
        concerned = name == "numpy" or name.startswith("numpy.")
        if not concerned or not self._is_own(caller.f_globals, caller):
            return self._import_module_before(name, package)
        return self.module(name)

    def _is_own(self, namespace: Mapping[str, object] | None, frame: FrameType | None) -> bool:
        # Code run by exec() in a namespace of its own has no file: it belongs to the nearest caller that has one.
        file = (namespace or {}).get("__file__")
        while not isinstance(file, str) and frame is not None:
            file = frame.f_globals.get("__file__")
            frame = frame.f_back
        return isinstance(file, str) and self._files.own(file)

    def module(self, name: str) -> ModuleType:
        """The module that the program's own ``import name`` gives; ``name`` is ``"numpy"`` or a submodule of it."""
        known = self._modules.get(name)
        if known is not None:
            return known
        real = self._import_module_before(name)
        native = self._native_module(name)
        # Nothing of that name of our own: NumPy's is as good. Its functions hand our arrays back to us by NumPy's own
        # protocols.
        result = real if native is None else SubstituteModule(name, native, real, self)
        self._modules[name] = result
        return result

    def _native_module(self, name: str) -> ModuleType | None:
        if name == "numpy":
            return self._native
        parent_name, _, tail = name.rpartition(".")
        parent = self._native_module(parent_name)
        if parent is None:
            return None
        value = getattr(parent, tail, None)
        if isinstance(value, ModuleType):
            return None if _belongs_to_numpy(value) else value
        own_name = f"{parent.__name__}.{tail}"
        try:
            return self._import_module_before(own_name)
        except ModuleNotFoundError as error:
            if error.name is None or not (own_name == error.name or own_name.startswith(error.name + ".")):
                raise  # the module is there, but something that it needs is not: that must be seen
            return None

    def attribute(self, module_name: str, native: ModuleType, real: ModuleType, name: str) -> object:
        """``name`` of the substitute for ``module_name``: a submodule, ``native``'s attribute, or NumPy's own.

        Raises
        ------
        AttributeError
            Neither module has the name.
        """
        submodule = getattr(real, name, None)
        # Some modules of NumPy are there under a second name that cannot be imported (numpy.emath): those are plain
        # attributes.
        if isinstance(submodule, ModuleType) and submodule.__name__ == f"{real.__name__}.{name}":
            return self.module(f"{module_name}.{name}")
        try:
            return getattr(native, name)
        except AttributeError:
            pass
        try:
            value = getattr(real, name)
        except AttributeError:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}", name=name, obj=real) from None
        if callable(value) and not isinstance(value, (type, numpy.ufunc)) and not name.startswith("_"):
            return self._host_function(f"{module_name}.{name}", value)
        return value

    def _host_function(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        """NumPy's ``function``, which says once that it runs on the host, and whose arrays join the others."""
        to_native: Callable[[numpy.ndarray], object] = self._native.asarray
        native_name = self._native.__name__
        category: type[Warning] = getattr(self._native, "HostFallbackWarning", RuntimeWarning)
        said = False

        def joined(value: object) -> object:
            if type(value) is numpy.ndarray and value.dtype.kind in "biufc":
                return to_native(value)
            if type(value) is tuple:
                return tuple(joined(item) for item in value)
            if type(value) is list:
                return [joined(item) for item in value]
            return value

        @functools.wraps(function)
        def on_the_host(*arguments: object, **keywords: object) -> object:
            nonlocal said
            if not said:
                said = True
                warnings.warn(
                    f"{native_name} has no {name}: NumPy's runs in its place, on the host", category, stacklevel=2
                )
            return joined(function(*arguments, **keywords))

        return on_the_host


def _belongs_to_numpy(module: ModuleType) -> bool:
    return module.__name__ == "numpy" or module.__name__.startswith("numpy.")
