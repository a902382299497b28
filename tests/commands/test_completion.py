"""Completion by itself: what the word before the cursor may mean, and what is put in its place."""

import asyncio

import pytest
from tests.fake_services import FakeServices

from ostler.commands import completion
from ostler.commands.completion import CompletionSource
from ostler.commands.dispatcher import CommandDispatcher
from ostler.commands.timeline import TimelineEntry
from ostler.core.errors import UsageError
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption, SessionSummary, SlashCommand


@pytest.fixture
def services():
    return FakeServices()


class Session:
    """All that completion asks of one."""

    id = "session-1"
    info = SessionInfo(
        "far",
        options=(SessionOption("thinking", "", choices=(OptionChoice("low"), OptionChoice("high"))),),
        commands=(SlashCommand("deploy", "put it out"),),
    )


@pytest.fixture
def commands(services):
    return CommandDispatcher(Session(), services, lambda: "new-id")


@pytest.fixture
def completing(services, commands):
    return CompletionSource(services, commands, ("dark", "light"))


@pytest.mark.req("CL-4")
@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("@it", 'it"s.txt', ["@'it\"s.txt' "]),
        ("@'it", 'it"s.txt', ["@'it\"s.txt' "]),
        ("@it", "it's.txt", ['@"it\'s.txt" ']),
        ("@it", 'it\'s "so".txt', []),
        ("!cat a", "a b.txt", ["!cat 'a b.txt'"]),
        ("!cat $", "$(reboot).txt", ["!cat '$(reboot).txt'"]),
        ("!cat ~/a", "~/a b.txt", ["!cat ~/'a b.txt'"]),
        ("!ls s", "src/", ["!ls src/"]),
        ("/diff it", 'it"s.txt', ['/diff it"s.txt']),
    ],
)
async def test_an_odd_name_is_quoted_so_that_it_is_meant(completing, services, before, path, after, monkeypatch):
    async def files(wanted):
        return [path]

    monkeypatch.setattr(services, "files", files)
    assert await results(completing, before, asked=True) == after


async def results(completing, before, asked=False):
    """The text as it would be after each candidate."""
    found = await completing.completions(before, explicit=asked)
    return [before[: len(before) - one.replace_length] + one.text for one in found]


@pytest.mark.req("CL-4")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/und", ["/undo"]),
        ("/rev", ["/revert ", "/review "]),
        ("/UND", []),
        ("/zzz", []),
        ("see @agent:pl", ["see @agent:plan"]),
        ("see @agent:", ["see @agent:build", "see @agent:plan"]),
        ("see @agent:lan", []),
        ("see @main", ["see @src/main.py "]),
        ("see @file:main", ["see @file:src/main.py "]),
        ("@sr", ["@src/", "@src/main.py "]),
        ("(@main", ["(@src/main.py "]),
        ("@x y", []),
        ('@"x y', ['@"with space/x y.txt" ']),
        ("@y.tx", ['@"with space/x y.txt" ']),
        ('@"with sp', ['@"with space/', '@"with space/x y.txt" ']),
        ("me@main", []),
        ("plain words", []),
        ("/models t", ["/models two"]),
        ("/agents ", ["/agents build", "/agents plan"]),
        ("/mode p", ["/mode plan"]),
        ("/thinking ", ["/thinking low", "/thinking high"]),
        ("/dep", ["/deploy "]),
        ("/theme l", ["/theme light"]),
        ("/help sta", ["/help status"]),
        ("/export main", ["/export src/main.py"]),
        ("/revert ", ["/revert 1"]),
        ("/resume 20", ["/resume 2026-x"]),
        ("/todo x", []),
        ("/review @main", ["/review @src/main.py "]),
        ("two\nlines @main", ["two\nlines @src/main.py "]),
    ],
)
async def test_what_takes_the_place_of_the_nearest_word(completing, commands, services, before, after):
    services.known_sessions = [SessionSummary("2026-x", "/", "a title")]
    commands.timeline.entries = [TimelineEntry(1, "turn", "first words")]
    assert await results(completing, before) == after


@pytest.mark.req("CL-4")
async def test_files_for_an_own_command_come_only_when_asked_for(completing):
    assert await results(completing, "!cat main") == []
    assert await results(completing, "!cat main", asked=True) == ["!cat src/main.py"]


@pytest.mark.req("CL-4")
async def test_what_takes_too_long_is_left_out(completing, services, monkeypatch):
    services.slow = asyncio.Event()
    monkeypatch.setattr(completion, "COMPLETION_TIMEOUT_SECONDS", 0.01)
    assert await results(completing, "@main") == []


@pytest.mark.req("CL-4")
async def test_what_fails_is_left_out(completing, services, monkeypatch):
    async def fails():
        raise UsageError("the config is broken")

    monkeypatch.setattr(services, "agents", fails)
    assert await results(completing, "@agent:p") == []


async def test_what_is_told_of_a_candidate_obeys_no_file(completing, commands):
    commands.timeline.entries = [TimelineEntry(1, "turn", "\x1b[2Jcleared\nlines")]
    (one,) = await completing.completions("/revert ", explicit=False)
    assert one.description == "cleared lines"
