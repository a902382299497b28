"""Grants on disk, and what a grant is about."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ostler.core.errors import UsageError
from ostler.settings.trust import TrustGrant, TrustStore, project_trust_items

pytestmark = pytest.mark.req("PM-8")


@pytest.fixture
def store(tree: Any) -> TrustStore:
    return TrustStore(tree.home)


def digest(tree: Any, text: str) -> str:
    tree.project(text)
    return project_trust_items(tree.load()).digest


def test_grant_is_for_one_folder_and_one_config(tree: Any, store: TrustStore, tmp_path: Path) -> None:
    assert not store.is_trusted(tree.work, "d")
    store.grant(tree.work, "d", ["mcp.x = 1"])
    again = TrustStore(tree.home)
    assert again.is_trusted(tree.work, "d")
    assert not again.is_trusted(tree.work, "e")
    assert not again.is_trusted(tmp_path, "d")
    assert not again.is_trusted(tree.work / "sub", "d")
    previous = again.find_grant(tree.work)
    assert previous is not None
    assert (previous.digest, previous.parts, previous.when[:2]) == ("d", ("mcp.x = 1",), "20")
    store.grant(tree.work, "e", [])
    assert not again.is_trusted(tree.work, "d")
    assert (store.revoke(tree.work), store.revoke(tree.work)) == (True, False)
    assert again.find_grant(tree.work) is None


def test_what_a_rule_says_is_shown_whatever_its_pattern_is_called(tree: Any) -> None:
    tree.project('{"permission": {"bash": {"*token*": "allow"}}}')
    assert project_trust_items(tree.load()).lines == ('permission.bash.*token* = "allow"',)


def test_a_folder_is_known_by_where_it_really_is(tree: Any, store: TrustStore, tmp_path: Path) -> None:
    store.grant(tree.work, "d", [])
    link = tmp_path / "link"
    link.symlink_to(tree.work)
    assert store.is_trusted(link, "d")
    link.unlink()
    link.symlink_to(tmp_path)
    assert not store.is_trusted(link, "d")


def test_names_that_are_not_utf8_are_kept_apart(tree: Any, store: TrustStore, tmp_path: Path) -> None:
    raw = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    store.grant(raw, "d", [])
    assert store.is_trusted(raw, "d")
    assert not store.is_trusted(tmp_path / "\\xff", "d")


def test_file_is_for_the_person_alone_and_leaves_nothing_behind(tree: Any, store: TrustStore) -> None:
    store.grant(tree.work, "d", [])
    file = tree.home / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tree.home.iterdir()) == ["trust.json", "trust.lock"]


def test_home_is_made_on_demand_for_the_person_alone(tmp_path: Path) -> None:
    home = tmp_path / "a" / ".ostler"
    TrustStore(home).grant(tmp_path, "d", [])
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"grants": []}',
        b'{"grants": {"x": 1}}',
        b"\xff",
        b"[" * 100_000,
        b'{"grants": {"x": {}}}',
        b"null",
    ],
)
def test_a_corrupt_file_trusts_nothing_and_says_so_once(tree: Any, store: TrustStore, data: bytes) -> None:
    tree.write(tree.home / "trust.json", data)
    assert store.find_grant(tree.work) is None
    assert not store.is_trusted(tree.work, "")
    assert len(store.notes) == (1 if data else 0)
    store.grant(tree.work, "d", [])
    assert store.is_trusted(tree.work, "d")


@pytest.mark.parametrize("how", ["symlink", "writable", "fifo", "folder"])
def test_a_file_that_others_could_have_made_trusts_nothing(tree: Any, store: TrustStore, how: str) -> None:
    store.grant(tree.work, "d", [])
    file = tree.home / "trust.json"
    kept = file.read_bytes()
    if how == "writable":
        file.chmod(0o666)
    else:
        file.unlink()
    if how == "symlink":
        file.symlink_to(tree.write(tree.work / "evil.json", kept))
    elif how == "fifo":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    assert not store.is_trusted(tree.work, "d")
    assert "nothing is trusted" in store.notes[0]


def test_granting_replaces_a_symlink_and_does_not_follow_it(tree: Any, store: TrustStore) -> None:
    victim = tree.write(tree.work / "victim", "precious")
    (tree.home / "trust.json").symlink_to(victim)
    store.grant(tree.work, "d", [])
    assert victim.read_text() == "precious"
    assert not (tree.home / "trust.json").is_symlink()
    assert store.is_trusted(tree.work, "d")


def test_a_home_that_cannot_be_written_is_said(tree: Any, tmp_path: Path) -> None:
    blocked = tree.write(tmp_path / "file", "x")
    with pytest.raises(UsageError, match="cannot be written"):
        TrustStore(blocked / "home").grant(tree.work, "d", [])


def test_a_write_that_fails_keeps_the_old_file(tree: Any, store: TrustStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.grant(tree.work, "d", [])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="no space left"):
            store.grant(tree.work, "e", [])
    assert store.is_trusted(tree.work, "d")
    assert sorted(path.name for path in tree.home.iterdir()) == ["trust.json", "trust.lock"]


def test_grants_made_side_by_side_are_all_kept(tree: Any, tmp_path: Path) -> None:
    folders = [tmp_path / f"w{n}" for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda folder: TrustStore(tree.home).grant(folder, "d", []), folders))
    assert all(TrustStore(tree.home).is_trusted(folder, "d") for folder in folders)


def test_digest_ignores_layout_and_words_but_not_order_or_values(tree: Any) -> None:
    first = digest(tree, '{"mcp": {"a": {"command": ["x"]}}, "ui": {"theme": "t"}}')
    assert (
        digest(tree, '{\n// c\n"mcp": {"a": {"command": ["x"],}}, "ui": {"theme": "u"}, "instructions": ["a"]}')
        == first
    )
    assert digest(tree, '{"mcp": {"a": {"command": ["y"]}}}') != first
    assert digest(tree, '{"mcp": {"b": {"command": ["x"]}}}') != first
    assert digest(tree, '{"mcp": {"a": {"command": ["x"], "environment": {"A": "1"}}}}') != first
    rules = digest(tree, '{"permission": {"a": "allow", "b": "deny"}}')
    assert digest(tree, '{"permission": {"b": "deny", "a": "allow"}}') != rules
    assert digest(tree, '{"permission": {"a": "allow", "b": "ask"}}') != rules


def test_digest_is_the_same_before_and_after_trust(tree: Any) -> None:
    tree.project('{"mcp": {"a": {"command": ["x"]}}, "permission": {"bash": "ask"}}')
    settings = tree.load()
    parts = project_trust_items(settings)
    assert parts
    assert project_trust_items(settings.with_trust()) == parts
    assert json.loads(parts.data) == [[["mcp", "a"], {"command": ["x"]}], [["permission", "bash"], "ask"]]


def test_a_rule_that_asks_could_lift_a_deny_of_the_person_so_trust_is_about_it(tree: Any) -> None:
    tree.project('{"permission": {"bash": "ask"}}')
    settings = tree.load()
    assert project_trust_items(settings).lines == ('permission.bash = "ask"',)
    assert settings.pending_trust == ()
    tree.project('{"permission": {"bash": "deny"}}')
    assert not project_trust_items(tree.load())


def test_nothing_dangerous_needs_no_trust(tree: Any) -> None:
    tree.project('{"instructions": ["a.md"]}')
    assert not project_trust_items(tree.load())
    assert not project_trust_items(tree.load().with_trust())


def test_listing_shows_programs_and_variables_but_no_keys(tree: Any) -> None:
    tree.project(
        json.dumps(
            {
                "mcp": {
                    "a": {"command": ["sh", "-c", "x"], "environment": {"LD_PRELOAD": "./e.so", "API_TOKEN": "hunter2"}}
                },
                "models": {"profiles": [{"name": "p", "apiKey": "hunter2", "headers": {"X-Any": "hunter2"}}]},
                "provider": {"base_url": "https://u:hunter2@host/v1", "api_key": "{env:X}"},
            }
        )
    )
    settings = tree.load()
    text = "\n".join(project_trust_items(settings).lines) + repr(settings.pending_trust)
    assert "hunter2" not in text
    assert all(shown in text for shown in ('"sh", "-c", "x"', "./e.so", "{env:X}", "@host/v1"))


def test_listing_shows_that_a_key_changed(tree: Any) -> None:
    def lines(key: str) -> tuple[str, ...]:
        tree.project(json.dumps({"provider": {"api_key": key}}))
        return project_trust_items(tree.load()).lines

    assert lines("one") != lines("two")


def test_grant_of_a_changed_config_can_be_compared(tree: Any, store: TrustStore) -> None:
    tree.project('{"mcp": {"a": {"command": ["x"]}}}')
    old = project_trust_items(tree.load())
    store.grant(tree.work, old.digest, old.lines)
    tree.project('{"mcp": {"a": {"command": ["y"]}}}')
    new = project_trust_items(tree.load())
    assert not store.is_trusted(tree.work, new.digest)
    previous = store.find_grant(tree.work) or TrustGrant("")
    assert (previous.parts, new.lines) == (('mcp.a = {"command": ["x"]}',), ('mcp.a = {"command": ["y"]}',))
