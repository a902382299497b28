"""Hook definitions from the config and from Claude Code's files."""

import json

import pytest

from ostler.knowledge.hooks import MAX_HOOKS, HookSpec, configured_hooks, parse_claude_hooks


@pytest.mark.req("EN-15")
def test_hooks_from_config(folders):
    config = {
        "hooks": {
            "before_tool": [{"command": ["guard"], "match": "ba*"}],
            "tool.execute.after": [{"command": ["log", "x"], "timeout_ms": 500}],
            "turn_end": [{"command": ["bell"]}],
        }
    }
    folders.write({"~/.ostler/config.json": json.dumps(config)})
    before, after, end = configured_hooks(folders.settings())
    assert (before.event, before.command, before.match, before.seconds) == ("before_tool", ("guard",), "ba*", 30)
    assert (after.event, after.command, after.seconds) == ("after_tool", ("log", "x"), 0.5)
    assert end.event == "turn_end"
    assert before.origin.startswith(f"{folders.ostler_home}/config.json:")


@pytest.mark.req("EN-15", "PM-8")
def test_project_hooks_wait_for_trust(folders):
    folders.write({".ostler/config.json": json.dumps({"hooks": {"turn_end": [{"command": ["evil"]}]}})})
    assert configured_hooks(folders.settings()) == []
    assert len(configured_hooks(folders.settings(trusted=True))) == 1


MATCHES = {
    "*": "bash edit patch srv_tool",
    "bash": "bash",
    "*_tool": "srv_tool",
    "e?it": "edit",
    "Bash": "",
}


@pytest.mark.req("EN-15")
@pytest.mark.parametrize("match", MATCHES)
def test_wildcard_match(match):
    hook = HookSpec("before_tool", ("x",), match)
    assert [tool for tool in ("bash", "edit", "patch", "srv_tool") if hook.matches(tool)] == MATCHES[match].split()


CLAUDE_MATCHES = {
    "": "bash edit patch srv_tool",
    "*": "bash edit patch srv_tool",
    "Bash": "bash",
    "Edit|Write": "edit patch",
    "MultiEdit": "edit patch",
    "srv_.*": "srv_tool",
    "Ba": "",
    "(a+)+$": "",
    "[": "bash edit patch srv_tool",
}


@pytest.mark.req("EN-15", "DX-5")
@pytest.mark.parametrize("matcher", CLAUDE_MATCHES)
def test_claude_matcher(matcher):
    config = {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": "guard"}]}]}}
    (hook,), notes = parse_claude_hooks(config, "settings.json")
    assert [tool for tool in ("bash", "edit", "patch", "srv_tool") if hook.matches(tool)] == CLAUDE_MATCHES[
        matcher
    ].split()
    assert bool(notes) is (matcher == "[")


@pytest.mark.req("EN-15", "DX-5")
def test_hooks_from_claude_code():
    config = {
        "hooks": {
            "PostToolUse": [{"matcher": "Write", "hooks": [{"command": "fmt $F", "timeout": 5}, {"command": "log"}]}],
            "Stop": [{"hooks": [{"command": "bell"}]}],
            "SessionStart": [{"hooks": [{"command": "hello"}]}],
        }
    }
    hooks, notes = parse_claude_hooks(config, "settings.json")
    assert [(hook.event, hook.command[-1], hook.seconds) for hook in hooks] == [
        ("after_tool", "fmt $F", 5),
        ("after_tool", "log", 60),
        ("turn_end", "bell", 60),
    ]
    assert {hook.style for hook in hooks} == {"claude"}
    assert [str(note) for note in notes] == ["settings.json: hooks 'SessionStart' is not a supported event"]


HOSTILE = [
    *(
        None,
        [],
        "x",
        {"hooks": 1},
        {"hooks": {"Stop": 1}},
        {"hooks": {"Stop": [1]}},
        {"hooks": {"Stop": [{"hooks": 1}]}},
    ),
    *({"hooks": {"Stop": [{"hooks": [entry]}]}} for entry in (1, {}, {"command": ""}, {"command": ["a"]})),
]


@pytest.mark.parametrize("document", HOSTILE)
def test_invalid_hooks_are_ignored(document):
    hooks, _ = parse_claude_hooks(document, "settings.json")
    assert hooks == []


@pytest.mark.parametrize("timeout", ["5", -1, 0, 10**30, float("nan"), None])
def test_invalid_timeout_is_replaced_by_the_default(timeout):
    (hook,), _ = parse_claude_hooks({"hooks": {"Stop": [{"hooks": [{"command": "x", "timeout": timeout}]}]}}, "f")
    assert hook.seconds == 60


def test_number_of_hooks_is_limited():
    hooks, notes = parse_claude_hooks({"hooks": {"Stop": [{"hooks": [{"command": "x"}] * 10_000}]}}, "f")
    assert (len(hooks), len(notes)) == (MAX_HOOKS, 1)
