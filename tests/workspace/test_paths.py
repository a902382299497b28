import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.core.errors import PathError
from ostler.workspace.paths import check_path, escape_path, printable_path, relative_to_root, resolve_path, split_path


@pytest.mark.req("FS-2")
@pytest.mark.parametrize(
    ("path", "says"),
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
def test_what_cannot_be_a_path_is_refused_and_told_why(path, says):
    with pytest.raises(PathError) as refused:
        check_path(path)
    assert refused.value.fault.code == "bad_path"
    assert says in str(refused.value)
    str(refused.value).encode()


@pytest.mark.parametrize("path", ["a~", "./~x", "x" * 255, "a b", " a", "-rf", "a\nb", "é/日本", "..."])
def test_odd_names_are_still_names(path):
    assert check_path(path) == path


@pytest.mark.req("FS-2")
@pytest.mark.parametrize(
    ("path", "reads"),
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
def test_a_path_reads_from_the_root_or_not_at_all(path, reads):
    assert relative_to_root(path, ("/w", "/link")) == reads


def test_under_the_root_of_all_every_path_is_inside():
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
def test_the_last_name_is_empty_where_only_a_directory_can_be_meant(path, parts):
    assert split_path(path) == parts


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "link", "out", "none", "..c"]), max_size=6).map("/".join))
def test_where_a_path_leads_is_what_the_system_says(tmp_path_factory, path):
    base = tmp_path_factory.getbasetemp().resolve() / "leads"
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
def test_any_path_can_be_shown_on_one_line(path):
    shown = printable_path(path)
    assert shown.isprintable()
    assert escape_path(path).encode().decode() == escape_path(path)
    assert len(path) > 200 or shown == escape_path(path)
