"""Reads the entries of MCP servers: from the settings, with references filled in, and from a client's request."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.core.sessions import McpServerRequest
from ostler.mcp.server_entry import (
    DEFAULT_CALL_TIMEOUT,
    DEFAULT_START_TIMEOUT,
    PASSED_IN,
    OAuthEntry,
    ServerEntry,
    read_switches,
)
from ostler.processes.command_environment import command_environment, path_without
from ostler.settings.effective import Settings
from ostler.settings.home import require_home
from ostler.settings.jsonc_parser import KeyPath
from ostler.settings.problems import format_path
from ostler.settings.references import fill_references, unset_variables
from ostler.settings.schema_services import McpConfig, OAuthConfig

WORKSPACE_REFERENCE = "{workspace}"
_SSE_PROBLEM = 'the old "sse" transport is not supported; use the URL of the server\'s streamable HTTP transport'


def passed_in_entry(request: McpServerRequest, cwd: Path, settings: Settings) -> ServerEntry:
    """Return the entry of a server that a client passed in, such as an editor."""
    environment = command_environment(os.environ)
    folders = [] if settings.trusted else [os.path.realpath(cwd)]
    path = path_without(environment.get("PATH", os.defpath), folders)
    return ServerEntry(
        request.name,
        request.command,
        {**environment, "PATH": path, **request.env},
        str(cwd) if settings.trusted else str(require_home(os.environ)),
        request.url,
        request.headers,
        secrets=(*request.env.values(), *request.headers.values()),
        problem=_SSE_PROBLEM if request.type == "sse" else "",
        origin=PASSED_IN,
        settings_digest="\0".join(f"{key}={value}" for key, value in (*request.env.items(), *request.headers.items())),
    )


def server_entries(cwd: Path, settings: Settings) -> list[ServerEntry]:
    """Return the configured servers with references filled in. An entry that cannot be used has a `problem`."""
    return [_EntryReader(cwd, settings, name).read(config) for name, config in settings.config.mcp.items()]


class _EntryReader:
    """Reads one entry. References are filled in here, because a secret is read only when it is used."""

    def __init__(self, cwd: Path, settings: Settings, name: str) -> None:
        self._cwd = str(cwd)
        self._settings = settings
        self._name = name
        # An untrusted project can disable a server of the user, but the server is still the user's.
        key = "command" if settings.config.mcp[name].command else "url"
        self._origin = settings.origin(("mcp", name, key))
        self._problem = ""

    def read(self, config: McpConfig) -> ServerEntry:
        self._problem = _problem(config)
        environment = {
            name: self._fill(value.reveal(), "environment", name) for name, value in config.environment.items()
        }
        headers = {name: self._fill(value.reveal(), "headers", name) for name, value in config.headers.items()}
        cwd = self._fill(config.cwd, "cwd") if config.cwd else self._default_folder(sandboxed=config.sandbox)
        raw = [f"{key}={value.reveal()}" for key, value in (*config.environment.items(), *config.headers.items())]
        return ServerEntry(
            self._name,
            tuple(self._fill(word, "command", number) for number, word in enumerate(config.command)),
            {**self._base_environment(sandboxed=config.sandbox), **environment},
            os.path.join(self._cwd, cwd) if cwd else "",
            self._fill(config.url, "url"),
            headers,
            (config.start_timeout_ms or DEFAULT_START_TIMEOUT * 1000) / 1000,
            (config.timeout_ms or DEFAULT_CALL_TIMEOUT * 1000) / 1000,
            config.required,
            config.enabled,
            read_switches(config.tools),
            (*environment.values(), *headers.values()),
            f"{self._origin}: {self._problem}" if self._problem else "",
            str(self._origin),
            "\0".join(raw),
            config.sandbox,
            config.network,
            self._cwd,
            self._oauth(config),
            self._settings.config.security.sandbox_readable,
        )

    def _oauth(self, config: McpConfig) -> OAuthEntry | None:
        """Return how to log in to a remote server; None if the entry has an Authorization header or forbids it."""
        has_header = any(name.lower() == "authorization" for name in config.headers)
        if not config.url or has_header or config.oauth is False:
            return None
        found = config.oauth if isinstance(config.oauth, OAuthConfig) else OAuthConfig()
        secret = found.client_secret.reveal() if found.client_secret else ""
        return OAuthEntry(
            self._fill(found.client_id, "oauth", "client_id"),
            self._fill(secret, "oauth", "client_secret"),
            found.scope,
            found.redirect_port or 0,
        )

    def _default_folder(self, *, sandboxed: bool) -> str:
        """Return the workspace only if it is trusted: programs such as npx and python load code from there.

        An empty text is the temporary folder of the sandbox, in which the folder of the config may be hidden.
        """
        if self._settings.trusted or self._origin.layer == "project" or not self._origin.file:
            return self._cwd
        return "" if sandboxed else os.path.dirname(os.path.abspath(self._origin.file))

    def _base_environment(self, *, sandboxed: bool) -> Mapping[str, str]:
        """Return the environment of commands, which has no secrets, and a PATH without programs of the workspace."""
        environment = command_environment(os.environ, sandboxed=sandboxed)
        trusted = self._settings.trusted or self._origin.layer == "project"
        folders = [] if trusted else [os.path.realpath(self._cwd)]
        return {**environment, "PATH": path_without(environment.get("PATH", os.defpath), folders)}

    def _fill(self, text: str, *key: str | int) -> str:
        """Fill in the references of a value. A failure becomes the entry's problem.

        The workspace is last: a folder's name may look like a reference.
        """
        return self._fill_settings(text, *key).replace(WORKSPACE_REFERENCE, self._cwd)

    def _fill_settings(self, text: str, *key: str | int) -> str:
        if "{" not in text:
            return text
        path = ("mcp", self._name, *key)
        if unset := unset_variables(text, os.environ):
            self._problem = self._problem or f"{format_path(path)} needs the variable {unset[0]}, which is not set"
            return ""
        try:
            return fill_references(text, os.environ, partial(self._folder_of, path), lambda: format_path(path))
        except UsageError as error:
            self._problem = self._problem or error.fault.message
            return ""

    def _folder_of(self, path: KeyPath) -> Path:
        """Return the folder of the file that sets a value."""
        return Path(self._settings.origin(path).file).parent


def _problem(config: McpConfig) -> str:
    """Return why an entry cannot be used, or an empty string."""
    if config.type == "sse":
        return _SSE_PROBLEM
    is_remote = config.type == "remote" or (config.type is None and bool(config.url))
    if is_remote:
        return "" if config.url else "a remote server needs a url"
    return "" if config.command and config.command[0] else "a local server needs a command"
