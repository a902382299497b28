"""The server that the tests of this folder talk to."""

import pytest
from tests.frontends.server.guarded_server import GuardedServer


@pytest.fixture
def server(tmp_path):
    server = GuardedServer(tmp_path)
    yield server
    server.close()
