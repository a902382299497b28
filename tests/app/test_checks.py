"""The check after edits where a person is there: asked for like any command, unless the folder is trusted."""

import json

import pytest

import ostler as package
from ostler.app.trusting import project_parts, store
from ostler.settings.load import load
from ostler.testing.scripted_model import Line, ScriptedCall, ScriptedModel
from ostler.vocabulary.events import ToolFinished

CHECK = "python3 -c pass"


@pytest.mark.req("EN-6", "PM-2", "PM-8")
@pytest.mark.parametrize("trusted", [True, False])
async def test_the_check_is_asked_for_unless_the_folder_is_trusted(tmp_path, monkeypatch, trusted):
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".ostler").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("OSTLER_HOME", raising=False)
    (home / ".ostler" / "config.json").write_text(json.dumps({"validation": {"checks": {"python": CHECK}}}))
    if trusted:
        parts = project_parts(work, load(work, {"HOME": str(home)}))
        store().grant(work, parts.digest, parts.lines)
    asked = []

    async def consent(ask):
        asked.append(ask.permission.title)
        return True

    model = ScriptedModel([Line(calls=(ScriptedCall("write", {"path": "a.py", "content": "x = 1\n"}),)), Line("done")])
    async with package.open_session(str(work), model=model, ask=consent) as conversation:
        played = await conversation.run("write a.py")
    ran = [event.result for event in played.events if isinstance(event, ToolFinished)][-1]
    assert (ran.call_id.startswith("check-"), ran.status) == (True, "ok")
    assert any(CHECK in title for title in asked) is not trusted
