"""Maps argument names of other agents' tools to ours."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.core.tool_aliases import normalize_name, strip_namespace

_PATH_ALIASES = (
    "file filename file_name file_path filepath target target_file absolute_path abs_path full_path path_name"
)
_FOLDER_ALIASES = (
    f"{_PATH_ALIASES} dir directory folder dir_path directory_path relative_workspace_path root search_path cwd in"
)
_LIMIT_ALIASES = "max_results max_matches head_limit max_count max results_limit num_results maxfiles max_entries"

# Names of each parameter in other agents' tools; every parameter also matches its own name in any spelling.
PARAMETER_ALIASES: Mapping[str, Mapping[str, str]] = {
    "read": {
        "path": f"{_PATH_ALIASES} uri paths files file_paths",
        "line": "offset start start_line line_start from from_line begin first_line line_number start_line_one_indexed",
        "limit": "max_lines line_count num_lines lines_to_read length count line_limit n_lines",
        "max_bytes": "bytes size_limit byte_limit",
    },
    "write": {
        "path": _PATH_ALIASES,
        "content": "contents text file_text data body file_content new_content code_content code",
    },
    "edit": {
        "path": _PATH_ALIASES,
        "old": "old_string old_str old_text find search search_string original old_code old_content from_text before",
        "new": "new_string new_str new_text replace replacement replace_with new_code new_content to_text after with",
        "replace_all": "all global replace_everywhere",
        "edits": "replacements changes operations",
    },
    "patch": {"patch": "diff patch_text patch_content input command content text", "dry_run": "check"},
    "list": {
        "path": _FOLDER_ALIASES,
        "depth": "max_depth levels recursion_depth level",
        "limit": f"{_LIMIT_ALIASES} max_files",
    },
    "grep": {
        "pattern": "query regex regexp search search_term text q expression search_pattern search_text term keyword",
        "path": _FOLDER_ALIASES,
        "include": "glob globs include_pattern file_pattern file_glob includes filter include_glob files patterns",
        "type": "file_type language lang",
        "ignore_case": "case_insensitive i insensitive nocase",
        "literal": "fixed_strings fixed_string fixed plain_text is_literal f",
        "context": "context_lines surrounding_lines c lines_around context_size",
        "mode": "output_mode output format output_format",
        "limit": _LIMIT_ALIASES,
    },
    "glob": {
        "pattern": "glob glob_pattern query file_pattern name search_pattern patterns filename_pattern",
        "path": _FOLDER_ALIASES.replace("file filename file_name ", ""),
        "limit": f"{_LIMIT_ALIASES} max_files",
    },
    "bash": {
        "command": "cmd script code shell_command command_line commands bash_command input cmdline",
        "timeout": "timeout_seconds timeout_secs timeout_sec timeout_s time_limit",
        "reason": "description explanation purpose why justification",
        "background": "run_in_background is_background detached detach in_background",
        "job": "bash_id shell_id job_id task_id process_id session_id id",
    },
    "todowrite": {"todos": "items todo_list tasks list todo plan steps todo_items"},
    "todoread": {},
    "task": {
        "prompt": "instructions message task request details objective",
        "title": "description name summary short_description objective",
        "agent": "subagent_type subagent agent_type agent_name profile type",
    },
    "skill": {"name": "skill skill_name command skill_id id"},
    "stat": {"path": _PATH_ALIASES},
    "mkdir": {"path": f"{_PATH_ALIASES} dir directory folder dir_path directory_path dirname"},
    "write_chunk": {
        "path": _PATH_ALIASES,
        "content": "chunk text data contents",
        "final": "last is_last done eof is_final",
    },
    "git_status": {"path": _PATH_ALIASES, "repo": "repo_path repository cwd root"},
    "git_diff": {
        "path": _PATH_ALIASES,
        "repo": "repo_path repository cwd root",
        "from_ref": "from base ref commit sha from_commit ref1 start",
        "to_ref": "to head_ref target_ref to_commit ref2 end",
        "staged": "cached index",
        "name_only": "names_only files_only",
        "context_lines": "context unified",
        "max_bytes": "limit_bytes",
    },
    "git_log": {
        "path": _PATH_ALIASES,
        "repo": "repo_path repository cwd root",
        "ref": "branch rev revision sha commit from_ref",
        "limit": "max_count n count_limit number max",
        "skip": "offset",
        "with_files": "files name_only show_files",
    },
    "git_show": {
        "path": _PATH_ALIASES,
        "repo": "repo_path repository cwd root",
        "sha": "commit ref rev revision hash commit_sha object",
        "patch": "diff show_patch",
        "context_lines": "context unified",
    },
    "git_blame": {
        "path": _PATH_ALIASES,
        "repo": "repo_path repository cwd root",
        "ref": "rev revision commit sha",
        "line": "start start_line from line_start offset",
        "limit": "max_lines count line_count",
    },
}

# Arguments that only explain a call; they can be dropped.
IGNORED_ARGUMENTS = frozenset(
    {
        *("description", "explanation", "reason", "reasoning", "thought", "thoughts", "purpose", "why"),
        *("justification", "comment", "note", "rationale", "headline", "userintent", "displaydescription"),
        *("toolcallid", "callid", "toolname", "requiresapproval", "safetoautorun", "securityrisk", "taskprogress"),
        *("activeform", "waitforpreviousreply"),
    }
)


class TranslatedCall(msgspec.Struct):
    """A call of one of our tools. `called_as` is the normalized name that it was called by."""

    tool: str
    arguments: dict[str, Any]
    called_as: str = ""


async def translate_call(
    tool: str, called_as: str, arguments: Mapping[str, Any], workspace: Workspace
) -> TranslatedCall:
    """Translate the names and values of a call's arguments; unknown names are kept."""
    if tool not in PARAMETER_ALIASES:
        return TranslatedCall(tool, dict(arguments), called_as)
    from ostler.tools.alias_values import CONVERTERS, TRANSLATORS

    variant = normalize_name(strip_namespace(called_as))
    renamed = rename_arguments(tool, arguments)
    if variant in TRANSLATORS:
        tool, renamed = await TRANSLATORS[variant](renamed, workspace)
        renamed = rename_arguments(tool, renamed)
    if tool in CONVERTERS:
        renamed = CONVERTERS[tool](renamed, called_as)
    return TranslatedCall(tool, renamed, variant)


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
    for parameter, words in PARAMETER_ALIASES.get(tool, {}).items():
        for word in (parameter, *words.split()):
            key = normalize_name(word)
            names = found.get(key, ())
            found[key] = (parameter, *names) if key == normalize_name(parameter) else (*names, parameter)
    return found
