"""The index of file names: what letters find, in which order, and that nobody waits for it."""

import threading

import pytest

from ostler.app import file_index
from ostler.app.file_index import FileIndex, list_matching_paths


@pytest.fixture
def root(tmp_path):
    for path in (
        "src/app/main.py",
        "src/app/menu.py",
        "docs/main.md",
        "mainly.txt",
        "build/main.o",
        ".env",
        ".git/config",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / ".gitignore").write_text("build/\n.env\n")
    return tmp_path


def indexed(root):
    index = FileIndex(str(root))
    index.refresh()
    assert index.complete.wait(30)
    return index


@pytest.mark.req("CL-4")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("main", ["mainly.txt", "docs/main.md", "src/app/main.py"]),
        ("MAIN", ["mainly.txt", "docs/main.md", "src/app/main.py"]),
        ("samn", ["src/app/main.py", "src/app/menu.py"]),
        ("app", ["src/app/", "src/app/main.py", "src/app/menu.py"]),
        ("src/app/me", ["src/app/menu.py"]),
        ("env", [".env"]),
        ("zq", []),
        (".*", []),
        ("[", []),
    ],
)
def test_letters_in_order_find_paths_and_the_likeliest_comes_first(root, wanted, found):
    assert indexed(root).find(wanted) == found


@pytest.mark.req("CL-4")
def test_without_letters_folders_come_first_and_what_is_ignored_last(root):
    found = indexed(root).find("")
    assert found[:2] == ["src/", "docs/"] or found[:2] == ["docs/", "src/"]
    assert set(found[-2:]) == {".env", "build/"}
    assert not [path for path in found if path.startswith((".git/", "build/m"))]


def test_names_that_cannot_be_typed_are_left_out(root):
    (root / "evil\x1b[2J.txt").touch()
    (root / "two\nlines").touch()
    assert not [path for path in indexed(root).find("") if not path.isprintable()]


def test_a_link_is_a_name_and_is_not_followed(root):
    (root / "loop").symlink_to(root)
    found = indexed(root).find("loop")
    assert found == ["loop"]


@pytest.mark.req("CL-4")
def test_what_is_known_so_far_is_found_while_the_rest_is_looked_up(root, monkeypatch):
    begun, going_on = threading.Event(), threading.Event()
    names = file_index._walk_paths

    def slowly(top):
        for number, name in enumerate(names(top)):
            if number == 4:
                begun.set()
                assert going_on.wait(30)
            yield name

    monkeypatch.setattr(file_index, "_walk_paths", slowly)
    index = FileIndex(str(root))
    index.refresh()
    assert begun.wait(30)
    assert index.find("docs") == ["docs/"]
    going_on.set()
    assert index.complete.wait(30)
    assert "docs/main.md" in index.find("docs")


def test_many_names_are_compared_only_as_far_as_is_worth_it(root, monkeypatch):
    monkeypatch.setattr(file_index, "MAX_COMPARED", 1)
    index = indexed(root)
    index._paths = index._paths * 2000
    ranked = []
    monkeypatch.setattr(file_index, "_rank", lambda name, low: ranked.append(name) or len(ranked))
    index.find("m")
    assert len(ranked) <= 2000


def test_a_folder_that_is_gone_is_no_error(tmp_path):
    index = indexed(tmp_path / "nowhere")
    assert index.find("") == []


@pytest.mark.req("CL-4")
def test_paths_outside_are_listed_folder_by_folder(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    assert list_matching_paths(str(root / "src"), "../ma") == ["../mainly.txt"]
    assert list_matching_paths("/", "~/s") == ["~/src/"]
    assert list_matching_paths("/", f"{root}/d") == [f"{root}/docs/"]
    assert list_matching_paths("/", "~/.e") == ["~/.env"]
    assert list_matching_paths("/", "/nowhere/at/all") == []


class Clock:
    """Each look at it takes a while, as on a machine that is busy with other things."""

    def __init__(self, step):
        self._now, self._step = 0.0, step

    def monotonic(self):
        self._now += self._step
        return self._now


@pytest.mark.req("CL-4")
@pytest.mark.parametrize(("step", "found"), [(0.1, ["a/9999_last.py"]), (3.0, [])], ids=["slow", "too slow"])
def test_nothing_is_not_said_before_it_is_sure_or_the_time_is_up(monkeypatch, tmp_path, step, found):
    index = FileIndex(str(tmp_path))
    paths = [f"a/{number}.py" for number in range(9999)] + ["a/9999_last.py"]
    index._paths = [file_index._IndexedPath(path, path, False) for path in paths]
    monkeypatch.setattr(file_index, "time", Clock(step))
    assert index.find("9las") == found
