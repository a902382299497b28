"""Fixtures for the command line, for scripted model servers and for certificates."""

import asyncio
import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.certificates import Certificates
from tests.process_starter import Started
from tests.tiers import TIER, mark_slow_cases, select_sample

from ostler.testing.model_server import ScriptedModelServer, ScriptedReply
from ostler.testing.zero_server import ScriptedZeroServer

GC_THRESHOLD = 10_000  # new objects until the next collection
FOLDER_NUMBERS = itertools.count()
INHERITED_VARIABLES = ("PATH", "TMPDIR")


class Outcome(NamedTuple):
    """Output and exit status of one run of the command line."""

    stdout: str
    stderr: str
    code: int


class Ostler:
    """The command line in its own workspace, with an empty home and without the caller's environment."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.home = folder / "home"
        self.workspace.mkdir()
        self.home.mkdir()

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        return {**inherited, "HOME": str(self.home), "LANG": "C.UTF-8", **(extra or {})}

    def __call__(
        self, *args: str | Path, stdin: str = "", env: Mapping[str, str] | None = None, timeout: float = 90
    ) -> Outcome:
        pipe = subprocess.PIPE
        with Started(
            [*map(str, args)],
            cwd=self.workspace,
            env=self.environment(env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
        ) as process:
            try:
                stdout, stderr = process.communicate(stdin, timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Outcome(stdout, stderr, process.returncode)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, which later ignores the many objects that are made here."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow cases of tests, and select a sample of the slow tests for `./run test --sample`."""
    mark_slow_cases(items)
    if TIER == "sample":
        sample = select_sample(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in sample])
        items[:] = sample


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its own for each test, as in pytest, but without a link to the newest folder of each test."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(FOLDER_NUMBERS)}", numbered=False)


@pytest.fixture
def ostler(tmp_path: Path) -> Ostler:
    """Runs the command line: `ostler("run", "say hello", stdin=…, env=…, timeout=…)`; see `.workspace`, `.home`."""
    return Ostler(tmp_path)


class Models:
    """Scripted model servers in a background thread, so that a test can wait for the command line."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @contextmanager
    def playing(self, *replies: ScriptedReply, **options: object) -> Iterator[ScriptedModelServer]:
        """Serve the replies during the `with` block; unused replies and unexpected requests are errors at its end."""
        server = ScriptedModelServer(*replies, **options)
        self.wait(server.__aenter__())
        try:
            yield server
        except BaseException as error:
            self.wait(server.__aexit__(type(error), error, None))
            raise
        self.wait(server.__aexit__(None, None, None))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=10)


@pytest.fixture
def models() -> Iterator[Models]:
    """`with models.playing(text("hi")) as server: ostler("run", *at(server), "hello")`."""
    servers = Models()
    yield servers
    servers.close()


def at(server: ScriptedModelServer) -> list[str]:
    """Return the flags that select a server."""
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program to make certificates")
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def shared_team(tmp_path_factory):
    from tests.remote_team import Team

    team = Team(tmp_path_factory.mktemp("server"))
    yield team
    team.close()


@pytest.fixture
def team(shared_team):
    """`ostler serve` with a scripted model, in a folder of its own; the tests of a module share it."""
    yield shared_team
    assert shared_team.drop_replies() == 0


@pytest.fixture
def client(tmp_path):
    """The command line in another folder, with a home of its own."""
    folder = tmp_path / "client"
    folder.mkdir()
    client = Ostler(folder)
    (client.home / ".ostler").mkdir()
    return client


@pytest.fixture
def zero(ostler, models):
    """`with zero(answer, …) as server: server.run("prompt")` runs prompts against a scripted Agent Zero server."""

    @contextmanager
    def serve(*answers, **options):
        server = ScriptedZeroServer(list(answers), **options)
        models.wait(server.__aenter__())
        env = {"AGENTZERO_API_URL": server.api_url, "AGENTZERO_CONTEXT": "0"}
        server.run = lambda *args, **more: ostler("zero", "run", *args, env=env | more.pop("env", {}), **more)
        try:
            yield server
        except BaseException as error:
            models.wait(server.__aexit__(type(error), error, None))
            raise
        models.wait(server.__aexit__(None, None, None))

    return serve
