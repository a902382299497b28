"""Why nothing comes, in words that are true to the second."""

import pytest

from ostler.core.events import Retrying
from ostler.rendering.wait_notices import wait_notice


@pytest.mark.req("CL-8")
@pytest.mark.parametrize(("seconds", "when"), [(0.0, "at once"), (0.5, "at once"), (0.6, "in 1 s"), (12.4, "in 12 s")])
def test_a_retry_says_when(seconds, when):
    assert wait_notice(Retrying(2, seconds, "nobody answers")) == f"nobody answers; trying again {when} (attempt 2)"
