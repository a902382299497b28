"""Notices about waiting and retries."""

import pytest

from ostler.core.events import Retrying
from ostler.rendering.wait_notices import wait_notice


@pytest.mark.req("CL-8")
@pytest.mark.parametrize(("seconds", "when"), [(0.0, "now"), (0.5, "now"), (0.6, "in 1 s"), (12.4, "in 12 s")])
def test_retry_notice_contains_the_delay(seconds, when):
    assert wait_notice(Retrying(2, seconds, "no response")) == f"no response; retrying {when} (attempt 2)"
