"""What all tests share: the `gpu` marker and the backends of the devices that are there."""

import pytest

from codegen.targets import backend, cuda_available
from codegen.targets.backend import Backend


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where no GPU can be used."""
    marked = [item for item in items if "gpu" in item.keywords]
    if not marked or cuda_available():
        return
    skip = pytest.mark.skip(reason="no NVIDIA GPU, driver or cuda-python here")
    for item in marked:
        item.add_marker(skip)


@pytest.fixture(scope="session")
def host() -> Backend:
    """The host's backend."""
    return backend("cpu")


@pytest.fixture(scope="session")
def gpu() -> Backend:
    """The first GPU's backend; for tests marked `gpu`."""
    if not cuda_available():
        pytest.skip("no NVIDIA GPU, driver or cuda-python here")
    return backend("cuda:0")


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device_backend(request: pytest.FixtureRequest) -> Backend:
    """The backend of each kind of device in turn."""
    return backend(request.param)
