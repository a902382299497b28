"""Translates argument values of other agents' tools (units, ranges, modes)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.core.tool_aliases import normalize_name
from ostler.tools.alias_commands import (
    convert_bash,
    translate_apply_patch,
    translate_bash_output,
    translate_kill_shell,
    translate_shell,
)
from ostler.tools.alias_edits import (
    convert_edit_item,
    translate_edit_text,
    translate_replace_text,
    translate_text_editor,
)
from ostler.tools.alias_moves import translate_delete, translate_move
from ostler.tools.alias_todos import convert_todowrite
from ostler.tools.aliases import IGNORED_ARGUMENTS, pop_argument
from ostler.tools.repair_json import as_list

Arguments = dict[str, Any]
_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-|\.\.|,|:|to)\s*(\d{1,9})\s*")


def _to_int(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _to_bool(value: Any) -> bool:
    return value is True or str(value).strip().lower() in ("true", "yes", "1")


def convert_read(arguments: Arguments, called_as: str) -> Arguments:
    """Convert line ranges to `line` and `limit`, and line 0 to line 1."""
    first, last = _pop_line_range(arguments)
    if first is not None:
        arguments["line"] = first
    line = _to_int(arguments.get("line"))
    if line == 0:
        arguments["line"] = line = 1
    if last is not None and last >= (line or 1):
        arguments.setdefault("limit", last - (line or 1) + 1)
    elif last is not None and last >= 0:
        raise ToolError(f"the last line {last} is before the first, {line or 1}", code="bad_arguments")
    if _to_int(arguments.get("limit")) in (0, -1):
        del arguments["limit"]
    if isinstance(arguments.get("path"), str) and arguments["path"].startswith("file:///"):
        arguments["path"] = unquote(arguments["path"].removeprefix("file://"))
    if isinstance(arguments.get("path"), list) and len(arguments["path"]) > 1:
        raise ToolError("read takes one path; make one call for each file", code="bad_arguments")
    pop_argument(arguments, "shouldreadentirefile", "encoding", "recursive")
    return arguments


def _pop_line_range(arguments: Arguments) -> tuple[int | None, int | None]:
    last = _to_int(
        pop_argument(arguments, "end", "endline", "lineend", "to", "toline", "lastline", "endlineoneindexedinclusive")
    )
    span = pop_argument(arguments, "viewrange", "linerange", "range", "lines")
    line = arguments.get("line")
    if span is None and (
        (isinstance(line, str) and _RANGE.fullmatch(line)) or (isinstance(line, list) and len(line) == 2)
    ):
        span = arguments.pop("line")
    if isinstance(span, str) and (match := _RANGE.fullmatch(span)):
        span = [int(match[1]), int(match[2])]
    if isinstance(span, list) and len(span) == 2 and all(_to_int(part) is not None for part in span):
        return _to_int(span[0]), _to_int(span[1])
    if span is not None:
        arguments["limit" if _to_int(span) is not None else "lines"] = span
    return None, last


def convert_grep(arguments: Arguments, called_as: str) -> Arguments:
    """Convert command-line flags, an inverted case option and other names of modes."""
    sensitive = pop_argument(arguments, "casesensitive")
    if sensitive is not None:
        arguments.setdefault("ignore_case", not _to_bool(sensitive))
    elif normalize_name(called_as).endswith("searchtext"):
        arguments.setdefault("ignore_case", True)
    if normalize_name(called_as).endswith("searchtext"):
        arguments.setdefault("literal", True)
    regex = pop_argument(arguments, "isregex", "useregex")
    if regex is not None:
        arguments.setdefault("literal", not _to_bool(regex))
    context = [number for flag in ("a", "b") if (number := _to_int(pop_argument(arguments, flag))) is not None]
    if context:
        arguments.setdefault("context", max(context))
    if isinstance(arguments.get("include"), list):
        arguments["include"] = " ".join(map(str, arguments["include"]))
    if isinstance(arguments.get("mode"), str):
        arguments["mode"] = _MODE_ALIASES.get(normalize_name(arguments["mode"]), arguments["mode"])
    pop_argument(arguments, "n", "recursive", "r", "maxfiles", "maxfilebytes", "linenumbers", "showlinenumbers")
    return _cap(arguments, "limit", 2000)


_MODE_ALIASES = {
    "content": "lines",
    "fileswithmatches": "files",
    "filepaths": "files",
    "counts": "count",
    "text": "lines",
    "json": "lines",
}


def _cap(arguments: Arguments, name: str, maximum: int) -> Arguments:
    number = _to_int(arguments.get(name))
    if number is not None and number <= 0:
        del arguments[name]
    elif number is not None and number > maximum:
        arguments[name] = maximum
    return arguments


def convert_glob(arguments: Arguments, called_as: str) -> Arguments:
    kind = pop_argument(arguments, "type", "filetype")
    if kind is not None and normalize_name(str(kind)) not in ("", "f", "file", "files", "any", "all"):
        raise ToolError(f"glob finds files, not {kind!r}; list shows directories", code="bad_arguments")
    if isinstance(arguments.get("pattern"), list) and len(arguments["pattern"]) > 1:
        arguments["pattern"] = "{" + ",".join(map(str, arguments["pattern"])) + "}"
    pop_argument(arguments, "recursive")
    return _cap(arguments, "limit", 2000)


def convert_list(arguments: Arguments, called_as: str) -> Arguments:
    if _to_bool(pop_argument(arguments, "recursive")) or normalize_name(called_as).endswith(("tree", "listfiles")):
        arguments.setdefault("depth", 4)
    pop_argument(arguments, "includesizes", "showhidden", "all", "ignore", "includehidden")
    return _cap(_cap(arguments, "depth", 20), "limit", 10_000)


def convert_edit(arguments: Arguments, called_as: str) -> Arguments:
    edits = as_list(arguments.get("edits"))
    if isinstance(edits, list):
        arguments["edits"] = [convert_edit_item(item) for item in edits]
    if pop_argument(arguments, "expectedreplacements") not in (None, 1, "1"):
        arguments.setdefault("replace_all", True)
    return arguments


def convert_write_chunk(arguments: Arguments, called_as: str) -> Arguments:
    """Append or overwrite immediately for tools that write each chunk to disk."""
    truncate, newline = pop_argument(arguments, "truncate", "overwrite"), pop_argument(arguments, "ensurenewline")
    pop_argument(arguments, "mkdirs", "createdirs")
    if normalize_name(called_as).endswith(("writefilechunk", "writefilestream", "appendfile", "appendtofile")):
        arguments.setdefault("mode", "overwrite" if _to_bool(truncate) else "append")
    if _to_bool(newline) and isinstance(arguments.get("content"), str) and not arguments["content"].endswith("\n"):
        arguments["content"] += "\n"
    return arguments


def convert_task(arguments: Arguments, called_as: str) -> Arguments:
    if not arguments.get("prompt") and arguments.get("title"):
        arguments["prompt"] = arguments["title"]
    return {
        key: value
        for key, value in arguments.items()
        if normalize_name(key) not in ("taskid", "reset", *IGNORED_ARGUMENTS)
    }


def convert_skill(arguments: Arguments, called_as: str) -> Arguments:
    """Drop `action`; for `list` also the name, so that the skills are listed."""
    if normalize_name(str(pop_argument(arguments, "action"))) == "list":
        arguments.pop("name", None)
    return arguments


def convert_git_log(arguments: Arguments, called_as: str) -> Arguments:
    if normalize_name(called_as).endswith("githistory"):
        arguments.setdefault("with_files", True)
    return _cap(arguments, "limit", 200)


def convert_git_diff(arguments: Arguments, called_as: str) -> Arguments:
    if normalize_name(called_as).endswith("gitchangedfiles"):
        arguments.setdefault("name_only", True)
    return arguments


def convert_git_blame(arguments: Arguments, called_as: str) -> Arguments:
    last = _to_int(pop_argument(arguments, "end", "endline", "to", "lineend"))
    if last is not None and last > 0:
        arguments.setdefault("limit", max(last - (_to_int(arguments.get("line")) or 1) + 1, 1))
    return arguments


async def translate_write_file(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate to write, or to write_chunk if the mode is append."""
    mode = pop_argument(arguments, "mode")
    if mode is not None and normalize_name(str(mode)) in ("append", "a"):
        return "write_chunk", {**arguments, "mode": "append"}
    if mode is not None and normalize_name(str(mode)) not in ("overwrite", "write", "w", "create"):
        raise ToolError(f"mode is {mode!r}; it can be overwrite or append", code="bad_arguments")
    overwrite = pop_argument(arguments, "overwrite")
    if overwrite is not None and not _to_bool(overwrite) and workspace.resolve(str(arguments.get("path", "."))).exists:
        raise ToolError(f"{arguments.get('path')} exists, and overwrite is false", code="already_exists")
    pop_argument(arguments, "mkdirs", "createdirs", "encoding")
    return "write", arguments


CONVERTERS: Mapping[str, Callable[[Arguments, str], Arguments]] = {
    "read": convert_read,
    "grep": convert_grep,
    "glob": convert_glob,
    "list": convert_list,
    "bash": convert_bash,
    "todowrite": convert_todowrite,
    "edit": convert_edit,
    "write_chunk": convert_write_chunk,
    "task": convert_task,
    "skill": convert_skill,
    "git_log": convert_git_log,
    "git_diff": convert_git_diff,
    "git_blame": convert_git_blame,
}
TRANSLATORS: Mapping[str, Callable[[Arguments, Workspace], Awaitable[tuple[str, Arguments]]]] = {
    "writefile": translate_write_file,
    "filewrite": translate_write_file,
    **dict.fromkeys(("bash", "shell", "localshell", "shellcommand", "execcommand", "exec"), translate_shell),
    "applypatch": translate_apply_patch,
    **dict.fromkeys(("rm", "deletefile", "removefile"), translate_delete),
    **dict.fromkeys(("mv", "movefile", "renamefile"), translate_move),
    "bashoutput": translate_bash_output,
    "killbash": translate_kill_shell,
    "killshell": translate_kill_shell,
    "edittext": translate_edit_text,
    "replacetext": translate_replace_text,
    "strreplaceeditor": translate_text_editor,
    "strreplacebasededittool": translate_text_editor,
    "texteditor": translate_text_editor,
}
