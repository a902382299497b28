"""Precedence of files, variables and flags, and errors in them."""

import os
from pathlib import Path
from typing import Any

import pytest

from ostler.core.errors import UsageError
from ostler.settings.config_files import read_bytes
from ostler.settings.effective import Settings
from ostler.settings.load import find_config_files, load
from ostler.settings.problems import SettingOrigin

pytestmark = pytest.mark.req("DX-4", "MD-2")

PROFILE = '{"models": {"profiles": [{"name": "p", "model": "%s"}]}}'


def sources(tree: Any) -> list[tuple[str, Any]]:
    """Return every file that may name a model, in increasing precedence."""
    return [
        ("~/.eidolon/config.json", tree.user_home / ".eidolon" / "config.json"),
        ("~/.eidolon.json", tree.user_home / ".eidolon.json"),
        ("~/.ostler/config.json", tree.home / "config.json"),
        (".eidolon/config.json", tree.work / ".eidolon" / "config.json"),
        (".eidolon.json", tree.work / ".eidolon.json"),
        (".ostler/config.json", tree.work / ".ostler" / "config.json"),
        ("OSTLER_CONFIG", tree.work / "extra.json"),
    ]


@pytest.mark.parametrize("low", range(7))
@pytest.mark.parametrize("high", range(7))
def test_precedence_of_files(tree: Any, low: int, high: int) -> None:
    found = sources(tree)
    for number in {low, high}:
        tree.write(found[number][1], PROFILE % found[number][0])
    extra = {"OSTLER_CONFIG": "extra.json"} if 6 in (low, high) else {}
    settings = tree.load(trusted=True, **extra)
    winner = found[max(low, high)]
    assert settings.config.models.profiles[0].model == winner[0]
    assert settings.origin("models.profiles.p.model").file == str(winner[1])


@pytest.mark.parametrize(
    ("env", "model", "origin"),
    [
        ({}, "file", 1),
        ({"AGENT_MODEL": "agent"}, "agent", "$AGENT_MODEL"),
        ({"AGENT_MODEL": "agent", "OSTLER_MODEL": "ostler"}, "ostler", "$OSTLER_MODEL"),
        ({"AGENT_MODEL": "agent", "OSTLER_MODEL": ""}, "agent", "$AGENT_MODEL"),
    ],
)
def test_environment_overrides_files(tree: Any, env: dict[str, str], model: str, origin: str | int) -> None:
    file = tree.user('{"model": "file"}')
    settings = tree.load(**env)
    assert settings.config.model == model
    assert settings.origin("model") == (
        SettingOrigin("global", str(file), 1) if origin == 1 else SettingOrigin("environment", str(origin))
    )


@pytest.mark.parametrize(
    ("variable", "value", "key", "expected"),
    [
        ("AGENT_MAX_STEPS", "12", "limits.steps", 12),
        ("OSTLER_MAX_STEPS", "13", "limits.steps", 13),
        ("AGENT_CACHE_PATH", "/c", "cache.path", "/c"),
        ("AGENTZERO_API_URL", "http://z", "connection.api_url", "http://z"),
        ("AGENTZERO_STREAM", "off", "connection.stream", False),
        ("AGENTZERO_CONTEXT_MODE", "once", "context.mode", "once"),
        ("AGENTZERO_TIMEOUT_SECONDS", "2.5", "connection.timeout_seconds", 2.5),
    ],
)
def test_environment_variable_sets_key(tree: Any, variable: str, value: str, key: str, expected: object) -> None:
    settings = tree.load(**{variable: value})
    section, name = key.split(".")
    assert getattr(getattr(settings.config, section), name) == expected
    assert settings.origin(key) == SettingOrigin("environment", f"${variable}")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AGENT_MAX_STEPS", "many"),
        ("AGENT_MAX_STEPS", "nan"),
        ("AGENT_MAX_STEPS", "inf"),
        ("AGENT_MAX_STEPS", "9" * 5000),
        ("AGENT_MAX_STEPS", "0"),
        ("AGENT_MAX_STEPS", "1.5"),
        ("AGENTZERO_STREAM", "maybe"),
        ("AGENTZERO_STREAM_MODE", "smoke"),
    ],
)
def test_error_names_the_wrong_variable(tree: Any, variable: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        tree.load(**{variable: value})
    assert f"${variable}" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_objects_are_merged_deeply_and_arrays_replaced(tree: Any) -> None:
    tree.user('{"ui": {"theme": "a", "bell": true}, "security": {"whitelist": ["ls", "cat"]}}')
    tree.project('{"ui": {"theme": "b"}, "security": {"whitelist": ["pwd"]}}')
    config = tree.load(trusted=True).config
    assert (config.ui.theme, config.ui.bell, config.security.whitelist) == ("b", True, ("pwd",))


def test_some_lists_are_combined(tree: Any) -> None:
    tree.user('{"instructions": ["a.md", "b.md"], "security": {"blacklist_patterns": ["x"], "danger_patterns": ["y"]}}')
    tree.project('{"instructions": ["b.md", "c.md"], "security": {"blacklist_patterns": [], "danger_patterns": ["z"]}}')
    for trusted in (False, True):
        config = tree.load(trusted=trusted).config
        assert config.instructions == ("a.md", "b.md", "c.md")
        assert (config.security.blacklist_patterns, config.security.danger_patterns) == (("x",), ("y", "z"))


def test_profile_with_same_name_is_replaced_completely(tree: Any) -> None:
    tree.user('{"models": {"profiles": [{"name": "p", "model": "m", "apiKey": "k"}, {"name": "q", "model": "n"}]}}')
    tree.project('{"models": {"profiles": [{"name": "p", "model": "other"}, {"name": "r"}]}}')
    first, second, third = tree.load(trusted=True).config.models.profiles
    assert (first.name, first.model, first.api_key) == ("p", "other", None)
    assert (second.name, third.name) == ("q", "r")


@pytest.mark.req("PM-1")
def test_rules_keep_the_order_of_files_and_layers(tree: Any) -> None:
    user = tree.user('{"permission": {"bash": {"git *": "allow", "*": "ask"}, "*": "deny"}}')
    project = tree.project('{"permission": {"*": "ask", "bash": {"git *": "deny", "a": "allow"}}}')
    rules = [(rule.key, rule.pattern, rule.action, rule.origin) for rule in tree.load(trusted=True).rules()]
    assert rules == [
        ("bash", "git *", "allow", str(user)),
        ("bash", "*", "ask", str(user)),
        ("*", "*", "deny", str(user)),
        ("*", "*", "ask", str(project)),
        ("bash", "git *", "deny", str(project)),
        ("bash", "a", "allow", str(project)),
    ]


@pytest.mark.req("PM-1", "EN-3")
def test_rules_of_an_agent_keep_their_order(tree: Any) -> None:
    tree.user('{"permission": "ask", "agent": {"a": {"permission": {"edit": "deny"}, "prompt": "p"}}}')
    tree.project('{"agent": {"a": {"permission": {"*": "allow"}}}}')
    settings = tree.load(trusted=True)
    assert [(rule.key, rule.action) for rule in settings.rules("a")] == [("edit", "deny"), ("*", "allow")]
    assert [(rule.key, rule.pattern, rule.action) for rule in settings.rules()] == [("*", "*", "ask")]
    assert settings.rules("nobody") == []
    assert settings.config.agent["a"].prompt == "p"


def test_jsonc_file_is_read_and_two_config_files_are_an_error(tree: Any) -> None:
    jsonc = tree.write(tree.home / "config.jsonc", '{"model": "m", /* c */}')
    assert tree.load().config.model == "m"
    assert find_config_files(tree.work, tree.env) == [jsonc]
    tree.user("{}")
    with pytest.raises(UsageError, match=r"config\.json and .*config\.jsonc both exist"):
        tree.load()


def test_ostler_home_moves_the_global_file(tree: Any, tmp_path: Path) -> None:
    tree.user('{"model": "here"}')
    config = tree.write(tmp_path / "moved" / "config.json", '{"model": "there"}')
    for name in (str(config.parent), "~/../moved"):
        assert tree.load(OSTLER_HOME=name).config.model == "there"


@pytest.mark.parametrize("variable", ["OSTLER_CONFIG", "AGENT_CONFIG_PATH"])
def test_explicit_file(tree: Any, variable: str) -> None:
    file = tree.write(tree.work / "x.json", '{"permission": {"bash": "allow"}, "mcp": {"s": {"command": ["s"]}}}')
    settings = tree.load(**{variable: "x.json"})
    assert settings.origin("mcp.s") == SettingOrigin("explicit", str(file), 1)
    assert [rule.action for rule in settings.rules()] == ["allow"]
    assert find_config_files(tree.work, {**tree.env, variable: "x.json"}) == [file]
    with pytest.raises(UsageError, match=f"does not exist; change or unset .{variable}"):
        tree.load(**{variable: "gone.json"})


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (b'{"a": 1,\n  "b" 2}', ":2:7: "),
        (b'{"a": "\xff"}', ":1:8: "),
        (b"[" * 100_000, ":1:65: "),
        (b'{"a": ' + b"9" * 1_000_000 + b"}", ":1:7: "),
        (b'{"limits": {"steps": "x"}}', ":1:22: "),
        (b'{"a": 1, "a": 2}', ":1:10: "),
        (b"[]", ":1:1: "),
    ],
)
@pytest.mark.parametrize("source", ["global", "project", "eidolon"])
def test_broken_file_error_is_one_sentence_with_position(tree: Any, source: str, text: bytes, position: str) -> None:
    file = {
        "global": tree.home / "config.json",
        "project": tree.work / ".ostler" / "config.json",
        "eidolon": tree.work / ".eidolon.json",
    }[source]
    if source == "eidolon" and b"limits" in text:
        text = text.replace(b"limits", b"models").replace(b"steps", b"activ").replace(b'"x"', b"333")
        text = text.replace(b'"activ":', b'"active":').replace(b" 333", b"333")
    tree.write(file, text)
    with pytest.raises(UsageError) as caught:
        tree.load()
    assert str(caught.value).startswith(f"{file}{position}")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_error_has_number_of_further_errors(tree: Any) -> None:
    tree.user('{"limits": {"steps": "x", "cost": "y", "tokens": "z"}}')
    with pytest.raises(UsageError, match="2 more: run `ostler config check`"):
        tree.load()


def test_unknown_keys_are_warnings(tree: Any) -> None:
    file = tree.user('{\n  "modle": "x", "model": "m"}')
    settings = tree.load()
    assert settings.config.model == "m"
    (problem,) = settings.problems
    assert (problem.file, problem.line, problem.column, problem.key) == (str(file), 2, 3, "modle")
    assert (problem.severity, "did you mean" in problem.message) == ("warning", True)


@pytest.mark.req("MD-2")
def test_only_models_are_read_from_eidolon_files(tree: Any) -> None:
    tree.write(
        tree.user_home / ".eidolon.json",
        '{"mcp": {"x": {"command": ["x"]}}, "whatever": 1, "permission": "allow", "models": {"active": "p", '
        '"profiles": [{"name": "p", "maxInputChars": 20000, "model": "m"}]}}',
    )
    settings = tree.load()
    assert (settings.config.models.active, settings.config.mcp, settings.rules()) == ("p", {}, [])
    assert settings.problems == ()


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/nonexistent/x"}])
def test_missing_home_adds_a_note(tree: Any, env: dict[str, str]) -> None:
    tree.project('{"ui": {"theme": "t"}}')
    settings = load(tree.work, env)
    assert settings.config.ui.theme == "t"
    assert bool(settings.notes) == (env.get("HOME", "") != "/nonexistent/x")


def test_home_that_is_a_file(tree: Any) -> None:
    tree.home.rmdir()
    tree.home.write_text("not a folder")
    assert "not an accessible directory" in tree.load().notes[0]
    assert find_config_files(tree.work, tree.env) == []


def test_home_without_access(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.user('{"model": "m"}')
    original_lstat = Path.lstat

    def deny(path: Path) -> os.stat_result:
        if path.parent == tree.home:
            raise PermissionError(13, "Permission denied")
        return original_lstat(path)

    monkeypatch.setattr(Path, "lstat", deny)
    settings = tree.load()
    assert (settings.config.model, len(settings.notes)) == (None, 1)


def test_project_folder_without_access_is_an_error(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original_lstat = Path.lstat

    def deny(path: Path) -> os.stat_result:
        if path.parent == tree.work / ".ostler":
            raise PermissionError(13, "Permission denied")
        return original_lstat(path)

    monkeypatch.setattr(Path, "lstat", deny)
    with pytest.raises(UsageError, match="cannot be read: permission denied"):
        tree.load()


def test_a_placeholder_of_the_sandbox_counts_as_a_missing_file(tmp_path: Path) -> None:
    from ostler.processes.placeholders import Placeholders

    path = tmp_path / ".mcp.json"
    placeholders = Placeholders([str(path)])  # as another session in the same folder makes it
    try:
        assert path.is_dir()
        assert read_bytes(path) is None
    finally:
        placeholders.close()
    path.mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        read_bytes(path)


def test_config_must_be_a_regular_file(tree: Any) -> None:
    path = tree.work / ".ostler" / "config.json"
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(UsageError, match="not a regular file"):
        tree.load()
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        tree.load()
    path.rmdir()
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="not a regular file"):
        tree.load()
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(UsageError, match="cannot be read"):
        tree.load()
    path.unlink()
    path.symlink_to("nowhere")
    assert tree.load().layers == ()


def test_too_large_file_is_an_error(tree: Any) -> None:
    with open(tree.user(""), "wb") as file:
        file.truncate(5 * 1024 * 1024)
    with pytest.raises(UsageError, match="larger than 1048576 bytes"):
        tree.load()


def test_in_the_home_directory_the_file_is_read_once_as_global(tree: Any) -> None:
    tree.user('{"permission": {"bash": "allow"}, "instructions": ["a"]}')
    tree.write(tree.user_home / ".eidolon.json", '{"model": "m"}')
    settings = load(tree.user_home, tree.env)
    assert [(layer.name, Path(layer.file).name) for layer in settings.layers] == [
        ("global", ".eidolon.json"),
        ("global", "config.json"),
    ]
    assert len(settings.rules()) == 1
    assert settings.pending_trust == ()


def test_project_folder_linked_to_the_home_is_global(tree: Any) -> None:
    tree.user('{"permission": {"bash": "allow"}}')
    (tree.work / ".ostler").symlink_to(tree.home)
    assert [layer.name for layer in tree.load().layers] == ["global"]


def test_origins(tree: Any) -> None:
    user = tree.user(
        '{\n "models": {\n  "profiles": [\n   {"name": "a.b",\n    "model": "m"}]},\n "provider": {"x": {}}}'
    )
    settings: Settings = tree.load()
    assert settings.origin("limits.steps") == SettingOrigin("default")
    assert settings.origin("models.profiles[0].model") == SettingOrigin("global", str(user), 5)
    assert settings.origin(("models", "profiles", "a.b", "model")) == SettingOrigin("global", str(user), 5)
    assert settings.origin("providers.x") == SettingOrigin("global", str(user), 6)
    assert settings.origin("models.profiles[7]") == SettingOrigin("default")
    assert str(settings.origin("models")) == f"{user}:2"


def test_null_unsets_a_value_of_an_earlier_layer(tree: Any) -> None:
    tree.user('{"model": "m", "limits": {"cost": 1}}')
    tree.project('{"model": null, "limits": {"cost": null}}')
    config = tree.load(trusted=True).config
    assert (config.model, config.limits.cost) == (None, None)
