"""Puts the engine's doubles within reach of its tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
async def harness(tmp_path):
    """A session to be opened with a model, and closed at the end."""
    from engine_play import Play

    made = Play(str(tmp_path))
    yield made
    if made.session:
        await made.session.aclose()
