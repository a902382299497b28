"""Questions as ACP and MCP send them, and the answers."""

import pytest

from ostler.core.permission import Question, QuestionReply
from ostler.wire.elicitation import elicitation_params, elicitation_reply

pytestmark = pytest.mark.req("PM-5")


def test_form_shows_invisible_characters_of_the_question():
    params = elicitation_params(Question("q", "Continue\u202e?\nNow", asked_by="files\x1b[2J"))
    assert params["mode"] == "form"
    assert not set(params["message"]) & {"\u202e", "\x1b"}
    assert params["message"].startswith("files") and "Continue" in params["message"] and "\n" in params["message"]
    assert params["requestedSchema"]["properties"] == {"answer": {"type": "string"}}


def test_url_is_named_with_the_id_of_the_question():
    params = elicitation_params(Question("q1", "Log in", url="https://a.example"))
    assert params == {"mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "q1"}


@pytest.mark.parametrize(
    ("response", "reply"),
    [
        ({"action": "accept", "content": {"a": 1}}, QuestionReply("accept", {"a": 1})),
        ({"action": "accept", "content": "text"}, QuestionReply("accept", None)),
        ({"action": "cancel"}, QuestionReply("cancel")),
        ({"action": "yes"}, QuestionReply("decline")),
        ({"action": ["accept"]}, QuestionReply("decline")),
        ("accept", QuestionReply("decline")),
        (None, QuestionReply("decline")),
    ],
    ids=str,
)
def test_only_a_valid_answer_accepts(response, reply):
    assert elicitation_reply(response) == reply
