"""Slash commands: the result of each, in a session with a scripted backend."""

import pytest
from tests.fake_services import FakeServices

from ostler.backends.scripted import ScriptedBackend
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
from ostler.interaction.builtin_commands import ALIASES, COMMANDS
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.results import ChangeDisplay, EditFile, Quit, ShowDiff, StartTurn, SwitchSession
from ostler.interaction.services import NamedItem
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import make_prompt, open_test_session
from ostler.workspace.local_workspace import LocalWorkspace

REQUIRED = (
    "help new sessions resume fork undo redo compact revert summarize context models agents mode todo skills mcp "
    "permissions export theme quit exit status cost details diff memory init doctor"
)
OPTIONS = (SessionOption("model", ""), SessionOption("agent", ""))


class CommandFixture:
    """A session, its commands and fake services."""

    def __init__(self, session, services):
        self.session, self.services = session, services
        self.commands = CommandDispatcher(session, services, lambda: "new-id")
        self._last_seq = 0

    async def run(self, line):
        for envelope in self.session._records:
            if envelope.seq > self._last_seq:
                self.commands.on_event(envelope)
                self._last_seq = envelope.seq
        name, _, rest = line.partition(" ")
        return await self.commands.run(name, rest)

    async def output(self, line):
        return "\n".join((await self.run(line)).lines)

    async def send_prompt(self, text):
        await self.session.start(make_prompt(text, self.session.new_id("prompt"))).wait()

    def prompts(self):
        """Return the prompts that are not reverted."""
        return [event.prompt.text for event in self.session.events() if hasattr(event, "prompt")]


@pytest.fixture
async def fixture(tmp_path):
    async def act(context, prompt):
        context.emit(MessageDone(Message(f"m-{prompt.text}", (TextContent(f"answer to {prompt.text}"),))))
        return TurnEnded("", "done")

    backend = ScriptedBackend([act] * 9, SessionInfo("scripted", OPTIONS, can_steer=True))
    session = await open_test_session(backend, [FakeTool("bash")], LocalWorkspace(str(tmp_path)))
    yield CommandFixture(session, FakeServices())
    await session.aclose()


@pytest.mark.req("CL-7", "EN-13")
async def test_status_lists_what_undo_does_not_cover(fixture):
    assert "undo     does not cover .git (git's own data)" in await fixture.output("status")


@pytest.mark.req("CL-7")
@pytest.mark.parametrize("name", ["undo", "redo", "new", "quit", "exit", "compact", "details", "status", "todo"])
async def test_unexpected_arguments_are_rejected(fixture, name):
    with pytest.raises(UsageError, match=f"/{name} takes no arguments"):
        await fixture.run(f"{name} the other file")
    assert fixture.services.undo_requests == []


@pytest.mark.req("CL-7", "EN-11")
async def test_steer_starts_a_turn_when_none_is_running(fixture):
    result = await fixture.run("steer look again")
    assert isinstance(result, StartTurn) and result.prompt.text == "look again"


@pytest.mark.req("CL-7")
async def test_every_required_command_exists(fixture):
    for name in REQUIRED.split():
        assert ALIASES.get(name, name) in COMMANDS, name
    assert all(callable(command.handler(fixture.commands)) for command in COMMANDS.values())


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "result"),
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
async def test_command_returns_an_action_for_the_frontend(fixture, line, result):
    assert await fixture.run(line) == result


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("hlep", "did you mean /help?"),
        ("reveiw", "did you mean /review?"),
        ("zzzzzzzz", "/help lists them"),
        ("help", "/undo"),
        ("help", "/review"),
        ("help", "!command runs"),
        ("help undo", "undo the last prompt"),
        ("help /review", "review the code"),
        ("help unod", "there is no /unod; did you mean /undo?"),
        ("?", "/undo"),
        ("todo", "the todo list is empty"),
        ("agents", "plan   read-only"),
        ("skills", "pdf  reads pages"),
        ("mcp", "no MCP server"),
        ("models", "   1  one"),
        ("permissions", "you added no rules"),
        ("sessions", "there are no sessions in this folder yet"),
        ("export out.html", "written to out.html"),
        ("revert", "there are no prompts yet"),
        ("title", "no title yet"),
        ("doctor", "✓ python"),
        ("context", "0 tokens (empty)"),
        ("cost", "0 tokens in, 0 out"),
        ("steer", "usage: /steer words"),
    ],
)
async def test_command_shows_text(fixture, line, text):
    assert text in await fixture.output(line)


@pytest.mark.req("CL-7", "EN-11")
async def test_custom_command_becomes_a_prompt(fixture):
    result = await fixture.run("review a.py")
    assert isinstance(result, StartTurn)
    assert (result.prompt.text, result.notices) == ("Please review a.py.", ("attached a.py",))


@pytest.mark.req("CL-7")
async def test_options_and_commands_of_the_backend_are_listed_and_forwarded(fixture):
    options = (
        SessionOption("mode", "ask", choices=(OptionChoice("ask"), OptionChoice("code", "Write code"))),
        SessionOption("model", "m1", choices=(OptionChoice("m1"), OptionChoice("m2", "The second"))),
    )
    fixture.session.emit(InfoChanged(SessionInfo("far", options, (SlashCommand("deploy", "put it out"),))))
    assert await fixture.output("mode") == "  * ask\n    code  Write code"
    assert " 2  m2  The second" in await fixture.output("models")
    assert "this backend has no thinking option" in await fixture.output("thinking")
    assert "/deploy  put it out" in await fixture.output("help")
    assert "did you mean /deploy?" in await fixture.output("depoly")
    assert (await fixture.run("deploy now")).prompt.text == "/deploy now"
    await fixture.run("mode code")
    assert fixture.session._backend.changes == [SetOption("mode", "code")]


@pytest.mark.req("CL-7", "AZ-7")
async def test_every_option_of_the_backend_can_be_listed_and_set(fixture):
    options = (
        SessionOption("project", "one", "Project\x1b[31m", has_default=True),
        SessionOption("project kind", "b", choices=(OptionChoice("a", "First"), OptionChoice("b"))),
    )
    fixture.session.emit(InfoChanged(SessionInfo("far", options)))
    listed = await fixture.output("set")
    assert "project       one  Project" in listed
    assert "project kind  b" in listed
    assert "\x1b" not in listed
    assert "  * b" in await fixture.output("set project kind")
    assert "project  one" in await fixture.output("set project")
    for line in ("set project two words", "set project kind a", 'set project ""'):
        await fixture.run(line)
    changes = [SetOption("project", "two words"), SetOption("project kind", "a"), SetOption("project", "")]
    assert fixture.session._backend.changes == changes
    refused = {"set project kind c": "unknown project kind 'c'", 'set project kind ""': "has no default"}
    for line, message in {**refused, "set projcet x": "there is no option 'projcet'"}.items():
        with pytest.raises(UsageError, match=message):
            await fixture.run(line)


@pytest.mark.req("PM-10")
async def test_modes_of_the_backend_are_listed_beside_ours_and_selected_by_name(fixture):
    own = SessionOption("mode", "ask", choices=(OptionChoice("ask", description="ask first"), OptionChoice("plan")))
    theirs = SessionOption("far.mode", "ask", choices=(OptionChoice("ask"), OptionChoice("code", "Write code")))
    fixture.session.emit(InfoChanged(SessionInfo("acp:far", (own, theirs))))
    assert (await fixture.output("mode")).splitlines() == [
        "  * ask   ask first",
        "    plan",
        "  modes of far:",
        "  * ask",
        "    code  Write code",
    ]
    for line in ("mode plan", "mode code", "mode far:ask"):
        await fixture.run(line)
    changes = [SetOption("mode", "plan"), SetOption("mode", "code"), SetOption("mode", "ask")]
    assert fixture.session._backend.changes == changes
    with pytest.raises(UsageError, match="unknown mode 'plam'; did you mean plan"):
        await fixture.run("mode plam")
    with pytest.raises(UsageError, match="available: ask, plan, far:ask, far:code"):
        await fixture.run("mode zzzzzz")


@pytest.mark.req("CL-7", "MD-7")
async def test_model_profiles_are_listed_and_the_current_one_is_marked(fixture):
    fixture.services.known_profiles = [
        NamedItem("home", "small at http://here", "small"),
        NamedItem("work", "big", "big"),
    ]
    fixture.session.emit(OptionChanged("model", "big"))
    lines = (await fixture.output("models")).split("\n")
    assert lines[:4] == ["     1  home  small at http://here", "  *  2  work  big", "     3  one", "     4  two"]
    assert "/models NAME or NUMBER" in lines[-1]
    fixture.services.endpoint_down = True
    text = await fixture.output("models")
    assert "1  home" in text
    assert "cannot list the models of the endpoint: cannot connect to http://x" in text
    assert "now using model home" in await fixture.output("models 1")


@pytest.mark.req("MD-7")
async def test_numbers_of_models_stay_as_shown(fixture):
    """A selected model that is not listed comes last; a number means the list on the screen."""
    fixture.services.known_profiles = [NamedItem("home", "small", "small", active=True), NamedItem("work", "", "big")]
    fixture.session.emit(OptionChanged("model", "other"))
    lines = (await fixture.output("models")).split("\n")
    assert [line.split()[-1] for line in lines[1:5]] == ["work", "one", "two", "other"]
    assert lines[4] == "  *  5  other"
    fixture.services.known_profiles.insert(0, NamedItem("new"))
    assert "now using model work" in await fixture.output("models 2")


@pytest.mark.req("MD-7")
async def test_active_profile_is_marked(fixture):
    """The mark is at the profile, not at the same model in the endpoint's list or in another profile."""
    fixture.services.known_profiles = [NamedItem("far", "", "one"), NamedItem("near", "", "one", active=True)]
    fixture.session.emit(InfoChanged(SessionInfo("engine", (SessionOption("model", "one"),))))
    assert "  *  2  near" in await fixture.output("models")
    fixture.session.emit(OptionChanged("model", "far"))
    assert "  *  1  far" in await fixture.output("models")


@pytest.mark.req("MD-7")
async def test_mistyped_profile_is_an_error_without_a_list_of_models(fixture):
    fixture.services.known_profiles = [NamedItem("keyed", "", "m1")]
    fixture.services.endpoint_down = True
    for name in ("keyd", "m1"):
        with pytest.raises(UsageError, match="did you mean keyed"):
            await fixture.run(f"models {name}")
    assert "now using model something-else" in await fixture.output("models something-else")


@pytest.mark.req("CL-7")
async def test_chosen_option_is_sent_to_the_backend(fixture):
    backend = fixture.session._backend
    assert "now using agent plan" in await fixture.output("agents plan")
    assert "now using model one" in await fixture.output("model one")
    assert "now using model two" in await fixture.output("models 2")
    await fixture.run("compact")
    assert "the full conversation again" in await fixture.output("uncompact")
    assert backend.changes == [
        SetOption("agent", "plan"),
        SetOption("model", "one"),
        SetOption("model", "two"),
        Compact(),
        Compact(undo=True),
    ]


@pytest.mark.req("CL-7")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("agents plam", "did you mean plan?"),
        ("agents xxxxxx", "available: build, plan"),
        ("models 99", "there is no model 99"),
        ("models ome", "did you mean one?"),
        ("models nosuch", "available: one, two"),
        ("revert 7", "there is no prompt '7'"),
        ("revert ²", "there is no prompt"),
        ("fork 1", "there is no prompt '1'"),
        ("permissions 3", "there is no rule '3'"),
        ("resume", "there is no other session"),
        ("resume zz", "there is no session 'zz'"),
    ],
)
async def test_invalid_argument_raises_a_usage_error(fixture, line, message):
    with pytest.raises(UsageError) as raised:
        await fixture.run(line)
    assert message in str(raised.value)


@pytest.mark.req("EN-13", "SE-3")
async def test_undo_and_redo_apply_to_conversation_and_files(fixture):
    await fixture.send_prompt("one")
    await fixture.send_prompt("two")
    undone = await fixture.run("undo")
    assert (undone.draft, fixture.prompts()) == ("two", ["one"])
    again = await fixture.run("undo")
    assert (again.draft, fixture.prompts()) == ("one", [])
    assert "undone: one" in "\n".join(again.lines)
    turns = [turns[0] for _, turns in fixture.services.undo_requests]
    assert turns[0].startswith("session-1/turn-")
    assert turns[0] != turns[1]
    await fixture.run("redo")
    assert fixture.prompts() == ["one"]
    await fixture.run("unrevert")
    assert fixture.prompts() == ["one", "two"]
    assert fixture.services.undo_requests[2:] == [("redo", [turns[1]]), ("redo", [turns[0]])]


@pytest.mark.req("EN-13")
async def test_new_prompt_after_undo_clears_redo(fixture):
    await fixture.send_prompt("one")
    await fixture.run("undo")
    await fixture.send_prompt("other")
    await fixture.run("redo")
    assert fixture.prompts() == ["other"]
    assert fixture.services.undo_requests[-1] == ("redo", []), "only file changes undone elsewhere can be redone"


@pytest.mark.req("EN-13", "SE-3")
async def test_revert_goes_back_to_before_a_prompt(fixture):
    for text in ("one", "two", "three"):
        await fixture.send_prompt(text)
    assert [line.split()[-1] for line in (await fixture.run("revert")).lines] == ["one", "two", "three"]
    reverted = await fixture.run("revert 2")
    assert (reverted.draft, fixture.prompts()) == ("two", ["one"])
    direction, turns = fixture.services.undo_requests[-1]
    assert (direction, len(turns)) == ("undo", 2), "newest first"
    await fixture.run("redo")
    assert fixture.prompts() == ["one", "two", "three"]
    assert fixture.services.undo_requests[-1] == ("redo", turns[::-1])


@pytest.mark.req("EN-13", "SE-5")
async def test_manual_command_can_be_undone(fixture):
    await fixture.send_prompt("one")
    await fixture.session.call(ToolCall("manual", "bash", {"command": "touch x"}, origin="person"))
    undone = await fixture.run("undo")
    assert undone.draft == "!touch x"
    assert fixture.services.undo_requests == [("undo", ["session-1/manual"])]
    assert fixture.prompts() == ["one"]


@pytest.mark.req("EN-13")
async def test_undo_without_prompts_undoes_the_last_file_change_of_this_session(fixture):
    await fixture.run("undo")
    assert fixture.services.undo_requests == [("undo", [])]


@pytest.mark.req("SE-3")
async def test_fork_ends_before_the_given_prompt(fixture):
    for text in ("one", "two"):
        await fixture.send_prompt(text)
    forked = await fixture.run("fork 2")
    seq = int(forked.session.rpartition("-")[2])
    copied = [envelope for envelope in fixture.session._records if envelope.seq <= seq]
    assert type(copied[-1].event).__name__ == "TurnEnded"


@pytest.mark.req("SE-3")
async def test_resume_without_argument_opens_the_previous_session(fixture):
    fixture.services.known_sessions = [
        SessionSummary("session-1", "/", "this", turns=1),
        SessionSummary("older-2", "/", "that"),
    ]
    assert await fixture.run("resume") == SwitchSession("older-2")
    assert await fixture.run("resume older") == SwitchSession("older-2")
    assert (await fixture.run("resume session-1")).lines == ("  this session is already open",)
    listed = await fixture.output("sessions")
    assert "* session-1" in listed
    assert "1 turn  this" in listed


@pytest.mark.req("CL-7")
async def test_status_shows_a_cost_only_if_tokens_were_reported(fixture):
    assert "cost" not in await fixture.output("status")
    fixture.session.emit(UsageReported("m", 100, 20, 60, 0.5))
    assert "cost     $0.5000" in await fixture.output("status")


@pytest.mark.req("CL-7")
async def test_session_state_is_shown(fixture):
    fixture.session.emit(TodosChanged((Todo("1", "look", "completed"), Todo("2", "\x1b[2Jfix"))))
    fixture.session.emit(RuleAdded(Rule("bash", "git *", "allow", "your answer")))
    fixture.session.emit(UsageReported("m", 100, 20, 60, 0.5, context_used=30, context_limit=200))
    assert await fixture.output("todo") == "  [x] look\n  [ ] fix"
    assert " 1  allow bash: git *" in await fixture.output("permissions")
    assert "30 of 200 tokens (15%)" in await fixture.output("context")
    assert "100 tokens in (60 of them cached), 20 out, $0.5000" in await fixture.output("cost")
    await fixture.run("permissions 1")
    assert "you added no rules" in await fixture.output("permissions")
    await fixture.run("title  Two   words")
    assert fixture.session.state.title == "Two words"
