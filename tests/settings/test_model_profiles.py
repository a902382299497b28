"""Which model is meant, behind which endpoint, with which key."""

import json
from typing import Any

import pytest

from ostler.core.errors import UsageError
from ostler.settings.model_profiles import Profile, active_profile, profile_by_name

pytestmark = pytest.mark.req("MD-2", "MD-3")

PROFILES = {
    "profiles": [
        {"name": "a", "model": "m1", "baseUrl": "https://a.example/v1", "apiKey": "key-a", "context": 9, "price": {}},
        {"name": "b", "model": "m2", "provider": "anthropic", "dialect": "xnl", "fallback": ["a"]},
        {"name": "c", "model": "m3", "baseUrl": "http://c:1/v1/"},
    ]
}


def use(tree: Any, said: dict[str, Any], env: dict[str, str] | None = None, **flags: str) -> Profile | None:
    tree.user(json.dumps(said))
    env = {**tree.env, **(env or {})}
    return active_profile(tree.load(**(env)), env, **flags)


def some(profile: Profile | None) -> Profile:
    assert profile is not None
    return profile


def test_nothing_configured_is_nothing(tree: Any) -> None:
    assert use(tree, {}) is None


@pytest.mark.parametrize(
    ("said", "flag", "expected"),
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
def test_which_model(tree: Any, said: dict[str, Any], flag: str, expected: tuple[str, str, str]) -> None:
    found = some(use(tree, said, flag_model=flag))
    assert (found.name, found.model, found.base_url) == expected


def test_project_over_user_whichever_key_it_uses(tree: Any) -> None:
    tree.user(json.dumps({"model": "a", "models": PROFILES}))
    tree.project('{"models": {"active": "c"}}')
    assert some(active_profile(tree.load(), {})).name == "c"
    tree.user(json.dumps({"models": {**PROFILES, "active": "a"}}))
    tree.project('{"model": "c"}')
    assert some(active_profile(tree.load(), {})).name == "c"
    assert some(active_profile(tree.load(OSTLER_MODEL="b"), {})).name == "b"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"models": {**PROFILES, "active": "aa"}}, 'models.active names no profile: "aa"; did you mean "a"'),
        ({"models": {**PROFILES, "active": ""}}, "models.active names no profile"),
        ({"models": PROFILES}, "several models are configured, but models.active names none"),
        ({"models": {"active": "x"}}, "no profiles are configured"),
        ({"provider": {"l": {"api": "http://l", "models": {"x": {}, "y": {}}}}}, "several models are configured"),
    ],
)
def test_no_such_profile_lists_those_there_are(tree: Any, said: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        use(tree, said)
    assert message in str(caught.value)
    for profile in said.get("models", {}).get("profiles", ()):
        assert f'"{profile["name"]}"' in str(caught.value)


def test_a_model_that_is_no_profile_needs_a_good_active_one(tree: Any) -> None:
    with pytest.raises(UsageError, match="names no profile"):
        use(tree, {"models": {**PROFILES, "active": "zz"}}, flag_model="any")
    assert some(use(tree, {"models": {**PROFILES, "active": "zz"}}, flag_model="c")).name == "c"


def test_another_model_at_the_same_endpoint_has_unknown_sizes(tree: Any) -> None:
    found = some(use(tree, {"models": {**PROFILES, "active": "a"}}, flag_model="else"))
    assert (found.context, found.price, found.key_from) == (None, None, "profile")
    assert some(use(tree, {"models": {**PROFILES, "active": "a"}})).context == 9


ORDER = [
    ("flag", {}),
    ("OSTLER_API_KEY", {}),
    ("AGENT_API_KEY", {}),
    ("SILICONFLOW_API_KEY", {}),
    ("SILICONFLOW_TOKEN", {}),
    ("profile", {}),
    ("OPENAI_API_KEY", {}),
    ("DASHSCOPE_API_KEY", {}),
]


@pytest.mark.req("MD-3")
@pytest.mark.parametrize("first", range(len(ORDER)))
def test_order_of_keys(tree: Any, first: int) -> None:
    """With every key from this one on, this one is taken; those before it are empty, which is as if unset."""
    names = [name for name, _ in ORDER]
    given = {name: f"key-of-{name}" if number >= first else "" for number, name in enumerate(names)}
    profile = {"name": "p", "baseUrl": "https://api.openai.com/v1", "apiKey": given.pop("profile")}
    found = some(use(tree, {"models": {"profiles": [profile]}}, env=given, flag_key=given.pop("flag")))
    assert (found.key_from, found.key and found.key.reveal()) == (names[first], f"key-of-{names[first]}")


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://API.OPENAI.COM:443/v1", "OPENAI_API_KEY"),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
        ("http://api.openai.com/v1", ""),
        ("https://api.openai.com.evil.example/v1", ""),
        ("https://evil.example/api.openai.com", ""),
        ("https://api.openai.com@evil.example/v1", ""),
        ("http://localhost:8000/v1", ""),
    ],
)
def test_a_vendors_key_goes_to_that_vendor_only(tree: Any, url: str, taken: str) -> None:
    env = {name: name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY")}
    if "dashscope" in url:
        env["DASHSCOPE_API_KEY"] = "DASHSCOPE_API_KEY"
    found = some(use(tree, {"provider": {"base_url": url}}, env=env))
    assert (found.key_from, found.key.reveal() if found.key else "") == (taken, taken)


@pytest.mark.parametrize(
    ("said", "kind"),
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
def test_api_kind(tree: Any, said: dict[str, Any], kind: str) -> None:
    assert some(use(tree, {"models": {"profiles": [{"name": "p", **said}]}})).api_kind == kind


@pytest.mark.req("MD-1")
def test_an_invalid_api_kind_is_said_with_its_place(tree: Any) -> None:
    with pytest.raises(UsageError, match=r'config.json:1:51: .*apiKind must be "anthropic" or "openai", not "opn"'):
        use(tree, {"models": {"profiles": [{"name": "p", "apiKind": "opn"}]}})


def test_opencode_package_names_the_api(tree: Any) -> None:
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
    found = some(use(tree, {"provider": {"p": provider}}, env={"MY_KEY": "mine"}))
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
    said = {"models": {**PROFILES, "active": "a"}}
    assert some(use(tree, said, env=env, flag_base_url=flag)).base_url == url
    if env:
        alone = some(use(tree, {}, env={**env, "AGENT_MODEL": "m"}, flag_base_url=flag))
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
def test_a_base_url_that_is_none(tree: Any, url: str) -> None:
    with pytest.raises(UsageError, match=r'config.json:1: "p" needs a baseUrl such as') as caught:
        use(tree, {"models": {"profiles": [{"name": "p", "baseUrl": url}]}})
    assert "planted" not in str(caught.value)


def test_a_base_url_that_is_missing(tree: Any) -> None:
    with pytest.raises(UsageError, match=r'"p" needs a baseUrl, for "acme" is no vendor'):
        use(tree, {"models": {"profiles": [{"name": "p", "provider": "acme"}]}})
    with pytest.raises(UsageError, match=r'"p" needs a baseUrl$'):
        use(tree, {"models": {"profiles": [{"name": "p"}]}})


def test_references(tree: Any) -> None:
    tree.write(tree.home / "key.txt", "from-file\n")
    tree.write(tree.person / "elsewhere", " from-home ")
    profile = {
        "name": "p",
        "baseUrl": "http://{env:H}:1/v1",
        "apiKey": "{file:key.txt}",
        "headers": {"A": "Bearer {env:T}", "B": "{file:~/elsewhere}", "D": "{odd:x} {}"},
        "proxy": "{env:P}",
    }
    found = some(use(tree, {"models": {"profiles": [profile]}}, env={"H": "host", "T": "tok", "P": "http://pr"}))
    assert found.base_url == "http://host:1/v1"
    assert found.key and found.key.reveal() == "from-file"
    assert {name: value.reveal() for name, value in found.headers.items()} == {
        "A": "Bearer tok",
        "B": "from-home",
        "D": "{odd:x} {}",
    }
    assert found.proxy and found.proxy.reveal() == "http://pr"


def test_an_unset_variable_as_key_means_the_next_one(tree: Any) -> None:
    said = {"provider": {"base_url": "https://api.openai.com/v1", "api_key": "{env:UNSET}"}}
    assert some(use(tree, said, env={"OPENAI_API_KEY": "k"})).key_from == "OPENAI_API_KEY"
    with pytest.raises(UsageError, match="apiKey needs the variable UNSET"):
        use(tree, said)


@pytest.mark.req("MD-3")
@pytest.mark.parametrize(
    ("written", "what"),
    [
        ({"apiKey": "{env:MY_KEY}"}, "apiKey"),
        ({"apiKey": "Bearer {env: MY_KEY }"}, "apiKey"),
        ({"headers": {"A": "x", "X-Key": "{env:MY_KEY}"}}, "headers"),
        ({"proxy": "http://me:{env:MY_KEY}@proxy:1"}, "proxy"),
        ({"baseUrl": "http://x/v1?key={env:MY_KEY}"}, "baseUrl"),
    ],
)
def test_a_variable_that_is_not_set_is_named_with_the_profile_and_the_file(tree: Any, written: Any, what: str) -> None:
    said = {"models": {"active": "p", "profiles": [{"name": "p", "baseUrl": "http://x"} | written]}}
    for env in ({}, {"MY_KEY": ""}):
        with pytest.raises(UsageError) as caught:
            use(tree, said, env=env)
        assert f'config.json:1: "p" {what} needs the variable MY_KEY, which is not set' in str(caught.value)
    assert some(use(tree, said, env={"MY_KEY": "k"})).name == "p"


@pytest.mark.req("MD-3")
def test_only_the_profile_in_use_needs_its_variables(tree: Any) -> None:
    profiles = [{"name": "p", "baseUrl": "http://x"}, {"name": "q", "baseUrl": "http://x", "apiKey": "{env:UNSET}"}]
    said = {"models": {"profiles": profiles, "active": "p"}}
    assert some(use(tree, said)).name == "p"
    assert some(use(tree, said, env={"OSTLER_API_KEY": "k"}, flag_model="q")).key_from == "OSTLER_API_KEY"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "there is no such file"),
        (lambda file: file.write_bytes(b"\xff"), "not UTF-8"),
        (lambda file: file.write_text("a\nb"), "line break"),
        (lambda file: file.mkdir(), "not a regular file"),
        (lambda file: file.write_text("x" * 70_000), "more than"),
    ],
)
def test_a_reference_that_leads_nowhere_names_the_file(tree: Any, make: Any, message: str) -> None:
    make(tree.home / "k")
    with pytest.raises(UsageError) as caught:
        use(tree, {"models": {"profiles": [{"name": "p", "baseUrl": "http://x", "apiKey": "{file:k}"}]}})
    assert message in str(caught.value)
    assert "xxxx" not in str(caught.value)


def test_only_the_profile_in_use_is_filled_in(tree: Any) -> None:
    profiles = [{"name": "p", "baseUrl": "http://x"}, {"name": "q", "baseUrl": "http://x", "apiKey": "{file:gone}"}]
    assert some(use(tree, {"models": {"profiles": profiles, "active": "p"}})).name == "p"
    assert some(use(tree, {"models": {"profiles": profiles, "active": "q"}}, flag_key="k")).key_from == "flag"


def test_a_relative_file_starts_at_the_file_that_names_it(tree: Any) -> None:
    tree.write(tree.home / "k", "global")
    tree.write(tree.work / ".ostler" / "k", "project")
    tree.user('{"provider": {"base_url": "http://x", "api_key": "{file:k}"}}')
    tree.project('{"provider": {"model": "m"}}')
    found = some(active_profile(tree.load(trusted=True), {}))
    assert found.key and (found.key.reveal(), found.model) == ("global", "m")


@pytest.mark.req("PM-8")
def test_an_untrusted_project_gets_no_key_and_no_file(tree: Any) -> None:
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
    found = some(active_profile(tree.load(), {"K": "secret", "OSTLER_API_KEY": "mine"}))
    assert (found.name, found.base_url, found.model) == ("a", "https://a.example/v1", "m1")


@pytest.mark.parametrize("key", ["a\nb", "a\rX-Evil: 1", "a\x00b"])
def test_a_key_with_a_line_break_is_refused_unseen(tree: Any, key: str) -> None:
    with pytest.raises(UsageError, match="key from OSTLER_API_KEY has a line break") as caught:
        use(tree, {"provider": {"base_url": "http://x"}}, env={"OSTLER_API_KEY": key})
    assert "Evil" not in str(caught.value)
    assert some(use(tree, {"provider": {"base_url": "http://x"}}, env={"OSTLER_API_KEY": " k\n"})).key_from


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
