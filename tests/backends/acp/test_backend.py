"""The ACP backend with the echo agent: what it tells becomes events, what it asks for passes the door."""

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


def said(events):
    return "".join(event.message.text for event in of(MessageDone, events))


@pytest.mark.req("AC-2")
async def test_words_thoughts_plan_tools_and_usage_become_events(echo):
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


async def test_a_banner_is_no_answer_and_late_words_still_are(echo):
    session = await echo.open("--banner", "Welcome!")
    assert [event.text for event in session.events() if isinstance(event, Notice)] == ["Welcome!"]
    events, _ = await run_turn(session, "!say now\n!late , later")
    assert said(events) == "now, later"


@pytest.mark.req("AC-2")
async def test_what_is_unknown_is_shown_once_and_kills_nothing(echo):
    session = await echo.open()
    events, ended = await run_turn(session, "!unknown\n!unknown\n!junk 42\n!junk not json\n!stderr 300000\n!stop bored")
    assert ended.reason == "done"
    notices = [event.text for event in of(Notice, events)]
    assert len(notices) == 2
    assert "'dance'" in notices[0]
    assert "bored" in notices[1]
    events, _ = await run_turn(session, "!method foo/bar")
    assert "[foo/bar refused: -32601" in said(events)


@pytest.mark.parametrize(
    ("reason", "ended"), [("max_tokens", "limit"), ("max_turn_requests", "limit"), ("refusal", "failed")]
)
async def test_stop_reasons(echo, reason, ended):
    session = await echo.open()
    assert (await run_turn(session, f"!stop {reason}"))[1].reason == ended


@pytest.mark.req("AC-2", "FS-3")
async def test_files_pass_the_door(echo):
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
        assert said(events) == answer
    assert (echo.folder / "b.txt").read_text() == "new text"
    for order, refusal in [
        ("!read missing.txt", "fs/read_text_file refused: -32002"),
        ("!read ../secret.txt", "fs/read_text_file refused: -32603"),
        ("!write ../out.txt x", "fs/write_text_file refused: -32603"),
    ]:
        events, _ = await run_turn(session, order)
        assert refusal in said(events)
    assert not (echo.home / "out.txt").exists()


@pytest.mark.req("AC-2")
async def test_terminals(echo):
    session = await echo.open()
    events, _ = await run_turn(session, "!run printf hello; exit 3")
    assert said(events) == "hello (exit 3, cut False)"
    assert [block.text for e in of(ToolFinished, events)[1:] for block in e.result.for_human.blocks] == ["hello"]
    events, _ = await run_turn(session, "!run python3 -c 'print(\"é\" * 1000)'")
    assert said(events).endswith("(exit 0, cut True)")
    assert "\ufffd" not in said(events)
    assert len(said(events).split(" (")[0].encode()) <= 1000
    events, _ = await run_turn(session, "!kill sleep 1000")
    assert said(events) == "killed: True"
    events, _ = await run_turn(session, "!run echo $ECHO_SECRET_TOKEN-$ECHO_PLAIN")
    assert said(events) == "- (exit 0, cut False)"


@pytest.mark.req("AC-8")
async def test_the_agent_gets_our_environment_and_its_terminals_a_scrubbed_one(echo, monkeypatch):
    monkeypatch.setenv("OSTLER_TEST_TOKEN", "t0ken")
    monkeypatch.setenv("OSTLER_TEST_PLAIN", "plain")
    session = await echo.open(env={"FROM_SETTINGS": "yes"})
    events, _ = await run_turn(session, "!env OSTLER_TEST_TOKEN\n!env FROM_SETTINGS")
    assert said(events) == "t0kenyes"
    events, _ = await run_turn(session, "!run echo $OSTLER_TEST_TOKEN-$OSTLER_TEST_PLAIN")
    assert said(events) == "-plain (exit 0, cut False)"


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.req("AC-5")
async def test_nothing_is_left_after_any_ending(echo):
    session = await echo.open("--ignore-eof")
    await run_turn(session, "!child pid\n!leave sleep 1000")
    pid = int((echo.folder / "pid").read_text())
    assert not gone(pid)
    await session.aclose()
    assert gone(pid)


@pytest.mark.req("AC-5")
async def test_a_crash_ends_the_turn_with_the_code_and_the_last_words(echo):
    session = await echo.open()
    events, ended = await run_turn(session, "!say half\n!crash 7")
    assert ended.reason == "failed"
    assert "echo ended with exit code 7; its last words: echo_agent: crashed as ordered" in ended.fault.message
    assert [event.message.truncated for event in of(MessageDone, events)] == [True]
    events, ended = await run_turn(session, "again")
    assert (said(events), ended.reason) == ("Echo: again", "done")
    assert "begins anew" in of(Notice, events)[0].text


@pytest.mark.req("AC-5")
async def test_an_error_shows_what_it_is_really_about(echo):
    session = await echo.open()
    _, ended = await run_turn(session, "!error the model is asleep")
    assert "Internal error: the model is asleep" in ended.fault.message
    _, ended = await run_turn(session, "!stderr 5\n!error")
    assert ended.fault.message.endswith("with an error: Internal error; its last words: eeeee")


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--exit", "3"], "echo ended with exit code 3; its last words: echo_agent: the moon is in the wrong phase"),
        (["--version", "2"], "echo speaks version 2 of the protocol"),
        (["--auth", "word"], "echo wants a login: Authentication required"),
    ],
)
async def test_an_agent_that_does_not_begin_says_why(echo, flags, told):
    with pytest.raises(BackendError, match=told) as caught:
        await echo.open(*flags)
    if "--auth" in flags:
        assert "--auth with word (Log in)" in caught.value.fault.hint


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(("flag", "method"), [("--silent", "initialize"), ("--silent-new", "session/new")])
async def test_an_agent_that_never_answers_is_given_up(echo, flag, method):
    from ostler.backends.acp.agent_client import AgentTimeouts

    with pytest.raises(BackendError, match=f"did not answer {method} within"):
        await echo.open(flag, timeouts=AgentTimeouts(1.5, 1.5, 5))


@pytest.mark.req("AC-5")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["/does/not/exist"], "was not found"),
        (["sh", "-c", "echo usage: frob; sleep 0.2"], "ended with exit code 0; its last words: usage: frob"),
        (["sh", "-c", "exec >&-; sleep 100"], "closed its output but goes on"),
    ],
)
async def test_a_program_that_is_no_agent(echo, command, told):
    with pytest.raises((BackendError, UsageError), match=told):
        await echo.open(command=command)


async def test_login(echo):
    session = await echo.open("--auth", "word", login="word")
    assert said((await run_turn(session, "hi"))[0]) == "Echo: hi"
    with pytest.raises(UsageError, match="has no way to log in called 'face'"):
        await echo.open("--auth", "word", login="face")


@pytest.mark.req("CL-9", "AC-2")
async def test_cancelling_tells_the_agent_and_the_session_goes_on(echo):
    lines = []
    session = await echo.open(mirror=lambda direction, line: lines.append((direction, line)))
    turn = session.start(make_prompt("!hang"))
    reading = session.subscribe()
    async with asyncio.timeout(30):
        async for envelope in reading:
            if isinstance(envelope.event, TextDelta):
                break
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert any(direction == "out" and b'"session/cancel"' in line for direction, line in lines)
    assert any(direction == "in" and b'"stopReason":"cancelled"' in line for direction, line in lines)
    assert said((await run_turn(session, "still there?"))[0]) == "Echo: still there?"


async def test_an_agent_deaf_to_cancelling_is_ended(echo, monkeypatch):
    monkeypatch.setattr("ostler.backends.acp.backend.CANCEL_WAIT", 0.2)
    session = await echo.open()
    turn = session.start(make_prompt("!deaf"))
    async with asyncio.timeout(30):
        async for envelope in session.subscribe():
            if isinstance(envelope.event, TextDelta):
                break
    turn.cancel()
    assert (await turn.wait()).reason == "cancelled"
    assert said((await run_turn(session, "hello?"))[0]) == "Echo: hello?"


async def asked(session, order, answer):
    """Play an order and answer its first ask; the asks that came."""
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt(order, session.new_id("prompt")))
    asks, events = [], []
    async with asyncio.timeout(30):
        async for envelope in reading:
            events.append(envelope.event)
            if isinstance(envelope.event, PermissionAsked):
                asks.append(envelope.event)
                session.answer(envelope.event.ask_id, answer)
            if type(envelope.event).__name__ == "TurnEnded":
                break
    await turn.wait()
    return asks, events


@pytest.mark.req("PM-4", "AC-2")
async def test_a_permission_has_the_agents_own_options_and_the_chosen_one_is_sent(echo):
    session = await echo.open(policy=ASK_ALL)
    asks, events = await asked(session, "!ask edit a.txt", Decision("allow", by="person", option_id="yes"))
    assert [(option.id, option.kind) for option in asks[0].permission.options] == [
        ("always", "allow_always"),
        ("yes", "allow_once"),
        ("no", "deny"),
    ]
    assert [(need.key, need.subject) for need in asks[0].permission.needs] == [("write", "a.txt")]
    assert said(events) == "[yes]"
    _, events = await asked(session, "!ask edit a.txt", Decision("deny", by="person"))
    assert said(events) == "[no]"
    _, events = await asked(
        session, "!ask other thing", Decision("allow", by="person", scope="session", option_id="always")
    )
    assert said(events) == "[always]"


@pytest.mark.req("AC-2")
async def test_an_edit_that_was_allowed_is_not_asked_about_again(echo):
    session = await echo.open(policy=ASK_ALL)
    asks, _ = await asked(session, "!edit a.txt hello", Decision("allow", by="person"))
    assert len(asks) == 1
    assert [type(block) for block in asks[0].permission.preview.blocks] == [DisplayDiff]
    assert (echo.folder / "a.txt").read_text() == "hello"
    asks, _ = await asked(session, "!write a.txt other", Decision("deny", by="person"))
    assert len(asks) == 1
    assert (echo.folder / "a.txt").read_text() == "hello"
    asks, _ = await asked(session, "!ask edit .git/config", Decision("deny", by="person"))
    assert asks[0].once_only


@pytest.mark.req("AC-2", "CL-9")
async def test_cancelling_settles_an_open_permission(echo):
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
async def test_dangerous_commands_are_refused_where_nobody_is(echo, command):
    policy = Policy(rules=(Rule("*", "*", "allow", "test"),), interactive=False)
    session = await echo.open(policy=policy)
    events, _ = await run_turn(session, f"!ask execute {command}")
    assert said(events) == "[no]"
    events, _ = await run_turn(session, f"!run {command}")
    assert "terminal/create refused" in said(events)


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
        assert '"fast":true' in said(events)


@pytest.mark.req("AC-2")
async def test_what_must_be_set_is_set_or_nothing_is_opened(echo):
    session = await echo.open("--models", options={"model": "small"}, required_options=(("model", "large"),))
    assert session.info.option("model") == "large"
    with pytest.raises(UsageError, match="there are: small, large"):
        await echo.open("--models", required_options=(("model", "huge"),))
    with pytest.raises(UsageError, match="no option 'thinking'"):
        await echo.open("--models", required_options=(("thinking", "high"),))


async def test_commands_and_modes_told_later_are_in_the_info(echo):
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
async def test_a_journal_goes_on_with_the_agents_session_and_no_replay_is_shown(echo, flags):
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


async def test_a_session_that_is_lost_begins_anew_and_says_so(echo):
    journal = MemoryJournal("session-1")
    session = await echo.open(journal=journal)
    await session.aclose()
    session = await echo.open(journal=journal)
    assert "begins anew" in [event.text for event in session.events() if isinstance(event, Notice)][-1]
    with pytest.raises(UsageError, match="cannot go on"):
        await echo.open("--no-load", resume="x")
    with pytest.raises(BackendError, match="there is no session x"):
        await echo.open("--store", str(echo.home / "store"), resume="x")


@pytest.mark.req("AC-2", "SE-1")
async def test_a_copy_of_a_session_is_a_copy_at_the_agent_too(echo):
    store, journal = str(echo.home / "store"), MemoryJournal("session-1")
    session = await echo.open("--store", store, "--fork", journal=journal)
    await run_turn(session, "first words")
    before = session.acp.agent_session_id
    await session.aclose()
    copy = await echo.open("--store", store, "--fork", journal=journal, fork=True)
    assert copy.acp.agent_session_id != before
    await run_turn(copy, "more words")
    kept = {path.stem: path.read_text() for path in (echo.home / "store").glob("*.jsonl")}
    assert ["more words" in kept[name] for name in (before, copy.acp.agent_session_id)] == [False, True]
    assert all("first words" in text for text in kept.values())


async def test_an_agent_that_copies_nothing_begins_anew_in_a_copy(echo):
    store, journal = str(echo.home / "store"), MemoryJournal("session-1")
    session = await echo.open("--store", store, journal=journal)
    before = session.acp.agent_session_id
    await session.aclose()
    copy = await echo.open("--store", store, journal=journal, fork=True)
    assert copy.acp.agent_session_id != before
    assert "cannot copy sessions; it begins anew" in [e.text for e in copy.events() if isinstance(e, Notice)][-1]
    with pytest.raises(UsageError, match="cannot copy sessions"):
        await echo.open("--store", store, resume=before, fork=True)


@pytest.mark.req("EN-16")
async def test_words_reach_a_turn_that_runs_where_the_agent_takes_them(echo):
    session = await echo.open("--steering")
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("!say working\n!listen\n!say ."))
    await anext(event async for event in reading if isinstance(event.event, TextDelta))
    assert await session.apply(Steer(make_prompt("turn left", "prompt-2")))
    assert (await turn.wait()).reason == "done"
    assert session.state.undelivered == {}
    (message,) = [e.message.text for e in session.events() if isinstance(e, MessageDone)]
    assert message == "working[heard: turn left]."
    assert not await session.apply(Steer(make_prompt("too late", "prompt-3")))


async def test_an_agent_that_takes_no_words_in_a_turn_says_so(echo):
    session = await echo.open()
    reading = session.subscribe(since=2**62)
    turn = session.start(make_prompt("!hang"))
    await anext(event async for event in reading if isinstance(event.event, TextDelta))
    assert not session.info.can_steer
    assert not await session.apply(Steer(make_prompt("turn left", "prompt-2")))
    turn.cancel()
    await turn.wait()


async def test_questions_are_answered_from_before_or_declined(echo):
    session = await echo.open(offer=OfferedServices(answers={"name": "Ada"}))
    assert '"action":"accept","content":{"name":"Ada"}' in said((await run_turn(session, "!elicit name"))[0])
    session = await echo.open(policy=Policy(interactive=False))
    assert '"action":"decline"' in said((await run_turn(session, "!elicit name"))[0])


async def test_what_was_not_offered_is_refused(echo):
    session = await echo.open(offer=OfferedServices(files=False, terminal=False))
    events, _ = await run_turn(session, "!read a.txt\n!run ls\n!state")
    assert "[fs/read_text_file refused: -32601" in said(events)
    assert "[terminal/create refused: -32601" in said(events)
    assert '"terminal":true' not in said(events)


@pytest.mark.req("AC-2")
async def test_every_frame_we_send_is_as_the_protocol_has_it(echo):
    checker, found = AcpValidator(), []

    def mirror(direction, line):
        found.extend(checker.check_line("client" if direction == "out" else "agent", line))

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
    assert found == []


async def test_a_flood_of_updates_keeps_its_order(echo):
    session = await echo.open()
    events, _ = await run_turn(session, "!updates 3000")
    assert said(events).split() == [str(number) for number in range(3000)]
