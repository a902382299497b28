"""From files, environment and flags to the settings in force, in one fixed order."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ostler.core.errors import UsageError
from ostler.settings.config_files import ConfigFileError, read_config
from ostler.settings.effective import Settings
from ostler.settings.env_layers import environment_layers, first_set_variable, flag_layer
from ostler.settings.home import error_text, expand_path, find_home, user_home
from ostler.settings.layers import Layer, LayerName
from ostler.settings.validate import ValidatedConfig, validate

_EIDOLON_KEYS = ("models", "model")


def load(
    cwd: Path,
    env: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    trusted: bool = False,
    project: bool = True,
) -> Settings:
    """The settings for a workspace. What a project says beyond narrowing counts only when `trusted`.

    Without `project` its files are not read at all: for who only looks after what was kept. A broken file or a wrong
    type is a UsageError; unknown keys are problems of the result.
    """
    notes: list[str] = []
    of_project = _project_layers(cwd, env) if project else ()
    layers = [*_global_layers(env, notes), *of_project, *_explicit_layer(cwd, env)]
    _raise_on_errors(layers)
    layers += environment_layers(env)
    if flags:
        layers.append(flag_layer(flags))
    return Settings.from_layers(tuple(layers), tuple(notes), trusted=trusted)


def find_config_files(cwd: Path, env: Mapping[str, str]) -> list[Path]:
    """Ostler's own config files that are there, in the order in which they count."""
    home = find_home(env)
    found = [_find_config_file(home)] if home and not _is_unusable(home) else []
    found.append(_find_config_file(cwd / ".ostler"))
    explicit = first_set_variable(env, "OSTLER_CONFIG", "AGENT_CONFIG_PATH")
    if explicit:
        found.append(cwd / expand_path(env[explicit], env))
    return list(dict.fromkeys(path for path in found if path))


def _global_layers(env: Mapping[str, str], notes: list[str]) -> Iterator[Layer]:
    person, home = user_home(env), find_home(env)
    if person:
        yield from _eidolon_layers("global", person)
    if home is None:
        notes.append("no global config is read: neither HOME nor OSTLER_HOME names a directory")
    elif _is_unusable(home):
        notes.append(f"no global config is read: {home} is not a directory that can be opened")
    else:
        yield from _file_layer("global", _find_config_file(home))


def _project_layers(cwd: Path, env: Mapping[str, str]) -> Iterator[Layer]:
    person, home = user_home(env), find_home(env)
    # Started in the home directory, the project's files would be the global ones once more.
    if not (person and _is_same_file(cwd, person)):
        yield from _eidolon_layers("project", cwd)
    if not (home and _is_same_file(cwd / ".ostler", home)):
        yield from _file_layer("project", _find_config_file(cwd / ".ostler"))


def _explicit_layer(cwd: Path, env: Mapping[str, str]) -> Iterator[Layer]:
    variable = first_set_variable(env, "OSTLER_CONFIG", "AGENT_CONFIG_PATH")
    if variable:
        path = cwd / expand_path(env[variable], env)
        layers = list(_file_layer("explicit", path))
        if not layers:
            raise UsageError(f"{path}: there is no such file, but ${variable} names it")
        yield from layers


def _eidolon_layers(name: LayerName, folder: Path) -> Iterator[Layer]:
    """Eidolon's files: only the keys that are its own and ours, and no word about the others."""
    for path in (folder / ".eidolon" / "config.json", folder / ".eidolon.json"):
        document = read_config(path)
        if document is None:
            continue
        said = document.value
        checked = validate({key: said[key] for key in _EIDOLON_KEYS if key in said} if isinstance(said, dict) else said)
        flaws = tuple(flaw for flaw in checked.violations if not flaw.unknown_key)
        yield Layer(name, str(path), ValidatedConfig(checked.value, flaws, checked.original_paths), document)


def _file_layer(name: LayerName, path: Path | None) -> Iterator[Layer]:
    document = read_config(path) if path else None
    if document:
        yield Layer(name, document.file, validate(document.value), document)


def _find_config_file(folder: Path) -> Path | None:
    found = [path for path in (folder / "config.json", folder / "config.jsonc") if _exists(path)]
    if len(found) > 1:
        raise UsageError(f"{found[0]} and {found[1]} are both there; keep one of them")
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
    """Whether something is in the place of our home that is no folder, or one that is closed to us."""
    try:
        (home / "config.json").lstat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return False


def _is_same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return False


def _raise_on_errors(layers: list[Layer]) -> None:
    errors = [problem for layer in layers for problem in layer.problems() if problem.severity == "error"]
    if errors:
        more = f"{len(errors) - 1} more: " if len(errors) > 1 else ""
        raise UsageError(str(errors[0]), code="config", hint=f"{more}ostler config check shows all that is to mend")
