"""Ostler's ACP agent in this process, between a test editor and a scripted model."""

from contextlib import asynccontextmanager

import pytest
from tests.frontends.acp_agent.editor_end import EditorEnd

from ostler.app.acp_agent import EditorWorkspaces
from ostler.app.session_manager import LocalSessionManager
from ostler.settings.run_options import RunOptions
from ostler.testing.model_server import ScriptedModelServer
from ostler.text.stderr import notify


@pytest.fixture
def editor_at(tmp_path, monkeypatch):
    """`async with editor_at(text("hi")) as (editor, server):` connects an editor, the agent and a scripted model."""
    home, folder = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)

    @asynccontextmanager
    async def at(*replies, **flags):
        async with ScriptedModelServer(*replies) as server:
            model = {"base_url": server.base_url, "model": "scripted"}
            options = RunOptions(str(folder), model=model, **flags)
            manager = LocalSessionManager(options, notify)
            editor = EditorEnd(folder, manager, EditorWorkspaces(options, manager))
            try:
                yield editor, server
            finally:
                await editor.aclose()
        assert editor.faults == []

    return at
