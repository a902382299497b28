"""The check after edits where a person is there: asked for like any command, unless the folder is trusted."""

import json

import pytest

import ostler as package
from ostler.app.trusted_settings import collect_trust_items, trust_store
from ostler.core.events import ToolFinished
from ostler.settings.load import load
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

CHECK = "python3 -c pass"


def prepare(tmp_path, monkeypatch):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".ostler").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    (home / ".ostler" / "config.json").write_text(json.dumps({"validation": {"checks": {"python": CHECK}}}))
    return home, work


@pytest.mark.req("EN-6", "PM-2", "PM-8")
@pytest.mark.parametrize("trusted", [True, False])
async def test_the_check_is_asked_for_unless_the_folder_is_trusted(tmp_path, monkeypatch, trusted):
    home, work = prepare(tmp_path, monkeypatch)
    if trusted:
        parts = collect_trust_items(work, load(work, {"HOME": str(home)}))
        trust_store().grant(work, parts.digest, parts.lines)
    asked = []

    async def consent(ask):
        asked.append(ask.permission.title)
        return True

    model = ScriptedModel(
        [ScriptedLine(calls=(ScriptedCall("write", {"path": "a.py", "content": "x = 1\n"}),)), ScriptedLine("done")]
    )
    async with package.open_session(str(work), model=model, ask=consent) as conversation:
        played = await conversation.run("write a.py")
    ran = [event.result for event in played.events if isinstance(event, ToolFinished)][-1]
    assert (ran.call_id.startswith("check-"), ran.status) == (True, "ok")
    assert any(CHECK in title for title in asked) is not trusted


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
async def test_what_a_command_changed_is_checked(tmp_path, monkeypatch, command, checked, ephemeral):
    _, work = prepare(tmp_path, monkeypatch)
    (work / "a.py").write_text("x = 1\n")
    (work / ".gitignore").write_text("made/\n")
    model = ScriptedModel([ScriptedLine(calls=(ScriptedCall("bash", {"command": command}),)), ScriptedLine("done")])

    async def consent(ask):
        return True

    async with package.open_session(str(work), model=model, ask=consent, ephemeral=ephemeral) as conversation:
        played = await conversation.run("go")
    ran = [event.result for event in played.events if isinstance(event, ToolFinished)]
    assert [result.status for result in ran] == ["ok"] * (1 + checked)
    assert ran[-1].call_id.startswith("check-") is checked
