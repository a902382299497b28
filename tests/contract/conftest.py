"""Makes the modules of this folder importable and provides the driver of each backend."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drivers import DRIVERS  # needs the path above


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request):
    instance = request.param()
    scenario = request.node.get_closest_marker("scenario").args[0]
    if scenario in instance.cannot:
        pytest.skip(f"{instance.name}: {instance.cannot[scenario]}")
    return instance
