"""The findings of `ostler doctor sandbox`."""

import pytest

from ostler.app.doctor import check_sandbox
from ostler.processes.sandbox_selftest import SelfTestResult

pytestmark = pytest.mark.req("SH-8")


@pytest.mark.parametrize(
    ("sandbox", "message"), [("landlock", "also outside the workspace"), ("bubblewrap", "went through")]
)
async def test_unblocked_attempt_is_explained(monkeypatch, sandbox, message):
    async def selftest():
        return [SelfTestResult("sandbox", True, sandbox), SelfTestResult("chmod", False, "went through")]

    monkeypatch.setattr("ostler.processes.sandbox_selftest.run_selftest", selftest)
    finding = (await check_sandbox())[-1]
    assert finding.state == "error" and message in finding.message
    assert ("bubblewrap" in finding.remedy) is (sandbox == "landlock")
