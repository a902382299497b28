"""All problems of a file at once, each with its key, its place and the nearest key there is."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect as types

from ostler.settings.json_schema import field_descriptions
from ostler.settings.jsonc_document import JsoncDocument
from ostler.settings.layers import Layer
from ostler.settings.schema import Config, ConfigFile
from ostler.settings.schema_models import ConfigSection
from ostler.settings.secret import decode_secret
from ostler.settings.validate import validate

pytestmark = pytest.mark.req("DX-4")


def problems(text: str, *, strict: bool = False) -> list[str]:
    document = JsoncDocument("f", text)
    return [
        f"{p.line}:{p.column} {p.key} {p.message} ({p.severity})"
        for p in Layer("global", "f", validate(document.value), document).problems(strict=strict)
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"provder": {}}', '1:2 provder is not a key that Ostler knows; did you mean "provider"? (warning)'),
        (
            '{"limits": {"setps": 1}}',
            '1:13 limits.setps is not a key that Ostler knows; did you mean "steps"? (warning)',
        ),
        ('{"zzzzzzzzzzzz": 1}', "1:2 zzzzzzzzzzzz is not a key that Ostler knows (warning)"),
        (
            '{"models": {"profiles": [{"name": "a", "apikey": 1}]}}',
            '1:40 models.profiles[0].apikey is not a key that Ostler knows; did you mean "apiKey"? (warning)',
        ),
        ('{"limits": {"steps": "ten"}}', "1:22 limits.steps must be a whole number from 1, not text (error)"),
        ('{"limits": {"steps": true}}', "1:22 limits.steps must be a whole number from 1, not true or false (error)"),
        ('{"limits": {"steps": 1.5}}', "1:22 limits.steps must be a whole number from 1, not a fraction (error)"),
        ('{"limits": {"steps": 0}}', "1:22 limits.steps must be a whole number from 1 (error)"),
        ('{"limits": {"steps": null}}', "1:22 limits.steps must be a whole number from 1, not null (error)"),
        ('{"limits": []}', "1:12 limits must be an object, not an array (error)"),
        ('{"compaction": {"threshold": 2}}', "1:30 compaction.threshold must be a number above 0 and up to 1 (error)"),
        (
            '{"provider": {"apiKind": "openia"}}',
            '1:26 provider.apiKind must be "anthropic" or "openai", not "openia"; did you mean "openai"? (error)',
        ),
        ('{"models": {"profiles": [{"model": "a"}]}}', '1:26 models.profiles[0] needs "name" (error)'),
        (
            '{"models": {"profiles": [{"name": "a"}, {"name": "a"}]}}',
            '1:41 models.profiles[1] has the name of a profile above, "a"; rename one of them (error)',
        ),
        (
            '{"permission": {"bash": {"git *": "alow"}}}',
            '1:35 permission.bash.git * must be "allow", "ask" or "deny", not "alow"; did you mean "allow"? (error)',
        ),
        (
            '{"permission": {"bash": 3}}',
            '1:25 permission.bash must be "allow", "ask", "deny" or an object, not a number (error)',
        ),
        (
            '{"permission": ["bash"]}',
            '1:16 permission must be "allow", "ask", "deny" or an object, not an array (error)',
        ),
        ('{"agent": {"x": {"tools": 3}}}', "1:27 agent.x.tools must be an object or an array, not a number (error)"),
        ('{"mcp": {"x": {"command": "run it"}}}', "1:27 mcp.x.command must be an array, not text (error)"),
        ('{"mcp": {"x": {"command": ["a", 1]}}}', "1:33 mcp.x.command[1] must be text, not a number (error)"),
        (
            '{"hooks": {"turn_end": [{"command": []}]}}',
            "1:37 hooks.turn_end[0].command must be an array that is not empty (error)",
        ),
        ('{"provider": {"base_url": 1}}', "1:27 provider.base_url must be text, not a number (error)"),
        ('{"provider": 3}', "1:14 provider must be an object, not a number (error)"),
        (
            '{"provider": {"x": {"options": {"baseUrll": "u"}}}}',
            '1:33 provider.x.options.baseUrll is not a key that Ostler knows; did you mean "baseURL"? (warning)',
        ),
        (
            '{"model": {"baseurl": "x"}}',
            '1:12 model.baseurl is not a key that Ostler knows; did you mean "baseURL"? (warning)',
        ),
        ('{"model": 3}', "1:11 model must be text, not a number (error)"),
        (
            '{"models": {"profiles": [{"name": "a", "apiKey": "x", "api_key": "y"}]}}',
            '1:66 models.profiles[0].api_key says again what "apiKey" says; remove one of them (error)',
        ),
        ("[]", "1:1  the config must be an object, not an array (error)"),
        (
            '{"security": {"sandbox": "on"}}',
            '1:26 security.sandbox must be "off", "prefer" or "require", not "on" (error)',
        ),
        (
            '{"security": {"blacklist_patterns": ["rm", "*deploy*"]}}',
            "1:44 security.blacklist_patterns[1] is not a regular expression (nothing to repeat at position 0);"
            " write .* for any text (error)",
        ),
        (
            '{"security": {"danger_patterns": ["publish("]}}',
            "1:35 security.danger_patterns[0] is not a regular expression (missing ), unterminated subpattern at"
            " position 7); write .* for any text (error)",
        ),
        ('{"\\u001b[31m": 1}', '1:2 ["\\u001b[31m"] is not a key that Ostler knows (warning)'),
    ],
)
def test_problem(text: str, said: str) -> None:
    assert problems(text) == [said]


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    text = """{
  "modle": "x",
  "limits": {"steps": "many", "cost": -1},
  "ui": {"bell": "yes", "colour": 1}
}"""
    assert [line.partition(" ")[0] for line in problems(text)] == ["2:3", "3:23", "3:39", "4:18", "4:25"]
    assert all(line.endswith("(error)") for line in problems(text, strict=True))


def test_a_secret_of_the_wrong_type_is_not_repeated() -> None:
    assert "hunter2" not in str(problems('{"models": {"profiles": [{"name": "a", "apiKey": ["hunter2"]}]}}'))


def test_schema_key_is_allowed() -> None:
    assert problems('{"$schema": "https://x/y.json"}') == []


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ({"security": {"mode": "paranoid"}}, {"security": {"profile": "paranoid"}}),
        ({"agent": {"a": {"model_override": "m", "steps": 3}}}, {"agent": {"a": {"model": "m", "max_steps": 3}}}),
        (
            {"mcp": {"a": {"env": {"X": "1"}, "timeout": 5}}},
            {"mcp": {"a": {"environment": {"X": "1"}, "timeout_ms": 5}}},
        ),
        ({"provider": "openai"}, {"provider": {"name": "openai"}}),
        ({"model": {"provider": "p", "baseUrl": "u"}}, {"provider": {"name": "p", "base_url": "u"}}),
        (
            {"provider": {"baseURL": "u", "x": {"name": "X"}}},
            {"provider": {"base_url": "u"}, "providers": {"x": {"name": "X"}}},
        ),
        ({"hooks": {"tool.execute.before": []}}, {"hooks": {"before_tool": []}}),
    ],
)
def test_other_spellings_become_ours(text: dict[str, object], ours: dict[str, object]) -> None:
    checked = validate(text)
    assert (checked.value, checked.violations) == (ours, ())


def test_a_path_of_ours_leads_back_to_the_file() -> None:
    document = JsoncDocument("f", '{"model": {"apiKey": "k"},\n "provider_": 1,\n "security": {"mode": "paranoid"}}')
    layer = Layer("global", "f", validate(document.value), document)
    assert layer.origin(("provider", "api_key")).line == 1
    assert layer.origin(("security", "profile")).line == 3
    assert layer.validated.original_path(("provider", "api_key")) == ("model", "apiKey")


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        {f"limit{n}": 1 for n in range(60_000)},
        {"models": {"profiles": [{"name": str(n), "apiKind": "openia"} for n in range(10_000)]}},
        {"permission": {f"k{n}": "alow" for n in range(30_000)}},
    ],
)
def test_a_file_full_of_mistakes_costs_linear_time(value: dict[str, Any]) -> None:
    started = time.process_time()
    checked = validate(value)
    assert checked.violations
    assert time.process_time() - started < 5


def sections(kind: type[ConfigSection] = ConfigSection) -> list[type[ConfigSection]]:
    return [kind, *(inner for sub in kind.__subclasses__() for inner in sections(sub))]


@pytest.mark.parametrize("section", sections(), ids=lambda kind: kind.__name__)
def test_every_key_is_described_and_every_alias_leads_somewhere(section: type[ConfigSection]) -> None:
    names = set(section.__struct_encode_fields__)
    if section.__name__ not in ("CommonConfig", "Config"):
        assert names <= set(field_descriptions(section))
    assert set(section.aliases.values()) <= names
    assert not set(section.aliases) & names


def test_the_keys_of_the_requirements_are_all_there() -> None:
    keys = (
        "provider model models permission security agent mcp compaction instructions skills hooks validation limits "
        "session logs cache ui connection context server agent_servers mcp_servers $schema"
    )
    assert set(keys.split()) == set(ConfigFile.__struct_encode_fields__)


def values(kind: types.Type) -> st.SearchStrategy[object]:
    """Values for a type of the schema: mostly right, sometimes not."""
    junk = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}, ["x"], {"x": 1}])
    right: st.SearchStrategy[object]
    match kind:
        case types.StructType():
            members = {field.encode_name: values(field.type) for field in kind.fields}
            right = st.fixed_dictionaries({}, optional=dict(list(members.items())[:8]))
        case types.DictType():
            right = st.dictionaries(st.sampled_from("abc"), values(kind.value_type), max_size=2)
        case types.VarTupleType():
            right = st.lists(values(kind.item_type), max_size=2)
        case types.UnionType():
            right = st.one_of([values(option) for option in kind.types])
        case types.LiteralType():
            right = st.sampled_from(kind.values)
        case _:
            right = st.sampled_from([1, 2, 0.5, "x", True])
    return st.one_of(right, right, right, right, junk)


@settings(max_examples=150, deadline=None)
@given(value=values(types.type_info(ConfigFile)))
def test_what_has_no_flaws_can_be_used_and_the_rest_has_flaws(value: object) -> None:
    checked = validate(value)
    if any(not flaw.unknown_key for flaw in checked.violations):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, ConfigFile, dec_hook=decode_secret)
    else:
        usable = {key: inner for key, inner in checked.value.items() if key not in ("permission", "$schema", "agent")}
        assert isinstance(msgspec.convert(usable, Config, dec_hook=decode_secret), Config)
