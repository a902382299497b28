"""Secrets leave no text, and what is no secret stays."""

import random
import re
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.text.redact import DEFAULT_KEYS, REDACTION_MARKER, Redactor, is_sensitive_file

DATA = Path(__file__).parents[1] / "data" / "text"
REDACTOR = Redactor()


def samples(name):
    """The lines of a data file; see its head for the notation."""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("# ---", "# One sample")):
            yield line.replace("¦", "").replace("⏎", "\n")


SECRETS = [(re.sub("[⟦⟧]", "", line), re.findall("⟦(.*?)⟧", line, re.DOTALL)) for line in samples("secrets.txt")]
HARMLESS = list(samples("harmless.txt"))


def test_the_corpus_is_large():
    assert len(SECRETS) >= 250
    assert all(secrets for _, secrets in SECRETS)
    assert len(HARMLESS) >= 150


@pytest.mark.req("AZ-5")
def test_no_secret_of_the_corpus_remains():
    leaks = [text for text, secrets in SECRETS if any(secret in REDACTOR.redact(text) for secret in secrets)]
    assert leaks == []


@pytest.mark.req("AZ-5")
def test_nothing_harmless_is_touched():
    touched = [(text, REDACTOR.redact(text)) for text in HARMLESS if REDACTOR.redact(text) != text]
    assert touched == []


def test_redacting_twice_changes_nothing():
    for text, _ in SECRETS:
        once = REDACTOR.redact(text)
        assert REDACTOR.redact(once) == once


def test_a_file_of_all_samples_holds_no_secret_line_either():
    text = "\n".join(text for text, _ in SECRETS)
    redacted = REDACTOR.redact(text)
    assert REDACTOR.redact(redacted) == redacted
    for shape in ("hunter2", "ghp_16C7", "AKIAIOS", "sk_live_4eC", "MIIEvQIBADAN", "letmein"):
        assert shape in text
        assert shape not in redacted


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
def test_what_is_around_a_secret_stays(text, expected):
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


def made_up(chance):
    """A secret as machines and people make them."""
    letters = string.ascii_letters + string.digits
    return chance.choice(
        [
            "".join(chance.choices("0123456789abcdef", k=32)),
            "".join(chance.choices(letters, k=chance.randint(8, 40))),
            "".join(chance.choices(letters + "+/", k=39)) + "=",
            "".join(chance.choices(letters, k=8)) + chance.choice("!@#%*_") + "".join(chance.choices(letters, k=3)),
            "-".join("".join(chance.choices(letters, k=4)) for _ in range(4)),
            chance.choice(["hunter2", "letmein", "swordfish", "qwerty123", "supersecret", "s3cr3t", "trustno1"]),
        ]
    )


@pytest.mark.req("AZ-5")
def test_names_and_notations_in_all_combinations():
    chance = random.Random(20240501)
    leaks, total = [], 0
    for context in CONTEXTS:
        for key in KEYS:
            name = re.sub(r"\W", "_", key)
            value = made_up(chance)
            flag = key.lower().replace("_", "-")
            text = context.format(key=key, upper=name.upper(), name=name, flag=flag, value=value)
            total += 1
            if value in REDACTOR.redact(text):
                leaks.append(text)
    assert len(leaks) <= total // 200, leaks


@pytest.mark.req("AZ-5")
def test_keys_of_the_user():
    redactor = Redactor(keys=("badge", "pet_name"))
    assert (
        redactor.redact("badge: blue\nmyPetName=rex\nbadger: x")
        == f"badge: {REDACTION_MARKER}\nmyPetName={REDACTION_MARKER}\nbadger: x"
    )
    assert redactor.redact("token: abc") == "token: abc"
    assert Redactor(keys=(*DEFAULT_KEYS, "badge")).redact("token: abc") == f"token: {REDACTION_MARKER}"


@pytest.mark.req("AZ-5")
def test_patterns_of_the_user():
    redactor = Redactor(patterns=(r"emp-\d+", r"x*"))
    assert redactor.redact("EMP-123 and emp-7 xx") == f"{REDACTION_MARKER} and {REDACTION_MARKER} {REDACTION_MARKER}"


def test_a_pattern_that_matches_the_marker_does_not_grow_it():
    redactor = Redactor(patterns=("RED[A-Z]+", r"\*"))
    once = redactor.redact("a REDO *")
    assert redactor.redact(once) == once


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<x", r"(a)\1", "a{5000}"])
def test_a_bad_pattern_is_named(pattern):
    with pytest.raises(ValueError, match=re.escape(repr(pattern))):
        Redactor(patterns=("fine", pattern))


@pytest.mark.slow
def test_a_costly_pattern_costs_little():
    redactor = Redactor(patterns=("(a+)+$",))
    started = time.perf_counter()
    redactor.redact("a" * 50_000 + "!")
    assert time.perf_counter() - started < 5


def test_known_values_go_in_every_spelling():
    value = 'p w/"ü\n1'
    redactor = Redactor(known_values=(value, "", "abc"))
    for spelling in (value, r"p w/\"ü\n1", r"p w/\"\u00fc\n1", "p%20w%2F%22%C3%BC%0A1", "p+w%2F%22%C3%BC%0A1"):
        assert redactor.redact(f"<{spelling}>") == f"<{REDACTION_MARKER}>"
    assert redactor.redact("abc") == "abc"


def test_overlapping_finds_are_one():
    assert Redactor(known_values=("hunter2abc", "abcdef")).redact("x hunter2abcdef y") == f"x {REDACTION_MARKER} y"


@pytest.mark.parametrize(
    "context", ["password={}", "x password={} y", "password: {}", '"password": "{}"', "--token {} x"]
)
def test_a_very_long_secret_goes_as_a_whole(context):
    secret = "k3Y" * (1300 if "--" in context else 3000)
    assert REDACTOR.redact(context.format(secret)) == context.format(REDACTION_MARKER)


PIECES = st.sampled_from(
    ["password", "token", "api_key", "Authorization", ": ", "=", '"', "'", "\\", "\n", " ", "hunter2", "Bearer ",
     "{", "}", "(", ")", ",", "--", "://", "@", ":", "abc", "12345678", REDACTION_MARKER, "sk-", "${", "<", ">", "|\n  ",
     "ghp_" + "a1" * 18, "-----BEGIN PRIVATE" + " KEY-----", "-----END PRIVATE" + " KEY-----", "A" * 40, "is "]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_stable_after_one_pass(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once


@given(st.text())
def test_any_text_is_taken(text):
    assert isinstance(REDACTOR.redact(text), str)


HOSTILE = [
    "token=", "token: ", '"token":"', 'password=\\"', "a.", "a-", "--token ", "eyJ", "eyJ-", "eyJa.", "://a:",
    "://a:b@", "-----BEGIN PRIVATE" + " KEY-----\n" + "A" * 22 + "\n", "Bearer a", "mysql -", "curl -u a",
    "password is ", "<password>", '<password a="b" ', 'name="password" ', 'variable "password" {', "password: |\n  a\n",
    'auth=("a",', 'password: ["a",', "{{", "token={{", "token=<a", "token=${", "token=a[", "token=a,", "secret: /a",
    "password=\\\\\\\\\"", f"password={REDACTION_MARKER}", "Private-Lines: 1\nAAAA\n", "A" * 16 + "\n",
    "passwordé", "xtoken.", "İtoken: ",
]  # fmt: skip


def ratio_of_costs(unit, size):
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
    assert ratio_of_costs(unit, 10_000) < 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_up_to_a_megabyte(unit):
    assert ratio_of_costs(unit, 250_000) < 10


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
