"""Joins the editor's face: a house whose sessions each have their own folder and settings."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ostler import __version__
from ostler.app.house import LocalHouse, workspace
from ostler.app.options import RunOptions
from ostler.app.persons import PersonsServices
from ostler.app.trusting import load_settings
from ostler.faces.editor.face import EditorFace
from ostler.faces.editor.premises import Editor
from ostler.faces.editor.streams import StandardStreams
from ostler.session.session import Session
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.seams import Ground, ToolRunner
from ostler.vocabulary.sessions import Opening, Query, SessionSummary


class Editing(msgspec.Struct, frozen=True):
    """The agent from start to exit status."""

    options: RunOptions
    own_shell: bool = False

    def play(self) -> int:
        """The exit status. The process ends at once: a thread that still waits for a server keeps nobody."""
        streams = StandardStreams()
        status = asyncio.run(self._play(streams))
        sys.stderr.flush()
        os._exit(status)

    async def _play(self, streams: StandardStreams) -> int:
        premises = Workplaces(self.options, own_shell=self.own_shell)
        return await EditorFace(streams, premises, __version__).run(EditorsHouse(self.options))


class EditorsHouse:
    """A house for many folders: each session is opened as if it were the only one of its process."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options

    async def open(self, opening: Opening, *, tools: ToolRunner | None = None, ground: Ground | None = None) -> Session:
        opening = msgspec.structs.replace(opening, backend=self._options.backend)
        return await house_at(self._options, opening.cwd).open(opening, tools=tools, ground=ground)

    async def list(self, query: Query) -> Sequence[SessionSummary]:
        return await house_at(self._options, query.cwd or self._options.cwd).list(query)

    async def delete(self, session_id: str) -> None:
        """One that is not there is as good as deleted."""
        try:
            await house_at(self._options, self._options.cwd).delete(session_id)
        except UsageError as error:
            _say(str(error))


class Workplaces:
    """What the face is handed of each folder."""

    def __init__(self, options: RunOptions, *, own_shell: bool = False) -> None:
        """`own_shell`: commands run here, in our sandbox, also where the editor has terminals."""
        self._options = options
        self._own_shell = own_shell

    def services(self, cwd: str) -> PersonsServices:
        options = msgspec.structs.replace(self._options, cwd=cwd)
        return PersonsServices(Path(workspace(cwd)), options, house_at(options, cwd))

    def say(self, line: str) -> None:
        _say(sanitise(line))

    def ground(self, cwd: str, editor: Editor) -> Ground | None:
        can = editor.can
        if self._own_shell:
            can = editor.can = msgspec.structs.replace(can, terminal=False)
        if not (can.fs.read_text_file or can.fs.write_text_file or can.terminal):
            return None
        from ostler.app.editor_ground import EditorGround
        from ostler.app.editor_shell import EditorShell

        root = workspace(cwd)
        sandbox = load_settings(root, trust=self._options.trust).config.security.sandbox
        shell = EditorShell(str(root), editor, sandbox=sandbox)
        return EditorGround(str(root), shell, editor, read_anywhere=self._options.yolo)


def house_at(options: RunOptions, cwd: str) -> LocalHouse:
    """The house of one folder."""
    return LocalHouse(msgspec.structs.replace(options, cwd=cwd), _say)


def _say(line: str) -> None:
    sys.stderr.write(f"ostler: {line}\n")
