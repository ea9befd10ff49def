"""Settings: environment variables, defaults, and overrides."""

import threading
from dataclasses import fields
from pathlib import Path

import pytest

from codegen import settings


def test_every_setting_has_one_variable() -> None:
    assert sorted(variable.field for variable in settings.VARIABLES) == sorted(
        field.name for field in fields(settings.Settings)
    )
    assert all(variable.name.startswith("BLOCKARRAY_") and variable.meaning for variable in settings.VARIABLES)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in settings.VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    current = settings.current()
    assert current.cache is True
    assert current.cache_directory == Path("/somewhere/blockarray")
    assert (current.dump, current.threads, current.device, current.verify) == ((), None, None, False)
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert settings.current().cache_directory == Path("~/.cache/blockarray").expanduser()


def test_the_environment_is_read_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKARRAY_THREADS", "3")
    assert settings.current().threads == 3
    monkeypatch.setenv("BLOCKARRAY_THREADS", "5")
    monkeypatch.setenv("BLOCKARRAY_CACHE", "0")
    monkeypatch.setenv("BLOCKARRAY_DUMP", "llvm, assembly")
    monkeypatch.setenv("BLOCKARRAY_CACHE_DIR", "/elsewhere")
    current = settings.current()
    assert (current.threads, current.cache, current.dump) == (5, False, ("llvm", "assembly"))
    assert current.cache_directory == Path("/elsewhere")
    monkeypatch.setenv("BLOCKARRAY_DUMP", "all")
    assert settings.current().dump == settings.STAGES


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("BLOCKARRAY_THREADS", "0", "expected a number from 1 on; it means: threads that run host kernels"),
        ("BLOCKARRAY_THREADS", "many", "expected a number from 1 on; it means: threads that run host kernels"),
        ("BLOCKARRAY_CACHE", "perhaps", "expected 0 or 1"),
        ("BLOCKARRAY_DUMP", "blocks", "no stage is called 'blocks'; stages: all, block, distributed, llvm"),
    ],
)
def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match="environment variable") as caught:
        settings.current()
    assert message in str(caught.value)


def test_overrides_nest_and_end() -> None:
    before = settings.current()
    with settings.override(verify=True, threads=2):
        with settings.override(threads=7) as inner:
            assert (inner.threads, settings.current().verify) == (7, True)
        assert settings.current().threads == 2
    assert settings.current() == before
    with pytest.raises(TypeError, match="there is no setting 'verfy'"), settings.override(verfy=True):
        pass


def test_overrides_belong_to_their_thread() -> None:
    seen: list[bool] = []
    with settings.override(verify=True):
        thread = threading.Thread(target=lambda: seen.append(settings.current().verify))
        thread.start()
        thread.join()
    assert seen == [settings.current().verify]
