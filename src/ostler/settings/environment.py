"""Settings from environment variables and from flags: each becomes a layer like a file's."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ostler.settings.layers import Layer, over
from ostler.settings.problems import quoted
from ostler.settings.validate import validate
from ostler.vocabulary.errors import UsageError


def _text(value: str) -> str:
    return value


def _number(value: str) -> int | float:
    number = float(value) if len(value) <= 20 else float("inf")
    if number - number != 0:
        raise ValueError
    return int(number) if number == int(number) else number


def _switch(value: str) -> bool:
    word = value.strip().lower()
    if word not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise ValueError
    return word in ("1", "true", "yes", "on")


_Reader = Callable[[str], Any]
_WANTS: dict[_Reader, str] = {_number: "a number", _switch: "true or false"}

# Variables for one setting stand together; the first that is set counts.
_VARIABLES: tuple[tuple[tuple[str, ...], str, _Reader], ...] = (
    (("OSTLER_MODEL", "AGENT_MODEL"), "model", _text),
    (("OSTLER_CACHE_PATH", "AGENT_CACHE_PATH"), "cache.path", _text),
    (("OSTLER_MAX_STEPS", "AGENT_MAX_STEPS"), "limits.steps", _number),
    (("AGENTZERO_API_URL",), "connection.api_url", _text),
    (("AGENTZERO_API_KEY",), "connection.api_key", _text),
    (("AGENTZERO_LIFETIME_HOURS",), "connection.lifetime_hours", _number),
    (("AGENTZERO_TIMEOUT_SECONDS",), "connection.timeout_seconds", _number),
    (("AGENTZERO_KEEPALIVE_SECONDS",), "connection.keepalive_seconds", _number),
    (("AGENTZERO_MAX_WAIT_SECONDS",), "connection.max_wait_seconds", _number),
    (("AGENTZERO_SEND_TOOL_RESULTS",), "connection.send_tool_results", _switch),
    (("AGENTZERO_STREAM",), "connection.stream", _switch),
    (("AGENTZERO_STREAM_MODE",), "connection.stream_mode", _text),
    (("AGENTZERO_PROJECT",), "connection.project", _text),
    (("AGENTZERO_AGENT_PROFILE",), "connection.agent_profile", _text),
    (("AGENTZERO_CONTEXT",), "context.enabled", _switch),
    (("AGENTZERO_CONTEXT_MODE",), "context.mode", _text),
    (("AGENTZERO_CONTEXT_MAX_BYTES",), "context.max_bytes", _number),
    (("AGENTZERO_CONTEXT_MAX_FILES",), "context.max_files", _number),
    (("AGENTZERO_CONTEXT_MAX_DEPTH",), "context.max_depth", _number),
    (("AGENTZERO_CONTEXT_TREE",), "context.include_tree", _switch),
    (("AGENTZERO_CONTEXT_PREVIEWS",), "context.include_previews", _switch),
    (("AGENTZERO_CONTEXT_GIT",), "context.include_git", _switch),
    (("AGENTZERO_CONTEXT_SYSTEM",), "context.include_system", _switch),
    (("AGENTZERO_CONTEXT_TOOLS",), "context.include_tools", _switch),
)


def first_set(env: Mapping[str, str], *names: str) -> str:
    """The first of some variables that is set to anything; its name, or nothing."""
    return next((name for name in names if env.get(name)), "")


def environment_layers(env: Mapping[str, str]) -> Iterator[Layer]:
    """One layer for each variable that says something."""
    for names, key, reader in _VARIABLES:
        name = first_set(env, *names)
        if name:
            yield _sound(Layer("environment", f"${name}", validate(_nested(key, _read(name, env[name], reader)))))


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    """The flags, given by dotted keys; an unknown one is an error here."""
    value: dict[str, Any] = {}
    for key, said in flags.items():
        value = over(value, _nested(key, said))
    return _sound(Layer("flags", "command line", validate(value)), strict=True)


def _read(name: str, value: str, reader: _Reader) -> Any:
    try:
        return reader(value)
    except ValueError:
        raise UsageError(f"${name} must be {_WANTS[reader]}, not {quoted(value)}") from None


def _sound(layer: Layer, *, strict: bool = False) -> Layer:
    for problem in layer.problems(strict=strict):
        if problem.severity == "error":
            raise UsageError(str(problem))
    return layer


def _nested(key: str, said: Any) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return {first: _nested(rest, said) if rest else said}
