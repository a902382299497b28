"""The check after edits in interactive sessions: it needs approval unless the folder is trusted."""

import json

import pytest

import ostler as package
from ostler.core.events import ToolFinished
from ostler.knowledge.trusted_settings import collect_trust_items, trust_store
from ostler.settings.load import load
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

CHECK = "python3 -c pass"


def prepare(tmp_path, monkeypatch, sandbox="prefer"):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".ostler").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    (home / ".ostler" / "config.json").write_text(
        json.dumps({"validation": {"checks": {"python": CHECK}}, "security": {"sandbox": sandbox}})
    )
    return home, work


@pytest.mark.req("EN-6", "PM-2", "PM-8")
@pytest.mark.parametrize("trusted", [True, False])
async def test_check_needs_approval_unless_trusted(tmp_path, monkeypatch, trusted):
    home, work = prepare(tmp_path, monkeypatch, sandbox="off")
    if trusted:
        items = collect_trust_items(work, load(work, {"HOME": str(home)}))
        trust_store().grant(work, items.digest, items.lines)
    titles = []

    async def approve(ask):
        titles.append(ask.permission.title)
        return True

    model = ScriptedModel(
        [ScriptedLine(calls=(ScriptedCall("write", {"path": "a.py", "content": "x = 1\n"}),)), ScriptedLine("done")]
    )
    async with package.open_session(str(work), model=model, ask=approve) as conversation:
        turn = await conversation.run("write a.py")
    result = [event.result for event in turn.events if isinstance(event, ToolFinished)][-1]
    assert (result.call_id.startswith("check-"), result.status) == (True, "ok")
    assert any(CHECK in title for title in titles) is not trusted


@pytest.mark.req("EN-6")
@pytest.mark.parametrize("ephemeral", [False, True])
@pytest.mark.parametrize(
    ("command", "checked"),
    [
        ("sed -i s/1/2/ a.py", True),
        ("rm a.py", True),
        ("printf x > notes.md; mkdir -p made; echo x > made/b.py", False),
        ("cat a.py", False),
    ],
)
@pytest.mark.sampled
async def test_changes_of_commands_are_checked(tmp_path, monkeypatch, command, checked, ephemeral):
    _, work = prepare(tmp_path, monkeypatch)
    (work / "a.py").write_text("x = 1\n")
    (work / ".gitignore").write_text("made/\n")
    model = ScriptedModel([ScriptedLine(calls=(ScriptedCall("bash", {"command": command}),)), ScriptedLine("done")])

    async def approve(ask):
        return True

    async with package.open_session(str(work), model=model, ask=approve, ephemeral=ephemeral) as conversation:
        turn = await conversation.run("go")
    results = [event.result for event in turn.events if isinstance(event, ToolFinished)]
    assert [result.status for result in results] == ["ok"] * (1 + checked)
    assert results[-1].call_id.startswith("check-") is checked
