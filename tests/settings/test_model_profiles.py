"""Choice of the model, its endpoint and its key."""

import json
from typing import Any

import pytest

from ostler.core.errors import UsageError
from ostler.settings.model_profiles import MODEL_KEY_VARIABLES, Profile, active_profile, profile_by_name

pytestmark = pytest.mark.req("MD-2", "MD-3")

PROFILES = {
    "profiles": [
        {"name": "a", "model": "m1", "baseUrl": "https://a.example/v1", "apiKey": "key-a", "context": 9, "price": {}},
        {"name": "b", "model": "m2", "provider": "anthropic", "dialect": "xnl", "fallback": ["a"]},
        {"name": "c", "model": "m3", "baseUrl": "http://c:1/v1/"},
    ]
}


def load_profile(tree: Any, config: dict[str, Any], env: dict[str, str] | None = None, **flags: str) -> Profile | None:
    tree.user(json.dumps(config))
    env = {**tree.env, **(env or {})}
    return active_profile(tree.load(**(env)), env, flags)


def require(profile: Profile | None) -> Profile:
    assert profile is not None
    return profile


def test_no_profile_without_config(tree: Any) -> None:
    assert load_profile(tree, {}) is None


@pytest.mark.parametrize(
    ("config", "flag", "expected"),
    [
        ({"models": {**PROFILES, "active": "a"}}, "", ("a", "m1", "https://a.example/v1")),
        ({"models": {**PROFILES, "active": "c"}}, "", ("c", "m3", "http://c:1/v1")),
        ({"models": {**PROFILES, "active": "b"}}, "", ("b", "m2", "https://api.anthropic.com")),
        ({"models": {**PROFILES, "active": "a"}}, "c", ("c", "m3", "http://c:1/v1")),
        ({"models": {**PROFILES, "active": "a"}}, "m3", ("c", "m3", "http://c:1/v1")),
        ({"models": {**PROFILES, "active": "a"}}, "new-id", ("a", "new-id", "https://a.example/v1")),
        ({"models": {**PROFILES, "active": "a"}}, "openai/gpt", ("a", "openai/gpt", "https://a.example/v1")),
        ({"models": PROFILES, "model": "c"}, "", ("c", "m3", "http://c:1/v1")),
        ({"models": {**PROFILES, "active": "a"}, "model": "c"}, "", ("c", "m3", "http://c:1/v1")),
        ({"models": {"profiles": PROFILES["profiles"][:1]}}, "", ("a", "m1", "https://a.example/v1")),
        ({"model": "openai/gpt-x"}, "", ("openai/gpt-x", "gpt-x", "https://api.openai.com/v1")),
        ({"model": "qwen"}, "", ("qwen", "qwen", "")),
        ({"provider": {"base_url": "http://v:8000/v1", "model": "q"}}, "", ("default", "q", "http://v:8000/v1")),
        ({"provider": {"base_url": "http://v/v1", "models": ["q", "r"]}}, "", ("default", "q", "http://v/v1")),
        ({"provider": {"base_url": "http://v/v1", "models": ["q", "r"]}}, "r", ("r", "r", "http://v/v1")),
        ({"provider": {"base_url": "http://v/v1"}, "model": "z"}, "", ("default", "z", "http://v/v1")),
        ({"provider": {"base_url": "http://v/v1"}}, "", ("default", "", "http://v/v1")),
        ({"provider": "ollama", "model": "z"}, "", ("default", "z", "http://localhost:11434/v1")),
        (
            {"model": {"provider": "siliconflow", "model": "m", "apiKey": "k", "baseUrl": "http://e/v1"}},
            "",
            ("default", "m", "http://e/v1"),
        ),
        (
            {"provider": {"loc": {"options": {"baseURL": "http://l/v1"}, "models": {"x": {}}}}, "model": "loc/x"},
            "",
            ("loc/x", "x", "http://l/v1"),
        ),
        ({"provider": {"loc": {"api": "http://l/v1", "models": {"x": {}}}}}, "", ("loc/x", "x", "http://l/v1")),
        ({"provider": {"loc": {"api": "http://l/v1"}}, "model": "loc/y/z"}, "", ("loc/y/z", "y/z", "http://l/v1")),
        ({"provider": {"openai": {"models": {"x": {}}}}}, "", ("openai/x", "x", "https://api.openai.com/v1")),
    ],
)
def test_chosen_model(tree: Any, config: dict[str, Any], flag: str, expected: tuple[str, str, str]) -> None:
    found = require(load_profile(tree, config, model=flag))
    assert (found.name, found.model, found.base_url) == expected


def test_project_overrides_user_with_either_key(tree: Any) -> None:
    tree.user(json.dumps({"model": "a", "models": PROFILES}))
    tree.project('{"models": {"active": "c"}}')
    assert require(active_profile(tree.load(), {})).name == "c"
    tree.user(json.dumps({"models": {**PROFILES, "active": "a"}}))
    tree.project('{"model": "c"}')
    assert require(active_profile(tree.load(), {})).name == "c"
    assert require(active_profile(tree.load(OSTLER_MODEL="b"), {})).name == "b"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"models": {**PROFILES, "active": "aa"}}, 'models.active is "aa", which is not a profile; did you mean "a"'),
        ({"models": {**PROFILES, "active": ""}}, "which is not a profile"),
        ({"models": PROFILES}, "several models are configured, but models.active is not set"),
        ({"models": {"active": "x"}}, "no profiles are configured"),
        ({"provider": {"l": {"api": "http://l", "models": {"x": {}, "y": {}}}}}, "several models are configured"),
    ],
)
def test_unknown_profile_error_lists_the_profiles(tree: Any, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile(tree, config)
    assert message in str(caught.value)
    for profile in config.get("models", {}).get("profiles", ()):
        assert f'"{profile["name"]}"' in str(caught.value)


def test_unknown_model_needs_a_valid_active_profile(tree: Any) -> None:
    with pytest.raises(UsageError, match="which is not a profile"):
        load_profile(tree, {"models": {**PROFILES, "active": "zz"}}, model="any")
    assert require(load_profile(tree, {"models": {**PROFILES, "active": "zz"}}, model="c")).name == "c"


def test_another_model_at_the_same_endpoint_has_unknown_limits(tree: Any) -> None:
    found = require(load_profile(tree, {"models": {**PROFILES, "active": "a"}}, model="else"))
    assert (found.context, found.price, found.key_from) == (None, None, "profile")
    assert require(load_profile(tree, {"models": {**PROFILES, "active": "a"}})).context == 9


ORDER = [
    ("flag", {}),
    ("OSTLER_API_KEY", {}),
    ("AGENT_API_KEY", {}),
    ("profile", {}),
    ("OPENAI_API_KEY", {}),
]
OTHER_VENDORS = ("SILICONFLOW_API_KEY", "SILICONFLOW_TOKEN", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY")


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("first", range(len(ORDER)))
def test_precedence_of_keys(tree: Any, first: int) -> None:
    """The first key that is not empty is used; the variables of other vendors are ignored."""
    names = [name for name, _ in ORDER]
    keys = {name: f"key-of-{name}" if number >= first else "" for number, name in enumerate(names)}
    profile = {"name": "p", "baseUrl": "https://api.openai.com/v1", "apiKey": keys.pop("profile")}
    found = require(
        load_profile(
            tree,
            {"models": {"profiles": [profile]}},
            env=keys | dict.fromkeys(OTHER_VENDORS, "other"),
            api_key=keys.pop("flag"),
        )
    )
    assert (found.key_from, found.key and found.key.reveal()) == (names[first], f"key-of-{names[first]}")


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://API.OPENAI.COM:443/v1", "OPENAI_API_KEY"),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
        ("https://api.siliconflow.cn/v1", "SILICONFLOW_TOKEN"),
        ("https://api.siliconflow.com/v1", "SILICONFLOW_TOKEN"),
        ("https://siliconflow.example/v1", ""),
        ("http://127.0.0.1:8000/v1", ""),
        ("http://api.openai.com/v1", ""),
        ("https://api.openai.com.evil.example/v1", ""),
        ("https://evil.example/api.openai.com", ""),
        ("https://api.openai.com@evil.example/v1", ""),
        ("http://localhost:8000/v1", ""),
    ],
)
def test_vendor_key_is_sent_only_to_that_vendor(tree: Any, url: str, variable: str) -> None:
    env = {name: name for name in MODEL_KEY_VARIABLES if name not in ("OSTLER_API_KEY", "AGENT_API_KEY")}
    env["SILICONFLOW_API_KEY"] = ""
    found = require(load_profile(tree, {"provider": {"base_url": url}}, env=env))
    assert (found.key_from, found.key.reveal() if found.key else "") == (variable, variable)
    other = {"provider": {"base_url": "https://api.openai.com/v1"}}
    found = require(load_profile(tree, other, env=env, base_url=url))
    assert (found.key_from, found.key.reveal() if found.key else "") == (variable, variable)


@pytest.mark.req("MD-3")
def test_variables_of_a_provider_are_not_sent_to_another_base_url(tree: Any) -> None:
    config = {
        "provider": {"p": {"env": ["P_KEY"], "options": {"baseURL": "https://p.example/v1"}, "models": {"m": {}}}}
    }
    env = {"P_KEY": "p"}
    assert require(load_profile(tree, config, env=env)).key_from == "P_KEY"
    assert require(load_profile(tree, config, env=env, base_url="http://127.0.0.1:1/v1")).key is None
    other = env | {"OSTLER_BASE_URL": "https://other.example/v1"}
    assert require(load_profile(tree, config, env=other)).key is None


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"baseUrl": "http://x"}, "openai"),
        ({"baseUrl": "http://x", "apiKind": "anthropic"}, "anthropic"),
        ({"provider": "anthropic"}, "anthropic"),
        ({"provider": "Anthropic"}, "anthropic"),
        ({"provider": "anthropic", "apiKind": "openai"}, "openai"),
        ({"baseUrl": "https://api.anthropic.com/v1"}, "anthropic"),
        ({"provider": "openai"}, "openai"),
    ],
)
@pytest.mark.req("MD-1")
def test_api_kind(tree: Any, config: dict[str, Any], kind: str) -> None:
    assert require(load_profile(tree, {"models": {"profiles": [{"name": "p", **config}]}})).api_kind == kind


@pytest.mark.req("MD-1")
def test_invalid_api_kind_error_has_position(tree: Any) -> None:
    with pytest.raises(UsageError, match=r'config.json:1:51: .*apiKind must be "anthropic" or "openai", not "opn"'):
        load_profile(tree, {"models": {"profiles": [{"name": "p", "apiKind": "opn"}]}})


def test_opencode_package_selects_the_api(tree: Any) -> None:
    provider = {
        "npm": "@ai-sdk/anthropic",
        "api": "http://x",
        "env": ["MY_KEY"],
        "models": {
            "m": {
                "limit": {"context": 100, "output": 10},
                "headers": {"H": "v"},
                "cost": {"input": 1, "output": 2, "cache_read": 0.1},
            }
        },
        "options": {"timeout": 5000, "headers": {"G": "w"}},
    }
    found = require(load_profile(tree, {"provider": {"p": provider}}, env={"MY_KEY": "mine"}))
    assert (found.api_kind, found.context, found.max_output_tokens, found.timeout) == ("anthropic", 100, 10, 5.0)
    assert (found.key_from, found.key and found.key.reveal()) == ("MY_KEY", "mine")
    assert {name: value.reveal() for name, value in found.headers.items()} == {"G": "w", "H": "v"}
    assert (found.price and (found.price.input, found.price.output, found.price.cached)) == (1, 2, 0.1)


@pytest.mark.parametrize(
    ("env", "flag", "url"),
    [
        ({"OSTLER_BASE_URL": "http://o"}, "", "http://o"),
        ({"AGENT_BASE_URL": "http://g"}, "", "http://g"),
        ({"OSTLER_BASE_URL": "http://o", "AGENT_BASE_URL": "http://g"}, "", "http://o"),
        ({"OSTLER_BASE_URL": "http://o"}, "http://f", "http://f"),
        ({}, "", "https://a.example/v1"),
    ],
)
def test_base_url_can_be_overridden(tree: Any, env: dict[str, str], flag: str, url: str) -> None:
    config = {"models": {**PROFILES, "active": "a"}}
    assert require(load_profile(tree, config, env=env, base_url=flag)).base_url == url
    if env:
        alone = require(load_profile(tree, {}, env={**env, "AGENT_MODEL": "m"}, base_url=flag))
        assert (alone.base_url, alone.model) == (url, "m")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://x",
        "http://",
        "http:///v1",
        "https://[::1",
        "http://a b/",
        "javascript:1",
        "htp://host/v1?key=planted",
    ],
)
def test_invalid_base_url(tree: Any, url: str) -> None:
    with pytest.raises(UsageError, match=r'config.json:1: "p" needs a baseUrl such as') as caught:
        load_profile(tree, {"models": {"profiles": [{"name": "p", "baseUrl": url}]}})
    assert "planted" not in str(caught.value)


def test_missing_base_url(tree: Any) -> None:
    with pytest.raises(UsageError, match=r'"p" needs a baseUrl: "acme" is not a known vendor'):
        load_profile(tree, {"models": {"profiles": [{"name": "p", "provider": "acme"}]}})
    with pytest.raises(UsageError, match=r'"p" needs a baseUrl$'):
        load_profile(tree, {"models": {"profiles": [{"name": "p"}]}})


def test_references(tree: Any) -> None:
    tree.write(tree.home / "key.txt", "from-file\n")
    tree.write(tree.user_home / "elsewhere", " from-home ")
    profile = {
        "name": "p",
        "baseUrl": "http://{env:H}:1/v1",
        "apiKey": "{file:key.txt}",
        "headers": {"A": "Bearer {env:T}", "B": "{file:~/elsewhere}", "D": "{odd:x} {}"},
        "proxy": "{env:P}",
    }
    found = require(
        load_profile(tree, {"models": {"profiles": [profile]}}, env={"H": "host", "T": "tok", "P": "http://pr"})
    )
    assert found.base_url == "http://host:1/v1"
    assert found.key and found.key.reveal() == "from-file"
    assert {name: value.reveal() for name, value in found.headers.items()} == {
        "A": "Bearer tok",
        "B": "from-home",
        "D": "{odd:x} {}",
    }
    assert found.proxy and found.proxy.reveal() == "http://pr"


def test_unset_key_variable_falls_back_to_the_next_key(tree: Any) -> None:
    config = {"provider": {"base_url": "https://api.openai.com/v1", "api_key": "{env:UNSET}"}}
    assert require(load_profile(tree, config, env={"OPENAI_API_KEY": "k"})).key_from == "OPENAI_API_KEY"
    with pytest.raises(UsageError, match="apiKey needs the variable UNSET"):
        load_profile(tree, config)


@pytest.mark.req("MD-3")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"apiKey": "{env:MY_KEY}"}, "apiKey"),
        ({"apiKey": "Bearer {env: MY_KEY }"}, "apiKey"),
        ({"headers": {"A": "x", "X-Key": "{env:MY_KEY}"}}, "headers"),
        ({"proxy": "http://me:{env:MY_KEY}@proxy:1"}, "proxy"),
        ({"baseUrl": "http://x/v1?key={env:MY_KEY}"}, "baseUrl"),
    ],
)
def test_unset_variable_error_names_profile_and_file(tree: Any, fields: Any, field: str) -> None:
    config = {"models": {"active": "p", "profiles": [{"name": "p", "baseUrl": "http://x"} | fields]}}
    for env in ({}, {"MY_KEY": ""}):
        with pytest.raises(UsageError) as caught:
            load_profile(tree, config, env=env)
        assert f'config.json:1: "p" {field} needs the variable MY_KEY, which is not set' in str(caught.value)
    assert require(load_profile(tree, config, env={"MY_KEY": "k"})).name == "p"


@pytest.mark.req("MD-3")
def test_only_the_active_profile_needs_its_variables(tree: Any) -> None:
    profiles = [{"name": "p", "baseUrl": "http://x"}, {"name": "q", "baseUrl": "http://x", "apiKey": "{env:UNSET}"}]
    config = {"models": {"profiles": profiles, "active": "p"}}
    assert require(load_profile(tree, config)).name == "p"
    assert require(load_profile(tree, config, env={"OSTLER_API_KEY": "k"}, model="q")).key_from == "OSTLER_API_KEY"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "does not exist"),
        (lambda file: file.write_bytes(b"\xff"), "not UTF-8"),
        (lambda file: file.write_text("a\nb"), "line break"),
        (lambda file: file.mkdir(), "not a regular file"),
        (lambda file: file.write_text("x" * 70_000), "larger than"),
    ],
)
def test_unusable_file_reference_is_an_error(tree: Any, make: Any, message: str) -> None:
    make(tree.home / "k")
    with pytest.raises(UsageError) as caught:
        load_profile(tree, {"models": {"profiles": [{"name": "p", "baseUrl": "http://x", "apiKey": "{file:k}"}]}})
    assert message in str(caught.value)
    assert "xxxx" not in str(caught.value)


def test_only_the_active_profile_is_resolved(tree: Any) -> None:
    profiles = [{"name": "p", "baseUrl": "http://x"}, {"name": "q", "baseUrl": "http://x", "apiKey": "{file:gone}"}]
    assert require(load_profile(tree, {"models": {"profiles": profiles, "active": "p"}})).name == "p"
    assert (
        require(load_profile(tree, {"models": {"profiles": profiles, "active": "q"}}, api_key="k")).key_from == "flag"
    )


def test_relative_file_reference_starts_at_its_config_file(tree: Any) -> None:
    tree.write(tree.home / "k", "global")
    tree.write(tree.work / ".ostler" / "k", "project")
    tree.user('{"provider": {"base_url": "http://x", "api_key": "{file:k}"}}')
    tree.project('{"provider": {"model": "m"}}')
    found = require(active_profile(tree.load(trusted=True), {}))
    assert found.key and (found.key.reveal(), found.model) == ("global", "m")


@pytest.mark.req("PM-8")
def test_untrusted_project_gets_no_key_and_no_file(tree: Any) -> None:
    tree.user(json.dumps({"models": {**PROFILES, "active": "a"}}))
    tree.project(
        json.dumps(
            {
                "model": "openrouter/x",
                "models": {
                    "active": "evil",
                    "profiles": [{"name": "evil", "baseUrl": "http://evil", "apiKey": "{env:K}"}],
                },
                "provider": {"base_url": "http://evil", "headers": {"X": "{file:~/.ssh/id}"}},
            }
        )
    )
    found = require(active_profile(tree.load(), {"K": "secret", "OSTLER_API_KEY": "mine"}))
    assert (found.name, found.base_url, found.model) == ("a", "https://a.example/v1", "m1")


@pytest.mark.parametrize("key", ["a\nb", "a\rX-Evil: 1", "a\x00b"])
def test_key_with_line_break_is_rejected_without_showing_it(tree: Any, key: str) -> None:
    with pytest.raises(UsageError, match="key from OSTLER_API_KEY contains a line break") as caught:
        load_profile(tree, {"provider": {"base_url": "http://x"}}, env={"OSTLER_API_KEY": key})
    assert "Evil" not in str(caught.value)
    assert require(load_profile(tree, {"provider": {"base_url": "http://x"}}, env={"OSTLER_API_KEY": " k\n"})).key_from


def test_named_profiles_use_only_their_own_keys(tree: Any) -> None:
    tree.user(json.dumps({"models": {**PROFILES, "active": "a"}}))
    env = {"OSTLER_API_KEY": "o", "ANTHROPIC_API_KEY": "n", "DASHSCOPE_API_KEY": "d"}
    settings = tree.load()
    assert [profile_by_name(settings, env, name).key_from for name in ("a", "b", "c")] == [
        "profile",
        "ANTHROPIC_API_KEY",
        "",
    ]
    assert profile_by_name(settings, env, "b").fallback == ("a",)
    assert profile_by_name(settings, env, "b").dialect == "xnl"
    with pytest.raises(UsageError, match='there is no profile "d"'):
        profile_by_name(settings, env, "d")


def test_provider_may_be_a_url(tree: Any) -> None:
    found = require(load_profile(tree, {"provider": "http://127.0.0.1:8123/v1", "model": "m9"}))
    assert (found.base_url, found.model) == ("http://127.0.0.1:8123/v1", "m9")


@pytest.mark.parametrize(
    ("model", "dialect", "context"),
    [
        ({}, "native", None),
        ({"tool_call": True, "limit": {"context": 9000}}, "native", 9000),
        ({"tool_call": False, "limit": {"context": 9000, "input": 7000}}, "text", 7000),
        ({"limit": {"context": 9000, "input": 99000}}, "native", 9000),
    ],
)
def test_declared_abilities_of_a_model_are_used(
    tree: Any, model: dict[str, Any], dialect: str, context: int | None
) -> None:
    config = {"provider": {"here": {"options": {"baseURL": "http://e/v1"}, "models": {"m": model}}}, "model": "here/m"}
    profile = require(load_profile(tree, config))
    assert (profile.dialect, profile.context) == (dialect, context)
