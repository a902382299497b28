"""Paths and commands in the permission requests of agents, wherever an agent writes them."""

import pytest

from ostler.backends.acp.requested_access import requested_access
from ostler.wire.acp import ToolCallFields
from ostler.wire.acp_decode import decode_lenient

pytestmark = pytest.mark.req("AC-1", "FS-3", "PM-4")


def make_call(**fields):
    return decode_lenient(ToolCallFields, {"toolCallId": "c", "kind": "edit", **fields})


def text_content(text):
    return [{"type": "content", "content": {"type": "text", "text": text}}]


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"locations": [{"path": "/w/a"}]}, ("/w/a",)),
        *(
            ({"rawInput": {name: "/etc/hosts"}}, ("/etc/hosts",))
            for name in ("file_path", "path", "filePath", "abs_path", "absolute_path", "targetFile", "uri", "whatever")
        ),
        ({"rawInput": {"file_path": "src/a.py"}}, ("src/a.py",)),
        ({"rawInput": {"edits": [{"path": "a"}, {"path": "../b"}]}}, ("a", "../b")),
        ({"rawInput": {"paths": ["a", "/etc/b"]}}, ("a", "/etc/b")),
        ({"rawInput": {"uri": "file:///etc/a%20b"}}, ("/etc/a b",)),
        ({"locations": [{"path": "/w/a"}], "rawInput": {"file_path": "/etc/hosts"}}, ("/w/a", "/etc/hosts")),
        ({"title": "Write /etc/hosts"}, ("/etc/hosts",)),
        ({"title": "Write", "content": text_content("I will write to `/etc/hosts`.")}, ("/etc/hosts",)),
        ({"title": "Edit ~/.bashrc"}, ("~/.bashrc",)),
        ({"title": "Edit src/a.py"}, ("src/a.py",)),
        ({"title": "Edit README.md"}, ("README.md",)),
        ({"title": "Edit a file"}, ()),
        ({"title": "Write"}, ()),
        ({"title": "Think about src/a.py", "kind": "think"}, ()),
        ({"rawInput": {"content": "some text with spaces"}}, ()),
        ({"rawInput": None}, ()),
        ({"rawInput": "no fields"}, ()),
    ],
)
def test_requested_paths(fields, paths):
    assert requested_access(make_call(**fields)).paths == paths


@pytest.mark.parametrize(
    ("raw_input", "command"),
    [
        ({"command": "ls -l"}, "ls -l"),
        ({"cmd": "sudo ls"}, "sudo ls"),
        ({"script": "rm -rf /"}, "rm -rf /"),
        ({"commandLine": "ls"}, "ls"),
        ({"command": ["rm", "a b"]}, "rm 'a b'"),
        ({"params": {"cmd": "sudo ls"}}, "sudo ls"),
        ({"path": "a"}, ""),
        (None, ""),
    ],
)
def test_requested_command(raw_input, command):
    assert requested_access(make_call(rawInput=raw_input)).command == command


def test_several_commands_are_all_returned():
    assert requested_access(make_call(rawInput={"command": "ls", "script": "rm x"})).command == "ls\nrm x"


def nested(value, depth):
    for _ in range(depth):
        value = {"nested": [value]}
    return value


@pytest.mark.parametrize("raw_input", [nested({"path": "/etc/a"}, 50), {"paths": [str(n) for n in range(20_000)]}])
def test_input_that_is_too_large_is_not_checked_partly(raw_input):
    access = requested_access(make_call(rawInput=raw_input, locations=[{"path": "/w/a"}]))
    assert not access.is_complete


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"rawInput": "/etc/hosts"}, "/etc/hosts"),
        ({"rawInput": ["-w", "/etc/hosts"]}, "/etc/hosts"),
        ({"rawInput": nested({"x": "/etc/hosts"}, 5)}, "/etc/hosts"),
        ({"rawInput": {"k": "../../out.txt"}}, "../../out.txt"),
        ({"rawInput": {"k": "src/../../out.txt"}}, "src/../../out.txt"),
        ({"rawInput": {"k": "src/a.py"}}, "src/a.py"),
        ({"rawInput": {"k": "notes.txt"}}, "notes.txt"),
        ({"rawInput": {"k": "/home/me/my file"}}, "/home/me/my file"),
        ({"rawInput": {"k": "--out /etc/hosts"}}, "/etc/hosts"),
        ({"rawInput": {"k": "~/.bashrc"}}, "~/.bashrc"),
        ({"rawInput": {"k": "~root/.bashrc"}}, "~root/.bashrc"),
        ({"rawInput": {"path": " '/etc/hosts' "}}, "/etc/hosts"),
        ({"rawInput": {"path": "file:/etc/hosts"}}, "/etc/hosts"),
        ({"rawInput": {"path": "FILE://localhost/etc/hosts"}}, "/etc/hosts"),
        ({"rawInput": {"arguments": '{"path": "/etc/hosts"}'}}, "/etc/hosts"),
        ({"rawInput": {"changes": {"/etc/hosts": {"type": "update"}}}}, "/etc/hosts"),
        ({"rawInput": {"input": "*** Begin Patch\n*** Update File: ../a\n+x\n"}}, "../a"),
        ({"rawInput": {"patch": "--- a/x\n+++ b/../../y\n@@\n"}}, "../../y"),
        ({"rawInput": {"from": "a", "to": "b"}, "kind": "move"}, "b"),
        ({"title": "Write /etc/hosts", "locations": [{"path": "/w/a"}]}, "/etc/hosts"),
        ({"title": "Write →/etc/hosts←", "locations": [{"path": "/w/a"}]}, "/etc/hosts←"),
        ({"title": "Read", "content": text_content("a.txt, ../b.txt and /c")}, "../b.txt"),
        ({"title": "Write /etc/hosts", "kind": "other"}, "/etc/hosts"),
        ({"rawInput": {"k": "/etc/hosts"}, "kind": "other"}, "/etc/hosts"),
        ({"rawInput": {"command": "ls", "workdir": "/etc"}, "kind": "execute"}, "/etc"),
        ({"rawInput": {"url": "x", "uri": "file:///etc/hosts"}, "kind": "fetch"}, "/etc/hosts"),
    ],
)
def test_path_is_found_wherever_it_is(fields, path):
    assert path in requested_access(make_call(**fields)).paths


def test_variable_in_a_path_is_replaced(monkeypatch):
    monkeypatch.setenv("PLACE", "/etc")
    for text in ("$PLACE/hosts", "${PLACE}/hosts"):
        assert requested_access(make_call(rawInput={"k": text})).paths == ("/etc/hosts",)


@pytest.mark.parametrize(
    "fields",
    [
        {"rawInput": {"content": "/* a comment */"}, "locations": [{"path": "/w/a"}]},
        {"rawInput": {"new_string": "/usr", "old_string": "../x"}, "locations": [{"path": "/w/a"}]},
        {"rawInput": {"env": {"PATH": "/usr/bin"}, "file": "/w/a"}},
        {"rawInput": {"k": "// a comment"}, "locations": [{"path": "/w/a"}]},
    ],
)
def test_content_is_not_a_path(fields):
    assert requested_access(make_call(**fields)).paths == ("/w/a",)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"kind": "Edit"}, "edit"),
        ({"kind": "write"}, "edit"),
        ({"kind": "remove"}, "delete"),
        ({"kind": "shell"}, "execute"),
        ({"kind": "switch_mode"}, "other"),
        ({"kind": "telepathy"}, "other"),
        ({"kind": None, "title": "Write a.txt", "rawInput": {"path": "a.txt"}}, "edit"),
        ({"kind": None, "name": "delete_file", "title": "x", "rawInput": {"path": "a.txt"}}, "delete"),
        ({"kind": None, "title": "Update the plan"}, "other"),
    ],
)
def test_kind_of_a_call(fields, kind):
    assert requested_access(make_call(**fields)).kind == kind


@pytest.mark.parametrize(
    "fields",
    [
        {"rawInput": {"whatever": "rm -rf x"}},
        {"rawInput": "rm -rf x"},
        {"rawInput": ["rm", "-rf", "x"]},
        {"rawInput": nested({"line": "rm -rf x"}, 4)},
        {"rawInput": {"commands": ["ls", "rm -rf x"]}},
        {"rawInput": {"command": ["rm -rf x", "ls"]}},
        {"rawInput": {"commands": [["ls"], ["rm", "-rf", "x"]]}},
        {"rawInput": {"commands": [{"cmd": "rm -rf x"}]}},
        {"rawInput": {"command": "rm", "args": ["-rf", "x"]}},
        {"rawInput": {"program": "rm", "arguments": ["-rf", "x"]}},
        {"rawInput": {"executable": "rm", "args": ["-rf", "x"]}},
        {"rawInput": {"arguments": '{"command": "rm -rf x"}'}},
    ],
)
def test_command_is_found_wherever_it_is(fields):
    access = requested_access(make_call(kind="execute", **fields))
    assert "rm -rf x" in access.command.split("\n")


@pytest.mark.parametrize("kind", ["read", "edit", "delete", "move"])
@pytest.mark.parametrize("fields", [{}, {"rawInput": {"content": "../x"}}, {"title": "Do it", "rawInput": {"n": 3}}])
def test_call_without_a_path_has_none(kind, fields):
    assert requested_access(make_call(**{"kind": kind, **fields})).paths == ()


@pytest.mark.parametrize(
    "text", ["I will run `rm -rf x`.", "```sh\nrm -rf x\n```", "$ rm -rf x", "rm -rf x", "(rm -rf x)"]
)
def test_text_of_a_call_without_a_command_is_a_hint(text):
    access = requested_access(make_call(kind="execute", title="Run", content=text_content(text)))
    assert (access.command, "rm -rf x" in access.hints) == ("", True)
    with_command = make_call(kind="execute", rawInput={"command": "ls"}, content=text_content(text))
    assert (requested_access(with_command).command, requested_access(with_command).hints) == ("ls", ())


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["edit", "execute", "search"])
@pytest.mark.parametrize(
    "unit", ["a", "a.", ".", "/", "a/", "~", "$", "`", "```", "\n", " ", "a\n", "..", "--- ", "{", "["]
)
@pytest.mark.sampled
def test_long_input_is_checked_quickly(kind, unit):
    text = unit * (150_000 // len(unit))
    requested_access(make_call(kind=kind, title=text, content=text_content(text)))
    requested_access(make_call(kind=kind, rawInput={"k": text, "path": text, "command": [text]}))


def test_path_in_a_long_value_is_found():
    assert "/etc/hosts" in requested_access(make_call(rawInput={"k": f"--out /etc/hosts {'x' * 9000}"})).paths


def test_hidden_file_in_text_is_a_path():
    assert requested_access(make_call(title="Edit .env")).paths == (".env",)
