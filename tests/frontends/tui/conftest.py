"""Sessions with a scripted backend for the full-screen client."""

import pytest

from ostler.backends.scripted import ScriptedBackend
from ostler.testing.session_fixture import ALLOW_ALL, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace


@pytest.fixture
def open_session(tmp_path):
    """`await open_session(turns, tools, policy)` opens a session that runs these turns."""

    async def open_one(turns=(), tools=(), policy=ALLOW_ALL, journal=None):
        return await open_test_session(
            ScriptedBackend(turns), list(tools), LocalWorkspace(str(tmp_path)), policy=policy, journal=journal
        )

    return open_one
