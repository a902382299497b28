"""The explanation names the flag or rule that would allow a call."""

import json
import shlex
from pathlib import Path

import pytest

from ostler.app.manual_calls import explain_call
from ostler.core.errors import UsageError
from ostler.core.permission import Rule
from ostler.core.tools import ToolCall
from ostler.settings.project_paths import project_grants
from ostler.settings.run_options import RunOptions

OUTSIDE = {"path": "/etc/hostname"}


@pytest.fixture
def explanation(tmp_path, monkeypatch):
    """Return a function that gives the last line of an explanation, with the user's rules."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()

    async def last_line(
        tool: str, arguments: dict[str, object], rules: dict[str, object], *, yolo: bool = False
    ) -> str:
        config = Path(tmp_path / "home" / ".ostler" / "config.json")
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"permission": rules}))
        options = RunOptions(str(tmp_path / "work"), yolo=yolo)
        return (await explain_call(options, ToolCall("explain", tool, arguments), interactive=True)).lines[-1]

    return last_line


@pytest.mark.req("PM-2", "FS-3")
async def test_yolo_allows_reading_outside(explanation):
    assert await explanation("read", OUTSIDE, {}) == "To allow it: --yolo"
    assert "non-interactive    allow" in await explanation("read", OUTSIDE, {}, yolo=True)


@pytest.mark.req("PM-2")
@pytest.mark.parametrize(
    ("tool", "arguments", "rules"),
    [
        ("bash", {"command": "git push origin"}, {"bash": {"git push *": "deny"}}),
        ("bash", {"command": "rm x"}, {"bash": {"rm *": "deny"}}),
        ("read", OUTSIDE, {"external_directory": {"/etc/*": "deny"}}),
    ],
)
async def test_no_flag_is_suggested_for_a_denying_rule(explanation, tool, arguments, rules):
    assert "Change that rule; flags do not override it" in await explanation(tool, arguments, rules)


@pytest.mark.req("PM-2")
async def test_suggested_rule_has_the_right_pattern(explanation):
    line = await explanation("bash", {"command": "git push origin", "write": True}, {})
    assert line == "To allow it: --allow 'bash:git push *'"


@pytest.mark.req("PM-2", "PM-6")
async def test_standing_rule_of_the_project_applies(explanation, tmp_path):
    write = {"path": "notes.md", "content": "hello"}
    assert "To allow it" in await explanation("write", write, {})
    project_grants(tmp_path / "work").add(Rule("edit", "*", "allow"))
    assert await explanation("write", write, {}) == "    non-interactive    allow"


async def test_row_of_the_danger_check_is_cited(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    call = ToolCall("explain", "bash", {"command": "apt remove x"})
    found = await explain_call(RunOptions(str(tmp_path)), call, interactive=True)
    sources = [line for line in found.lines if line.startswith("Source of the danger check: ")]
    assert len(sources) == 1
    assert sources[0].endswith("(apt: destroys)")


def _explain(folder, tool, arguments, **options):
    call = ToolCall("explain", tool, arguments)
    return explain_call(RunOptions(str(folder), **options), call, interactive=True)


@pytest.mark.req("PM-2", "PM-10")
@pytest.mark.parametrize(
    ("options", "action"),
    [
        ({}, "ask"),
        ({"mode": "accept-edits"}, "allow"),
        ({"mode": "plan"}, "deny"),
        ({"agent": "plan"}, "deny"),
        ({"agent": "plan", "mode": "accept-edits", "write": True}, "deny"),
        ({"mode": "plan", "profile": "god_mode"}, "deny"),
    ],
)
async def test_mode_and_agent_are_explained(tmp_path, monkeypatch, options, action):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    explanation = await _explain(tmp_path, "write", {"path": "a", "content": "b"}, **options)
    assert explanation.action == action


@pytest.mark.req("PM-2")
async def test_unknown_agent_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(UsageError, match="unknown agent 'nobody'"):
        await _explain(tmp_path, "bash", {"command": "ls"}, agent="nobody")


@pytest.mark.req("PM-2")
async def test_suggested_flag_is_one_word_for_a_shell(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    explanation = await _explain(tmp_path, "write", {"path": "a'; touch b; 'c", "content": ""})
    flags = shlex.split(explanation.lines[-1].removeprefix("To allow it: "))
    assert flags == ["--allow", "write:a'; touch b; 'c"]
