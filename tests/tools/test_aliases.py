"""Aliases: every tool and argument name of other agents resolves to our tool and arguments."""

import pytest

from ostler.app.tool_host import builtin_tools, other_tools
from ostler.core.errors import ToolError
from ostler.core.events import ToolCalled
from ostler.core.tool_aliases import normalize_name, resolve_tool_name
from ostler.core.tool_declarations import parse_declaration, tool_declarations, tool_names
from ostler.settings.load import load
from ostler.tools.aliases import rename_arguments


@pytest.fixture
def tools(tmp_path):
    return {tool.spec.name: tool for tool in (*builtin_tools(load(tmp_path, {"HOME": str(tmp_path)})), *other_tools())}


def test_alias_tables_contain_only_existing_tools_and_parameters(tools):
    assert set(tool_names()) == set(tools)
    for name, declared in tool_declarations().items():
        assert set(declared.parameters) <= set(tools[name].accepts["properties"]), name
        assert set(declared.usual) <= set(tools[name].accepts["properties"]), name


def test_aliases_are_unambiguous():
    tool_by_alias = {normalize_name(tool): tool for tool in tool_names()}
    for tool in tool_declarations().values():
        for word in tool.aliases:
            assert tool_by_alias.setdefault(normalize_name(word), tool.name) == tool.name


@pytest.mark.parametrize(
    "header", ["", "kind: read", "---\nkind: no_kind\n---\n", "---\nkind: read\nchange: nothing\n---\n"]
)
def test_error_in_a_tool_declaration_names_the_file(header):
    with pytest.raises(ValueError, match=r"tools/x\.md"):
        parse_declaration("x", f"{header}\nText.")


VOCABULARIES = {
    "Eidolon": {
        "SysBuiltIn.bash": "bash",
        "SysBuiltIn.read_file": "read",
        "SysBuiltIn.write_file": "write",
        "SysBuiltIn.edit_text": "edit",
        "SysBuiltIn.todo_write": "todowrite",
    },
    "Jolli": {
        "read_file": "read",
        "read_file_range": "read",
        "cat": "read",
        "write_file": "write",
        "write_file_chunk": "write_chunk",
        "write_file_stream": "write_chunk",
        "edit_article": "edit",
        "ls": "list",
        "mkdir": "mkdir",
        "rm": "patch",
        "mv": "patch",
        "grep": "grep",
        "find": "glob",
        "rg_search": "grep",
        "shell": "bash",
        "git_status": "git_status",
        "git_diff": "git_diff",
        "git_log": "git_log",
        "git_history": "git_log",
        "git_show": "git_show",
        "git_changed_files": "git_diff",
        "set_plan": "todowrite",
        "get_plan": "todoread",
    },
    "Agent Zero": {
        "read_file": "read",
        "list_files": "list",
        "tree": "list",
        "search_text": "grep",
        "search": "grep",
        "rg": "grep",
        "write_file": "write",
        "file_write": "write",
        "replace_text": "edit",
        "replace": "edit",
        "apply_patch": "patch",
        "terminal": "bash",
        "command": "bash",
    },
    "OpenCode and Claude Code": {
        "Read": "read",
        "Write": "write",
        "Edit": "edit",
        "MultiEdit": "edit",
        "Bash": "bash",
        "Grep": "grep",
        "Glob": "glob",
        "LS": "list",
        "TodoWrite": "todowrite",
        "TodoRead": "todoread",
        "Task": "task",
        "apply_patch": "patch",
        "find_files": "glob",
    },
    "namespaces and cases": {
        "functions.read": "read",
        "default_api:grep": "grep",
        "mcp__host__read_file": "read",
        "tools/list_files": "list",
        "READ": "read",
        "readFile": "read",
        "todo-write": "todowrite",
        "gitStatus": "git_status",
    },
}


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(
    ("called_as", "tool"), [pair for names in VOCABULARIES.values() for pair in names.items()], ids=str
)
def test_alias_resolves_to_its_tool(tools, called_as, tool):
    assert resolve_tool_name(called_as, tools) == tool


@pytest.mark.parametrize("called_as", ["", "rmdir", "frobnicate", "écrire", "a" * 10_000])
def test_unknown_name_does_not_resolve(tools, called_as):
    assert resolve_tool_name(called_as, tools) is None


def test_exact_name_takes_precedence_over_an_alias(tools):
    assert resolve_tool_name("read_file", {**tools, "read_file": object()}) == "read_file"


ARGUMENTS = {
    "read": [
        ("read_file", {"path": "f.txt"}, {}),
        ("read_file", {"file": "f.txt"}, {}),
        ("read_file", {"target": "f.txt"}, {}),
        ("cat", {"filename": "f.txt"}, {}),
        ("Read", {"file_path": "f.txt"}, {}),
        ("Read", {"file_path": "f.txt", "offset": 2, "limit": 2}, {"line": 2, "limit": 2}),
        ("read", {"filePath": "f.txt", "offset": 0}, {"line": 1}),
        ("SysBuiltIn.read_file", {"path": "f.txt", "startLine": 2, "endLine": 3}, {"line": 2, "limit": 2}),
        ("SysBuiltIn.read_file", {"path": "f.txt", "start_line": 2, "end_line": -1}, {"line": 2}),
        ("SysBuiltIn.read_file", {"path": "f.txt", "maxBytes": 100}, {"max_bytes": 100}),
        ("read_file_range", {"path": "f.txt", "start": 2, "end": 4}, {"line": 2, "limit": 3}),
        ("view", {"path": "f.txt", "view_range": [2, 3]}, {"line": 2, "limit": 2}),
        ("read_file", {"path": "f.txt", "lines": "2-3"}, {"line": 2, "limit": 2}),
        ("str_replace_editor", {"command": "view", "path": "f.txt", "view_range": [1, 2]}, {"line": 1, "limit": 2}),
    ],
}


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(("called_as", "arguments", "expected"), ARGUMENTS["read"], ids=str)
async def test_read_aliases(harness, called_as, arguments, expected):
    harness.file("f.txt", "a\nb\nc\nd\n")
    result = await harness.call(called_as, arguments)
    assert result.status == "ok", result.for_model
    call = harness.events(ToolCalled)[-1].call
    assert (call.tool, call.arguments) == ("read", {"path": "f.txt", **expected})


SEARCHES = [
    ("search_text", {"query": "b("}, {"pattern": "b(", "literal": True, "ignore_case": True}),
    ("search_text", {"text": "x", "case_sensitive": True, "max_matches": 5},
     {"pattern": "x", "literal": True, "ignore_case": False, "limit": 5}),
    ("rg_search", {"pattern": "x", "globs": ["*.py", "*.md"], "ignoreCase": True, "contextLines": 2, "maxResults": 9},
     {"pattern": "x", "include": "*.py *.md", "ignore_case": True, "context": 2, "limit": 9}),
    ("grep", {"pattern": "x", "include": "*.txt"}, {"pattern": "x", "include": "*.txt"}),
    ("Grep", {"pattern": "x", "-i": True, "-n": True, "-A": 1, "-B": 3, "output_mode": "files_with_matches",
              "head_limit": 7, "type": "py"},
     {"pattern": "x", "ignore_case": True, "context": 3, "mode": "files", "limit": 7, "type": "py"}),
    ("Grep", {"pattern": "x", "glob": "*.js", "output_mode": "content"},
     {"pattern": "x", "include": "*.js", "mode": "lines"}),
    ("search", {"regex": "x+", "directory": "."}, {"pattern": "x+", "path": "."}),
    ("grep", {"pattern": "x", "recursive": True, "max_results": 5000}, {"pattern": "x", "limit": 2000}),
]  # fmt: skip


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(("called_as", "arguments", "expected"), SEARCHES, ids=str)
async def test_search_aliases(harness, called_as, arguments, expected):
    assert (await harness.call(called_as, arguments)).status == "ok"
    call = harness.events(ToolCalled)[-1].call
    assert (call.tool, call.arguments) == ("grep", expected)


OTHERS = [
    ("find", {"pattern": "*.py", "type": "f", "maxResults": 3}, "glob", {"pattern": "*.py", "limit": 3}),
    ("find_files", {"glob": "*.py", "dir": "."}, "glob", {"pattern": "*.py", "path": "."}),
    ("Glob", {"pattern": "**/*.py", "path": "."}, "glob", {"pattern": "**/*.py", "path": "."}),
    ("ls", {}, "list", {}),
    ("LS", {"path": ".", "ignore": ["x"]}, "list", {"path": "."}),
    ("list_files", {"dir": ".", "max_depth": 2, "max_files": 9, "include_sizes": True}, "list",
     {"path": ".", "depth": 2, "limit": 9}),
    ("tree", {"directory": "."}, "list", {"path": ".", "depth": 4}),
    ("list_dir", {"relative_workspace_path": ".", "explanation": "to see"}, "list", {"path": "."}),
    ("todo_write", {"items": [{"content": "x", "activeForm": "doing x", "status": "in_progress"}]}, "todowrite",
     {"todos": [{"content": "x", "status": "in_progress"}]}),
    ("TodoWrite", {"todos": [{"id": 1, "task": "x", "status": "In Progress"}, {"content": "y", "status": "done"}]},
     "todowrite", {"todos": [{"id": "1", "content": "x", "status": "in_progress"},
                             {"content": "y", "status": "completed"}]}),
    ("set_plan", {"plan": "- [x] one\n- [ ] two\n* [~] three"}, "todowrite",
     {"todos": [{"content": "one", "status": "completed"}, {"content": "two", "status": "pending"},
                {"content": "three", "status": "in_progress"}]}),
    ("get_plan", {}, "todoread", {}),
    ("create_directory", {"dir_path": "d"}, "mkdir", {"path": "d"}),
    ("file_info", {"file": "f.txt"}, "stat", {"path": "f.txt"}),
    ("write_file", {"filename": "n.txt", "content": "x"}, "write", {"path": "n.txt", "content": "x"}),
    ("Write", {"file_path": "n.txt", "content": "x"}, "write", {"path": "n.txt", "content": "x"}),
    ("file_write", {"path": "n.txt", "text": "x"}, "write", {"path": "n.txt", "content": "x"}),
    ("write_file", {"path": "n.txt", "content": "x", "mode": "append"}, "write_chunk",
     {"path": "n.txt", "content": "x", "mode": "append"}),
    ("str_replace_editor", {"command": "create", "path": "n.txt", "file_text": "x"}, "write",
     {"path": "n.txt", "content": "x"}),
    ("skill", {"action": "list"}, "skill", {}),
    ("rm", {"path": "f.txt", "recursive": False}, "patch",
     {"patch": "*** Begin Patch\n*** Delete File: f.txt\n*** End Patch\n"}),
    ("delete_file", {"filePath": "f.txt"}, "patch",
     {"patch": "*** Begin Patch\n*** Delete File: f.txt\n*** End Patch\n"}),
    ("mv", {"source": "f.txt", "destination": "g.txt"}, "patch",
     {"patch": "*** Begin Patch\n*** Update File: f.txt\n*** Move to: g.txt\n*** End Patch\n"}),
    ("rename_file", {"path": "f.txt", "newPath": "g.txt"}, "patch",
     {"patch": "*** Begin Patch\n*** Update File: f.txt\n*** Move to: g.txt\n*** End Patch\n"}),
]  # fmt: skip


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(("called_as", "arguments", "tool", "expected"), OTHERS, ids=str)
async def test_other_aliases(harness, called_as, arguments, tool, expected):
    harness.file("f.txt", "x\n")
    result = await harness.call(called_as, arguments)
    assert result.status == "ok", result.for_model
    call = harness.events(ToolCalled)[-1].call
    assert (call.tool, call.arguments) == (tool, expected)


F = {"path": "f.txt"}
EDITS = {
    "old and new": ("Edit", {"file_path": "f.txt", "old_string": "b", "new_string": "B"}, "a\nB\nc\n"),
    "camel": ("edit", {"filePath": "f.txt", "oldString": "b", "newString": "B", "replaceAll": False}, "a\nB\nc\n"),
    "find and replace": ("replace_text", {**F, "find": "b", "replace": "B"}, "a\nB\nc\n"),
    "several": (
        "MultiEdit",
        {**F, "edits": [{"old_string": "a", "new_string": "A"}, {"oldString": "c", "newString": "C"}]},
        "A\nb\nC\n",
    ),
    "with reasons": (
        "edit_article",
        {**F, "edits": [{"old_string": "a", "new_string": "A", "reason": "style"}]},
        "A\nb\nc\n",
    ),
    "replace": ("SysBuiltIn.edit_text", {**F, "action": "replace", "find": "b", "replace": "B"}, "a\nB\nc\n"),
    "insert": ("SysBuiltIn.edit_text", {**F, "action": "insert", "insertAfter": 0, "newText": "X"}, "a\nX\nb\nc\n"),
    "at the top": ("edit_text", {**F, "action": "insert", "insert_after": -1, "new_text": "X\n"}, "X\na\nb\nc\n"),
    "at the end": ("edit_text", {**F, "action": "insert", "insertAfter": "2", "newText": "X"}, "a\nb\nc\nX\n"),
    "delete lines": ("edit_text", {**F, "action": "delete_range", "start": 0, "end": 2}, "c\n"),
    "the editor's replace": (
        "str_replace_editor",
        {**F, "command": "str_replace", "old_str": "b", "new_str": "B"},
        "a\nB\nc\n",
    ),
    "the editor's insert": (
        "str_replace_based_edit_tool",
        {**F, "command": "insert", "insert_line": 1, "insert_text": "X\n"},
        "a\nX\nb\nc\n",
    ),
}


@pytest.mark.req("TL-4")
@pytest.mark.parametrize("case", EDITS, ids=str)
async def test_edit_aliases(harness, case):
    called_as, arguments, after = EDITS[case]
    file = harness.file("f.txt", "a\nb\nc\n")
    result = await harness.call(called_as, arguments)
    assert result.status == "ok", result.for_model
    assert file.read_text() == after
    assert harness.events(ToolCalled)[-1].call.tool == "edit"


BY_LINE = {
    "among equal lines": (b"x\nx\nx\nx\n", {"action": "insert", "insertAfter": 1, "newText": "Y"}, b"x\nx\nY\nx\nx\n"),
    "one of equal lines": (b"x\nx\nx\n", {"action": "delete_range", "start": 1, "end": 2}, b"x\nx\n"),
    "dos lines": (b"a\r\nb\r\n", {"action": "insert", "insertAfter": 0, "newText": "X\nY"}, b"a\r\nX\r\nY\r\nb\r\n"),
    "no last line end": (b"a\nb", {"action": "insert", "insertAfter": 1, "newText": "X"}, b"a\nb\nX"),
    "an empty file": (b"", {"action": "insert", "insertAfter": -1, "newText": "X\n"}, b"X\n"),
    "all of it": (b"a\nb\n", {"action": "delete_range", "start": 0, "end": 2}, b""),
    "the first of several": (b"a a\na\n", {"action": "replace", "find": "a", "replace": "b"}, b"b a\na\n"),
    "periodic": (b"ab" * 50, {"action": "replace", "find": "ab", "replace": "X"}, b"X" + b"ab" * 49),
}


@pytest.mark.req("TL-4")
@pytest.mark.parametrize("case", BY_LINE, ids=str)
async def test_line_based_edits(harness, case):
    before, arguments, after = BY_LINE[case]
    file = harness.file("f.txt", before)
    result = await harness.call("edit_text", {"path": "f.txt", **arguments})
    assert result.status == "ok", result.for_model
    assert file.read_bytes() == after


ALL = "X b X X"


@pytest.mark.parametrize(("count", "after"), [(1, "X b a a"), (2, "X b X a"), (3, ALL), (9, ALL), (0, ALL), (-1, ALL)])
async def test_replacement_count(harness, count, after):
    file = harness.file("f.txt", "a b a a")
    await harness.ok("replace_text", path="f.txt", old="a", new="X", count=count)
    assert file.read_text() == after


COMMANDS = [
    ("SysBuiltIn.bash", {"command": "echo hi", "timeoutMs": 30000}, {"command": "echo hi", "timeout": 30.0}),
    ("Bash", {"command": "echo hi", "timeout": 5000, "description": "says hi"},
     {"command": "echo hi", "timeout": 5.0, "reason": "says hi"}),
    ("bash", {"command": "echo hi", "timeout": 120000}, {"command": "echo hi", "timeout": 120.0}),
    ("shell", {"command": "echo hi", "timeout": 30}, {"command": "echo hi", "timeout": 30.0}),
    ("shell", {"cmd": ["bash", "-lc", "echo hi"]}, {"command": "echo hi"}),
    ("shell", {"command": ["echo", "a b"]}, {"command": "echo 'a b'"}),
    ("terminal", {"command": "ls", "cwd": "my dir"}, {"command": "cd 'my dir' && ls"}),
    ("run_command", {"command": "ls", "timeout": "2m", "workdir": "."}, {"command": "ls", "timeout": 120.0}),
    ("command", {"command": "ls", "timeout": "500ms"}, {"command": "ls", "timeout": 0.5}),
    ("Bash", {"command": "ls", "run_in_background": False}, {"command": "ls", "background": False}),
    ("BashOutput", {"bash_id": "j1"}, {"action": "read", "job": "j1"}),
    ("KillShell", {"shell_id": "j1"}, {"action": "stop", "job": "j1"}),
]  # fmt: skip


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(("called_as", "arguments", "expected"), COMMANDS, ids=str)
async def test_command_aliases(harness, called_as, arguments, expected):
    await harness.call(called_as, arguments)
    call = harness.events(ToolCalled)[-1].call
    assert (call.tool, call.arguments) == ("bash", expected)


GIT = [
    ("git_diff", {"from": "HEAD", "cached": True}, "git_diff", {"from_ref": "HEAD", "staged": True}),
    ("git_changed_files", {"from_ref": "a", "to_ref": "b"}, "git_diff",
     {"from_ref": "a", "to_ref": "b", "name_only": True}),
    ("git_history", {"file": "x"}, "git_log", {"path": "x", "with_files": True}),
    ("git_show", {"commit": "HEAD", "repo_path": "."}, "git_show", {"sha": "HEAD", "repo": "."}),
    ("git_blame", {"file_path": "x", "start_line": 3, "end_line": 5}, "git_blame",
     {"path": "x", "line": 3, "limit": 3}),
]  # fmt: skip


@pytest.mark.req("TL-4")
@pytest.mark.parametrize(("called_as", "arguments", "tool", "expected"), GIT, ids=str)
async def test_git_aliases(harness, called_as, arguments, tool, expected):
    await harness.call(called_as, arguments)
    call = harness.events(ToolCalled)[-1].call
    assert (call.tool, call.arguments) == (tool, expected)


TASKS = [
    ({"description": "look", "prompt": "Look around.", "subagent_type": "explore"},
     {"title": "look", "prompt": "Look around.", "agent": "explore"}),
    ({"agent": "explore", "objective": "Look around."}, {"agent": "explore", "prompt": "Look around."}),
    ({"agent": "explore", "objective": "look", "prompt": "Look around."},
     {"agent": "explore", "title": "look", "prompt": "Look around."}),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "expected"), TASKS, ids=str)
async def test_task_aliases(harness, arguments, expected):
    await harness.call("Task", arguments)
    assert harness.events(ToolCalled)[-1].call.arguments == expected


@pytest.mark.req("TL-4")
async def test_results_in_the_format_of_the_called_tool(harness):
    harness.file("f.txt", "one\ntwo\n")
    read = await harness.ok("SysBuiltIn.read_file", path="f.txt")
    assert read.for_model == "one\ntwo"
    wrote = await harness.ok("SysBuiltIn.write_file", path="n.txt", content="éé")
    assert wrote.for_model == "wrote 4 bytes (overwrite)"
    edited = await harness.ok("SysBuiltIn.edit_text", path="f.txt", action="insert", insertAfter=0, newText="x")
    assert edited.for_model == "insert"
    todos = await harness.ok("SysBuiltIn.todo_write", items=[{"content": "a", "status": "completed"}, {"content": "b"}])
    assert todos.for_model == '{"total": 2, "completed": 1, "inProgress": 0}'
    assert (await harness.ok("read_file", path="n.txt")).for_model == "     1\téé"


async def test_called_name_is_stored_as_the_title(harness):
    harness.file("f.txt", "x\n")
    await harness.ok("SysBuiltIn.read_file", path="f.txt")
    first, second = harness.events(ToolCalled)
    assert (first.call.tool, second.call.tool, second.title, second.kind) == (
        "SysBuiltIn.read_file",
        "read",
        "SysBuiltIn.read_file",
        "read",
    )
    assert first.call.id == second.call.id


BAD = {
    "two paths": ("read", {"path": "a", "file_path": "b"}, "path is given twice"),
    "folders by glob": ("find", {"pattern": "x", "type": "d"}, "glob finds files"),
    "an unknown action": ("edit_text", {**F, "action": "swap"}, "insert, replace or delete_range"),
    "a line after the end": (
        "edit_text",
        {**F, "action": "insert", "insertAfter": 9, "newText": "x"},
        "has 1 lines",
    ),
    "no text": ("edit_text", {**F, "action": "insert", "insertAfter": 0}, "the new text is missing"),
    "no line": ("edit_text", {**F, "action": "delete_range", "start": 0}, "end is missing"),
    "an unknown mode": ("write_file", {"path": "n", "content": "x", "mode": "prepend"}, "overwrite or append"),
    "do not overwrite": ("write_file", {**F, "content": "x", "overwrite": False}, "overwrite is false"),
    "an unknown command": ("str_replace_editor", {**F, "command": "undo"}, "view, create, str_replace or insert"),
    "an invalid count": ("replace_text", {**F, "old": "a", "new": "b", "count": "some"}, "count is 'some'"),
    "a huge number": ("read", {"path": "f.txt", "lines": "9" * 5000 + "-1"}, "read takes no 'lines'"),
    "no number": (
        "edit_text",
        {**F, "action": "insert", "insertAfter": "²", "newText": "x"},
        "insert_after is not a number",
    ),
    "lines by other names": (
        "edit_text",
        {**F, "action": "delete_range", "startLine": 1, "endLine": 1},
        "delete_range takes start and end (lines counted from 0, end not included); "
        "start is missing; the arguments are: path, action, startLine, endLine",
    ),
    "a line by another name": (
        "edit_text",
        {**F, "action": "insert", "line": 1, "newText": "x"},
        "insert takes insert_after (a line counted from 0, -1 for the top) and new_text; insert_after is missing",
    ),
    "an endless count": ("replace_text", {**F, "old": "a", "new": "b", "count": float("inf")}, "count is inf"),
    "nothing to delete": ("rm", {}, "path is missing"),
    "more than a name": ("rm", {"path": "f.txt\n*** Delete File: g.txt"}, "unprintable character"),
    "no destination": ("mv", {"source": "f.txt"}, "destination is missing"),
    "a folder": ("rm", {"path": ".", "recursive": True}, "directory"),
    "backwards": ("read_file", {**F, "start_line": 5, "end_line": 2}, "before the first"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
async def test_untranslatable_call_is_rejected_with_advice(harness, case):
    called_as, arguments, message = BAD[case]
    harness.file("f.txt", "x\n")
    assert message in await harness.fails(called_as, **arguments)


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("called_as", ["edit_text", "replace_text"])
async def test_translation_does_not_read_files_outside(harness, called_as):
    result = await harness.call(
        called_as, {"path": "../outside/secret.txt", "find": "SECRET", "replace": "x", "count": 1}
    )
    assert result.status == "denied"
    assert "SECRET" not in str(harness.events(ToolCalled)[-1].call.arguments.get("new"))
    assert "needle" not in str(harness.session.events())


def test_rename_keeps_unknown_arguments():
    assert rename_arguments("read", {"File-Path": "a", "wibble": 1}) == {"path": "a", "wibble": 1}
    assert rename_arguments("no_such_tool", {"file_path": "a"}) == {"file_path": "a"}
    with pytest.raises(ToolError, match="given twice"):
        rename_arguments("write", {"text": "a", "body": "b"})
