"""Loads the settings of a workspace from files, environment and flags, in a fixed order."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.config_files import ConfigFileError, read_config
from ostler.settings.effective import Settings
from ostler.settings.env_layers import environment_layers, first_set_variable
from ostler.settings.foreign_mcp import mcp_json_layer, opencode_layers
from ostler.settings.home import error_text, expand_path, find_home, is_same_file, user_home
from ostler.settings.layers import Layer, LayerName
from ostler.settings.user_paths import with_absolute_paths
from ostler.settings.validate import ValidatedConfig, validate

_EIDOLON_KEYS = ("models", "model")
_OPENCODE_FOLDER = ".config/opencode"
_AGENT_ZERO_FOLDER, _AGENT_ZERO_FILE = ".config/agentzero", "config.yaml"


def load(cwd: Path, env: Mapping[str, str], *, trusted: bool = False, project: bool = True) -> Settings:
    """Load the settings of a workspace.

    Unless `trusted`, project settings can only restrict. With `project=False` the project's files are not read at all,
    which is enough to manage stored sessions. Raises `UsageError` for a broken file or a wrong type; unknown keys are
    in the result's `problems`.
    """
    notes: list[str] = []
    foreign = _agent_zero_layers(cwd, env, notes, project=project)
    project_layers = _project_layers(cwd, env, notes) if project else ()
    layers = [*foreign, *_global_layers(env, notes), *project_layers, *_explicit_layer(cwd, env)]
    _raise_on_errors(layers)
    layers += environment_layers(env)
    return Settings.from_layers(tuple(layers), tuple(notes), trusted=trusted)


def find_config_files(cwd: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the existing config files of Ostler, in increasing precedence."""
    home = find_home(env)
    found = [_find_config_file(home)] if home and not _is_unusable(home) else []
    found.append(_find_config_file(cwd / ".ostler"))
    explicit = first_set_variable(env, "OSTLER_CONFIG", "AGENT_CONFIG_PATH")
    if explicit:
        found.append(cwd / expand_path(env[explicit], env))
    return list(dict.fromkeys(path for path in found if path))


def _agent_zero_layers(cwd: Path, env: Mapping[str, str], notes: list[str], *, project: bool) -> Iterator[Layer]:
    """Read the files of Agent Zero's own client, which have the lowest precedence."""
    home = user_home(env)
    folder = home / _AGENT_ZERO_FOLDER if home else None
    files: list[tuple[LayerName, Path]] = [("global", folder / _AGENT_ZERO_FILE)] if folder else []
    if project and not (folder and is_same_file(cwd, folder)):
        files.append(("project", cwd / _AGENT_ZERO_FILE))
    for name, path in files:
        if path.is_file():
            from ostler.settings.agent_zero_yaml import agent_zero_layer

            yield from agent_zero_layer(name, path, notes)


def _global_layers(env: Mapping[str, str], notes: list[str]) -> Iterator[Layer]:
    folder, home = user_home(env), find_home(env)
    if folder:
        yield from _eidolon_layers("global", folder)
        yield from opencode_layers("global", folder / _OPENCODE_FOLDER, notes)
    if home is None:
        notes.append("the global config was not read: set HOME or OSTLER_HOME to an absolute path")
    elif _is_unusable(home):
        notes.append(f"the global config was not read: {home} is not an accessible directory")
    else:
        yield from _file_layer("global", _find_config_file(home))


def _project_layers(cwd: Path, env: Mapping[str, str], notes: list[str]) -> Iterator[Layer]:
    folder, home = user_home(env), find_home(env)
    # In the home directory, the project's files would be the global ones again.
    if not (folder and is_same_file(cwd, folder)):
        yield from _eidolon_layers("project", cwd)
        if not (folder and is_same_file(cwd, folder / _OPENCODE_FOLDER)):
            yield from opencode_layers("project", cwd, notes)
        yield from opencode_layers("project", cwd / ".opencode", notes)
        yield from mcp_json_layer(cwd, notes)
    if not (home and is_same_file(cwd / ".ostler", home)):
        yield from _file_layer("project", _find_config_file(cwd / ".ostler"))


def _explicit_layer(cwd: Path, env: Mapping[str, str]) -> Iterator[Layer]:
    variable = first_set_variable(env, "OSTLER_CONFIG", "AGENT_CONFIG_PATH")
    if variable:
        path = cwd / expand_path(env[variable], env)
        layers = list(_file_layer("explicit", path))
        if not layers:
            raise UsageError(f"{path} does not exist; change or unset ${variable}")
        yield from layers


def _eidolon_layers(name: LayerName, folder: Path) -> Iterator[Layer]:
    """Read Eidolon's files: only the keys that Ostler supports too; other keys are ignored silently."""
    for path in (folder / ".eidolon" / "config.json", folder / ".eidolon.json"):
        document = read_config(path)
        if document is None:
            continue
        value = document.value
        if isinstance(value, dict):
            value = {key: value[key] for key in _EIDOLON_KEYS if key in value}
        validated = validate(value)
        violations = tuple(violation for violation in validated.violations if not violation.unknown_key)
        config = ValidatedConfig(validated.value, violations, validated.original_paths)
        yield Layer(name, str(path), config, document)


def _file_layer(name: LayerName, path: Path | None) -> Iterator[Layer]:
    document = read_config(path) if path else None
    if document:
        layer = Layer(name, document.file, validate(document.value), document)
        if name != "project":
            layer.value = with_absolute_paths(layer.value, os.path.dirname(os.path.abspath(document.file)))
        yield layer


def _find_config_file(folder: Path) -> Path | None:
    found = [path for path in (folder / "config.json", folder / "config.jsonc") if _exists(path)]
    if len(found) > 1:
        raise UsageError(f"{found[0]} and {found[1]} both exist; remove one of them")
    return found[0] if found else None


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise ConfigFileError(path, f"this file cannot be read: {error_text(error)}") from None
    return True


def _is_unusable(home: Path) -> bool:
    """Return whether Ostler's home exists but is not a folder or not accessible."""
    try:
        (home / "config.json").lstat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def _raise_on_errors(layers: list[Layer]) -> None:
    errors = [problem for layer in layers for problem in layer.problems() if problem.severity == "error"]
    if errors:
        more = f"{len(errors) - 1} more: " if len(errors) > 1 else ""
        raise UsageError(str(errors[0]), code="config", hint=f"{more}run `ostler config check` to list all problems")
