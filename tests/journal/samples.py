"""Small sessions to store, find, export and fork."""

from ostler.core.events import (
    Envelope,
    MessageDone,
    OptionChanged,
    PrefixBuilt,
    RuleAdded,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.core.message import CallPart, Message, ThoughtPart
from ostler.core.permission import Rule
from ostler.core.prompt import ImageContent, Prompt, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.journal.journal_store import JournalStore

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PIXEL = ImageContent("image/png", "iVBORw0KGgo=", "a.png")


def turn(prompt="what is in a.txt?", answer="It says hello.", output="hello", number=1):
    """Return the events of one turn: a prompt, a tool call and an answer."""
    call = ToolCall(f"c{number}", "read", {"path": "a.txt", "password": "correct-horse-9"}, raw='{"path": "a.txt"}')
    return [
        TurnStarted(f"t{number}", Prompt("p", (TextContent(prompt), PIXEL))),
        PrefixBuilt("the system prompt", ()),
        MessageDone(Message(f"m{number}", (ThoughtPart("hm <b>"), TextContent("Let me look."), CallPart(call)))),
        ToolStarted(call.id, "read", False),
        ToolFinished(ToolResult(call.id, "ok", output)),
        RuleAdded(Rule("bash", "*", "allow", "your answer")),
        OptionChanged("security_profile", "god_mode"),
        UsageReported("m1", 10, 5, 2, 0.5),
        MessageDone(Message(f"n{number}", (TextContent(answer),))),
        TurnEnded(f"t{number}", "done"),
    ]


def save_session(store: JournalStore, session_id="s1", events=None, project="p", time=1e9):
    """Store a session with these events after its opening, or append them, and return it."""
    session = store.session(project, session_id)
    journal = store.open(session)
    opened = [SessionOpened(session_id, "/work", "engine", "1")] if not len(journal.records()) else []
    start = journal.records()[-1].seq + 1 if len(journal.records()) else 1
    for seq, event in enumerate([*opened, *(turn() if events is None else events)], start):
        journal.append(Envelope(seq, time + seq, event))
    journal.close()
    return session
