"""The servers that the tests of this folder talk to."""

import pytest
from tests.frontends.server.guarded_server import GuardedServer
from tests.frontends.server.server_processes import ServerProcess, ServerThread


@pytest.fixture
def server(tmp_path):
    server = GuardedServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def serve(tmp_path):
    """`serve(model, heartbeat=1.0)` starts a server in a thread."""
    servers = []

    def start(model, **limits):
        folder = tmp_path / f"server-{len(servers)}"
        folder.mkdir()
        servers.append(ServerThread(folder, model, **limits))
        return servers[-1]

    yield start
    for started in servers:
        started.close()


@pytest.fixture
def serve_process(ostler):
    """`serve_process(model)` starts `ostler serve` as a process."""
    servers = []

    def start(model, *flags):
        servers.append(ServerProcess(ostler, model, *flags))
        return servers[-1]

    yield start
    for started in servers:
        started.close()
