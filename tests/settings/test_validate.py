"""All problems of a file are reported, each with its key, its position and the closest known key."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect as types
from tests.tiers import examples

from ostler.settings.json_schema import field_descriptions
from ostler.settings.jsonc_parser import JsoncDocument
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
    ("text", "problem"),
    [
        ('{"provder": {}}', '1:2 provder is not a known key; did you mean "provider"? (warning)'),
        (
            '{"limits": {"setps": 1}}',
            '1:13 limits.setps is not a known key; did you mean "steps"? (warning)',
        ),
        ('{"zzzzzzzzzzzz": 1}', "1:2 zzzzzzzzzzzz is not a known key (warning)"),
        (
            '{"models": {"profiles": [{"name": "a", "apikey": 1}]}}',
            '1:40 models.profiles[0].apikey is not a known key; did you mean "apiKey"? (warning)',
        ),
        ('{"limits": {"steps": "ten"}}', "1:22 limits.steps must be a whole number of at least 1, not text (error)"),
        (
            '{"limits": {"steps": true}}',
            "1:22 limits.steps must be a whole number of at least 1, not true or false (error)",
        ),
        (
            '{"limits": {"steps": 1.5}}',
            "1:22 limits.steps must be a whole number of at least 1, not a fraction (error)",
        ),
        ('{"limits": {"steps": 0}}', "1:22 limits.steps must be a whole number of at least 1 (error)"),
        ('{"limits": {"steps": null}}', "1:22 limits.steps must be a whole number of at least 1, not null (error)"),
        ('{"limits": []}', "1:12 limits must be an object, not an array (error)"),
        ('{"compaction": {"threshold": 2}}', "1:30 compaction.threshold must be a number above 0 and up to 1 (error)"),
        (
            '{"provider": {"apiKind": "openia"}}',
            '1:26 provider.apiKind must be "anthropic" or "openai", not "openia"; did you mean "openai"? (error)',
        ),
        ('{"models": {"profiles": [{"model": "a"}]}}', '1:26 models.profiles[0] needs "name" (error)'),
        (
            '{"models": {"profiles": [{"name": "a"}, {"name": "a"}]}}',
            '1:41 models.profiles[1] has the same name as a profile above, "a"; rename one of them (error)',
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
            '1:33 provider.x.options.baseUrll is not a known key; did you mean "baseURL"? (warning)',
        ),
        (
            '{"model": {"baseurl": "x"}}',
            '1:12 model.baseurl is not a known key; did you mean "baseURL"? (warning)',
        ),
        ('{"model": 3}', "1:11 model must be text, not a number (error)"),
        (
            '{"models": {"profiles": [{"name": "a", "apiKey": "x", "api_key": "y"}]}}',
            '1:66 models.profiles[0].api_key means the same as "apiKey"; remove one of them (error)',
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
        (
            '{"context": {"redact_patterns": ["id-[0-9]+", "(a)\\\\1"]}}',
            "1:47 context.redact_patterns[1] is not a regular expression in the syntax of RE2, which has no lookaheads"
            " and backreferences (error)",
        ),
        ('{"\\u001b[31m": 1}', '1:2 ["\\u001b[31m"] is not a known key (warning)'),
    ],
)
def test_problem(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_all_problems_are_reported_in_file_order() -> None:
    text = """{
  "modle": "x",
  "limits": {"steps": "many", "cost": -1},
  "ui": {"bell": "yes", "colour": 1}
}"""
    assert [line.partition(" ")[0] for line in problems(text)] == ["2:3", "3:23", "3:39", "4:18", "4:25"]
    assert all(line.endswith("(error)") for line in problems(text, strict=True))


def test_secret_of_wrong_type_is_not_shown() -> None:
    assert "hunter2" not in str(problems('{"models": {"profiles": [{"name": "a", "apiKey": ["hunter2"]}]}}'))


def test_schema_key_is_allowed() -> None:
    assert problems('{"$schema": "https://x/y.json"}') == []


@pytest.mark.parametrize(
    ("config", "canonical"),
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
        ({"ui": {"frontend": "tui"}}, {"ui": {"frontend": "tui"}}),
        ({"ui": {"face": "tui"}}, {"ui": {"frontend": "tui"}}),
        ({"ui": {"face": "tui", "frontend": "chat"}}, {"ui": {"frontend": "chat"}}),
        ({"ui": {"frontend": "chat", "face": "tui"}}, {"ui": {"frontend": "chat"}}),
    ],
)
def test_aliases_become_canonical_keys(config: dict[str, object], canonical: dict[str, object]) -> None:
    validated = validate(config)
    assert (validated.value, validated.violations) == (canonical, ())


def test_canonical_path_maps_to_the_path_in_the_file() -> None:
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
def test_file_full_of_mistakes_is_validated_in_linear_time(value: dict[str, Any]) -> None:
    started = time.process_time()
    validated = validate(value)
    assert validated.violations
    assert time.process_time() - started < 5


def sections(kind: type[ConfigSection] = ConfigSection) -> list[type[ConfigSection]]:
    return [kind, *(inner for sub in kind.__subclasses__() for inner in sections(sub))]


@pytest.mark.parametrize("section", sections(), ids=lambda kind: kind.__name__)
def test_every_key_has_a_description_and_aliases_are_valid(section: type[ConfigSection]) -> None:
    names = set(section.__struct_encode_fields__)
    if section.__name__ not in ("CommonConfig", "Config"):
        assert names <= set(field_descriptions(section))
    for aliases in (section.aliases, section.renamed):
        assert set(aliases.values()) <= names
        assert not set(aliases) & names


def test_all_required_keys_exist() -> None:
    keys = (
        "provider model models permission security agent mcp compaction instructions skills hooks validation limits "
        "session logs cache ui connection context server agent_servers mcp_servers $schema"
    )
    assert set(keys.split()) == set(ConfigFile.__struct_encode_fields__)


def values(kind: types.Type) -> st.SearchStrategy[object]:
    """Generate values for a schema type: mostly valid, sometimes invalid."""
    invalid = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}, ["x"], {"x": 1}])
    valid: st.SearchStrategy[object]
    match kind:
        case types.StructType():
            members = {field.encode_name: values(field.type) for field in kind.fields}
            valid = st.fixed_dictionaries({}, optional=dict(list(members.items())[:8]))
        case types.DictType():
            valid = st.dictionaries(st.sampled_from("abc"), values(kind.value_type), max_size=2)
        case types.VarTupleType():
            valid = st.lists(values(kind.item_type), max_size=2)
        case types.UnionType():
            valid = st.one_of([values(option) for option in kind.types])
        case types.LiteralType():
            valid = st.sampled_from(kind.values)
        case _:
            valid = st.sampled_from([1, 2, 0.5, "x", True])
    return st.one_of(valid, valid, valid, valid, invalid)


@examples(150)
@given(value=values(types.type_info(ConfigFile)))
def test_config_is_usable_exactly_if_it_has_no_errors(value: object) -> None:
    validated = validate(value)
    if any(not violation.unknown_key for violation in validated.violations):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, ConfigFile, dec_hook=decode_secret)
    else:
        usable = {key: inner for key, inner in validated.value.items() if key not in ("permission", "$schema", "agent")}
        assert isinstance(msgspec.convert(usable, Config, dec_hook=decode_secret), Config)
