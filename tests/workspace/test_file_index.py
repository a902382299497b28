"""The index of file names: matches, their order and time limits."""

import threading

import pytest

from ostler.workspace import file_index
from ostler.workspace.file_index import FileIndex, list_matching_paths


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
    ("query", "found"),
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
def test_best_matches_come_first(root, query, found):
    assert indexed(root).find(query) == found


@pytest.mark.req("CL-4")
def test_empty_query_lists_folders_first_and_ignored_last(root):
    found = indexed(root).find("")
    assert found[:2] == ["src/", "docs/"] or found[:2] == ["docs/", "src/"]
    assert set(found[-2:]) == {".env", "build/"}
    assert not [path for path in found if path.startswith((".git/", "build/m"))]


def test_unprintable_names_are_skipped(root):
    (root / "evil\x1b[2J.txt").touch()
    (root / "two\nlines").touch()
    assert not [path for path in indexed(root).find("") if not path.isprintable()]


def test_symlink_is_listed_but_not_followed(root):
    (root / "loop").symlink_to(root)
    found = indexed(root).find("loop")
    assert found == ["loop"]


@pytest.mark.req("CL-4")
def test_search_during_a_scan(root, monkeypatch):
    started, resume = threading.Event(), threading.Event()
    walk = file_index._walk_paths

    def slowly(top):
        for number, name in enumerate(walk(top)):
            if number == 4:
                started.set()
                assert resume.wait(30)
            yield name

    monkeypatch.setattr(file_index, "_walk_paths", slowly)
    index = FileIndex(str(root))
    index.refresh()
    assert started.wait(30)
    assert index.find("docs") == ["docs/"]
    resume.set()
    assert index.complete.wait(30)
    assert "docs/main.md" in index.find("docs")


def test_number_of_ranked_names_is_limited(root, monkeypatch):
    monkeypatch.setattr(file_index, "MAX_COMPARED", 1)
    index = indexed(root)
    index._paths = index._paths * 2000
    ranked = []
    monkeypatch.setattr(file_index, "_rank", lambda name, query: ranked.append(name) or len(ranked))
    index.find("m")
    assert len(ranked) <= 2000


def test_missing_folder_is_not_an_error(tmp_path):
    index = indexed(tmp_path / "nowhere")
    assert index.find("") == []


@pytest.mark.req("CL-4")
def test_outside_paths_are_completed(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    assert list_matching_paths(str(root / "src"), "../ma") == ["../mainly.txt"]
    assert list_matching_paths("/", "~/s") == ["~/src/"]
    assert list_matching_paths("/", f"{root}/d") == [f"{root}/docs/"]
    assert list_matching_paths("/", "~/.e") == ["~/.env"]
    assert list_matching_paths("/", "/nowhere/at/all") == []


class Clock:
    """A clock that advances with every call, as on a busy machine."""

    def __init__(self, step):
        self._now, self._step = 0.0, step

    def monotonic(self):
        self._now += self._step
        return self._now


@pytest.mark.req("CL-4")
@pytest.mark.parametrize(("step", "found"), [(0.1, ["a/9999_last.py"]), (3.0, [])], ids=["slow", "too slow"])
def test_empty_result_waits_for_the_longer_deadline(monkeypatch, tmp_path, step, found):
    index = FileIndex(str(tmp_path))
    paths = [f"a/{number}.py" for number in range(9999)] + ["a/9999_last.py"]
    index._paths = [file_index._IndexedPath(path, path, False) for path in paths]
    monkeypatch.setattr(file_index, "time", Clock(step))
    assert index.find("9las") == found


class SlowIndex(FileIndex):
    """Finds its names only in the second search."""

    searches = 0

    def refresh(self):
        pass

    def find(self, query, limit=50):
        self.searches += 1
        if self.searches > 1:
            self.complete.set()
        return ["main.py"] if self.complete.is_set() else []


@pytest.mark.req("CL-4")
async def test_search_waits_for_the_first_scan(tmp_path):
    assert await SlowIndex(str(tmp_path)).search("main") == ["main.py"]
