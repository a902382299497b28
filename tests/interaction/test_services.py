"""Notices about a prompt that is sent without asking the user."""

import pytest

from ostler.core.prompt import Prompt
from ostler.interaction.services import BuiltPrompt, left_out_notices


@pytest.mark.req("PM-8")
def test_agent_that_is_left_out_is_announced():
    questions = ("attach .env, which may contain secrets", "switch to the agent build")
    built = BuiltPrompt(Prompt("p", ()), ("@.env was not attached",), questions)
    assert left_out_notices(built) == (
        "@.env was not attached",
        "your prompt does not switch to the agent build: that needs your approval",
    )
