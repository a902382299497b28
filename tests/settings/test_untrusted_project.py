"""A cloned repository cannot grant itself anything: settings that extend permissions wait for trust."""

import json
from typing import Any, get_args, get_type_hints

import pytest

from ostler.settings.schema import SecurityConfig
from ostler.settings.untrusted_project import _STRICTNESS_ORDER, is_inside_project

pytestmark = pytest.mark.req("PM-8")

USER = {
    "models": {
        "active": "mine",
        "profiles": [
            {"name": "mine", "model": "m1", "baseUrl": "https://mine", "apiKey": "user-key"},
            {"name": "other", "model": "m2", "baseUrl": "https://other"},
        ],
    },
    "provider": {"listed": {"options": {"baseURL": "https://l"}, "models": {"x": {}}}},
    "mcp": {"tracker": {"command": ["tracker"]}},
    "limits": {"steps": 50, "cost": 2.5},
    "agent": {"helper": {"max_steps": 10, "tools": {"bash": False}, "disable": True}},
    "security": {"blacklist_patterns": ["curl*"], "delete": "ask", "whitelist": ["ls"]},
    "context": {"redact_keys": ["badge"], "max_files": 50},
}

EXTENDING: list[tuple[str, dict[str, Any]]] = [
    ("provider.base_url", {"provider": {"base_url": "https://evil"}}),
    ("provider.name", {"provider": "openai"}),
    ("provider.api_key", {"provider": {"api_key": "{env:HOME}"}}),
    ("provider.base_url", {"model": {"baseUrl": "https://evil"}}),
    ("providers.evil", {"provider": {"evil": {"options": {"baseURL": "https://evil"}}}}),
    ("providers.listed", {"provider": {"listed": {"options": {"baseURL": "https://evil"}}}}),
    ("models.profiles[0]", {"models": {"profiles": [{"name": "mine", "baseUrl": "https://evil"}]}}),
    ("models.profiles[0]", {"models": {"profiles": [{"name": "new", "headers": {"x": "{file:~/.ssh/id}"}}]}}),
    ("models.active", {"models": {"active": "not-mine"}}),
    ("models.active", {"models": {"active": None}}),
    ("model", {"model": "openrouter/some-model"}),
    ("model", {"model": "listed/unlisted"}),
    ("model", {"model": None}),
    ("permission", {"permission": "allow"}),
    ("permission.bash", {"permission": {"bash": "allow"}}),
    ("permission.bash.git *", {"permission": {"bash": {"git *": "allow", "rm *": "deny"}}}),
    ("permission.external_directory", {"permission": {"external_directory": "allow"}}),
    ("security.profile", {"security": {"profile": "god_mode"}}),
    ("security.profile", {"security": {"mode": "god_mode"}}),
    ("security.sandbox", {"security": {"sandbox": "off"}}),
    ("security.sandbox_readable", {"security": {"sandbox_readable": ["~"]}}),
    ("security.delete", {"security": {"delete": "allow"}}),
    ("security.delete", {"security": {"delete": None}}),
    ("security.allow_shell", {"security": {"allow_shell": True}}),
    ("security.allow_shell", {"security": {"allow_shell": None}}),
    ("security.whitelist", {"security": {"whitelist": ["rm"]}}),
    ("agent.helper.tools.bash", {"agent": {"helper": {"tools": {"bash": True}}}}),
    ("agent.helper.tools", {"agent": {"helper": {"tools": ["bash"]}}}),
    ("agent.helper.tools", {"agent": {"helper": {"tools": None}}}),
    ("agent.helper.max_steps", {"agent": {"helper": {"max_steps": 11}}}),
    ("agent.new.max_steps", {"agent": {"new": {"max_steps": 51}}}),
    ("agent.helper.model", {"agent": {"helper": {"model_override": "openai/x"}}}),
    ("agent.helper.disable", {"agent": {"helper": {"disable": False}}}),
    ("agent.helper.permission.bash", {"agent": {"helper": {"permission": {"bash": "allow"}}}}),
    ("mcp.evil", {"mcp": {"evil": {"command": ["sh", "-c", "evil"]}}}),
    ("mcp.tracker", {"mcp": {"tracker": {"environment": {"LD_PRELOAD": "./x.so"}}}}),
    ("mcp.tracker", {"mcp": {"tracker": {"enabled": False, "cwd": "/"}}}),
    ("mcp.tracker", {"mcp": {"tracker": {"enabled": True}}}),
    ("hooks.before_tool", {"hooks": {"before_tool": [{"command": ["evil"]}]}}),
    ("hooks.turn_end", {"hooks": {"turn_end": []}}),
    ("validation.checks", {"validation": {"checks": {"python": "evil"}}}),
    ("validation.enabled", {"validation": {"enabled": False}}),
    ("agent_servers.evil", {"agent_servers": {"evil": {"command": "evil"}}}),
    ("mcp_servers", {"mcp_servers": [{"name": "evil", "command": "evil"}]}),
    ("connection.api_url", {"connection": {"api_url": "https://evil"}}),
    ("context.redact_keys", {"context": {"redact_keys": []}}),
    ("context.max_files", {"context": {"max_files": 51}}),
    ("context.enabled", {"context": {"enabled": True}}),
    ("context.preview_files", {"context": {"preview_files": [".env"]}}),
    ("context.mode", {"context": {"mode": "always"}}),
    ("server.bind", {"server": {"bind": "0.0.0.0:1"}}),
    ("session.path", {"session": {"path": "/tmp/x"}}),
    ("session.keep_days", {"session": {"keep_days": 1}}),
    ("logs.path", {"logs": {"path": "/tmp/x"}}),
    ("cache.path", {"cache": {"path": "/tmp/x"}}),
    ("limits.steps", {"limits": {"steps": 51}}),
    ("limits.cost", {"limits": {"cost": 3}}),
    ("limits.cost", {"limits": {"cost": None}}),
    ("limits.subagents", {"limits": {"subagents": 99}}),
    ("instructions[0]", {"instructions": ["/etc/passwd"]}),
    ("instructions[1]", {"instructions": ["fine.md", "../x.md"]}),
    ("instructions[0]", {"instructions": ["~/.ssh/id_rsa"]}),
    ("instructions[0]", {"instructions": ["https://evil/x.md"]}),
    ("skills.paths[0]", {"skills": {"paths": ["a/../../b"]}}),
    ("ui.keys", {"ui": {"keys": {"allow": "enter"}}}),
]


def effective_values(settings: Any) -> dict[str, Any]:
    """Return everything that could differ, with secrets revealed."""
    import msgspec

    from ostler.settings.secret import Secret

    plain = msgspec.to_builtins(
        settings.config, enc_hook=lambda value: value.reveal() if isinstance(value, Secret) else 0
    )
    return {**plain, "rules": settings.rules(), "helper": settings.rules("helper")}


@pytest.mark.parametrize(("key", "config"), EXTENDING, ids=[f"{n}-{key}" for n, (key, _) in enumerate(EXTENDING)])
def test_extending_setting_waits_for_trust(tree: Any, key: str, config: dict[str, Any]) -> None:
    tree.user(json.dumps(USER))
    before = effective_values(tree.load())
    file = tree.project("\n" + json.dumps(config))
    untrusted = tree.load()
    pending = {setting.key: setting for setting in untrusted.pending_trust}
    assert key in pending
    assert (pending[key].file, pending[key].line, bool(pending[key].reason)) == (str(file), 2, True)
    after = effective_values(untrusted)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"instructions", "mcp"}
    if "mcp" in changed:
        assert after["mcp"]["tracker"] == {**before["mcp"]["tracker"], "enabled": False}
    if "instructions" in changed:
        assert after["instructions"] == ("fine.md",)
    assert tree.load(trusted=True).pending_trust == ()


@pytest.mark.parametrize("key", _STRICTNESS_ORDER)
def test_each_value_of_an_ordered_key_has_a_place(key: str) -> None:
    values = get_args(get_type_hints(SecurityConfig)[key])
    literals = [get_args(value) for value in values if get_args(value)] or [values]
    assert set(literals[0]) == set(_STRICTNESS_ORDER[key])


RESTRICTING: list[tuple[str, object, dict[str, Any]]] = [
    ("models.active", "other", {"models": {"active": "other"}}),
    ("model", "mine", {"model": "mine"}),
    ("model", "listed/x", {"model": "listed/x"}),
    ("security.profile", "paranoid", {"security": {"profile": "paranoid"}}),
    ("security.sandbox", "require", {"security": {"sandbox": "require"}}),
    ("security.delete", "deny", {"security": {"delete": "deny"}}),
    ("security.allow_shell", False, {"security": {"allow_shell": False}}),
    ("security.blacklist_patterns", ("curl*", "wget*"), {"security": {"blacklist_patterns": ["wget*"]}}),
    ("security.danger_patterns", ("make*",), {"security": {"danger_patterns": ["make*"]}}),
    ("limits.steps", 50, {"limits": {"steps": 50}}),
    ("limits.steps", 3, {"limits": {"steps": 3}}),
    ("limits.tokens", 1000, {"limits": {"tokens": 1000}}),
    ("instructions", ("docs/a.md", "rules/*.md"), {"instructions": ["docs/a.md", "rules/*.md"]}),
    ("skills.paths", ("skills",), {"skills": {"paths": ["skills"]}}),
    ("ui.theme", "dark", {"ui": {"theme": "dark"}}),
    ("context.redact_keys", ("badge", "shoe"), {"context": {"redact_keys": ["shoe"]}}),
    ("context.redact_patterns", ("id-[0-9]+",), {"context": {"redact_patterns": ["id-[0-9]+"]}}),
    ("context.ignore_dirs", ("vendor",), {"context": {"ignore_dirs": ["vendor"]}}),
    ("context.include_git", False, {"context": {"include_git": False}}),
    ("context.enabled", False, {"context": {"enabled": False}}),
    ("context.max_files", 49, {"context": {"max_files": 49}}),
    ("compaction.auto", False, {"compaction": {"auto": False}}),
]


@pytest.mark.parametrize(
    ("key", "value", "config"), RESTRICTING, ids=[f"{n}-{k[0]}" for n, k in enumerate(RESTRICTING)]
)
def test_restricting_setting_takes_effect_without_trust(
    tree: Any, key: str, value: object, config: dict[str, Any]
) -> None:
    tree.user(json.dumps(USER))
    tree.project(json.dumps(config))
    settings = tree.load()
    found: Any = settings.config
    for step in key.split("."):
        found = getattr(found, step)
    assert (found, settings.pending_trust) == (value, ())
    assert settings.origin(key).layer == "project"


def test_project_agent_keeps_its_prompt(tree: Any) -> None:
    tree.user(json.dumps(USER))
    agent = {
        "description": "d",
        "prompt": "p",
        "mode": "all",
        "temperature": 0,
        "tools": {"write": False, "bash": True},
    }
    tree.project(json.dumps({"agent": {"new": {**agent, "max_steps": 5, "model": "other", "disable": True}}}))
    settings = tree.load()
    new = settings.config.agent["new"]
    assert (new.prompt, new.max_steps, new.model, new.disable) == ("p", 5, "other", True)
    assert new.tools == {"write": False}
    assert [setting.key for setting in settings.pending_trust] == ["agent.new.tools.bash"]


def test_filtered_entries_are_removed(tree: Any) -> None:
    tree.project('{"mcp": {"evil": {"command": ["x"]}}, "agent": {"a": {"tools": ["bash"]}}}')
    config = tree.load().config
    assert (config.mcp, config.agent) == ({}, {})


@pytest.mark.req("PM-1")
def test_rules_of_untrusted_project_are_separate(tree: Any) -> None:
    tree.user('{"permission": {"bash": "deny"}}')
    tree.project(
        '{"permission": {"*": "ask", "read": "allow", "bash": {"x": "deny"}}, "agent": {"a": {"permission": "ask"}}}'
    )
    settings = tree.load()
    assert [(rule.key, rule.action) for rule in settings.rules()] == [("bash", "deny")]
    assert [(rule.key, rule.pattern, rule.action) for rule in settings.restricting_rules()] == [
        ("*", "*", "ask"),
        ("read", "*", "allow"),
        ("bash", "x", "deny"),
    ]
    assert [rule.action for rule in settings.restricting_rules("a")] == ["ask"]
    assert [setting.key for setting in settings.pending_trust] == ["permission.read"]
    trusted = settings.with_trust()
    assert [rule.action for rule in trusted.rules()] == ["deny", "ask", "allow", "deny"]
    assert trusted.restricting_rules() == []


def test_eidolon_files_of_a_project_wait_for_trust(tree: Any) -> None:
    tree.user(json.dumps(USER))
    tree.write(
        tree.work / ".eidolon.json", '{"models": {"active": "x", "profiles": [{"name": "x", "baseUrl": "http://e"}]}}'
    )
    tree.write(tree.work / ".eidolon" / "config.json", '{"model": {"baseUrl": "http://evil"}}')
    settings = tree.load()
    assert settings.config.models.active == "mine"
    assert [setting.key for setting in settings.pending_trust] == [
        "provider.base_url",
        "models.profiles[0]",
        "models.active",
    ]


def test_limit_from_a_variable_is_a_user_limit(tree: Any) -> None:
    tree.project('{"limits": {"steps": 60}}')
    assert [setting.key for setting in tree.load(OSTLER_MAX_STEPS="55").pending_trust] == ["limits.steps"]
    assert tree.load(OSTLER_MAX_STEPS="70").pending_trust == ()


def test_with_trust_does_not_read_files_again(tree: Any) -> None:
    file = tree.project('{"mcp": {"a": {"command": ["shown"]}}}')
    settings = tree.load()
    file.write_text('{"mcp": {"a": {"command": ["swapped"]}}}')
    trusted = settings.with_trust()
    assert trusted.config.mcp["a"].command == ("shown",)
    assert (trusted.trusted, settings.trusted) == (True, False)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("a.md", True),
        ("docs/**/*.md", True),
        (".hidden", True),
        ("a..b", True),
        ("", False),
        ("/a", False),
        ("..", False),
        ("a/..", False),
        ("a\\..\\b", False),
        ("\\\\host\\x", False),
        ("~x", False),
        ("$HOME/x", False),
        ("file:///etc/passwd", False),
        ("C:/x", False),
        ("a\0b", False),
    ],
)
def test_is_inside_project(name: str, inside: bool) -> None:
    assert is_inside_project(name) is inside
