"""The ACP backend with the echo agent: updates become events, and requests go through the tool host."""

import asyncio
from pathlib import Path

import pytest

from ostler.app.acp_backend import OfferedServices
from ostler.core.display import DisplayDiff
from ostler.core.errors import BackendError, UsageError
from ostler.core.events import (
    InfoChanged,
    MessageDone,
    Notice,
    PermissionAsked,
    PermissionDecided,
    TextDelta,
    ThoughtDelta,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    UsageReported,
)
from ostler.core.permission import Decision, Rule
from ostler.core.sessions import SetOption, Steer
from ostler.journal.memory_journal import MemoryJournal
from ostler.policy.verdict import Policy
from ostler.testing.session_fixture import ASK_ALL, make_prompt, run_turn
from ostler.wire.acp_validator import AcpValidator


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def reply_text(events):
    return "".join(event.message.text for event in of(MessageDone, events))


@pytest.mark.req("AC-2")
async def test_updates_become_events(echo):
    session = await echo.open()
    orders = ["!think hm", "!say Hello ", "!say there.", "!plan", "!tool read Look", "!fail Try", "!usage", "!say End."]
    events, ended = await run_turn(session, "\n".join(orders))
    assert ended.reason == "done"
    assert [event.message.text for event in of(MessageDone, events)] == ["Hello there.", "End."]
    assert "".join(event.text for event in of(TextDelta, events)) == "Hello there.End."
    assert [event.text for event in of(ThoughtDelta, events)] == ["hm"]
    assert [(t.content, t.status, t.priority) for t in of(TodosChanged, events)[0].items] == [
        ("look", "completed", "high"),
        ("leap", "pending", "low"),
    ]
    look = of(ToolCalled, events)[0]
    assert (look.title, look.kind, look.paths, look.call.arguments) == ("Look", "read", ("a.txt",), {"n": 1})
    assert [(e.result.status, e.result.for_model) for e in of(ToolFinished, events)] == [
        ("ok", "what it found"),
        ("failed", "no"),
    ]
    usage = of(UsageReported, events)[0]
    assert (usage.tokens_in, usage.tokens_out, usage.context_used, usage.context_limit) == (10, 20, 1200, 200000)


async def test_banner_is_a_notice_and_late_chunks_are_part_of_the_reply(echo):
    session = await echo.open("--banner", "Welcome!")
    assert [event.text for event in session.events() if isinstance(event, Notice)] == ["Welcome!"]
    events, _ = await run_turn(session, "!say now\n!late , later")
    assert reply_text(events) == "now, later"


@pytest.mark.req("AC-2")
async def test_unknown_updates_are_reported_once(echo):
    session = await echo.open()
    events, ended = await run_turn(session, "!unknown\n!unknown\n!junk 42\n!junk not json\n!stderr 300000\n!stop bored")
    assert ended.reason == "done"
    notices = [event.text for event in of(Notice, events)]
    assert len(notices) == 2
    assert "'dance'" in notices[0]
    assert "bored" in notices[1]
    events, _ = await run_turn(session, "!method foo/bar")
    assert "[foo/bar refused: -32601" in reply_text(events)


@pytest.mark.parametrize(
    ("reason", "ended"), [("max_tokens", "limit"), ("max_turn_requests", "limit"), ("refusal", "failed")]
)
async def test_stop_reasons(echo, reason, ended):
    session = await echo.open()
    assert (await run_turn(session, f"!stop {reason}"))[1].reason == ended


@pytest.mark.req("AC-2", "FS-3")
async def test_files_go_through_the_tool_host(echo):
    (echo.folder / "a.txt").write_text("one\ntwo\nthree\n")
    (echo.home / "secret.txt").write_text("outside")
    session = await echo.open()
    for order, answer in [
        ("!read a.txt", "one\ntwo\nthree\n"),
        ("!read a.txt 2 1", "two\n"),
        ("!read a.txt 3 9", "three\n"),
        ("!write b.txt new text", "wrote b.txt"),
    ]:
        events, _ = await run_turn(session, order)
        assert reply_text(events) == answer
    assert (echo.folder / "b.txt").read_text() == "new text"
    for order, refusal in [
        ("!read missing.txt", "fs/read_text_file refused: -32002"),
        ("!read ../secret.txt", "fs/read_text_file refused: -32603"),
        ("!write ../out.txt x", "fs/write_text_file refused: -32603"),
    ]:
        events, _ = await run_turn(session, order)
        assert refusal in reply_text(events)
    assert not (echo.home / "out.txt").exists()


@pytest.mark.req("AC-2")
async def test_terminals(echo):
    session = await echo.open()
    events, _ = await run_turn(session, "!run printf hello; exit 3")
    assert reply_text(events) == "hello (exit 3, cut False)"
    assert [block.text for e in of(ToolFinished, events)[1:] for block in e.result.for_human.blocks] == ["hello"]
    events, _ = await run_turn(session, "!run python3 -c 'print(\"é\" * 1000)'")
    assert reply_text(events).endswith("(exit 0, cut True)")
    assert "\ufffd" not in reply_text(events)
    assert len(reply_text(events).split(" (")[0].encode()) <= 1000
    events, _ = await run_turn(session, "!kill sleep 1000")
    assert reply_text(events) == "killed: True"
    events, _ = await run_turn(session, "!run echo $ECHO_SECRET_TOKEN-$ECHO_PLAIN")
    assert reply_text(events) == "- (exit 0, cut False)"


@pytest.mark.req("AC-8")
async def test_agent_inherits_the_environment_but_terminals_get_no_secrets(echo, monkeypatch):
    monkeypatch.setenv("OSTLER_TEST_TOKEN", "t0ken")
    monkeypatch.setenv("OSTLER_TEST_PLAIN", "plain")
    session = await echo.open(env={"FROM_SETTINGS": "yes"})
    events, _ = await run_turn(session, "!env OSTLER_TEST_TOKEN\n!env FROM_SETTINGS")
    assert reply_text(events) == "t0kenyes"
    events, _ = await run_turn(session, "!run echo $OSTLER_TEST_TOKEN-$OSTLER_TEST_PLAIN")
    assert reply_text(events) == "-plain (exit 0, cut False)"


def has_exited(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.req("AC-5")
async def test_closing_leaves_no_processes(echo):
    session = await echo.open("--ignore-eof")
    await run_turn(session, "!child pid\n!leave sleep 1000")
    pid = int((echo.folder / "pid").read_text())
    assert not has_exited(pid)
    await session.aclose()
    assert has_exited(pid)


@pytest.mark.req("AC-5")
async def test_crash_ends_the_turn_with_exit_code_and_output(echo):
    session = await echo.open()
    events, ended = await run_turn(session, "!say half\n!crash 7")
    assert ended.reason == "failed"
    assert "echo ended with exit code 7; last output: echo_agent: crashed as ordered" in ended.fault.message
    assert [event.message.truncated for event in of(MessageDone, events)] == [True]
    events, ended = await run_turn(session, "again")
    assert (reply_text(events), ended.reason) == ("Echo: again", "done")
    assert "started a new agent session" in of(Notice, events)[0].text


@pytest.mark.req("AC-5")
async def test_error_contains_details_or_stderr(echo):
    session = await echo.open()
    _, ended = await run_turn(session, "!error the model is asleep")
    assert "Internal error: the model is asleep" in ended.fault.message
    _, ended = await run_turn(session, "!stderr 5\n!error")
    assert ended.fault.message.endswith("with an error: Internal error; last output: eeeee")


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--exit", "3"], "echo ended with exit code 3; last output: echo_agent: the moon is in the wrong phase"),
        (["--version", "2"], "echo uses protocol version 2"),
        (["--auth", "word"], "echo requires a login: Authentication required"),
    ],
)
async def test_failed_start_is_explained(echo, flags, message):
    with pytest.raises(BackendError, match=message) as caught:
        await echo.open(*flags)
    if "--auth" in flags:
        assert "--auth with word (Log in)" in caught.value.fault.hint


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(("flag", "method"), [("--silent", "initialize"), ("--silent-new", "session/new")])
async def test_silent_agent_times_out(echo, flag, method):
    from ostler.backends.acp.agent_client import AgentTimeouts

    with pytest.raises(BackendError, match=f"did not answer {method} within"):
        await echo.open(flag, timeouts=AgentTimeouts(1.5, 1.5, 5))


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/does/not/exist"], "was not found"),
        (["sh", "-c", "echo usage: frob; sleep 0.2"], "ended with exit code 0; last output: usage: frob"),
        (["sh", "-c", "exec >&-; sleep 100"], "closed its output but is still running"),
    ],
)
async def test_program_that_is_not_an_agent(echo, command, message):
    with pytest.raises((BackendError, UsageError), match=message):
        await echo.open(command=command)


async def test_login(echo):
    session = await echo.open("--auth", "word", login="word")
    assert reply_text((await run_turn(session, "hi"))[0]) == "Echo: hi"
    with pytest.raises(UsageError, match="has no login method 'face'"):
        await echo.open("--auth", "word", login="face")


@pytest.mark.req("CL-9", "AC-2")
async def test_cancel_is_sent_and_the_session_continues(echo):
    lines = []
    session = await echo.open(mirror=lambda direction, line: lines.append((direction, line)))
    turn = session.start(make_prompt("!hang"))
    subscription = session.subscribe()
    async with asyncio.timeout(30):
        async for envelope in subscription:
            if isinstance(envelope.event, TextDelta):
                break
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert any(direction == "out" and b'"session/cancel"' in line for direction, line in lines)
    assert any(direction == "in" and b'"stopReason":"cancelled"' in line for direction, line in lines)
    assert reply_text((await run_turn(session, "still there?"))[0]) == "Echo: still there?"


async def test_agent_that_ignores_cancel_is_stopped(echo, monkeypatch):
    monkeypatch.setattr("ostler.backends.acp.backend.CANCEL_WAIT", 0.2)
    session = await echo.open()
    turn = session.start(make_prompt("!deaf"))
    async with asyncio.timeout(30):
        async for envelope in session.subscribe():
            if isinstance(envelope.event, TextDelta):
                break
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert reply_text((await run_turn(session, "hello?"))[0]) == "Echo: hello?"


async def run_and_answer(session, order, answer):
    """Run a turn, answer its approval requests, and return the requests and all events."""
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt(order, session.new_id("prompt")))
    requests, events = [], []
    async with asyncio.timeout(30):
        async for envelope in subscription:
            events.append(envelope.event)
            if isinstance(envelope.event, PermissionAsked):
                requests.append(envelope.event)
                session.answer(envelope.event.ask_id, answer)
            if type(envelope.event).__name__ == "TurnEnded":
                break
    await turn.wait()
    return requests, events


@pytest.mark.req("PM-11")
async def test_all_edits_allow_the_agents_edit_once_and_the_next_without_asking(echo):
    session = await echo.open(policy=ASK_ALL)
    all_edits = Decision("allow", by="person", scope="session", option_id="edits")
    _, events = await run_and_answer(session, "!ask edit a.txt", all_edits)
    assert reply_text(events) == "[yes]"
    events, _ = await run_turn(session, "!ask edit b.txt")
    assert not any(isinstance(event, PermissionAsked) for event in events)
    assert reply_text(events) == "[yes]"


@pytest.mark.req("PM-4", "AC-2")
async def test_permission_has_the_agents_options(echo):
    session = await echo.open(policy=ASK_ALL)
    asks, events = await run_and_answer(session, "!ask edit a.txt", Decision("allow", by="person", option_id="yes"))
    assert [(option.id, option.kind) for option in asks[0].permission.options] == [
        ("always", "allow_always"),
        ("yes", "allow_once"),
        ("edits", "allow_session"),
        ("no", "deny"),
    ]
    assert [(need.key, need.subject) for need in asks[0].permission.needs] == [("write", "a.txt")]
    assert reply_text(events) == "[yes]"
    _, events = await run_and_answer(session, "!ask edit a.txt", Decision("deny", by="person"))
    assert reply_text(events) == "[no]"
    _, events = await run_and_answer(
        session, "!ask other thing", Decision("allow", by="person", scope="session", option_id="always")
    )
    assert reply_text(events) == "[always]"


@pytest.mark.req("AC-2")
async def test_allowed_edit_is_not_asked_about_again(echo):
    session = await echo.open(policy=ASK_ALL)
    asks, _ = await run_and_answer(session, "!edit a.txt hello", Decision("allow", by="person"))
    assert len(asks) == 1
    assert [type(block) for block in asks[0].permission.preview.blocks] == [DisplayDiff]
    assert (echo.folder / "a.txt").read_text() == "hello"
    asks, _ = await run_and_answer(session, "!write a.txt other", Decision("deny", by="person"))
    assert len(asks) == 1
    assert (echo.folder / "a.txt").read_text() == "hello"
    asks, _ = await run_and_answer(session, "!ask edit .git/config", Decision("deny", by="person"))
    assert asks[0].once_only


@pytest.mark.req("AC-2", "CL-9")
async def test_cancel_answers_an_open_permission_request(echo):
    lines = []
    session = await echo.open(policy=ASK_ALL, mirror=lambda direction, line: lines.append((direction, line)))
    turn = session.start(make_prompt("!ask edit a.txt"))
    async with asyncio.timeout(30):
        async for envelope in session.subscribe():
            if isinstance(envelope.event, PermissionAsked):
                break
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert any(direction == "out" and b'"outcome":"cancelled"' in line for direction, line in lines)
    decided = [event for event in session.events() if isinstance(event, PermissionDecided)]
    assert [event.decision.answer for event in decided] == ["cancel"]


@pytest.mark.req("SH-3", "SH-6", "PM-4")
@pytest.mark.parametrize("command", ["rm -rf /", "sudo reboot", "rm a.txt"])
async def test_dangerous_commands_are_denied_when_non_interactive(echo, command):
    policy = Policy(rules=(Rule("*", "*", "allow", "test"),), interactive=False)
    session = await echo.open(policy=policy)
    events, _ = await run_turn(session, f"!ask execute {command}")
    assert reply_text(events) == "[no]"
    events, _ = await run_turn(session, f"!run {command}")
    assert "terminal/create refused" in reply_text(events)


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(
    ("flags", "mode", "expected"),
    [
        ([], "mode", ["mode"]),
        (["--models"], "mode", ["mode", "model"]),
        (["--config"], "mode", ["model", "mode", "fast"]),
    ],
)
async def test_options(echo, flags, mode, expected):
    session = await echo.open(*flags)
    assert [option.id for option in session.info.options] == expected
    assert await session.apply(SetOption("mode", "code"))
    assert session.info.option("mode") == "code"
    assert not await session.apply(SetOption("mode", "nonsense"))
    assert not await session.apply(SetOption("colour", "red"))
    if "model" in expected:
        assert await session.apply(SetOption("model", "Large"))
        assert session.info.option("model") == "large"
    if "fast" in expected:
        assert await session.apply(SetOption("fast", "true"))
        assert not await session.apply(SetOption("fast", "maybe"))
        events, _ = await run_turn(session, "!state")
        assert '"fast":true' in reply_text(events)


@pytest.mark.req("AC-2")
async def test_required_options_are_set_or_opening_fails(echo):
    session = await echo.open("--models", options={"model": "small"}, required_options=(("model", "large"),))
    assert session.info.option("model") == "large"
    with pytest.raises(UsageError, match="available: small, large"):
        await echo.open("--models", required_options=(("model", "huge"),))
    with pytest.raises(UsageError, match="no option 'thinking'"):
        await echo.open("--models", required_options=(("thinking", "high"),))


async def test_later_commands_and_modes_are_in_the_info(echo):
    session = await echo.open()
    async with asyncio.timeout(30):
        async for envelope in session.subscribe():
            if isinstance(envelope.event, InfoChanged) and envelope.event.info.commands:
                break
    assert [(c.name, c.hint) for c in session.info.commands] == [("init", ""), ("plan", "what to plan")]
    await run_turn(session, "!mode code")
    assert session.info.option("mode") == "code"


@pytest.mark.req("AC-2")
@pytest.mark.parametrize("flags", [[], ["--resume"]])
@pytest.mark.invariant("E9")
async def test_resume_uses_the_agents_session_without_replay(echo, flags):
    store = str(echo.home / "store")
    journal = MemoryJournal("session-1")
    session = await echo.open("--store", store, *flags, journal=journal)
    await run_turn(session, "first words")
    before = session.acp.agent_session_id
    await session.aclose()
    session = await echo.open("--store", store, *flags, journal=journal)
    assert session.acp.agent_session_id == before
    texts = [event.message.text for event in session.events() if isinstance(event, MessageDone)]
    assert texts == ["Echo: first words"]


async def test_lost_agent_session_is_replaced_with_a_warning(echo):
    journal = MemoryJournal("session-1")
    session = await echo.open(journal=journal)
    await session.aclose()
    session = await echo.open(journal=journal)
    assert "started a new agent session" in [event.text for event in session.events() if isinstance(event, Notice)][-1]
    with pytest.raises(UsageError, match="cannot resume"):
        await echo.open("--no-load", resume="x")
    with pytest.raises(BackendError, match="there is no session x"):
        await echo.open("--store", str(echo.home / "store"), resume="x")


@pytest.mark.req("AC-2", "SE-1")
async def test_fork_also_forks_the_agents_session(echo):
    store, journal = str(echo.home / "store"), MemoryJournal("session-1")
    session = await echo.open("--store", store, "--fork", journal=journal)
    await run_turn(session, "first words")
    before = session.acp.agent_session_id
    await session.aclose()
    copy = await echo.open("--store", store, "--fork", journal=journal, fork=True)
    assert copy.acp.agent_session_id != before
    await run_turn(copy, "more words")
    stored = {path.stem: path.read_text() for path in (echo.home / "store").glob("*.jsonl")}
    assert ["more words" in stored[name] for name in (before, copy.acp.agent_session_id)] == [False, True]
    assert all("first words" in text for text in stored.values())


async def test_fork_without_agent_support_starts_a_new_agent_session(echo):
    store, journal = str(echo.home / "store"), MemoryJournal("session-1")
    session = await echo.open("--store", store, journal=journal)
    before = session.acp.agent_session_id
    await session.aclose()
    copy = await echo.open("--store", store, journal=journal, fork=True)
    assert copy.acp.agent_session_id != before
    assert (
        "cannot fork sessions; started a new agent session"
        in [e.text for e in copy.events() if isinstance(e, Notice)][-1]
    )
    with pytest.raises(UsageError, match="cannot fork sessions"):
        await echo.open("--store", store, resume=before, fork=True)


@pytest.mark.req("EN-16")
async def test_steering_reaches_the_running_turn(echo):
    session = await echo.open("--steering")
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("!say working\n!listen\n!say ."))
    await anext(event async for event in subscription if isinstance(event.event, TextDelta))
    assert await session.apply(Steer(make_prompt("turn left", "prompt-2")))
    assert (await turn.wait()).reason == "done"
    assert session.state.undelivered == {}
    (message,) = [e.message.text for e in session.events() if isinstance(e, MessageDone)]
    assert message == "working[heard: turn left]."
    assert not await session.apply(Steer(make_prompt("too late", "prompt-3")))


async def test_agent_without_steering(echo):
    session = await echo.open()
    subscription = session.subscribe(since=2**62)
    turn = session.start(make_prompt("!hang"))
    await anext(event async for event in subscription if isinstance(event.event, TextDelta))
    assert not session.info.can_steer
    assert not await session.apply(Steer(make_prompt("turn left", "prompt-2")))
    turn.cancel()
    await turn.wait()


async def test_elicitations_use_preset_answers_or_are_declined(echo):
    session = await echo.open(services=OfferedServices(answers={"name": "Ada"}))
    assert '"action":"accept","content":{"name":"Ada"}' in reply_text((await run_turn(session, "!elicit name"))[0])
    session = await echo.open(policy=Policy(interactive=False))
    assert '"action":"decline"' in reply_text((await run_turn(session, "!elicit name"))[0])


async def test_disabled_services_are_refused(echo):
    session = await echo.open(services=OfferedServices(files=False, terminal=False))
    events, _ = await run_turn(session, "!read a.txt\n!run ls\n!state")
    assert "[fs/read_text_file refused: -32601" in reply_text(events)
    assert "[terminal/create refused: -32601" in reply_text(events)
    assert '"terminal":true' not in reply_text(events)


@pytest.mark.req("AC-2")
async def test_all_frames_are_valid(echo):
    validator, problems = AcpValidator(), []

    def mirror(direction, line):
        problems.extend(validator.check_line("client" if direction == "out" else "agent", line))

    (echo.folder / "a.txt").write_text("x")
    session = await echo.open("--store", str(echo.home / "store"), "--config", mirror=mirror, policy=ASK_ALL)
    orders = "!read a.txt\n!edit b.txt hello\n!run echo hi\n!plan\n!tool read x\n!elicit name"
    turn = session.start(make_prompt(orders))
    async with asyncio.timeout(30):
        async for envelope in session.subscribe():
            event = envelope.event
            if isinstance(event, PermissionAsked):
                session.answer(event.ask_id, Decision("allow", by="person"))
            elif type(event).__name__ == "QuestionAsked":
                from ostler.core.permission import QuestionReply

                session.answer(event.question.id, QuestionReply("accept", {"name": "x"}))
            elif type(event).__name__ == "TurnEnded":
                break
    await turn.wait()
    await session.apply(SetOption("fast", "true"))
    await session.aclose()
    assert problems == []


async def test_many_updates_keep_their_order(echo):
    session = await echo.open()
    events, _ = await run_turn(session, "!updates 3000")
    assert reply_text(events).split() == [str(number) for number in range(3000)]
