"""Makes relative programs and paths in the user's own settings absolute: they start at the folder of the settings file.

In a workspace of somebody else, `./hooks/guard` would otherwise be a program of that workspace. `instructions` name
texts, not programs, so `CONTRIBUTING.md` there means the file of each workspace.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ostler.settings.home import expand_path
from ostler.text.lazy_regex import lazy_regex

_SCRIPT_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".bash", ".rb", ".pl", ".php", ".lua", ".jar", ".ps1")
_RELATIVE_PROGRAM = lazy_regex(r"\s*([\w.+~-]+/[\w./+~-]*)(?=\s|$)")


def with_absolute_paths(value: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the settings with every program and path absolute. Values of a wrong type stay as they are."""

    def path(name: Any) -> Any:
        return absolute_path(name, folder) if isinstance(name, str) and name and "://" not in name else name

    def argv(words: Any) -> Any:
        return absolute_command(words, folder) if _are_strings(words) and words else words

    def check(command: Any) -> Any:
        return _map(command, check) if isinstance(command, list) else _absolute_shell_command(command, folder)

    def server(entry: Any) -> Any:
        return with_absolute_program(entry, folder) if isinstance(entry, dict) else entry

    sections: dict[str, Callable[[Any], Any]] = {
        "hooks": lambda hooks: _map(hooks, lambda entries: _map(entries, lambda hook: _map_key(hook, "command", argv))),
        "mcp": lambda servers: _map(servers, lambda entry: _map_key(_map_key(entry, "command", argv), "cwd", path)),
        "agent_servers": lambda servers: _map(servers, server),
        "mcp_servers": lambda servers: _map(servers, server),
        "validation": lambda section: _map_key(section, "checks", lambda checks: _map(checks, check)),
        "skills": lambda section: _map_key(section, "paths", lambda names: _map(names, path)),
    }

    return {key: sections[key](section) if key in sections else section for key, section in value.items()}


def with_absolute_program(entry: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return an entry of an agent or a server with its `command` and `args` absolute."""
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command or not _are_strings(args):
        return dict(entry)
    program, *rest = absolute_command([command, *args], folder)
    return {**entry, "command": program, **({"args": rest} if args else {})}


def absolute_command(words: Sequence[str], folder: str) -> list[str]:
    """Return a command with its program, and the scripts among its arguments, as absolute paths.

    A program without a slash is searched on the PATH, as usual.
    """
    program, *arguments = words
    return [
        absolute_path(program, folder) if "/" in program else program,
        *(absolute_path(word, folder) if _is_script(word, folder) else word for word in arguments),
    ]


def absolute_path(name: str, folder: str) -> str:
    """Return a path that starts at `folder` if it is relative, with `~` replaced.

    A path that begins with a reference, such as `{workspace}` of an MCP server, stays unchanged.
    """
    if name.startswith("{"):
        return name
    return os.path.normpath(os.path.join(folder, expand_path(name, os.environ)))


def _is_script(word: str, folder: str) -> bool:
    """Return whether an argument names a file that an interpreter could run."""
    if word.startswith(("-", "/")) or "://" in word or not word.isprintable() or any(map(str.isspace, word)):
        return False
    if word.startswith(("./", "../", "~/")) or word.lower().endswith(_SCRIPT_ENDINGS):
        return True
    return os.path.isfile(os.path.join(folder, word))


def _absolute_shell_command(command: Any, folder: str) -> Any:
    """Return a shell command whose program is absolute if it was a relative path. Arguments name workspace files."""
    found = _RELATIVE_PROGRAM.match(command) if isinstance(command, str) else None
    if not found:
        return command
    from shlex import quote  # imported only if needed, for a fast start

    return quote(absolute_path(found[1], folder)) + command[found.end() :]


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a change to the members of an object or a list."""
    if isinstance(value, dict):
        return {key: change(inner) for key, inner in value.items()}
    return [change(inner) for inner in value] if isinstance(value, list) else value


def _map_key(value: Any, key: str, change: Callable[[Any], Any]) -> Any:
    return {**value, key: change(value[key])} if isinstance(value, dict) and key in value else value


def _are_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
