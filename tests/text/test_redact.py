"""Secrets are redacted, and everything else is unchanged."""

import random
import re
import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.text.redact import DEFAULT_KEYS, REDACTION_MARKER, Redactor, is_sensitive_file
from ostler.text.secret_masker import MASK_MARKER, SecretMasker

DATA = Path(__file__).parents[1] / "data" / "text"
REDACTOR = Redactor()


def samples(name):
    """Yield the samples of a data file; its first lines describe the notation."""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("# ---", "# One sample")):
            yield line.replace("¦", "").replace("⏎", "\n")


SECRETS = [(re.sub("[⟦⟧]", "", line), re.findall("⟦(.*?)⟧", line, re.DOTALL)) for line in samples("secrets.txt")]
HARMLESS = list(samples("harmless.txt"))


def test_corpus_is_large():
    assert len(SECRETS) >= 250
    assert all(secrets for _, secrets in SECRETS)
    assert len(HARMLESS) >= 150


@pytest.mark.req("AZ-5")
def test_every_secret_of_the_corpus_is_redacted():
    leaks = [text for text, secrets in SECRETS if any(secret in REDACTOR.redact(text) for secret in secrets)]
    assert leaks == []


@pytest.mark.req("AZ-5")
def test_harmless_text_is_unchanged():
    touched = [(text, REDACTOR.redact(text)) for text in HARMLESS if REDACTOR.redact(text) != text]
    assert touched == []


def coloured_like_grep(text, rng):
    """Return the text with the colours that `grep --color=always` puts around a match."""
    start = rng.randrange(len(text))
    end = rng.randrange(start, len(text)) + 1
    return f"{text[:start]}\x1b[01;31m\x1b[K{text[start:end]}\x1b[m\x1b[K{text[end:]}"


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)


@pytest.mark.req("AZ-5")
@pytest.mark.parametrize("seed", range(5))
def test_colours_hide_no_secret_and_stay_in_the_text(seed):
    rng = random.Random(seed)
    for text, _ in SECRETS:
        coloured = coloured_like_grep(text, rng)
        redacted = REDACTOR.redact(coloured)
        assert without_colours(redacted) == REDACTOR.redact(text), coloured
        assert re.findall(r"\x1b\[[0-9;]*[mK]", redacted) == ["\x1b[01;31m", "\x1b[K", "\x1b[m", "\x1b[K"]
        assert REDACTOR.redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "pass\x1b(B\x1b[mword=hunter22", "ghp_abcd\\u001b[01;31mEFGH1234abcdEFGH1234", "pass\x9b1mword: hunter22",
        "\x1b]8;;https://me:hunter22@host/\x1b\\x\x1b]8;;\x1b\\", "\x1b]0;password=hunter22\x07",
        "\x1b]password=hunter22\n", "pass\x1b[38:2::1:2:3mword\x1b[0m = 'hunter22'",
    ],
)  # fmt: skip
def test_every_kind_of_escape_is_looked_through(text):
    redacted = REDACTOR.redact(text)
    assert "hunter22" not in redacted
    assert "EFGH" not in redacted
    assert REDACTION_MARKER in redacted


def test_known_values_and_patterns_match_across_colours():
    redactor = Redactor(patterns=(r"emp-\d+",), known_values=("correct-horse",))
    assert redactor.redact("a corr\x1b[1mect-horse e\x1b[mmp-77") == (
        f"a {REDACTION_MARKER}\x1b[1m {REDACTION_MARKER}\x1b[m"
    )
    assert SecretMasker(["correct-horse"]).mask("a corr\x1b[1mect-horse b") == f"a {MASK_MARKER}\x1b[1m b"
    assert SecretMasker(["correct-horse"]).occurs_in(rb'{"text": "corr\u001b[1mect-horse"}')


def test_redacting_twice_changes_nothing():
    for text, _ in SECRETS:
        once = REDACTOR.redact(text)
        assert REDACTOR.redact(once) == once


def test_secrets_are_redacted_in_one_large_file():
    text = "\n".join(text for text, _ in SECRETS)
    redacted = REDACTOR.redact(text)
    assert REDACTOR.redact(redacted) == redacted
    for secret in ("hunter2", "ghp_16C7", "AKIAIOS", "sk_live_4eC", "MIIEvQIBADAN", "letmein"):
        assert secret in text
        assert secret not in redacted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: hunter2", f"password: {REDACTION_MARKER}"),
        ('{"api_key":"abc","n":1}', f'{{"api_key":"{REDACTION_MARKER}","n":1}}'),
        ("Authorization: Bearer abc123", f"Authorization: Bearer {REDACTION_MARKER}"),
        ("https://bob:hunter2@host/x", f"https://bob:{REDACTION_MARKER}@host/x"),
        ("GET /x?token=abc&page=2", f"GET /x?token={REDACTION_MARKER}&page=2"),
        ("app --token abc123 --verbose", f"app --token {REDACTION_MARKER} --verbose"),
        ("export TOKEN=abc123 # mine", f"export TOKEN={REDACTION_MARKER} # mine"),
        ("Server=db;Password=x1y2;Encrypt=true", f"Server=db;Password={REDACTION_MARKER};Encrypt=true"),
        (
            'login(user="bob", password="pw1", retries=3)',
            f'login(user="bob", password="{REDACTION_MARKER}", retries=3)',
        ),
        ('"{\\"secret\\": \\"abc\\"}"', f'"{{\\"secret\\": \\"{REDACTION_MARKER}\\"}}"'),
    ],
)
def test_text_around_a_secret_is_unchanged(text, expected):
    assert REDACTOR.redact(text) == expected


KEYS = [
    "api_key", "apikey", "API_KEY", "apiKey", "api-key", "token", "TOKEN", "access_token", "accessToken", "secret",
    "SECRET_KEY", "client_secret", "clientSecret", "password", "DB_PASSWORD", "dbPassword", "passwd", "pwd",
    "private_key", "access_key", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "smtp_password",
    "encryption_key", "x-api-key", "auth", "refresh_token", "signing_key", "POSTGRES_PASSWORD", "passphrase",
]  # fmt: skip
CONTEXTS = [
    "{key}: {value}", '{key}: "{value}"', "{key}: '{value}'", "  {key}: {value}\n  other: 1", "{key}={value}",
    '{key}="{value}"', "export {upper}={value}", "export {upper}='{value}'", '{{"{key}": "{value}"}}',
    '{{"{key}":"{value}","x":1}}', '{{"a":{{"{key}":"{value}"}}}}', '"{{\\"{key}\\": \\"{value}\\"}}"',
    '{key} = "{value}"', "{key} = '{value}'", 'const {name} = "{value}";', '{name} := "{value}"',
    'self.{name} = "{value}"', 'foo({name}="{value}")', "foo(a, {name}='{value}', b=1)", "--{flag} {value}",
    "--{flag}={value}", 'cmd --{flag} "{value}" --x', "'{key}' => '{value}',", "log: {key}={value} user=bob",
    "INFO loaded {{'{key}': '{value}'}}", "os.environ['{upper}'] = '{value}'", "# {key}: {value}", "- {upper}={value}",
    "+{key}: {value}", "var {name} = `{value}`", 'String {name} = "{value}";', "X-{flag}: {value}",
    "[s]\n{key}={value}\n", "[s]\n{key} = {value}\nz = 1\n", '{{user: "b", {name}: "{value}"}}', "{key}:{value}",
    "- name: {upper}\n  value: {value}", "{name}: str = '{value}'", "<{name}>{value}</{name}>",
]  # fmt: skip


def random_secret(rng):
    """Return a secret like those of machines and people."""
    letters = string.ascii_letters + string.digits
    return rng.choice(
        [
            "".join(rng.choices("0123456789abcdef", k=32)),
            "".join(rng.choices(letters, k=rng.randint(8, 40))),
            "".join(rng.choices(letters + "+/", k=39)) + "=",
            "".join(rng.choices(letters, k=8)) + rng.choice("!@#%*_") + "".join(rng.choices(letters, k=3)),
            "-".join("".join(rng.choices(letters, k=4)) for _ in range(4)),
            rng.choice(["hunter2", "letmein", "swordfish", "qwerty123", "supersecret", "s3cr3t", "trustno1"]),
        ]
    )


@pytest.mark.req("AZ-5")
def test_all_combinations_of_names_and_notations():
    rng = random.Random(20240501)
    leaks, total = [], 0
    for context in CONTEXTS:
        for key in KEYS:
            name = re.sub(r"\W", "_", key)
            value = random_secret(rng)
            flag = key.lower().replace("_", "-")
            text = context.format(key=key, upper=name.upper(), name=name, flag=flag, value=value)
            total += 1
            if value in REDACTOR.redact(text):
                leaks.append(text)
    assert len(leaks) <= total // 200, leaks


@pytest.mark.req("AZ-5")
def test_user_defined_keys():
    redactor = Redactor(keys=("badge", "pet_name"))
    assert (
        redactor.redact("badge: blue\nmyPetName=rex\nbadger: x")
        == f"badge: {REDACTION_MARKER}\nmyPetName={REDACTION_MARKER}\nbadger: x"
    )
    assert redactor.redact("token: abc") == "token: abc"
    assert Redactor(keys=(*DEFAULT_KEYS, "badge")).redact("token: abc") == f"token: {REDACTION_MARKER}"


@pytest.mark.req("AZ-5")
def test_user_defined_patterns():
    redactor = Redactor(patterns=(r"emp-\d+", r"x*"))
    assert redactor.redact("EMP-123 and emp-7 xx") == f"{REDACTION_MARKER} and {REDACTION_MARKER} {REDACTION_MARKER}"


def test_user_defined_patterns_in_text_with_half_of_a_surrogate_pair():
    assert Redactor(patterns=(r"emp-\d+",)).redact("\ud83d emp-7") == f"\ud83d {REDACTION_MARKER}"


def test_pattern_that_matches_the_marker_is_idempotent():
    redactor = Redactor(patterns=("RED[A-Z]+", r"\*"))
    once = redactor.redact("a REDO *")
    assert redactor.redact(once) == once


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<x", r"(a)\1", "a{5000}"])
def test_invalid_pattern_is_reported(pattern):
    with pytest.raises(ValueError, match=re.escape(repr(pattern))):
        Redactor(patterns=("fine", pattern))


@pytest.mark.slow
def test_expensive_pattern_is_fast():
    redactor = Redactor(patterns=("(a+)+$",))
    started = time.perf_counter()
    redactor.redact("a" * 50_000 + "!")
    assert time.perf_counter() - started < 5


def test_known_values_are_redacted_in_every_encoding():
    value = 'p w/"ü\n1'
    redactor = Redactor(known_values=(value, "", "abc"))
    for encoded in (value, r"p w/\"ü\n1", r"p w/\"\u00fc\n1", "p%20w%2F%22%C3%BC%0A1", "p+w%2F%22%C3%BC%0A1"):
        assert redactor.redact(f"<{encoded}>") == f"<{REDACTION_MARKER}>"
    assert redactor.redact("abc") == "abc"


def test_overlapping_matches_are_merged():
    assert Redactor(known_values=("hunter2abc", "abcdef")).redact("x hunter2abcdef y") == f"x {REDACTION_MARKER} y"


@pytest.mark.parametrize(
    "context", ["password={}", "x password={} y", "password: {}", '"password": "{}"', "--token {} x"]
)
def test_very_long_secret_is_redacted_completely(context):
    secret = "k3Y" * (1300 if "--" in context else 3000)
    assert REDACTOR.redact(context.format(secret)) == context.format(REDACTION_MARKER)


FRAGMENTS = st.sampled_from(
    ["password", "token", "api_key", "Authorization", ": ", "=", '"', "'", "\\", "\n", " ", "hunter2", "Bearer ",
     "{", "}", "(", ")", ",", "--", "://", "@", ":", "abc", "12345678", REDACTION_MARKER, "sk-", "${", "<", ">",
     "|\n  ", "ghp_" + "a1" * 18, "-----BEGIN PRIVATE" + " KEY-----", "-----END PRIVATE" + " KEY-----", "A" * 40, "is "]
)  # fmt: skip


@examples(300)
@given(st.lists(FRAGMENTS, max_size=14).map("".join))
def test_redaction_of_any_text_is_idempotent(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@given(st.text())
def test_any_text_is_accepted(text):
    assert isinstance(REDACTOR.redact(text), str)


HOSTILE = [
    "token=", "token: ", '"token":"', 'password=\\"', "a.", "a-", "--token ", "eyJ", "eyJ-", "eyJa.", "://a:",
    "://a:b@", "-----BEGIN PRIVATE" + " KEY-----\n" + "A" * 22 + "\n", "Bearer a", "mysql -", "curl -u a",
    "password is ", "<password>", '<password a="b" ', 'name="password" ', 'variable "password" {', "password: |\n  a\n",
    'auth=("a",', 'password: ["a",', "{{", "token={{", "token=<a", "token=${", "token=a[", "token=a,", "secret: /a",
    "password=\\\\\\\\\"", f"password={REDACTION_MARKER}", "Private-Lines: 1\nAAAA\n", "A" * 16 + "\n",
    "passwordé", "xtoken.", "İtoken: ", "\x1b[1m", "\x1b]8;;", "token:\n", "token:\n- a1b2c3\n", "token=a\\\n",
    "$6$", "$1$a$", "$5$rounds=1$", "a:b:", "a1:token: ", "--token\n",
]  # fmt: skip


def cost_ratio(unit, size):
    costs = []
    for length in (size, 4 * size):
        text = (unit * (length // len(unit) + 1))[:length]
        started = time.process_time()
        REDACTOR.redact(text)
        costs.append(time.process_time() - started)
    return costs[1] / max(costs[0], 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear(unit):
    assert cost_ratio(unit, 10_000) < 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_up_to_a_megabyte(unit):
    assert cost_ratio(unit, 250_000) < 10


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", ".env.production", "app/.env", "/abs/path/.env", "dir\\.env", ".ENV", ".envrc", ".env~",
        "config.yaml", "config.yml", "config.json", "x/config.yaml", "secrets.yaml", "secrets.toml", "credentials.json",
        "credentials.yaml", ".aws/credentials", ".npmrc", ".pypirc", ".netrc", "id_rsa", ".ssh/id_ed25519",
        "id_rsa.bak", "server.pem", "server.key", "server.key.old", "store.p12", ".kube/config", ".git-credentials",
    ],
)  # fmt: skip
def test_sensitive_files(path):
    assert is_sensitive_file(path)


@pytest.mark.parametrize(
    "path",
    [
        "environment.ts", "env.py", "my.env.py", "config.py", "tsconfig.json", "README.md", "id_rsa.pub", "keys.py",
        "secrets.py.d/x", "credentials.py", "monkey", "config", ".git/config", "src/key.rs", "public.pub", "",
    ],
)  # fmt: skip
def test_ordinary_files(path):
    assert not is_sensitive_file(path)
