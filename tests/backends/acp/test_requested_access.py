"""Paths and commands in the permission requests of agents, wherever an agent writes them."""

import pytest

from ostler.backends.acp.requested_access import requested_command, requested_paths
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
        ({"rawInput": {"edits": [{"path": "a"}, {"path": "../b"}]}}, ("../b", "a")),
        ({"rawInput": {"paths": ["a", "/etc/b"]}}, ("/etc/b", "a")),
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
    assert requested_paths(make_call(**fields)) == paths


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
    assert requested_command(make_call(rawInput=raw_input)) == command


def test_several_commands_are_all_returned():
    found = requested_command(make_call(rawInput={"command": "ls", "script": "rm x"}))
    assert sorted(found.split("\n")) == ["ls", "rm x"]


def test_deep_and_large_input_is_bounded():
    deep = {"path": "/etc/a"}
    for _ in range(50):
        deep = {"nested": deep}
    assert requested_paths(make_call(rawInput=deep)) == ()
    assert len(requested_paths(make_call(rawInput={"paths": [f"/etc/{n}" for n in range(5000)]}))) <= 1000
