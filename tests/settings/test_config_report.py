"""The output of `ostler config`: the effective config with origins, the schema, and all problems."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.stored_examples import rewrite

from ostler.settings.config_report import check_files, format_settings
from ostler.settings.json_schema import json_schema
from ostler.settings.jsonc_parser import JsoncDocument
from ostler.settings.model_profiles import active_profile
from ostler.settings.validate import validate

pytestmark = pytest.mark.req("DX-4")

DATA = Path(__file__).parent.parent / "data" / "settings"
EXAMPLES = ["full.jsonc", "opencode.json", "legacy.json", "offline.jsonc"]


def example(name: str) -> dict[str, Any]:
    value = JsoncDocument(name, (DATA / name).read_text()).value
    assert isinstance(value, dict)
    return value


def write_example(tree: Any) -> None:
    tree.user(
        """{
  "models": {
    "active": "main",
    "profiles": [{"name": "main", "baseUrl": "https://u:p@x/v1", "apiKey": "sk-live"},
                 {"name": "ref", "apiKey": "{env:KEY}"}]
  },
  "provider": {"named": {"options": {"apiKey": "sk-live"}}},
  "permission": {"*": "ask", "bash": {"git *": "allow"}},
  "agent": {"plan": {"prompt": "plan\\nfirst", "permission": {"edit": "deny"}}},
  "limits": {"steps": 40}
}"""
    )
    tree.project(
        '{\n  "permission": {"bash": "deny"},\n  "limits": {"cost": 1.5},\n  "mcp": {"x": {"command": ["x"]}}\n}'
    )


@pytest.mark.parametrize("origin", [False, True])
def test_shown_config_matches_golden_file(tree: Any, origin: bool) -> None:
    write_example(tree)
    text = format_settings(tree.load(OSTLER_MAX_STEPS="7"), with_origin=origin)
    text = text.replace(str(tree.user_home), "~").replace(str(tree.work), ".")
    golden = DATA / ("show_origin.jsonc" if origin else "show.jsonc")
    rewrite(golden, text)
    assert text == golden.read_text()


def test_shown_config_can_be_parsed_again(tree: Any) -> None:
    write_example(tree)
    settings = tree.load()
    value = JsoncDocument("f", format_settings(settings, with_origin=True)).value
    assert value == JsoncDocument("f", format_settings(settings)).value == json.loads(format_settings(settings))
    rules = value.pop("permission")
    assert rules == [["*", "*", "ask"], ["bash", "git *", "allow"]]
    assert value.pop("permission_of_untrusted_project") == [["bash", "*", "deny"]]
    for agent in value["agent"].values():
        assert agent.pop("permission") == [["edit", "*", "deny"]]
    assert validate(value).violations == ()


def test_shown_text_has_no_control_characters(tree: Any) -> None:
    tree.user(json.dumps({"ui": {"theme": "\x1b]0;x\x07\u202e中文"}, "agent": {"a\x9b": {"prompt": "\u2028"}}}))
    text = format_settings(tree.load(), with_origin=True)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "中文" in text
    assert json.loads(format_settings(tree.load()))["ui"]["theme"] == "\x1b]0;x\x07\u202e中文"


def test_schema_is_valid() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == json.loads(json.dumps(json_schema()))
    assert schema["properties"]["permission"]["description"].startswith("Permission rules")
    assert "***" not in json.dumps(schema)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_valid_for_ostler_and_the_schema(tree: Any, name: str) -> None:
    value = example(name)
    assert list(Draft202012Validator(json_schema()).iter_errors(value)) == []
    assert check_files([DATA / name]) == []
    tree.write(tree.home / f"config{Path(name).suffix}", (DATA / name).read_bytes())
    settings = tree.load()
    assert settings.problems == ()
    profile = active_profile(settings, dict.fromkeys(("LOCAL_KEY", "OPENAI_API_KEY", "SILICONFLOW_TOKEN"), "k"))
    assert profile and profile.model and profile.base_url


def test_full_example_has_every_key_of_every_section() -> None:
    schema = json_schema()
    value = example("full.jsonc")
    for key, section in schema["properties"].items():
        name = section.get("$ref", "").rpartition("/")[2]
        if name and key != "provider":
            known = {k for k, s in schema["$defs"][name]["properties"].items() if not s.get("deprecated")}
            assert known - set(value[key]) <= {"host", "port", "path", "project", "agent_profile"}, key
    assert set(value) == set(schema["properties"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"modle": "x"},
        {"limits": {"steps": 0}},
        {"limits": {"steps": "1"}},
        {"permission": {"bash": "maybe"}},
        {"permission": {"bash": {"x": True}}},
        {"models": {"profiles": [{"model": "x"}]}},
        {"models": {"profiles": [{"name": "x", "apiKind": "y"}]}},
        {"mcp": {"x": {"command": "x"}}},
        {"hooks": {"turn_end": [{"command": []}]}},
        {"provider": 3},
        {"provider": {"base_url": 3}},
        {"provider": {"x": {"options": {"apiKey": 3}}}},
        {"agent_servers": {"x": {}}},
        {"compaction": {"threshold": 1.1}},
        {"ui": {"arcade": "tetris"}},
        [],
    ],
)
def test_schema_and_ostler_reject_the_same_configs(wrong: Any) -> None:
    assert not Draft202012Validator(json_schema()).is_valid(wrong)
    assert validate(wrong).violations


def test_check_finds_all_problems_in_all_files(tree: Any) -> None:
    first = tree.write(tree.work / "one.json", '{"modle": 1,\n "limits": {"steps": "x", "stpes": 1}}')
    second = tree.write(tree.work / "two.json", '{"a" 1}')
    third = tree.write(tree.work / "three.json", b"\xff")
    found = [
        (p.file, p.line, p.column, p.key, p.severity)
        for p in check_files([first, second, third, tree.work / "four.json"])
    ]
    assert found == [
        (str(first), 1, 2, "modle", "error"),
        (str(first), 2, 22, "limits.steps", "error"),
        (str(first), 2, 27, "limits.stpes", "error"),
        (str(second), 1, 6, "", "error"),
        (str(third), 1, 1, "", "error"),
        (str(tree.work / "four.json"), 0, 0, "", "error"),
    ]
    assert [str(p) for p in check_files([second])] == [f"{second}:1:6: expected a colon after the key 'a'"]


@pytest.mark.parametrize("key", ["frontend", "face"])
def test_current_and_former_name_of_a_key_are_accepted(tree: Any, key: str) -> None:
    file = tree.user(json.dumps({"ui": {key: "tui"}}))
    assert check_files([file]) == []
    assert Draft202012Validator(json_schema()).is_valid({"ui": {key: "tui"}})
    settings = tree.load()
    assert (settings.config.ui.frontend, settings.problems) == ("tui", ())
    assert settings.origin("ui.frontend").file == str(file)


def test_current_name_of_a_key_wins(tree: Any) -> None:
    file = tree.user('{"ui": {"frontend": "chat", "face": "tui"}}')
    assert check_files([file]) == []
    assert tree.load().config.ui.frontend == "chat"


def test_schema_marks_the_former_name_of_a_key_as_deprecated() -> None:
    keys = json_schema()["$defs"]["UiConfig"]["properties"]
    assert ("deprecated" in keys["frontend"], keys["face"]["deprecated"]) == (False, True)


def test_schema_matches_golden_file(tree: Any) -> None:
    """The schema is public, so a change of it must be visible in review."""
    text = json.dumps(json_schema(), indent=1) + "\n"
    golden = DATA / "config.schema.json"
    rewrite(golden, text)
    assert text == golden.read_text()
