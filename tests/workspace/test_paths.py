import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.core.errors import PathError
from ostler.workspace.paths import (
    check_path,
    escape_path,
    name_existing_tilde,
    printable_path,
    relative_to_root,
    resolve_path,
    split_path,
)


@pytest.mark.req("FS-2")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("a\0b", "NUL"),
        ("~", "~"),
        ("~/x", "~"),
        ("~root/x", "~"),
        ("a\ud800", "surrogate"),
        ("x" * 256, "too long"),
        ("é" * 128, "too long"),
        ("a/" * 2048, "too long"),
    ],
)
def test_invalid_path_is_rejected_with_reason(path, reason):
    with pytest.raises(PathError) as error:
        check_path(path)
    assert error.value.fault.code == "bad_path"
    assert reason in str(error.value)
    str(error.value).encode()


@pytest.mark.req("FS-2")
@pytest.mark.parametrize("name", ["~notes.txt", "~", "~root", "~$report.docx", "~a\nb"])
def test_a_name_that_begins_with_a_tilde_is_found_if_it_exists(tmp_path, name):
    assert name_existing_tilde(name, str(tmp_path)) == name
    (tmp_path / name).mkdir()
    assert name_existing_tilde(name, str(tmp_path)) == f"./{name}"
    assert name_existing_tilde(f"{name}/x", str(tmp_path)) == f"./{name}/x"
    assert name_existing_tilde(escape_path(name), str(tmp_path)) == f"./{escape_path(name)}"
    assert name_existing_tilde("~other/x", str(tmp_path)) == "~other/x"


@pytest.mark.parametrize("path", ["a~", "./~x", "x" * 255, "a b", " a", "-rf", "a\nb", "é/日本", "..."])
def test_unusual_names_are_valid(path):
    assert check_path(path) == path


@pytest.mark.req("FS-2")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b", "a/b"),
        ("./a//b/.", "a/b/"),
        ("a/", "a/"),
        (".", "."),
        ("/w", "."),
        ("/w/", "."),
        ("//w//a", "a"),
        ("/w/./a", "a"),
        ("/link/a", "a"),
        ("../a", "../a"),
        ("/w/../w/a", "../w/a"),
        ("/w-evil/a", None),
        ("/wx", None),
        ("/", None),
        ("/W/a", None),
        ("/other", None),
    ],
)
def test_relative_to_root(path, expected):
    assert relative_to_root(path, ("/w", "/link")) == expected


def test_every_path_is_inside_root_directory():
    assert relative_to_root("/etc/passwd", ("/",)) == "etc/passwd"
    assert relative_to_root("/", ("/",)) == "."


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", (".", "a")),
        ("a/b", ("a", "b")),
        ("a/", ("a/", "")),
        ("..", ("..", "")),
        (".", (".", "")),
        ("a/..", ("a/..", "")),
    ],
)
def test_split_path_gives_empty_name_for_directories(path, parts):
    assert split_path(path) == parts


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "link", "out", "none", "..c"]), max_size=6).map("/".join))
def test_resolve_path_equals_realpath(tmp_path_factory, path):
    base = tmp_path_factory.getbasetemp().resolve() / "resolve"
    if not base.exists():
        (base / "w/a/b").mkdir(parents=True)
        (base / "w/link").symlink_to("a")
        (base / "w/a/out").symlink_to(base)
    root = str(base / "w")
    path = path.lstrip("/") or "."
    assert resolve_path(path, root) == os.path.realpath(f"{root}/{path}")
    assert resolve_path(f"{root}/{path}", root) == os.path.realpath(f"{root}/{path}")
    assert resolve_path(f"/{path}", "/") == os.path.realpath(f"/{path}")
    assert resolve_path(str(base), root) == str(base)


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_path_is_printable_on_one_line(path):
    printable = printable_path(path)
    assert printable.isprintable()
    assert escape_path(path).encode().decode() == escape_path(path)
    assert len(path) > 200 or printable == escape_path(path)
