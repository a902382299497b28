"""Editing the typed text in an external editor never loses it."""

import asyncio
import os
import pty

import pytest
from prompt_toolkit.application.current import set_app
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from ostler.core.errors import UsageError
from ostler.frontends.repl.console import IDLE_MENU
from ostler.frontends.repl.key_bindings import ESCAPE_TIMEOUT_SECONDS, SEQUENCE_TIMEOUT_SECONDS
from ostler.frontends.repl.line_editor import LineEditorConsole
from ostler.interaction import external_editor
from ostler.interaction.answer_menu import AnswerMenu
from ostler.interaction.external_editor import edit_text


def writing(data, *, ends_well=True):
    """Return an editor that writes this data to the file."""

    async def edit(path):
        with open(path, "wb") as file:
            file.write(data)
        return ends_well

    return edit


@pytest.fixture
async def console():
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as out:
        yield LineEditorConsole(out, None)
    os.close(master)


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("left", "read"), [(b"one\ntwo\n", "one\ntwo"), ("世界".encode(), "世界"), (b"\xff", "\ufffd"), (b"", "")]
)
async def test_edited_text_is_read_back(left, read):
    assert await edit_text("before", writing(left)) == read


@pytest.mark.req("CL-1")
async def test_failed_editor_is_named_and_its_file_removed(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("EDITOR", "my-ed --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    with pytest.raises(UsageError, match="EDITOR, which is 'my-ed --wait'"):
        await edit_text("before", writing(b"half", ends_well=False))
    assert not list(tmp_path.iterdir())


async def test_missing_or_too_long_file_is_an_error(monkeypatch):
    async def away(path):
        os.unlink(path)
        return True

    with pytest.raises(UsageError, match="cannot be read"):
        await edit_text("before", away)
    monkeypatch.setattr(external_editor, "MAX_LENGTH", 10)
    with pytest.raises(UsageError, match="longer than 10 characters"):
        await edit_text("before", writing(b"x" * 11))


@pytest.mark.req("CL-1", "PM-5")
@pytest.mark.parametrize("asks", [False, True])
async def test_edited_text_replaces_typed_text_also_during_a_dialog(console, asks):
    buffer = console._session.default_buffer
    buffer.text = "before"

    async def edit(path):
        if asks:
            console.set_menu(AnswerMenu("allow? ", (("y", "Allow"),)))
        return await writing(b"after\n")(path)

    console.edit = edit
    console.edit_draft()
    await console._edit_task
    assert buffer.text == ("" if asks else "after")
    console.set_menu(IDLE_MENU)
    assert buffer.text == "after"


@pytest.mark.req("CL-9")
async def test_editor_is_terminated_on_exit(console, monkeypatch, tmp_path):
    program, started, drafts = tmp_path / "editor", tmp_path / "started", tmp_path / "drafts"
    program.write_text(f"#!/bin/sh\necho $$ > {started}.new; mv {started}.new {started}; exec sleep 600\n")
    program.chmod(0o700)
    drafts.mkdir()
    monkeypatch.setenv("VISUAL", str(program))
    monkeypatch.setattr("tempfile.tempdir", str(drafts))
    console.edit_draft()
    async with asyncio.timeout(60):
        while not started.exists():
            await asyncio.sleep(0.01)
        await console.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    assert not list(drafts.iterdir())


@pytest.mark.req("CL-1")
async def test_key_timeouts(console):
    app = console._session.app
    pressed = []
    console.edit_draft = lambda: pressed.append("edit")
    with set_app(app):
        for key, waits in (
            (Keys.ControlX, SEQUENCE_TIMEOUT_SECONDS),
            (Keys.ControlE, None),
            (Keys.Escape, ESCAPE_TIMEOUT_SECONDS),
        ):
            app.key_processor.feed(KeyPress(key))
            app.key_processor.process_keys()
            assert waits in (None, app.timeoutlen)
    assert pressed == ["edit"]
