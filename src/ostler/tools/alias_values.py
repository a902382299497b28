"""Values that other vocabularies measure or say differently, turned into ours."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ostler.tools.alias_commands import apply_patch, bash, bash_output, kill_shell, shell
from ostler.tools.alias_edits import edit_text, edits_of, replace_text, text_editor
from ostler.tools.alias_moves import delete, move
from ostler.tools.alias_todos import todowrite
from ostler.tools.aliases import COMMENTARY, take_out
from ostler.tools.repair_json import as_list
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.tool_names import fold

Given = dict[str, Any]
_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-|\.\.|,|:|to)\s*(\d{1,9})\s*")


def _number(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _truth(value: Any) -> bool:
    return value is True or str(value).strip().lower() in ("true", "yes", "1")


def read(given: Given, called: str) -> Given:
    """Windows by first and last line, and lines counted from 0 where 0 is given."""
    first, last = _window(given)
    if first is not None:
        given["line"] = first
    line = _number(given.get("line"))
    if line == 0:
        given["line"] = line = 1
    if last is not None and last >= (line or 1):
        given.setdefault("limit", last - (line or 1) + 1)
    elif last is not None and last >= 0:
        raise ToolFailure(f"the last line {last} is before the first, {line or 1}", code="bad_arguments")
    if _number(given.get("limit")) in (0, -1):
        del given["limit"]
    if isinstance(given.get("path"), str) and given["path"].startswith("file:///"):
        given["path"] = unquote(given["path"].removeprefix("file://"))
    if isinstance(given.get("path"), list) and len(given["path"]) > 1:
        raise ToolFailure("read takes one path; make one call for each file", code="bad_arguments")
    take_out(given, "shouldreadentirefile", "encoding", "recursive")
    return given


def _window(given: Given) -> tuple[int | None, int | None]:
    last = _number(
        take_out(given, "end", "endline", "lineend", "to", "toline", "lastline", "endlineoneindexedinclusive")
    )
    span = take_out(given, "viewrange", "linerange", "range", "lines")
    line = given.get("line")
    if span is None and (
        (isinstance(line, str) and _RANGE.fullmatch(line)) or (isinstance(line, list) and len(line) == 2)
    ):
        span = given.pop("line")
    if isinstance(span, str) and (found := _RANGE.fullmatch(span)):
        span = [int(found[1]), int(found[2])]
    if isinstance(span, list) and len(span) == 2 and all(_number(part) is not None for part in span):
        return _number(span[0]), _number(span[1])
    if span is not None:
        given["limit" if _number(span) is not None else "lines"] = span
    return None, last


def grep(given: Given, called: str) -> Given:
    """Flags as on a command line, case the other way round, and modes by their other names."""
    sensitive = take_out(given, "casesensitive")
    if sensitive is not None:
        given.setdefault("ignore_case", not _truth(sensitive))
    elif fold(called).endswith("searchtext"):
        given.setdefault("ignore_case", True)
    if fold(called).endswith("searchtext"):
        given.setdefault("literal", True)
    regex = take_out(given, "isregex", "useregex")
    if regex is not None:
        given.setdefault("literal", not _truth(regex))
    around = [number for flag in ("a", "b") if (number := _number(take_out(given, flag))) is not None]
    if around:
        given.setdefault("context", max(around))
    if isinstance(given.get("include"), list):
        given["include"] = " ".join(map(str, given["include"]))
    if isinstance(given.get("mode"), str):
        given["mode"] = _MODES.get(fold(given["mode"]), given["mode"])
    take_out(given, "n", "recursive", "r", "maxfiles", "maxfilebytes", "linenumbers", "showlinenumbers")
    return _capped(given, "limit", 2000)


_MODES = {
    "content": "lines",
    "fileswithmatches": "files",
    "filepaths": "files",
    "counts": "count",
    "text": "lines",
    "json": "lines",
}


def _capped(given: Given, name: str, most: int) -> Given:
    number = _number(given.get(name))
    if number is not None and number <= 0:
        del given[name]
    elif number is not None and number > most:
        given[name] = most
    return given


def glob(given: Given, called: str) -> Given:
    kind = take_out(given, "type", "filetype")
    if kind is not None and fold(str(kind)) not in ("", "f", "file", "files", "any", "all"):
        raise ToolFailure(f"glob finds files, not {kind!r}; list shows directories", code="bad_arguments")
    if isinstance(given.get("pattern"), list) and len(given["pattern"]) > 1:
        given["pattern"] = "{" + ",".join(map(str, given["pattern"])) + "}"
    take_out(given, "recursive")
    return _capped(given, "limit", 2000)


def listing(given: Given, called: str) -> Given:
    if _truth(take_out(given, "recursive")) or fold(called).endswith(("tree", "listfiles")):
        given.setdefault("depth", 4)
    take_out(given, "includesizes", "showhidden", "all", "ignore", "includehidden")
    return _capped(_capped(given, "depth", 20), "limit", 10_000)


def edit(given: Given, called: str) -> Given:
    edits = as_list(given.get("edits"))
    if isinstance(edits, list):
        given["edits"] = [edits_of(item) for item in edits]
    if take_out(given, "expectedreplacements") not in (None, 1, "1"):
        given.setdefault("replace_all", True)
    return given


def write_chunk(given: Given, called: str) -> Given:
    """Under the names that put each piece on disk at once, that is what happens."""
    truncate, newline = take_out(given, "truncate", "overwrite"), take_out(given, "ensurenewline")
    take_out(given, "mkdirs", "createdirs")
    if fold(called).endswith(("writefilechunk", "writefilestream", "appendfile", "appendtofile")):
        given.setdefault("mode", "overwrite" if _truth(truncate) else "append")
    if _truth(newline) and isinstance(given.get("content"), str) and not given["content"].endswith("\n"):
        given["content"] += "\n"
    return given


def task(given: Given, called: str) -> Given:
    if not given.get("prompt") and given.get("title"):
        given["prompt"] = given["title"]
    return {key: value for key, value in given.items() if fold(key) not in ("taskid", "reset", *COMMENTARY)}


def skill(given: Given, called: str) -> Given:
    """An action says only whether there is a name."""
    if fold(str(take_out(given, "action"))) == "list":
        given.pop("name", None)
    return given


def git_log(given: Given, called: str) -> Given:
    if fold(called).endswith("githistory"):
        given.setdefault("with_files", True)
    return _capped(given, "limit", 200)


def git_diff(given: Given, called: str) -> Given:
    if fold(called).endswith("gitchangedfiles"):
        given.setdefault("name_only", True)
    return given


def git_blame(given: Given, called: str) -> Given:
    last = _number(take_out(given, "end", "endline", "to", "lineend"))
    if last is not None and last > 0:
        given.setdefault("limit", max(last - (_number(given.get("line")) or 1) + 1, 1))
    return given


async def write_file(given: Given, ground: Ground) -> tuple[str, Given]:
    """A whole file, unless the mode says that the text goes to the end of one."""
    mode = take_out(given, "mode")
    if mode is not None and fold(str(mode)) in ("append", "a"):
        return "write_chunk", {**given, "mode": "append"}
    if mode is not None and fold(str(mode)) not in ("overwrite", "write", "w", "create"):
        raise ToolFailure(f"mode is {mode!r}; it can be overwrite or append", code="bad_arguments")
    overwrite = take_out(given, "overwrite")
    if overwrite is not None and not _truth(overwrite) and ground.place(str(given.get("path", "."))).exists:
        raise ToolFailure(f"{given.get('path')} exists, and overwrite is false", code="already_exists")
    take_out(given, "mkdirs", "createdirs", "encoding")
    return "write", given


VALUES: Mapping[str, Callable[[Given, str], Given]] = {
    "read": read,
    "grep": grep,
    "glob": glob,
    "list": listing,
    "bash": bash,
    "todowrite": todowrite,
    "edit": edit,
    "write_chunk": write_chunk,
    "task": task,
    "skill": skill,
    "git_log": git_log,
    "git_diff": git_diff,
    "git_blame": git_blame,
}
VARIANTS: Mapping[str, Callable[[Given, Ground], Awaitable[tuple[str, Given]]]] = {
    "writefile": write_file,
    "filewrite": write_file,
    **dict.fromkeys(("bash", "shell", "localshell", "shellcommand", "execcommand", "exec"), shell),
    "applypatch": apply_patch,
    **dict.fromkeys(("rm", "deletefile", "removefile"), delete),
    **dict.fromkeys(("mv", "movefile", "renamefile"), move),
    "bashoutput": bash_output,
    "killbash": kill_shell,
    "killshell": kill_shell,
    "edittext": edit_text,
    "replacetext": replace_text,
    "strreplaceeditor": text_editor,
    "strreplacebasededittool": text_editor,
    "texteditor": text_editor,
}
