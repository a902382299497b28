"""What is said to allow a call does allow it, and nothing is promised that no flag can do."""

import json
from pathlib import Path

import pytest

from ostler.app.explain_permission import explain
from ostler.app.run_options import RunOptions
from ostler.app.session_manager import project_grants
from ostler.core.permission import Rule

OUTSIDE = {"path": "/etc/hostname"}


@pytest.fixture
def told(tmp_path, monkeypatch):
    """The last line of an explanation, under a person's own rules."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()

    async def last_line(
        tool: str, arguments: dict[str, object], rules: dict[str, object], *, yolo: bool = False
    ) -> str:
        config = Path(tmp_path / "home" / ".ostler" / "config.json")
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"permission": rules}))
        options = RunOptions(str(tmp_path / "work"), yolo=yolo)
        return (await explain(options, tool, arguments, interactive=True)).lines[-1]

    return last_line


@pytest.mark.req("PM-2", "FS-3")
async def test_what_would_allow_reading_elsewhere_is_the_flag_for_it(told):
    assert await told("read", OUTSIDE, {}) == "This would allow it: --yolo"
    assert "non-interactive    allow" in await told("read", OUTSIDE, {}, yolo=True)


@pytest.mark.req("PM-2")
@pytest.mark.parametrize(
    ("tool", "arguments", "rules"),
    [
        ("bash", {"command": "git push origin"}, {"bash": {"git push *": "deny"}}),
        ("bash", {"command": "rm x"}, {"bash": {"rm *": "deny"}}),
        ("read", OUTSIDE, {"external_directory": {"/etc/*": "deny"}}),
    ],
)
async def test_no_flag_is_named_for_what_a_persons_rule_denies(told, tool, arguments, rules):
    assert "only a change of that rule" in await told(tool, arguments, rules)


@pytest.mark.req("PM-2")
async def test_an_ordinary_ask_names_the_rule_of_the_right_width(told):
    line = await told("bash", {"command": "git push origin"}, {})
    assert line == "This would allow it: --allow 'bash:git push *'"


@pytest.mark.req("PM-2", "PM-6")
async def test_a_rule_that_a_person_gave_for_the_project_counts(told, tmp_path):
    write = {"path": "notes.md", "content": "hello"}
    assert "This would allow it" in await told("write", write, {})
    project_grants(tmp_path / "work").add(Rule("edit", "*", "allow"))
    assert await told("write", write, {}) == "    non-interactive    allow"
