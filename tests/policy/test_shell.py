"""The analysis of a command line: its commands, paths, written files, and the user's patterns."""

import os

import pytest

from ostler.policy.shell import analyse

EXISTING = {"/w", "/w/.", "/w/notes.txt", "/w/src", "/w/src/.", "/w/src/main.py", "/etc", "/etc/.", "/etc/passwd"}


def analyse_line(line, **more):
    return analyse(line, cwd="/w", exists=EXISTING.__contains__, **more)


def command_texts(line):
    return [command.text for command in analyse_line(line).commands]


@pytest.mark.req("SH-5", "PM-1")
@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git commit -m x", ["git commit -m x"]),
        ("git commit -m 'a b'", ["git commit -m a b"]),
        ("X=log; git $X", ["git log"]),
        ("ls && pwd; date | cat", ["ls", "pwd", "date", "cat"]),
        ("timeout 5 ls -l", ["timeout 5 ls -l", "ls -l"]),
        ("sh -c 'ls; pwd'", ["sh -c ls; pwd", "ls", "pwd"]),
        ("echo $(date)", ["date", "echo …"]),
        ("cat <<EOF\n$(date)\nEOF", ["date", "cat"]),
        ("f() { ls $1; }; f src", ["f src", "ls src"]),
        ("for c in ls pwd; do $c; done", ["ls", "pwd"]),
        ("find . -exec wc -l {} +", ["find . -exec wc -l {} +", "wc -l …"]),
        ("echo a b | xargs ls", ["echo a b", "xargs ls", "ls a b"]),
        ("x=1", []),
        ("> new.txt", []),
        ("# nothing", []),
        ("", []),
    ],
)
def test_every_command_is_listed(line, commands):
    assert command_texts(line) == commands


@pytest.mark.parametrize(
    ("line", "literal"),
    [
        ("ls src", True),
        ("ls *.py", True),
        ("X=src; ls $X", True),
        ("ls $X", False),
        ("ls $(pwd)", False),
        ("ls $(echo src)", True),
        ("cat <(ls)", False),
        ("$X", False),
        ("/bin/l?", False),
    ],
)
def test_literal_is_set_if_every_word_is_known(line, literal):
    assert analyse_line(line).commands[-1].literal is literal


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat /etc/passwd", ("/etc/passwd",)),
        ("cat ../x", ("/x", "/w/../x")),
        ("cat notes.txt", ("/w/notes.txt",)),
        ("cat nothing", ()),
        ("cd /etc; cat passwd", ("/etc/passwd",)),
        ("cd src && cat main.py", ("/w/src/main.py",)),
        ("grep -f/etc/passwd x", ("/etc/passwd",)),
        ("tool --file=/etc/passwd", ("/etc/passwd",)),
        ("curl https://example.com/a", ()),
        ("sed '/foo/d' notes.txt", ("/w/notes.txt",)),
        ("cat < /etc/passwd", ("/etc/passwd",)),
        ("echo x > /etc/new", ("/etc/new",)),
        ("ls 2>&1", ()),
        ("/bin/ls", ()),
        ("cat $X/y", ()),
    ],
)
def test_paths_are_resolved_from_the_working_directory(line, paths):
    assert analyse_line(line).commands[-1].paths == paths


@pytest.mark.parametrize(
    ("line", "written_paths"),
    [
        ("echo x > new.txt", ("/w/new.txt",)),
        ("echo x >> notes.txt", ("/w/notes.txt",)),
        ("cd src; echo x > y", ("/w/src/y",)),
        ("ls | tee a b", ("/w/a", "/w/b")),
        ("curl -o page https://example.com", ("/w/page",)),
        ("sort -o out notes.txt", ("/w/out",)),
        ("ls > /dev/null 2>&1", ()),
        ("ls > $X", ()),
        ("sh -c 'ls > z'", ("/w/z",)),
    ],
)
def test_written_paths_are_listed(line, written_paths):
    assert analyse_line(line).written_paths == written_paths


@pytest.mark.parametrize(
    "line", ["ls 'a", "echo $(", "if true", "ls )", "cat <<E", "done", "a && ", "(ls", "${x", "`ls"]
)
def test_unparsable_lines_need_approval(line):
    found = analyse_line(line)
    assert (found.verdict, found.parsed) == ("confirm", False)
    assert "cannot be parsed" in found.reason


@pytest.mark.req("SH-6")
def test_commands_before_a_syntax_error_are_evaluated():
    assert analyse_line("rm -rf /; ls 'a").verdict == "deny"


@pytest.mark.parametrize(
    "character", ["\0", "\r", "\x1b", "\u200b", "\u202e", "\u2066", "\U000e0041", "\ufeff", "\x85"]
)
def test_invisible_characters_need_approval(character):
    found = analyse_line(f"ls a{character}b")
    assert found.verdict == "confirm"
    assert "invisible characters" in found.reason


@pytest.mark.req("SH-3", "SH-6")
def test_invisible_characters_do_not_hide_other_reasons():
    found = analyse_line("rm a\u200b")
    assert (found.verdict, found.reason) == ("confirm", "it contains invisible characters; rm: deletes files")
    found = analyse_line("rm -rf / \u200b")
    assert found.verdict == "deny"
    assert "invisible characters" in found.reason
    assert "the whole file system" in found.reason


def test_tabs_newlines_and_letters_of_any_script_are_ordinary():
    assert analyse_line("ls\t-l\n./écho 'naïve 日本 → ✓'").verdict == "ordinary"


@pytest.mark.req("SH-6", "SH-7")
@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("curl https://x", "^curl"),
        ("CURL https://x", "curl"),
        ("ls; c''url https://x", "^curl"),
        ("sh -c 'curl x'", "^curl"),
        ("git push origin main", r"git\s+push"),
        ("npm 'publish('", "publish("),
        ("ls 'a", "ls"),
    ],
)
def test_blacklisted_line_is_denied(line, pattern):
    found = analyse_line(line, blacklist_patterns=[pattern])
    assert found.verdict == "deny"
    assert pattern in found.reason


@pytest.mark.req("SH-3")
def test_danger_patterns_require_approval():
    assert analyse_line("npm publish", danger_patterns=["npm publish"]).verdict == "confirm"
    assert analyse_line("npm test", danger_patterns=["npm publish"]).verdict == "ordinary"


@pytest.mark.req("SH-3", "SH-6")
@pytest.mark.parametrize("pattern", ["", "^$", "(?!)", "rm"])
def test_patterns_never_lower_the_verdict(pattern):
    assert analyse_line("rm x", danger_patterns=[pattern]).verdict != "ordinary"
    assert analyse_line("rm -rf /", danger_patterns=[pattern], blacklist_patterns=[]).verdict == "deny"


def test_expensive_pattern_does_not_hang():
    line = "echo " + "a" * 4000 + "!"
    assert analyse_line(line, blacklist_patterns=[r"(a+)+$"]).verdict == "ordinary"


@pytest.mark.req("SH-7")
def test_a_line_too_long_for_a_pattern_is_refused():
    line = "echo " + "a" * 5000 + "; deploy now"
    assert analyse_line(line, blacklist_patterns=["deploy(?!ment)"]).verdict == "deny"
    assert analyse_line("echo deployment", blacklist_patterns=["deploy(?!ment)"]).verdict == "ordinary"


@pytest.mark.req("SH-7")
@pytest.mark.parametrize("line", ["echo \ud83d; deploy now", r"echo $'\ud83d'; deploy now"])
def test_patterns_are_searched_next_to_half_of_a_surrogate_pair(line):
    assert analyse_line(line, blacklist_patterns=["deploy"]).verdict == "deny"
    assert analyse_line(line, danger_patterns=["deploy"]).verdict == "confirm"


def test_patterns_work_without_re2(monkeypatch):
    from ostler.policy.shell import analysis

    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    analysis._compile_search.cache_clear()
    assert analyse_line("npm version", blacklist_patterns=["VERSION"]).verdict == "deny"
    assert analyse_line("npm version", blacklist_patterns=["version("]).verdict == "ordinary"
    assert analyse_line("npm 'version('", blacklist_patterns=["version("]).verdict == "deny"
    analysis._compile_search.cache_clear()


@pytest.mark.req("SH-3")
@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("cd src && echo x > main.py", "confirm"),
        ("cd src && echo x > notes.txt", "ordinary"),
        ("cd nowhere && echo x > notes.txt", "ordinary"),
        ("cd nowhere; echo x > notes.txt", "confirm"),
        ("cd nowhere || exit 1; echo x > notes.txt", "ordinary"),
        ("mkdir made; cd made; echo x > notes.txt", "ordinary"),
        ("(cd src); echo x > main.py", "ordinary"),
        ("cd src; cd ..; echo x > notes.txt", "confirm"),
        ("cd src; cd -; echo x > notes.txt", "confirm"),
        ("cd $X; echo x > new", "confirm"),
        ("cd /; echo x > w/notes.txt", "confirm"),
        ("pushd src; echo x > main.py", "confirm"),
        ("pushd src; popd; echo x > main.py", "ordinary"),
        ("if x; then cd src; fi; echo x > main.py", "confirm"),
        ("for d in src; do cd $d; done; echo x > main.py", "confirm"),
        ("env -C src sh -c 'echo x > main.py'", "confirm"),
    ],
)
def test_redirections_are_resolved_from_the_working_directory(line, verdict):
    assert analyse_line(line).verdict == verdict


@pytest.mark.req("SH-3")
@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("x=ls; x=rm; $x f", "confirm"),
        ("x=rm; x=ls; $x f", "ordinary"),
        ("x=rm; false && x=ls; $x f", "confirm"),
        ("x=ls; if y; then x=rm; fi; $x f", "confirm"),
        ("x=ls; (x=rm); $x f", "ordinary"),
        ("x=ls; x=rm true; $x f", "ordinary"),
        ("x=ls; f() { x=rm; }; f; $x f", "confirm"),
        ("for i in 1 2; do $x f; x=rm; done", "confirm"),
        ("for o in a b; do echo > $o.new; done", "ordinary"),
        ("for o in a notes; do echo > $o.txt; done", "confirm"),
        ("x=notes.txt; cp src/main.py $x", "confirm"),
        ("x=other.txt; cp src/main.py $x", "ordinary"),
        ("x=$(mktemp); echo hi > $x", "ordinary"),
    ],
)
def test_variable_values_are_tracked(line, verdict):
    assert analyse_line(line).verdict == verdict


def test_path_that_cannot_be_checked_is_assumed_to_exist():
    def exists(path):
        raise OSError(path)

    assert analyse("echo > new", cwd="/w", exists=exists).verdict == "confirm"


@pytest.mark.parametrize("line", ["echo x > 'a\0b'", "cat 'a\0b'", "cd 'a\0b'; echo > x"])
def test_nul_in_a_name_needs_approval(line):
    assert analyse(line, cwd="/w").verdict == "confirm"


def test_file_system_is_used_by_default(tmp_path):
    (tmp_path / "old").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    verdicts = [analyse(f"echo > {name}", cwd=str(tmp_path)).verdict for name in ("old", "dangling", "new")]
    assert verdicts == ["confirm", "confirm", "ordinary"]


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("name", ["~", "~root", "$HOME", "${HOME}", '"$HOME"'])
def test_home_folder_is_expanded(name):
    existing = os.path.expanduser("~root/x" if name == "~root" else "~/x")
    assert analyse(f"echo > {name}/x", cwd="/w", exists=lambda path: path == existing).verdict == "confirm"
    assert analyse(f"echo > {name}/y", cwd="/w", exists=lambda path: path == existing).verdict == "ordinary"


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    ("size", "verdict"),
    [
        ("0", "confirm"),
        ("-10", "confirm"),
        ("'<5'", "confirm"),
        ("$N", "confirm"),
        ("10M", "ordinary"),
        ("+1K", "ordinary"),
    ],
)
@pytest.mark.parametrize(
    "form", ["truncate -s {} gone.log", "truncate gone.log --size={}", "busybox truncate -s {} gone.log"]
)
def test_shortening_a_missing_file_needs_approval(form, size, verdict):
    assert analyse_line(form.format(size)).verdict == verdict


@pytest.mark.req("SH-3")
@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("split -d a.txt part", "confirm"),
        ("split a.txt page --additional-suffix=.txt", "confirm"),
        ("split -a 7 a.txt lon", "confirm"),
        ("csplit -b %d.txt a.txt 1", "confirm"),
        ("zstd -d -f packed.zst", "confirm"),
        ("split a.txt new", "ordinary"),
        ("split a.txt lon", "ordinary"),
        ("zstd -d packed.zst", "ordinary"),
    ],
)
def test_writing_parts_over_existing_files_needs_approval(tmp_path, line, verdict):
    for name in ("a.txt", "part07", "pageab.txt", "longername", "xx7.txt", "packed"):
        (tmp_path / name).write_text("x")
    assert analyse(line, cwd=str(tmp_path)).verdict == verdict
