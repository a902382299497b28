"""Ostler's home directory and the names of project folders in it."""

import os
import stat
from pathlib import Path

import pytest

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, find_home, project_id, require_home

pytestmark = pytest.mark.req("SE-1", "DX-4")


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"HOME": "/u"}, "/u/.ostler"),
        ({"HOME": "/u", "OSTLER_HOME": "/x"}, "/x"),
        ({"OSTLER_HOME": "/x"}, "/x"),
        ({"HOME": "/u", "OSTLER_HOME": "~/y"}, "/u/y"),
        ({"HOME": "/u", "OSTLER_HOME": "~"}, "/u"),
        ({"HOME": "/u", "OSTLER_HOME": ""}, "/u/.ostler"),
        ({"OSTLER_HOME": "rel"}, f"{os.getcwd()}/rel"),
        ({}, None),
        ({"HOME": ""}, None),
        ({"HOME": "rel"}, None),
    ],
)
def test_find_home(env: dict[str, str], path: str | None) -> None:
    assert find_home(env) == (Path(path) if path else None)


def test_missing_home_is_an_error() -> None:
    with pytest.raises(UsageError, match="set HOME or OSTLER_HOME"):
        require_home({})


def test_home_is_created_for_the_user_only(tmp_path: Path) -> None:
    home = ensure_home({"HOME": str(tmp_path)})
    assert (home, stat.S_IMODE(home.stat().st_mode)) == (tmp_path / ".ostler", 0o700)
    assert ensure_home({"HOME": str(tmp_path)}) == home


def test_unusable_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ostler").write_text("a file")
    with pytest.raises(UsageError, match="cannot be created"):
        ensure_home({"HOME": str(tmp_path)})
    with pytest.raises(UsageError, match="cannot be created"):
        ensure_home({"OSTLER_HOME": "/a\0b"})
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="is not writable"):
        ensure_home({"OSTLER_HOME": str(tmp_path / "x")})


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/home/Me/My Project", "home-me-my_project"),
        ("/a//b/./c", "a-b-c"),
        ("/", "project"),
        ("/…", "_"),
        ("/a_b-c", "a_b-c"),
        ("/x\\y", "x-y"),
        ("/" + "d/" * 200 + "end", ("d-" * 49 + "end")[-100:].lstrip("-")),
    ],
)
def test_project_id(path: str, slug: str) -> None:
    name = project_id(Path(path))
    assert name[:-9] == slug
    assert len(name[-8:]) == 8


def test_project_ids_are_unique() -> None:
    paths = ["/a/b", "/a-b", "/A/b", "/a b", "/a_b", "/a/b/c", "/a\udcff"]
    assert len({project_id(Path(path)) for path in paths}) == len(paths)
