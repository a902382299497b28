"""Builds settings layers from environment variables and command-line flags."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ostler.core.errors import UsageError
from ostler.settings.layers import Layer
from ostler.settings.problems import quote_value
from ostler.settings.validate import validate


def _parse_number(value: str) -> int | float:
    number = float(value) if len(value) <= 20 else float("inf")
    if number - number != 0:
        raise ValueError
    return int(number) if number == int(number) else number


def _parse_bool(value: str) -> bool:
    word = value.strip().lower()
    if word not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise ValueError
    return word in ("1", "true", "yes", "on")


_Parser = Callable[[str], Any]
_EXPECTED: dict[_Parser, str] = {_parse_number: "a number", _parse_bool: "true or false"}

# Of several variables for one setting, the first that is set is used.
_VARIABLES: tuple[tuple[tuple[str, ...], str, _Parser], ...] = (
    (("OSTLER_MODEL", "AGENT_MODEL"), "model", str),
    (("OSTLER_CACHE_PATH", "AGENT_CACHE_PATH"), "cache.path", str),
    (("OSTLER_MAX_STEPS", "AGENT_MAX_STEPS"), "limits.steps", _parse_number),
    (("AGENTZERO_API_URL",), "connection.api_url", str),
    (("AGENTZERO_API_KEY",), "connection.api_key", str),
    (("AGENTZERO_LIFETIME_HOURS",), "connection.lifetime_hours", _parse_number),
    (("AGENTZERO_TIMEOUT_SECONDS",), "connection.timeout_seconds", _parse_number),
    (("AGENTZERO_KEEPALIVE_SECONDS",), "connection.keepalive_seconds", _parse_number),
    (("AGENTZERO_MAX_WAIT_SECONDS",), "connection.max_wait_seconds", _parse_number),
    (("AGENTZERO_SEND_TOOL_RESULTS",), "connection.send_tool_results", _parse_bool),
    (("AGENTZERO_STREAM",), "connection.stream", _parse_bool),
    (("AGENTZERO_STREAM_MODE",), "connection.stream_mode", str),
    (("AGENTZERO_PROJECT",), "connection.project", str),
    (("AGENTZERO_AGENT_PROFILE",), "connection.agent_profile", str),
    (("AGENTZERO_ALLOW_SHELL",), "connection.security.allow_shell", _parse_bool),
    (("AGENTZERO_CONTEXT",), "context.enabled", _parse_bool),
    (("AGENTZERO_CONTEXT_MODE",), "context.mode", str),
    (("AGENTZERO_CONTEXT_MAX_BYTES",), "context.max_bytes", _parse_number),
    (("AGENTZERO_CONTEXT_MAX_FILES",), "context.max_files", _parse_number),
    (("AGENTZERO_CONTEXT_MAX_DEPTH",), "context.max_depth", _parse_number),
    (("AGENTZERO_CONTEXT_TREE",), "context.include_tree", _parse_bool),
    (("AGENTZERO_CONTEXT_PREVIEWS",), "context.include_previews", _parse_bool),
    (("AGENTZERO_CONTEXT_GIT",), "context.include_git", _parse_bool),
    (("AGENTZERO_CONTEXT_SYSTEM",), "context.include_system", _parse_bool),
    (("AGENTZERO_CONTEXT_TOOLS",), "context.include_tools", _parse_bool),
)


_KNOWN_ZERO = frozenset(name for names, *_ in _VARIABLES for name in names) | {"AGENTZERO_WORKSPACE_ROOT"}


def unknown_zero_variables(env: Mapping[str, str]) -> list[str]:
    """Return the variables of Agent Zero's own client that are set and have no effect."""
    set_names = (name for name, value in env.items() if name.startswith("AGENTZERO_") and value)
    return sorted(name for name in set_names if name not in _KNOWN_ZERO)


def first_set_variable(env: Mapping[str, str], *names: str) -> str:
    """Return the name of the first variable that is set and not empty, or an empty string."""
    return next((name for name in names if env.get(name)), "")


def environment_layers(env: Mapping[str, str]) -> Iterator[Layer]:
    """Yield a layer for each setting that an environment variable sets. Raises `UsageError` for a bad value."""
    for names, key, parser in _VARIABLES:
        name = first_set_variable(env, *names)
        if name:
            yield _require_valid(
                Layer("environment", f"${name}", validate(_nested(key, _parse_variable(name, env[name], parser))))
            )


def _parse_variable(name: str, value: str, parser: _Parser) -> Any:
    try:
        return parser(value)
    except ValueError:
        raise UsageError(f"${name} must be {_EXPECTED[parser]}, not {quote_value(value)}") from None


def _require_valid(layer: Layer) -> Layer:
    for problem in layer.problems():
        if problem.severity == "error":
            raise UsageError(str(problem))
    return layer


def _nested(key: str, value: Any) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return {first: _nested(rest, value) if rest else value}
