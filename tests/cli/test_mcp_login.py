"""`ostler mcp login` and `logout` on a terminal, with a browser here or on another machine."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from tests.conftest import at
from tests.mcp.configured_servers import configure
from tests.mcp.fake_authorization_server import FakeAuthorizationServer
from tests.mcp.fake_http_server import FakeHttpServer
from tests.process_starter import Started

pytestmark = pytest.mark.req("MC-6")
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20).read()"


class Terminal:
    """What a person sees and types."""

    def __init__(self, process, controller):
        self.process, self.text = process, ""
        self._controller = controller

    def wait_for(self, pattern):
        while not (found := re.search(pattern, self.text)):
            assert self._read(), f"{pattern} is not in {self.text!r}"
        return found

    def type(self, line):
        os.write(self._controller, line.encode() + b"\n")

    def end(self):
        while self._read():
            pass
        return self.process.wait(timeout=30)

    def _read(self):
        assert select.select([self._controller], [], [], 60)[0], self.text
        try:
            data = os.read(self._controller, 4096)
        except OSError:  # the terminal is closed
            return False
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(ostler, *args, env=None):
    controller, screen = pty.openpty()
    with Started(
        [*args], cwd=ostler.workspace, env=ostler.environment(env), stdin=screen, stdout=screen, stderr=screen
    ) as process:
        os.close(screen)
        try:
            yield Terminal(process, controller)
        finally:
            if process.poll() is None:
                process.kill()
            os.close(controller)


@pytest.fixture
def far(ostler):
    with FakeHttpServer() as far, FakeAuthorizationServer() as authority:
        far.protect(authority)
        configure(ostler, {"far": {"url": far.url}}, permission={"far_*": "allow"})
        yield far


def call(ostler):
    return json.loads(ostler("tool", "call", "far_echo", '{"text": "hi"}').stdout)


def browser(ostler):
    script = ostler.home / "browser"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(BROWSER)} "$1"\n')
    script.chmod(0o700)
    return {"BROWSER": str(script)}


def test_browser_signs_in_and_out(ostler, far):
    refused = call(ostler)
    assert refused["status"] == "failed"
    assert "needs login: ostler mcp login far" in refused["for_model"]
    with terminal(ostler, "mcp", "login", "far", env=browser(ostler)) as screen:
        assert screen.end() == 0, screen.text
        assert f"Sign in at {far.authority.issuer} to use {far.url}" in screen.text
        assert f"logged in to far at {far.authority.issuer}" in screen.text
    assert call(ostler)["for_model"] == "far: hi"
    assert f"logged in at {far.authority.issuer}" in ostler("mcp", "list").stdout
    stored = ostler("mcp", "token", "far", stdin="t0ken-for-tests\n").stdout
    assert "the login is used first; end it with `ostler mcp logout far`" in stored
    assert oct((ostler.home / ".ostler" / "credentials.json").stat().st_mode)[-3:] == "600"
    assert "logged out of far" in ostler("mcp", "logout", "far").stdout
    assert "there is no login at far" in ostler("mcp", "logout", "far").stdout
    assert call(ostler)["status"] == "failed"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def test_address_of_a_browser_elsewhere_is_pasted(ostler, far):
    with terminal(ostler, "mcp", "login", "--no-browser", "far") as screen:
        address = screen.wait_for(r"\n(http://\S+/authorize\S+)\n")[1]
        screen.wait_for("paste it here")
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.build_opener(_NoRedirect).open(address, timeout=20)
        screen.type("hello")
        screen.wait_for("the whole address is needed")
        screen.type(answer.value.headers["location"])
        answer.value.close()
        assert screen.end() == 0, screen.text
    assert call(ostler)["for_model"] == "far: hi"


def test_no_browser_is_opened_without_a_person(ostler, far):
    opened = ostler.home / "opened"
    script = ostler.home / "browser"
    script.write_text(f"#!/bin/sh\ntouch {opened}\n")
    script.chmod(0o700)
    refused = ostler("mcp", "login", "far", env={"BROWSER": str(script), "DISPLAY": ":0"})
    assert refused.code == 2
    assert "a login needs a person at a terminal" in refused.stderr
    ostler("tool", "call", "far_echo", "{}", env={"BROWSER": str(script), "DISPLAY": ":0"})
    assert not opened.exists()
    assert far.authority.requests == []


def test_chat_says_which_login_is_needed_and_sees_it(ostler, far, models):
    with models.playing() as served:
        done = ostler("chat", *at(served), stdin="/mcp restart far\n")
        assert "needs login: ostler mcp login far" in done.stdout
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ostler", "chat", *at(served)],
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            process.stdin.write("/mcp restart far\n")
            process.stdin.flush()
            seen = ""
            while "needs login" not in seen:
                seen += process.stdout.readline()
            with terminal(ostler, "mcp", "login", "far", env=browser(ostler)) as screen:
                assert screen.end() == 0, screen.text
            while "tools/list" not in far.methods():  # the running chat starts the server by itself
                assert select.select([], [], [], 0.05) == ([], [], [])
            output, _ = process.communicate("/mcp\n", timeout=60)
    assert re.search(r"far +ready +3 tools", output)


@pytest.mark.parametrize("name", ["nosuch", "local"])
def test_only_remote_servers_have_a_login(ostler, name):
    configure(ostler, {"local": {"command": ["x"]}})
    done = ostler("mcp", "login", name)
    assert done.code == 2
    assert "there is no remote MCP server" in done.stderr
