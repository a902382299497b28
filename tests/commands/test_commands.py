"""Slash commands by themselves: what each comes to, on a session that a scripted backend plays."""

import pytest
from tests.fake_services import FakeServices

from ostler.backends.scripted import ScriptedBackend
from ostler.commands.builtin_commands import ALIASES, COMMANDS
from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.results import ChangeDisplay, EditFile, Quit, ShowDiff, StartTurn, SwitchSession
from ostler.commands.services import NamedItem
from ostler.core.errors import UsageError
from ostler.core.events import (
    InfoChanged,
    MessageDone,
    OptionChanged,
    RuleAdded,
    TodosChanged,
    TurnEnded,
    UsageReported,
)
from ostler.core.message import Message
from ostler.core.permission import Rule
from ostler.core.prompt import TextContent
from ostler.core.sessions import (
    Compact,
    OptionChoice,
    SessionInfo,
    SessionOption,
    SessionSummary,
    SetOption,
    SlashCommand,
)
from ostler.core.tools import Todo, ToolCall
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

REQUIRED = (
    "help new sessions resume fork undo redo compact revert summarize context models agents mode todo skills mcp "
    "permissions export theme quit exit status cost details diff memory init doctor"
)


class Table:
    """A session, its commands, and the machine they are told of."""

    def __init__(self, session, services):
        self.session, self.services = session, services
        self.commands = CommandDispatcher(session, services, lambda: "new-id")
        self._heard = 0

    async def run(self, line):
        for envelope in self.session._records:
            if envelope.seq > self._heard:
                self.commands.on_event(envelope)
                self._heard = envelope.seq
        name, _, rest = line.partition(" ")
        return await self.commands.run(name, rest)

    async def told(self, line):
        return "\n".join((await self.run(line)).lines)

    async def say(self, text):
        await self.session.start(make_prompt(text, self.session.new_id("prompt"))).wait()

    def standing(self):
        """What the model would be told of."""
        return [event.prompt.text for event in self.session.events() if hasattr(event, "prompt")]


@pytest.fixture
async def table(tmp_path):
    async def act(context, said):
        context.emit(MessageDone(Message(f"m-{said.text}", (TextContent(f"answer to {said.text}"),))))
        return TurnEnded("", "done")

    session = await open_test_session(ScriptedBackend([act] * 9), [FakeTool("bash")], LocalWorkspace(str(tmp_path)))
    yield Table(session, FakeServices())
    await session.aclose()


@pytest.mark.req("CL-7", "EN-13")
async def test_status_names_what_undo_does_not_reach(table):
    assert "undo     not .git (what git keeps for itself)" in await table.told("status")


@pytest.mark.req("CL-7")
@pytest.mark.parametrize("name", ["undo", "redo", "new", "quit", "exit", "compact", "details", "status", "todo"])
async def test_words_that_a_command_would_ignore_keep_it_from_running(table, name):
    with pytest.raises(UsageError, match=f"/{name} takes no words, and nothing was done"):
        await table.run(f"{name} the other file")
    assert table.services.took == []


@pytest.mark.req("CL-7", "EN-11")
async def test_words_to_steer_where_nothing_runs_begin_a_turn(table):
    said = await table.run("steer look again")
    assert isinstance(said, StartTurn) and said.prompt.text == "look again"


@pytest.mark.req("CL-7")
async def test_every_required_command_is_there(table):
    for name in REQUIRED.split():
        assert ALIASES.get(name, name) in COMMANDS, name
        assert ALIASES.get(name, name) in table.commands._builtins, name
    assert set(table.commands._builtins) == set(COMMANDS)


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("new", SwitchSession()),
        ("clear", SwitchSession()),
        ("quit", Quit()),
        ("exit", Quit()),
        ("details", ChangeDisplay("details")),
        ("theme light", ChangeDisplay("theme", "light")),
        ("memory", EditFile("AGENTS.md")),
        ("fork", SwitchSession("session-1-copy-0")),
        ("diff", ShowDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")),
    ],
)
async def test_what_the_face_does_itself(table, line, outcome):
    assert await table.run(line) == outcome


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("hlep", "did you mean /help?"),
        ("reveiw", "did you mean /review?"),
        ("zzzzzzzz", "/help lists them"),
        ("help", "/undo"),
        ("help", "/review"),
        ("help", "!command runs"),
        ("help undo", "take back the last prompt"),
        ("help /review", "review the code"),
        ("help unod", "there is no /unod; did you mean /undo?"),
        ("?", "/undo"),
        ("todo", "there is no plan"),
        ("agents", "plan   changes nothing"),
        ("skills", "pdf  reads pages"),
        ("mcp", "no MCP server"),
        ("models", "   1  one"),
        ("permissions", "you gave no rules"),
        ("sessions", "there is no session here yet"),
        ("export out.html", "written to out.html"),
        ("revert", "nothing was said yet"),
        ("title", "it has no title yet"),
        ("doctor", "✓ python"),
        ("context", "0 tokens (empty)"),
        ("cost", "0 tokens in, 0 out"),
        ("steer", "say what"),
    ],
)
async def test_what_is_told(table, line, told):
    assert told in await table.told(line)


@pytest.mark.req("CL-7", "EN-11")
async def test_a_command_of_the_files_becomes_a_prompt(table):
    said = await table.run("review a.py")
    assert isinstance(said, StartTurn)
    assert (said.prompt.text, said.notices) == ("Please review a.py.", ("attached a.py",))


@pytest.mark.req("CL-7")
async def test_what_the_backend_offers_is_told_chosen_and_passed_on(table):
    options = (
        SessionOption("mode", "ask", choices=(OptionChoice("ask"), OptionChoice("code", "Write code"))),
        SessionOption("model", "m1", choices=(OptionChoice("m1"), OptionChoice("m2", "The second"))),
    )
    table.session.emit(InfoChanged(SessionInfo("far", options, (SlashCommand("deploy", "put it out"),))))
    assert await table.told("mode") == "  * ask\n    code  Write code"
    assert " 2  m2  The second" in await table.told("models")
    assert "this backend has no thinking to choose" in await table.told("thinking")
    assert "/deploy  put it out" in await table.told("help")
    assert "did you mean /deploy?" in await table.told("depoly")
    assert (await table.run("deploy now")).prompt.text == "/deploy now"
    await table.run("mode code")
    assert table.session._backend.changes == [SetOption("mode", "code")]


@pytest.mark.req("CL-7", "MD-7")
async def test_the_profiles_of_the_settings_are_listed_and_the_one_in_use_is_marked(table):
    table.services.known_profiles = [
        NamedItem("home", "small at http://here", "small"),
        NamedItem("work", "big", "big"),
    ]
    table.session.emit(OptionChanged("model", "big"))
    shown = (await table.told("models")).split("\n")
    assert shown[:4] == ["     1  home  small at http://here", "  *  2  work  big", "     3  one", "     4  two"]
    assert "/models NAME or a number" in shown[-1]
    table.services.no_models = True
    shown = await table.told("models")
    assert "1  home" in shown
    assert "not known: nobody answers at http://x" in shown
    assert "from now on: home" in await table.told("models 1")


@pytest.mark.req("CL-7")
async def test_choosing_reaches_the_backend(table):
    backend = table.session._backend
    assert "from now on: plan" in await table.told("mode plan")
    assert "from now on: other" in await table.told("model other")
    assert "from now on: two" in await table.told("models 3")
    await table.run("compact")
    assert "all of it again" in await table.told("uncompact")
    assert backend.changes == [
        SetOption("agent", "plan"),
        SetOption("model", "other"),
        SetOption("model", "two"),
        Compact(),
        Compact(undo=True),
    ]


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("agents plam", "did you mean plan?"),
        ("mode plam", "did you mean plan?"),
        ("agents xxxxxx", "there is: build, plan"),
        ("models 99", "there is no model 99"),
        ("revert 7", "there is no prompt '7'"),
        ("revert ²", "there is no prompt"),
        ("fork 1", "there is no prompt '1'"),
        ("permissions 3", "there is no rule '3'"),
        ("resume", "there is no other session"),
        ("resume zz", "there is no session 'zz'"),
    ],
)
async def test_what_cannot_be_is_one_sentence(table, line, why):
    with pytest.raises(UsageError) as raised:
        await table.run(line)
    assert why in str(raised.value)


@pytest.mark.req("EN-13", "SE-3")
async def test_undo_takes_back_words_and_files_and_redo_brings_both_again(table):
    await table.say("one")
    await table.say("two")
    undone = await table.run("undo")
    assert (undone.draft, table.standing()) == ("two", ["one"])
    again = await table.run("undo")
    assert (again.draft, table.standing()) == ("one", [])
    assert "took back: one" in "\n".join(again.lines)
    turns = [turns[0] for _, turns in table.services.took]
    assert turns[0].startswith("session-1/turn-")
    assert turns[0] != turns[1]
    await table.run("redo")
    assert table.standing() == ["one"]
    await table.run("unrevert")
    assert table.standing() == ["one", "two"]
    assert table.services.took[2:] == [("redo", [turns[1]]), ("redo", [turns[0]])]


@pytest.mark.req("EN-13")
async def test_a_new_prompt_after_an_undo_leaves_nothing_to_redo(table):
    await table.say("one")
    await table.run("undo")
    await table.say("other")
    await table.run("redo")
    assert table.standing() == ["other"]
    assert table.services.took[-1] == ("redo", []), "only files that were taken back elsewhere could be meant"


@pytest.mark.req("EN-13", "SE-3")
async def test_revert_goes_back_to_before_any_prompt(table):
    for text in ("one", "two", "three"):
        await table.say(text)
    assert [line.split()[-1] for line in (await table.run("revert")).lines] == ["one", "two", "three"]
    reverted = await table.run("revert 2")
    assert (reverted.draft, table.standing()) == ("two", ["one"])
    direction, turns = table.services.took[-1]
    assert (direction, len(turns)) == ("undo", 2), "the newest first"
    await table.run("redo")
    assert table.standing() == ["one", "two", "three"]
    assert table.services.took[-1] == ("redo", turns[::-1])


@pytest.mark.req("EN-13", "SE-5")
async def test_a_command_by_hand_is_taken_back_too(table):
    await table.say("one")
    await table.session.call(ToolCall("by-hand", "bash", {"command": "touch x"}, origin="person"))
    undone = await table.run("undo")
    assert undone.draft == "!touch x"
    assert table.services.took == [("undo", ["session-1/by-hand"])]
    assert table.standing() == ["one"]


@pytest.mark.req("EN-13")
async def test_undo_in_a_session_without_words_takes_back_the_last_change_of_the_folder(table):
    await table.run("undo")
    assert table.services.took == [("undo", [])]


@pytest.mark.req("SE-3")
async def test_fork_ends_before_the_prompt_that_is_named(table):
    for text in ("one", "two"):
        await table.say(text)
    forked = await table.run("fork 2")
    at = int(forked.session.rpartition("-")[2])
    said = [envelope for envelope in table.session._records if envelope.seq <= at]
    assert type(said[-1].event).__name__ == "TurnEnded"


@pytest.mark.req("SE-3")
async def test_resume_alone_means_the_one_before(table):
    table.services.known_sessions = [
        SessionSummary("session-1", "/", "this", turns=1),
        SessionSummary("older-2", "/", "that"),
    ]
    assert await table.run("resume") == SwitchSession("older-2")
    assert await table.run("resume older") == SwitchSession("older-2")
    assert (await table.run("resume session-1")).lines == ("  you are in it",)
    listed = await table.told("sessions")
    assert "* session-1" in listed
    assert "1 turn  this" in listed


@pytest.mark.req("CL-7")
async def test_what_a_session_holds_is_told(table):
    table.session.emit(TodosChanged((Todo("1", "look", "completed"), Todo("2", "\x1b[2Jmend"))))
    table.session.emit(RuleAdded(Rule("bash", "git *", "allow", "your answer")))
    table.session.emit(UsageReported("m", 100, 20, 60, 0.5, context_used=30, context_limit=200))
    assert await table.told("todo") == "  [x] look\n  [ ] mend"
    assert " 1  allow bash: git *" in await table.told("permissions")
    assert "30 of 200 tokens (15%)" in await table.told("context")
    assert "100 tokens in (60 of them cached), 20 out, $0.5000" in await table.told("cost")
    await table.run("permissions 1")
    assert "you gave no rules" in await table.told("permissions")
    await table.run("title  Two   words")
    assert table.session.state.title == "Two words"
