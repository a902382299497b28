"""Small sessions to keep, find and take along."""

from ostler.journal.store import Store
from ostler.vocabulary.events import (
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
from ostler.vocabulary.message import Called, Message, Thought
from ostler.vocabulary.permission import Rule
from ostler.vocabulary.prompt import Image, Prompt, Text
from ostler.vocabulary.tools import ToolCall, ToolResult

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PIXEL = Image("image/png", "iVBORw0KGgo=", "a.png")


def turn(words="what is in a.txt?", answer="It says hello.", output="hello", number=1):
    """Prompt, look, answer."""
    call = ToolCall(f"c{number}", "read", {"path": "a.txt", "password": "correct-horse-9"}, raw='{"path": "a.txt"}')
    return [
        TurnStarted(f"t{number}", Prompt("p", (Text(words), PIXEL))),
        PrefixBuilt("the system prompt", ()),
        MessageDone(Message(f"m{number}", (Thought("hm <b>"), Text("Let me look."), Called(call)))),
        ToolStarted(call.id, "read", False),
        ToolFinished(ToolResult(call.id, "ok", output)),
        RuleAdded(Rule("bash", "*", "allow", "your answer")),
        OptionChanged("security_profile", "god_mode"),
        UsageReported("m1", 10, 5, 2, 0.5),
        MessageDone(Message(f"n{number}", (Text(answer),))),
        TurnEnded(f"t{number}", "done"),
    ]


def keep(store: Store, session_id="s1", events=None, project="p", time=1e9):
    """A session of these events, after its opening."""
    place = store.place(project, session_id)
    journal = store.open(place)
    opened = [SessionOpened(session_id, "/work", "engine", "1")] if not len(journal.past()) else []
    start = journal.past()[-1].seq + 1 if len(journal.past()) else 1
    for seq, event in enumerate([*opened, *(turn() if events is None else events)], start):
        journal.append(Envelope(seq, time + seq, event))
    journal.close()
    return place
