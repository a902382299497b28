"""What `ostler doctor sandbox` makes of the proofs."""

import pytest

from ostler.app.doctor import check_sandbox
from ostler.processes.sandbox_selftest import SelfTestResult

pytestmark = pytest.mark.req("SH-8")


@pytest.mark.parametrize(
    ("sandbox", "told"), [("landlock", "also outside the workspace"), ("bubblewrap", "went through")]
)
async def test_what_does_not_hold_is_told_in_plain_words(monkeypatch, sandbox, told):
    async def prove():
        return [SelfTestResult("sandbox", True, sandbox), SelfTestResult("chmod", False, "went through")]

    monkeypatch.setattr("ostler.processes.sandbox_selftest.run_selftest", prove)
    finding = (await check_sandbox())[-1]
    assert finding.state == "bad" and told in finding.message
    assert ("bubblewrap" in finding.remedy) is (sandbox == "landlock")
