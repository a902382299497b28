"""The repo map: which files a prompt is about, within limits, and which are never read."""

import time

import pytest

from ostler.knowledge.outlines import outline
from ostler.knowledge.repo_map import (
    MAX_FILE_BYTES,
    build_map,
    new_paths,
    prompt_symbols,
    renamed_symbols,
)

pytestmark = pytest.mark.req("EN-7")


def write(root, path, text):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def shown(root, prompt, budget=6000):
    return [file.path for file in build_map(str(root), prompt).select(prompt, budget)]


def test_named_file_is_shown_alone(tmp_path):
    write(tmp_path, "a/pages.py", "def page_count(): ...\n")
    write(tmp_path, "shop.py", "from a.pages import page_count\n")
    assert shown(tmp_path, "page_count in pages.py is wrong") == ["a/pages.py"]


def test_file_is_found_by_the_words_of_the_prompt(tmp_path):
    write(tmp_path, "units/heat.py", "def to_fahrenheit(celsius): ...\n")
    for number in range(200):
        write(tmp_path, f"other/part_{number}.py", f"def load_{number}(path): ...\n")
    assert shown(tmp_path, "The conversion from celsius to fahrenheit gives wrong results.") == ["units/heat.py"]


def test_rename_shows_every_file_with_the_name(tmp_path):
    write(tmp_path, "users.py", "def get_user(): ...\n")
    write(tmp_path, "api.py", "from users import get_user\n")
    write(tmp_path, "report.py", "from users import get_user\n")
    write(tmp_path, "other.py", "x = 1\n")
    assert sorted(shown(tmp_path, "Rename get_user to find_user everywhere")) == ["api.py", "report.py", "users.py"]


def test_prompt_without_matching_words_shows_the_readme(tmp_path):
    write(tmp_path, "README.md", "# Paperclip\n")
    write(tmp_path, "src/deep/module.py", "x = 1\n")
    assert shown(tmp_path, "what is this?")[0] == "README.md"


def test_modules_of_a_failing_test_are_shown(tmp_path):
    write(tmp_path, "clock.py", "def to_text(): ...\n")
    write(tmp_path, "test_clock.py", "from clock import to_text\n")
    write(tmp_path, "zoo.py", "x = 1\n")
    files = build_map(str(tmp_path), "The tests fail.", ["test_clock.py"]).files
    assert {file.path for file in files[:2]} == {"clock.py", "test_clock.py"}


@pytest.mark.parametrize("path", [".env", "server.pem", "id_rsa", "config.yaml", "build/out.py", "app.min.js"])
def test_sensitive_and_generated_files_are_not_read(tmp_path, path):
    write(tmp_path, path, "password = 'celsius'\n")
    assert build_map(str(tmp_path), "the password").files == []


def test_sensitive_file_is_read_only_if_it_is_named(tmp_path):
    write(tmp_path, "config.json", "{}\n")
    assert shown(tmp_path, "set the port in config.json") == ["config.json"]


def test_ignored_binary_large_and_linked_files_are_not_read(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text("celsius = 1\n")
    root = tmp_path / "work"
    write(root, ".gitignore", "ignored.py\n")
    write(root, "ignored.py", "celsius = 1\n")
    write(root, "large.py", "celsius = 1\n" * MAX_FILE_BYTES)
    (root / "data.bin").write_bytes(b"\x7fELF\2\1\1\0celsius" + bytes(range(256)) * 3)
    (root / "link.py").symlink_to(outside)
    assert [file.path for file in build_map(str(root), "celsius").files] == []


def test_budget_limits_what_is_shown_and_listed(tmp_path):
    for number in range(8):
        write(tmp_path, f"heat_{number}.py", "# celsius\n" * 100)
    repo_map = build_map(str(tmp_path), "celsius")
    files = repo_map.select("celsius", 2500)
    assert len(files) == 2
    assert len(repo_map.render(files, 30)) < 60
    assert repo_map.render(files, 30).endswith("more files")


def test_map_is_the_same_each_time(tmp_path):
    for number in range(30):
        write(tmp_path, f"d{number % 3}/f{number}.py", f"def celsius_{number}(): ...\n")
    first, second = (build_map(str(tmp_path), "celsius and kelvin") for _ in range(2))
    assert first == second
    assert first.render([], 500) == second.render([], 500)


def test_large_tree_is_read_only_in_part(tmp_path):
    for number in range(1500):
        write(tmp_path, f"d{number // 100}/f{number}.py", "celsius = 1\n" * 20)
    start = time.process_time()
    repo_map = build_map(str(tmp_path), "where is celsius defined?")
    assert time.process_time() - start < 2.0
    assert (len(repo_map.paths), len(repo_map.files) <= 400) == (1500, True)


def test_missing_folder_gives_an_empty_map(tmp_path):
    assert build_map(str(tmp_path / "gone"), "x").files == []


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.py", "MAX = 1\nasync def f(a,\n  b): ...\nclass C(B):\n  def m(self): ...\n", ["MAX", "f", "C"]),
        ("a.ts", "export async function f(a: A) {}\nexport class C {}\nconst x = 1\n", ["f", "C", "x"]),
        ("a.go", "func (s *S) Run(a int) {}\ntype S struct {}\n", ["Run", "S"]),
        ("a.rs", "pub fn f(a: u8) -> u8 {}\nstruct S;\n", ["f", "S"]),
        ("a.java", "public class A {\n  public int size(int a) {\n  }\n}\n", ["A", "size"]),
        ("a.rb", "class A\n  def size\n  end\nend\n", ["A", "size"]),
        ("a.sh", "run() {\n}\nPATH=1\n", ["run", "PATH"]),
        ("a.md", "# Title\n\ntext\n", ["Title"]),
        ("a.xyz", "def f(): ...\n", []),
    ],
)
def test_outline_lists_top_level_names(path, text, names):
    assert list(outline(path, text)) == names


def test_symbols_look_like_names_in_code():
    assert prompt_symbols("Rename the class Cfg, use `total` and call find(x) or getUser in MAX_SIZE") == {
        "Cfg",
        "total",
        "find",
        "getUser",
        "MAX_SIZE",
    }


@pytest.mark.parametrize(
    ("prompt", "pair"),
    [
        ("Rename the function get_user to find_user in all files.", ("get_user", "find_user")),
        ("rename `Cfg` to `Settings`", ("Cfg", "Settings")),
        ("Rename a.py to b.py", None),
        ("fix it", None),
    ],
)
def test_rename_is_recognized(prompt, pair):
    assert renamed_symbols(prompt) == pair


def test_files_that_do_not_exist_are_new():
    assert new_paths("Write fizz.py and src/b.js like a.py, e.g. with x.append(1).", ["a.py"]) == [
        "fizz.py",
        "src/b.js",
    ]
