"""The journal without the conversation: what is on disk, in memory, and restored."""

import pytest

from ostler.core.events import (
    Envelope,
    MessageDone,
    Notice,
    PartialReply,
    Queued,
    Reminded,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnStarted,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.prompt import ImageContent, Prompt, PromptTarget, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.call_journal import ELSEWHERE, CallJournal, ConversationTexts
from ostler.journal.file_journal import FileJournal

pytestmark = pytest.mark.req("SV-1")
CALL = ToolCall("call-1", "read", {"path": "a.txt"})
IMAGE = ImageContent("image/png", "c2VjcmV0", "secret.png")
EVENTS = [
    TurnStarted("turn-1", Prompt("p1", (TextContent("secret"), IMAGE), target=PromptTarget(task="secret"))),
    Steered(Prompt("p2", (TextContent("secret"),))),
    MessageDone(Message("m1", (ThoughtPart("secret"), TextContent("secret"), CallPart(CALL)))),
    PartialReply("m2", "secret", "secret"),
    Queued(("secret",), (Prompt("p3", (TextContent("secret"),)),)),
    Reminded("secret"),
    Notice("info", "bob asked: secret", quotes=True),
    ToolCalled(CALL),
    ToolFinished(ToolResult("call-1", "ok", "content of a.txt")),
]


@pytest.fixture
def folder(tmp_path):
    journal = CallJournal(FileJournal(tmp_path / "s", "s"), ConversationTexts())
    for seq, event in enumerate(EVENTS, 1):
        journal.append(Envelope(seq, 0.0, event))
    journal.sync()
    empty = {PartialReply: PartialReply("m2", restarts=True), Queued: Queued(())}
    assert [envelope.event for envelope in journal.records()] == [empty.get(type(event), event) for event in EVENTS]
    journal.close()
    return tmp_path / "s"


def test_no_text_reaches_the_disk(folder):
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"secret" not in stored and b"c2VjcmV0" not in stored
    assert b"call-1" in stored and b"content of a.txt" in stored


def test_texts_are_restored_by_id_and_by_record(folder):
    texts = ConversationTexts()
    journal = CallJournal(FileJournal(folder, "s"), texts)
    records = journal.records()
    assert records[0].event.prompt.text == records[2].event.message.text == ELSEWHERE
    texts.restore({"m1": "the reply", "p2": "the hint"}, {1: "the prompt"})
    assert [records[0].event.prompt.text, records[1].event.prompt.text] == ["the prompt", "the hint"]
    assert (records[2].event.message.text, records[2].event.message.calls) == ("the reply", (CALL,))
    assert records.result("call-1").for_model == "content of a.txt"
    assert records[-1].seq == len(EVENTS)
    assert not journal.damage
    journal.close()
