"""The findings of `ostler doctor sandbox`."""

import socket

import pytest

from ostler.doctor.checks import check_sandbox
from ostler.processes.sandbox_selftest import SelfTestResult


@pytest.mark.req("SH-8")
@pytest.mark.parametrize(
    ("sandbox", "message"), [("landlock", "also outside the workspace"), ("bubblewrap", "went through")]
)
async def test_unblocked_attempt_is_explained(monkeypatch, tmp_path, sandbox, message):
    async def selftest():
        return [SelfTestResult("sandbox", True, sandbox), SelfTestResult("chmod", False, "went through")]

    monkeypatch.setattr("ostler.processes.sandbox_selftest.run_selftest", selftest)
    finding = (await check_sandbox(str(tmp_path)))[-1]
    assert finding.state == "error" and message in finding.message
    assert ("bubblewrap" in finding.remedy) is (sandbox == "landlock")


@pytest.mark.req("SH-8")
def test_sandbox_report_says_what_of_the_home_is_readable(ostler):
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text('{"security": {"sandbox_readable": ["~/data"]}}')
    (ostler.home / "data").mkdir()
    report = ostler("doctor", "sandbox").stdout
    line = next(line for line in report.splitlines() if " home " in line)
    assert "commands cannot read" in line and f"{ostler.home}, " in line and f"{ostler.home}/data" in line
    assert "✓ read a home directory" in report
    at_home = ostler("doctor", "sandbox", "--cwd", str(ostler.home)).stdout
    assert "the home directory is readable except for credentials" in at_home


@pytest.mark.req("MD-10")
def test_server_that_does_not_answer_gets_no_tick(ostler, models):
    with models.playing() as server:
        flags = ["--base-url", server.base_url, "--model", "scripted"]
        assert f"✓ model    scripted at {server.base_url}" in ostler("doctor", *flags).stdout
    assert f"✗ model    scripted at {server.base_url}" in ostler("doctor", *flags).stdout


@pytest.mark.req("MD-10")
def test_silent_server_gets_a_warning(ostler):
    """The server accepts the connection and never answers; `doctor` does not wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        done = ostler("doctor", "--base-url", url, "--model", "scripted")
    assert f"✓ model    scripted at {url}" not in done.stdout
    assert f"model    scripted at {url}" in done.stdout
