"""Reads the `config.yaml` of Agent Zero's own command-line client as settings.

The file has a common name, so that only one with settings of that client is used. Settings that Ostler does not have,
and values that are not valid, become warnings and never stop Ostler.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ostler.settings.config_files import ConfigFileError, read_bytes
from ostler.settings.layers import Layer, LayerName
from ostler.settings.validate import ValidatedConfig, validate

MAX_BYTES = 128 * 1024
_MAX_DEPTH = 12
_MAX_MESSAGES = 20
_MAX_BRACKETS = 500  # with more, the YAML parser takes quadratic time
_OWN_KEYS: Mapping[str, tuple[str, ...]] = {
    "connection": ("api_url", "api_key", "ui_url", "dashboard_url", "lifetime_hours", "send_tool_results", "use_mock"),
    "security": ("allow_shell", "blacklist_patterns"),
}
_LOOKS_OWN = re.compile(rb"^(connection|security)[ \t]*:", re.MULTILINE)
_UNSUPPORTED = {
    "connection.workspace_root": "use --cwd",
    "connection.use_mock": "there is no mock server",
    "active_project": "use --cwd for its folder",
    "projects": "use --cwd for their folders",
    "ui": "see ui in Ostler's own config",
    "observer": "there is no observer",
}


def agent_zero_layer(name: LayerName, path: Path, notes: list[str]) -> Iterator[Layer]:
    """Yield the settings of a file if it belongs to Agent Zero's client."""
    try:
        data = read_bytes(path, MAX_BYTES)
    except ConfigFileError:
        return  # the file may belong to any program
    if data is None or not _LOOKS_OWN.search(data):
        return
    value = _parse(data)
    if value is None:
        notes.append(f"{path} is not valid YAML; its settings for Agent Zero are ignored")
    elif _is_own(value):
        config, messages = _convert(value)
        layer = Layer(name, str(path), ValidatedConfig(config))
        layer.zero_notes = tuple(f"{path}: {message}" for message in messages)
        yield layer


def _is_own(value: Mapping[str, Any]) -> bool:
    sections = ((value.get(section), keys) for section, keys in _OWN_KEYS.items())
    return any(isinstance(section, dict) and any(key in section for key in keys) for section, keys in sections)


def _convert(value: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the file in Ostler's form, and a message for each setting that has no effect."""
    messages: list[str] = []
    config: dict[str, Any] = {}
    for path, setting in _settings(value):
        name = ".".join(path)[:100]
        if (hint := _hint(path)) is not None:
            messages.append(f"{name} is not supported ({hint})")
            continue
        target, converted = _target(path, setting)
        # A wrong item must not switch off the others of its list.
        for nested in [[item] for item in converted] if isinstance(converted, list) and converted else [converted]:
            for step in reversed(target):
                nested = {step: nested}
            validated = validate(nested)
            if validated.violations:
                messages.append(f"{name} is ignored: {validated.violations[0].message}")
            else:
                _merge(config, validated.value)
    _apply_profile(value, config)
    if len(messages) > _MAX_MESSAGES:
        messages[_MAX_MESSAGES:] = [f"{len(messages) - _MAX_MESSAGES} more settings are ignored"]
    return config, messages


def _settings(value: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and value of each setting; a section that is not supported is one setting."""
    for key, section in value.items():
        if key in ("agent_profile", "agent_profiles"):
            continue
        if isinstance(section, dict) and str(key) not in _UNSUPPORTED:
            yield from (((str(key), str(name)), inner) for name, inner in section.items() if inner is not None)
        elif section is not None:
            yield (str(key),), section


def _hint(path: tuple[str, ...]) -> str | None:
    """Return why a setting is not supported; None if it may be."""
    if path[0] not in ("connection", "context", "security"):
        return _UNSUPPORTED.get(path[0], "unknown setting")
    return _UNSUPPORTED.get(".".join(path))


def _target(path: tuple[str, ...], value: Any) -> tuple[tuple[str, ...], Any]:
    """Return the path and value in Ostler's config. The client's blacklist has plain texts, not expressions."""
    if path[0] != "security":
        return path, value
    if path[1:] == ("blacklist_patterns",) and isinstance(value, list):
        value = [f"(?i){re.escape(item)}" if isinstance(item, str) else item for item in value]
    return ("connection", *path), value


def _apply_profile(value: Mapping[str, Any], config: dict[str, Any]) -> None:
    """Set the agent profile. One that the file defines has instructions; any other is a profile of the server."""
    name, profiles = value.get("agent_profile"), value.get("agent_profiles")
    if not isinstance(name, str) or not name:
        return
    profile = profiles.get(name) if isinstance(profiles, dict) else None
    texts = [profile.get(key) for key in ("prompt", "instructions")] if isinstance(profile, dict) else []
    found = [text for text in texts if isinstance(text, str) and text]
    _merge(config, {"connection": {"instructions": found[0]} if found else {"agent_profile": name}})


def _merge(config: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            _merge(config[key], value)
        elif isinstance(value, list) and isinstance(config.get(key), list):
            config[key] = [*config[key], *value]
        else:
            config[key] = value


def _parse(data: bytes) -> dict[str, Any] | None:
    """Parse the YAML without tags and aliases, which could run code or expand without limit. None if invalid."""
    if data.count(b"[") + data.count(b"{") > _MAX_BRACKETS:
        return None
    import yaml

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent) or self.depth == _MAX_DEPTH:
                raise yaml.MarkedYAMLError(None, None, "not supported", event.start_mark)
            self.depth += 1
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    try:
        value = yaml.load(data, Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
