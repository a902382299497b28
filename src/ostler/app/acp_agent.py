"""Builds and runs Ostler as an ACP agent for editors; each session has its own folder and settings."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import msgspec

from ostler import __version__
from ostler.app.command_services import LocalCommandServices
from ostler.app.session_manager import LocalSessionManager
from ostler.app.workspace import grant_outside_folders, reads_anywhere
from ostler.core.protocols import Workspace
from ostler.frontends.acp_agent.editor_client import EditorClient
from ostler.frontends.acp_agent.frontend import AcpAgentFrontend
from ostler.frontends.acp_agent.stdio import StdioTransport
from ostler.knowledge.trusted_settings import load_settings
from ostler.settings.project_paths import workspace_path
from ostler.settings.run_options import RunOptions
from ostler.text.stderr import notify

if TYPE_CHECKING:
    from ostler.frontends.acp_agent.editor_file_gate import EditorFileGate


class AcpAgentServer(msgspec.Struct, frozen=True):
    """Serves Ostler as an ACP agent on standard input and output."""

    options: RunOptions
    own_shell: bool = False

    def run(self) -> int:
        """Serve until the input ends, then exit the process at once, without waiting for threads."""
        transport = StdioTransport()
        status = asyncio.run(self._run(transport))
        sys.stderr.flush()
        os._exit(status)

    async def _run(self, transport: StdioTransport) -> int:
        options = msgspec.structs.replace(self.options, later_servers=True)
        manager = LocalSessionManager(options, notify)
        workspaces = EditorWorkspaces(self.options, manager, own_shell=self.own_shell)
        return await AcpAgentFrontend(transport, workspaces, __version__).run(manager)


class EditorWorkspaces:
    """Creates the command services and the workspace of each folder for the frontend."""

    def __init__(self, options: RunOptions, manager: LocalSessionManager, *, own_shell: bool = False) -> None:
        """With `own_shell` commands run in Ostler's sandbox even if the editor offers terminals."""
        self._options = options
        self._manager = manager
        self._own_shell = own_shell
        self._file_gate: EditorFileGate | None = None

    def services(self, cwd: str) -> LocalCommandServices:
        options = msgspec.structs.replace(self._options, cwd=cwd)
        return LocalCommandServices(workspace_path(cwd), options, self._manager)

    def log(self, line: str) -> None:
        notify(line)

    def workspace(self, cwd: str, editor: EditorClient) -> Workspace | None:
        capabilities = editor.capabilities
        if self._own_shell:
            capabilities = editor.capabilities = msgspec.structs.replace(capabilities, terminal=False)
        if not (capabilities.fs.read_text_file or capabilities.fs.write_text_file or capabilities.terminal):
            return None
        from ostler.frontends.acp_agent.editor_file_gate import EditorFileGate
        from ostler.frontends.acp_agent.editor_shell import EditorShell
        from ostler.frontends.acp_agent.editor_workspace import EditorWorkspace

        root = workspace_path(cwd)
        settings = load_settings(root, trust=self._options.trust)
        security = settings.config.security
        self._file_gate = self._file_gate or EditorFileGate()
        shell = EditorShell(
            str(root), editor, self._file_gate, sandbox=security.sandbox, readable=security.sandbox_readable
        )
        anywhere = reads_anywhere(settings, self._options)
        workspace = EditorWorkspace(str(root), shell, editor, read_anywhere=anywhere)
        grant_outside_folders(workspace, settings, self._options)
        return workspace
