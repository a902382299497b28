"""Names that other agents use for our tools, and the lookup from such a name to our tool."""

from collections.abc import Container, Mapping
from functools import cache

# Aliases of each tool. Case, `_`, `-` and a namespace before the name are ignored.
TOOL_ALIASES: Mapping[str, str] = {
    "read": "read_file read_file_range read_text_file read_files view view_file open_file cat file_read get_file "
    "get_file_contents fetch_file read_article",
    "write": "write_file file_write create_file save_file write_to_file write_text_file create write_article",
    "edit": "edit_file edit_text edit_article replace_text replace multi_edit multiedit str_replace search_replace "
    "replace_in_file file_edit str_replace_editor str_replace_based_edit_tool text_editor",
    "patch": "apply_patch apply_diff patch_file rm delete_file remove_file mv move_file rename_file",
    "list": "ls list_files list_dir list_directory dir tree list_directory_tree directory_tree",
    "grep": "search_text search rg rg_search ripgrep grep_search search_files search_file_content code_search "
    "find_in_files",
    "glob": "find_files find file_search glob_search search_file_names glob_file_search",
    "bash": "shell terminal command cmd sh run execute exec run_command run_shell_command run_in_terminal "
    "execute_command run_terminal_cmd local_shell code_execution_tool shell_command exec_command bash_output "
    "kill_bash kill_shell",
    "todowrite": "todo_write update_todos write_todos set_plan update_plan todo set_todos",
    "todoread": "todo_read read_todos get_plan get_todos list_todos",
    "task": "agent subagent dispatch_agent spawn_agent delegate new_task call_subordinate",
    "skill": "use_skill load_skill activate_skill read_skill get_skill skills skills_tool list_skills",
    "stat": "file_info get_file_info file_stat",
    "mkdir": "make_directory create_directory make_dir create_folder",
    "write_chunk": "write_file_chunk write_file_stream append_file append_to_file",
    "git_status": "status",
    "git_diff": "git_changed_files diff",
    "git_log": "git_history log",
    "git_show": "git_commit_info",
    "git_blame": "blame git_annotate",
}
_NAMESPACE_SEPARATORS = (".", ":", "/", "__")


def normalize_name(name: str) -> str:
    """Return the lower-case letters and digits of a name: `old_string`, `oldString` and `old-string` are equal."""
    return "".join(char for char in name.lower() if char.isalnum())


def strip_namespace(name: str) -> str:
    """Return the name without its namespace: `read_file` for `SysBuiltIn.read_file`."""
    for separator in _NAMESPACE_SEPARATORS:
        name = name.rpartition(separator)[2]
    return name


def resolve_tool_name(alias: str, tools: Container[str]) -> str | None:
    """Return the tool in `tools` that `alias` refers to, or None.

    A namespace that belongs to the name is part of it: `files.read_file` is `files_read_file` if there is such a tool.
    """
    if alias in tools:
        return alias
    for name in (_join_namespace(alias), strip_namespace(alias)):
        if name in tools:
            return name
    for name in (alias, strip_namespace(alias)):
        tool = _tools_by_alias().get(normalize_name(name))
        if tool is not None and tool in tools:
            return tool
    return None


def _join_namespace(name: str) -> str:
    """Return the name of an MCP tool from `server.tool`, `server__tool` or `mcp__server__tool`."""
    name = name.removeprefix("mcp__")
    for separator in _NAMESPACE_SEPARATORS:
        name = name.replace(separator, "_")
    return name


@cache
def _tools_by_alias() -> dict[str, str]:
    names = {normalize_name(alias): tool for tool, aliases in TOOL_ALIASES.items() for alias in aliases.split()}
    return names | {normalize_name(tool): tool for tool in TOOL_ALIASES}
