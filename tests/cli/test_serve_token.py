"""`ostler serve token`: the token is printed once, listed without its secret, and revoked."""

import argparse
import importlib
import json
import re
from pathlib import Path

import pytest
from tests.frontends.server.guarded_server import GuardedServer

from ostler import cli as commands

pytestmark = pytest.mark.req("SV-5")


def issue(ostler, *arguments):
    done = ostler("serve", "token", "issue", *arguments)
    assert done.code == 0, done.stderr
    return done.stdout.strip()


def listed(ostler):
    return json.loads(ostler("serve", "token", "list", "--json").stdout)


def test_token_is_printed_once(ostler):
    token = issue(ostler, "ada", "--label", "laptop")
    assert token.startswith("ostler_")
    done = ostler("serve", "token", "list")
    secret = token.rpartition("_")[2]
    assert secret not in done.stdout + done.stderr
    assert token.split("_")[1] in done.stdout
    assert "ada" in done.stdout
    assert "laptop" in done.stdout
    assert not [path for path in ostler.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_scopes_and_expiry_are_stored(ostler):
    issue(ostler, "ada", "--scope", "read", "--days", "2")
    issue(ostler, "bob", "--days", "0")
    ada, bob = listed(ostler)
    assert ada["scopes"] == ["read"]
    assert ada["expires"] - ada["created"] == pytest.approx(2 * 86400)
    assert (bob["scopes"], bob["expires"]) == (["read", "write"], 0)


def test_tokens_expire_after_90_days_by_default(ostler):
    issue(ostler, "ada")
    (token,) = listed(ostler)
    assert token["expires"] - token["created"] == pytest.approx(90 * 86400)


def test_token_is_revoked_by_id(ostler):
    token_id = issue(ostler, "ada").split("_")[1]
    assert ostler("serve", "token", "revoke", token_id).stdout == "1 token revoked\n"
    assert "revoked" in ostler("serve", "token", "list").stdout
    again = ostler("serve", "token", "revoke", token_id)
    assert again.code == 2
    assert "no token to revoke" in again.stderr


def test_all_tokens_of_a_user_are_revoked(ostler):
    for user in ("ada", "ada", "bob"):
        issue(ostler, user)
    assert ostler("serve", "token", "revoke", "--user", "ada").stdout == "2 tokens revoked\n"
    assert [bool(token["revoked"]) for token in listed(ostler)] == [True, True, False]


@pytest.mark.parametrize(
    "arguments",
    [
        ["issue"],
        ["issue", "Not A Name"],
        ["issue", "ada", "--days", "-1"],
        ["issue", "ada", "--days", "nan"],
        ["issue", "ada", "--scope", "root"],
        ["revoke"],
        ["revoke", "x", "--user", "ada"],
        [],
    ],
)
def test_bad_arguments_issue_nothing(ostler, arguments):
    done = ostler("serve", "token", *arguments)
    assert done.code == 2
    assert "Traceback" not in done.stderr
    assert listed(ostler) == []


def test_database_can_be_elsewhere(ostler, tmp_path):
    database = tmp_path / "elsewhere" / "team.db"
    issue(ostler, "ada", "--database", str(database))
    assert database.stat().st_mode & 0o077 == 0
    assert listed(ostler) == []


def test_pairing_line_for_a_user_becomes_a_login(ostler, tmp_path):
    server = GuardedServer(tmp_path / "server")
    try:
        database = str(tmp_path / "server" / "server" / "ostler.db")
        url = f"http://127.0.0.1:{server.port}"
        done = ostler("serve", "token", "pair", "ada", "--url", url, "--database", database)
        line = done.stdout.split("'")[1]
        assert ostler("login", line).stdout == f"logged in to {url} as ada\n"
    finally:
        server.close()


@pytest.mark.parametrize(
    "arguments",
    [["ADA", "--url", "http://h"], ["ada", "--url", "http://h/p"], ["ada", "--url", "h", "--minutes", "0"]],
)
def test_bad_arguments_open_no_pairing(ostler, arguments):
    done = ostler("serve", "token", "pair", *arguments)
    assert done.code == 2
    assert done.stdout == ""


def test_changes_of_tokens_are_in_the_audit_log(ostler):
    token_id = issue(ostler, "ada").split("_")[1]
    ostler("serve", "token", "pair", "ada", "--url", "http://localhost:1")
    ostler("serve", "token", "revoke", token_id)
    ostler("serve", "token", "revoke", "--user", "ada")
    file = ostler.home / ".ostler" / "server" / "audit.jsonl"
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["event"] for entry in entries][:3] == ["token.issued", "pairing.opened", "token.revoked"]
    assert entries[2]["token"] == token_id


def test_limits_of_a_user_are_set_one_by_one_and_shown(ostler):
    assert ostler("serve", "token", "limit", "ada", "--sessions", "3").code == 0
    done = ostler("serve", "token", "limit", "ada", "--tool-calls", "20", "--json")
    assert json.loads(done.stdout) == {
        "sessions": 3, "connections": 0, "messages_per_minute": 0, "tool_calls_per_minute": 20,
    }  # fmt: skip
    assert "sessions in use at once: 3" in ostler("serve", "token", "limit", "ada").stdout
    assert ostler("serve", "token", "limit", "ada", "--sessions", "-1").code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("token", "issue", "ada", "--days", "x"), "x is not a positive number of days, or 0"),
        (("token", "issue", "ada", "--days", "nan"), "nan is not a positive number of days"),
        (("token", "issue", "ada", "--days", "1e9"), "1e9 is too large; at most 36500"),
        (("token", "pair", "ada", "--minutes", "0"), "0 is not a positive number of minutes"),
        (("token", "limit", "ada", "--sessions", "-1"), "-1 is less than 1"),
        (("--expire", "-1"), "-1 is not a positive number of days, or 0"),
    ],
)
def test_bad_numbers_are_named_in_a_sentence(ostler, arguments, words):
    done = ostler("serve", *arguments)
    assert done.code == 2 and words in done.stderr


def test_every_argument_type_names_the_bad_value():
    """argparse would show the name of a function that raises another error."""
    for file in Path(commands.__file__).parent.glob("*.py"):
        names = re.findall(r"\btype=(\w+)[,)]", file.read_text("utf-8"))
        for name in set(names) - {"int", "float", "str", "Path"}:
            with pytest.raises(argparse.ArgumentTypeError):
                getattr(importlib.import_module(f"ostler.cli.{file.stem}"), name)(" ")


def test_nothing_is_printed_if_there_is_no_token_to_revoke(ostler):
    done = ostler("serve", "token", "revoke", "nope")
    assert (done.code, done.stdout) == (2, "")


def test_pairing_line_of_a_server_that_never_ran_has_the_default_address(ostler):
    assert ostler("serve", "token", "pair", "ada").stdout.startswith("ostler connect 'http://127.0.0.1:8034#")
