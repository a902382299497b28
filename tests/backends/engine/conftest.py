"""Makes the engine's test helpers importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
async def harness(tmp_path):
    """A session harness; `open` it with a model. It is closed after the test."""
    from engine_harness import EngineHarness

    engine_harness = EngineHarness(str(tmp_path))
    yield engine_harness
    if engine_harness.session:
        await engine_harness.session.aclose()
