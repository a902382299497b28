"""Trust grants on disk, and the settings that a grant covers."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
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
    reopened = TrustStore(tree.home)
    assert reopened.is_trusted(tree.work, "d")
    assert not reopened.is_trusted(tree.work, "e")
    assert not reopened.is_trusted(tmp_path, "d")
    assert not reopened.is_trusted(tree.work / "sub", "d")
    previous = reopened.find_grant(tree.work)
    assert previous is not None
    assert (previous.digest, previous.parts, previous.when[:2]) == ("d", ("mcp.x = 1",), "20")
    store.grant(tree.work, "e", [])
    assert not reopened.is_trusted(tree.work, "d")
    assert (store.revoke(tree.work), store.revoke(tree.work)) == (True, False)
    assert reopened.find_grant(tree.work) is None


def test_rule_actions_are_not_masked(tree: Any) -> None:
    tree.project('{"permission": {"bash": {"*token*": "allow"}}}')
    assert project_trust_items(tree.load()).lines == ('permission.bash.*token* = "allow"',)


def test_folder_is_identified_by_its_real_path(tree: Any, store: TrustStore, tmp_path: Path) -> None:
    store.grant(tree.work, "d", [])
    link = tmp_path / "link"
    link.symlink_to(tree.work)
    assert store.is_trusted(link, "d")
    link.unlink()
    link.symlink_to(tmp_path)
    assert not store.is_trusted(link, "d")


def test_names_that_are_not_utf8_are_distinguished(tree: Any, store: TrustStore, tmp_path: Path) -> None:
    raw = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    store.grant(raw, "d", [])
    assert store.is_trusted(raw, "d")
    assert not store.is_trusted(tmp_path / "\\xff", "d")


def test_file_is_private_and_no_temporary_file_remains(tree: Any, store: TrustStore) -> None:
    store.grant(tree.work, "d", [])
    file = tree.home / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tree.home.iterdir()) == ["trust.json", "trust.lock"]


def test_home_is_created_for_the_user_only(tmp_path: Path) -> None:
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
def test_corrupt_file_trusts_nothing_with_one_note(tree: Any, store: TrustStore, data: bytes) -> None:
    tree.write(tree.home / "trust.json", data)
    assert store.find_grant(tree.work) is None
    assert not store.is_trusted(tree.work, "")
    assert len(store.notes) == (1 if data else 0)
    store.grant(tree.work, "d", [])
    assert store.is_trusted(tree.work, "d")


@pytest.mark.parametrize("kind", ["symlink", "writable", "fifo", "folder"])
def test_unsafe_file_trusts_nothing(tree: Any, store: TrustStore, kind: str) -> None:
    store.grant(tree.work, "d", [])
    file = tree.home / "trust.json"
    content = file.read_bytes()
    if kind == "writable":
        file.chmod(0o666)
    else:
        file.unlink()
    if kind == "symlink":
        file.symlink_to(tree.write(tree.work / "evil.json", content))
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    assert not store.is_trusted(tree.work, "d")
    assert "nothing is trusted" in store.notes[0]


def test_grant_replaces_a_symlink(tree: Any, store: TrustStore) -> None:
    victim = tree.write(tree.work / "victim", "precious")
    (tree.home / "trust.json").symlink_to(victim)
    store.grant(tree.work, "d", [])
    assert victim.read_text() == "precious"
    assert not (tree.home / "trust.json").is_symlink()
    assert store.is_trusted(tree.work, "d")


def test_unwritable_home_is_an_error(tree: Any, tmp_path: Path) -> None:
    blocked = tree.write(tmp_path / "file", "x")
    with pytest.raises(UsageError, match="cannot be written"):
        TrustStore(blocked / "home").grant(tree.work, "d", [])


def test_failed_write_keeps_the_old_file(tree: Any, store: TrustStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.grant(tree.work, "d", [])

    def disk_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(UsageError, match="no space left"):
            store.grant(tree.work, "e", [])
    assert store.is_trusted(tree.work, "d")
    assert sorted(path.name for path in tree.home.iterdir()) == ["trust.json", "trust.lock"]


def test_concurrent_grants_are_all_stored(tree: Any, tmp_path: Path) -> None:
    folders = [tmp_path / f"w{n}" for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda folder: TrustStore(tree.home).grant(folder, "d", []), folders))
    assert all(TrustStore(tree.home).is_trusted(folder, "d") for folder in folders)


def test_digest_ignores_layout_and_harmless_keys(tree: Any) -> None:
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
    items = project_trust_items(settings)
    assert items
    assert project_trust_items(settings.with_trust()) == items
    data = [[["mcp", "a"], {"command": ["x"]}], [["permission", "bash"], "ask"]]
    assert items.digest == sha256(json.dumps(data, separators=(",", ":")).encode()).hexdigest()


def test_trust_covers_ask_rules_because_they_could_override_a_deny(tree: Any) -> None:
    tree.project('{"permission": {"bash": "ask"}}')
    settings = tree.load()
    assert project_trust_items(settings).lines == ('permission.bash = "ask"',)
    assert settings.pending_trust == ()
    tree.project('{"permission": {"bash": "deny"}}')
    assert not project_trust_items(tree.load())


def test_harmless_settings_need_no_trust(tree: Any) -> None:
    tree.project('{"instructions": ["a.md"]}')
    assert not project_trust_items(tree.load())
    assert not project_trust_items(tree.load().with_trust())


def test_lines_show_programs_and_variables_but_no_keys(tree: Any) -> None:
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
    assert all(part in text for part in ('"sh", "-c", "x"', "./e.so", "{env:X}", "@host/v1"))


def test_lines_show_that_a_key_changed(tree: Any) -> None:
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
