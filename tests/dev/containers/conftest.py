"""podman with the images that the tests of this folder run."""

from __future__ import annotations

import pytest

from containers.compose import PROGRAM_PATH
from containers.engine import Engine, EngineError
from containers.images import STAND_INS, build_own_images, get_base_images


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Podman with all images; without it the tests are skipped, and the reason says what is missing."""
    engine = Engine()
    if missing := engine.find_missing():
        pytest.skip(missing)
    if not PROGRAM_PATH.exists():
        pytest.skip(f"{PROGRAM_PATH} is not here: run `make containers`")
    try:
        stand_ins = get_base_images(engine)
    except EngineError as error:
        pytest.skip(f"no base images: {error}")
    print(f"stand-ins: {', '.join(stand_ins) or 'none'}")
    try:
        engine.podman("run", "--rm", "--network", "none", "--entrypoint", "true", next(iter(STAND_INS)))
    except EngineError as error:
        pytest.skip(f"podman runs no container here: {error}")
    build_own_images(engine)
    return engine
