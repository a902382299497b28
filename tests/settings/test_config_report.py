"""What `ostler config` shows: the effective config with its origins, the schema, and all that is to mend."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ostler.settings.config_report import check_files, format_settings
from ostler.settings.json_schema import json_schema
from ostler.settings.jsonc_document import JsoncDocument
from ostler.settings.model_profiles import active_profile
from ostler.settings.validate import validate

pytestmark = pytest.mark.req("DX-4")

DATA = Path(__file__).parent.parent / "data" / "settings"
EXAMPLES = ["full.jsonc", "opencode.json", "legacy.json", "offline.jsonc"]


def example(name: str) -> dict[str, Any]:
    value = JsoncDocument(name, (DATA / name).read_text()).value
    assert isinstance(value, dict)
    return value


def scene(tree: Any) -> None:
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
def test_show_golden(tree: Any, origin: bool) -> None:
    scene(tree)
    text = format_settings(tree.load(OSTLER_MAX_STEPS="7"), with_origin=origin)
    text = text.replace(str(tree.person), "~").replace(str(tree.work), ".")
    golden = DATA / ("show_origin.jsonc" if origin else "show.jsonc")
    if os.environ.get("OSTLER_WRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_what_is_shown_can_be_read_again(tree: Any) -> None:
    scene(tree)
    settings = tree.load()
    shown = JsoncDocument("f", format_settings(settings, with_origin=True)).value
    assert shown == JsoncDocument("f", format_settings(settings)).value == json.loads(format_settings(settings))
    rules = shown.pop("permission")
    assert rules == [["*", "*", "ask"], ["bash", "git *", "allow"]]
    assert shown.pop("permission_of_untrusted_project") == [["bash", "*", "deny"]]
    for agent in shown["agent"].values():
        assert agent.pop("permission") == [["edit", "*", "deny"]]
    assert validate(shown).violations == ()


def test_shown_text_gives_a_terminal_nothing_to_obey(tree: Any) -> None:
    tree.user(json.dumps({"ui": {"theme": "\x1b]0;x\x07\u202e中文"}, "agent": {"a\x9b": {"prompt": "\u2028"}}}))
    text = format_settings(tree.load(), with_origin=True)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "中文" in text
    assert json.loads(format_settings(tree.load()))["ui"]["theme"] == "\x1b]0;x\x07\u202e中文"


def test_schema_is_a_schema() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == json.loads(json.dumps(json_schema()))
    assert schema["properties"]["permission"]["description"].startswith("what may happen")
    assert "***" not in json.dumps(schema)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_right_for_us_and_for_editors(tree: Any, name: str) -> None:
    value = example(name)
    assert list(Draft202012Validator(json_schema()).iter_errors(value)) == []
    assert check_files([DATA / name]) == []
    tree.write(tree.home / f"config{Path(name).suffix}", (DATA / name).read_bytes())
    settings = tree.load()
    assert settings.problems == ()
    profile = active_profile(settings, dict.fromkeys(("LOCAL_KEY", "OPENAI_API_KEY", "SILICONFLOW_TOKEN"), "k"))
    assert profile and profile.model and profile.base_url


def test_the_full_example_has_every_key_of_every_section() -> None:
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
def test_editors_and_we_find_the_same_things_wrong(wrong: Any) -> None:
    assert not Draft202012Validator(json_schema()).is_valid(wrong)
    assert validate(wrong).violations


def test_check_finds_all_in_all_files(tree: Any) -> None:
    one = tree.write(tree.work / "one.json", '{"modle": 1,\n "limits": {"steps": "x", "stpes": 1}}')
    two = tree.write(tree.work / "two.json", '{"a" 1}')
    three = tree.write(tree.work / "three.json", b"\xff")
    found = [
        (p.file, p.line, p.column, p.key, p.severity) for p in check_files([one, two, three, tree.work / "four.json"])
    ]
    assert found == [
        (str(one), 1, 2, "modle", "error"),
        (str(one), 2, 22, "limits.steps", "error"),
        (str(one), 2, 27, "limits.stpes", "error"),
        (str(two), 1, 6, "", "error"),
        (str(three), 1, 1, "", "error"),
        (str(tree.work / "four.json"), 0, 0, "", "error"),
    ]
    assert [str(p) for p in check_files([two])] == [f"{two}:1:6: expected a colon after the key 'a'"]


def test_the_golden_schema(tree: Any) -> None:
    """The schema is part of what people build on: a change of it is to be seen in review."""
    text = json.dumps(json_schema(), indent=1) + "\n"
    golden = DATA / "config.schema.json"
    if os.environ.get("OSTLER_WRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()
