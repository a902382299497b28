"""What `ostler doctor sandbox` makes of the proofs."""

import pytest

from ostler.app.doctor import examine_sandbox
from ostler.processes.proving import Proof

pytestmark = pytest.mark.req("SH-8")


@pytest.mark.parametrize(
    ("sandbox", "told"), [("landlock", "also outside the workspace"), ("bubblewrap", "went through")]
)
async def test_what_does_not_hold_is_told_in_plain_words(monkeypatch, sandbox, told):
    async def prove():
        return [Proof("sandbox", True, sandbox), Proof("chmod", False, "went through")]

    monkeypatch.setattr("ostler.processes.proving.prove", prove)
    finding = (await examine_sandbox())[-1]
    assert finding.state == "bad" and told in finding.told
    assert ("bubblewrap" in finding.remedy) is (sandbox == "landlock")
