"""Completion: the candidates for the text before the cursor, and the text they produce."""

import asyncio

import pytest
from tests.fake_services import FakeServices

from ostler.core.errors import UsageError
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption, SessionSummary, SlashCommand
from ostler.interaction import completion
from ostler.interaction.completion import CompletionSource
from ostler.interaction.dispatcher import CommandDispatcher
from ostler.interaction.timeline import TimelineEntry


@pytest.fixture
def services():
    return FakeServices()


class Session:
    """The attributes of a session that completion uses."""

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
def source(services, commands):
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
        ("@file:src", "src/", ["@file:src/"]),
        ("@file:src/", "src/", []),
        ("@./src/", "src/", []),
        ("/diff it", 'it"s.txt', ['/diff it"s.txt']),
    ],
)
async def test_path_with_special_characters_is_quoted(source, services, before, path, after, monkeypatch):
    async def files(query):
        return [path]

    monkeypatch.setattr(services, "files", files)
    assert await results(source, before, explicit=True) == after


async def results(source, before, explicit=False):
    """Return the text after inserting each candidate."""
    completions = await source.completions(before, explicit=explicit)
    return [before[: len(before) - item.replace_length] + item.text for item in completions]


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
        ("see @doc", ["see @docs:", 'see @"docs:file:///a b.txt" ']),
        ("see @docs:fi", ['see @"docs:file:///a b.txt" ']),
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
        ("/set thin", ["/set thinking"]),
        ("/set thinking h", ["/set thinking high"]),
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
async def test_candidates_replace_the_text_before_the_cursor(source, commands, services, before, after):
    services.known_sessions = [SessionSummary("2026-x", "/", "a title")]
    commands.timeline.entries = [TimelineEntry(1, "turn", "first words")]
    assert await results(source, before) == after


@pytest.mark.req("CL-4")
async def test_shell_paths_are_completed_only_on_request(source):
    assert await results(source, "!cat main") == []
    assert await results(source, "!cat main", explicit=True) == ["!cat src/main.py"]


@pytest.mark.req("CL-4")
async def test_slow_completion_is_dropped(source, services, monkeypatch):
    services.files_delay = asyncio.Event()
    monkeypatch.setattr(completion, "COMPLETION_TIMEOUT_SECONDS", 0.01)
    assert await results(source, "@main") == []


@pytest.mark.req("CL-4")
async def test_failed_completion_is_dropped(source, services, monkeypatch):
    async def fails():
        raise UsageError("the config is broken")

    monkeypatch.setattr(services, "agents", fails)
    assert await results(source, "@agent:p") == []


async def test_description_of_a_candidate_is_sanitised(source, commands):
    commands.timeline.entries = [TimelineEntry(1, "turn", "\x1b[2Jcleared\nlines")]
    (item,) = await source.completions("/revert ", explicit=False)
    assert item.description == "cleared lines"
