"""Maps argument names of other agents' tools to ours."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.core.tool_aliases import normalize_name, strip_namespace
from ostler.core.tool_declarations import tool_declarations

_PATH = "file filename file_name file_path filepath target target_file absolute_path abs_path full_path path_name"
_FOLDER = "dir directory folder dir_path directory_path relative_workspace_path root search_path cwd in"
_LIMIT = "max_results max_matches head_limit max_count max results_limit num_results maxfiles max_entries"
# Groups of names that the headers of several tools use.
_GROUPS = {"PATH": _PATH.split(), "FOLDER": _FOLDER.split(), "LIMIT": _LIMIT.split()}

# Arguments that only explain a call; they can be dropped.
IGNORED_ARGUMENTS = frozenset(
    {
        *("description", "explanation", "reason", "reasoning", "thought", "thoughts", "purpose", "why"),
        *("justification", "comment", "note", "rationale", "headline", "userintent", "displaydescription"),
        *("toolcallid", "callid", "toolname", "requiresapproval", "safetoautorun", "securityrisk", "taskprogress"),
        *("activeform", "waitforpreviousreply"),
    }
)


async def translate_call(
    tool: str, called_as: str, arguments: Mapping[str, Any], workspace: Workspace
) -> tuple[str, dict[str, Any]]:
    """Translate a call to a tool of ours and the names and values of its arguments; unknown names are kept."""
    if tool not in tool_declarations():
        return tool, dict(arguments)
    from ostler.tools.alias_values import CONVERTERS, TRANSLATORS

    variant = normalize_name(strip_namespace(called_as))
    renamed = rename_arguments(tool, arguments)
    if variant in TRANSLATORS:
        tool, renamed = await TRANSLATORS[variant](renamed, workspace)
        renamed = rename_arguments(tool, renamed)
    if tool in CONVERTERS:
        renamed = CONVERTERS[tool](renamed, called_as)
    return tool, renamed


def rename_arguments(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under our parameter names. Raises `ToolError` if two names give different values."""
    parameters = _parameters_by_alias(tool)
    renamed: dict[str, Any] = {}
    for key, value in arguments.items():
        name = _pick_parameter(parameters.get(normalize_name(key), ()), key, arguments, renamed)
        if name in renamed and renamed[name] != value:
            raise ToolError(
                f"{name} is given twice, as {value!r:.60} and {renamed[name]!r:.60}; give it once", code="bad_arguments"
            )
        renamed[name] = value
    return renamed


def pop_argument(arguments: dict[str, Any], *names: str) -> Any:
    """Remove an argument by any of its normalized names and return its value, or None."""
    value = None
    for key in [key for key in arguments if normalize_name(key) in names]:
        value = arguments.pop(key)
    return value


def _pick_parameter(names: tuple[str, ...], key: str, arguments: Mapping[str, Any], assigned: Mapping[str, Any]) -> str:
    """Return the first of the possible parameters that no other argument uses."""
    if not names:
        return key
    free = (name for name in names if name == key or (name not in arguments and name not in assigned))
    return next(free, names[0])


@cache
def _parameters_by_alias(tool: str) -> dict[str, tuple[str, ...]]:
    """Map normalized names to the parameters they may mean, in order of preference."""
    found: dict[str, tuple[str, ...]] = {}
    declared = tool_declarations().get(tool)
    for parameter, words in declared.parameters.items() if declared else ():
        aliases = [alias for word in words for alias in _GROUPS.get(word, (word,))]
        for name in (parameter, *aliases):
            key = normalize_name(name)
            names = found.get(key, ())
            found[key] = (parameter, *names) if key == normalize_name(parameter) else (*names, parameter)
    return found
