"""What an analysis tells besides its verdict: the commands, their paths, what is written, and the user's patterns."""

import os

import pytest

from ostler.policy.shell import analyse

THERE = {"/w", "/w/.", "/w/notes.txt", "/w/src", "/w/src/.", "/w/src/main.py", "/etc", "/etc/.", "/etc/passwd"}


def look(line, **more):
    return analyse(line, cwd="/w", exists=THERE.__contains__, **more)


def texts(line):
    return [command.text for command in look(line).commands]


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
def test_every_command_is_told(line, commands):
    assert texts(line) == commands


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
def test_literal_says_that_every_word_is_known(line, literal):
    assert look(line).commands[-1].literal is literal


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat /etc/passwd", ("/etc/passwd",)),
        ("cat ../x", ("/x",)),
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
def test_paths_are_absolute_where_the_command_would_stand(line, paths):
    assert look(line).commands[-1].paths == paths


@pytest.mark.parametrize(
    ("line", "writes"),
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
def test_writes_are_the_files_written_to(line, writes):
    assert look(line).written_paths == writes


@pytest.mark.parametrize(
    "line", ["ls 'a", "echo $(", "if true", "ls )", "cat <<E", "done", "a && ", "(ls", "${x", "`ls"]
)
def test_what_cannot_be_read_is_asked_about(line):
    found = look(line)
    assert (found.verdict, found.parsed) == ("confirm", False)
    assert "cannot be read" in found.reason


@pytest.mark.req("SH-6")
def test_what_was_read_before_an_error_still_counts():
    assert look("rm -rf /; ls 'a").verdict == "deny"


@pytest.mark.parametrize(
    "character", ["\0", "\r", "\x1b", "\u200b", "\u202e", "\u2066", "\U000e0041", "\ufeff", "\x85"]
)
def test_characters_that_cannot_be_seen_are_asked_about(character):
    found = look(f"ls a{character}b")
    assert found.verdict == "confirm"
    assert "cannot be seen" in found.reason


@pytest.mark.req("SH-3", "SH-6")
def test_a_character_that_cannot_be_seen_hides_no_other_reason():
    found = look("rm a\u200b")
    assert (found.verdict, found.reason) == ("confirm", "it holds characters that cannot be seen; rm: deletes files")
    found = look("rm -rf / \u200b")
    assert found.verdict == "deny"
    assert "cannot be seen" in found.reason
    assert "the whole file system" in found.reason


def test_tabs_newlines_and_letters_of_any_script_are_fine():
    assert look("ls\t-l\n./écho 'naïve 日本 → ✓'").verdict == "ordinary"


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
def test_a_blacklisted_line_is_refused(line, pattern):
    found = look(line, blacklist_patterns=[pattern])
    assert found.verdict == "deny"
    assert pattern in found.reason


@pytest.mark.req("SH-3")
def test_danger_patterns_add():
    assert look("npm publish", danger_patterns=["npm publish"]).verdict == "confirm"
    assert look("npm test", danger_patterns=["npm publish"]).verdict == "ordinary"


@pytest.mark.req("SH-3", "SH-6")
@pytest.mark.parametrize("pattern", ["", "^$", "(?!)", "rm"])
def test_patterns_never_take_away(pattern):
    assert look("rm x", danger_patterns=[pattern]).verdict != "ordinary"
    assert look("rm -rf /", danger_patterns=[pattern], blacklist_patterns=[]).verdict == "deny"


def test_a_costly_pattern_does_not_hang():
    line = "echo " + "a" * 4000 + "!"
    assert look(line, blacklist_patterns=[r"(a+)+$"]).verdict == "ordinary"


def test_without_re2_patterns_still_work(monkeypatch):
    from ostler.policy.shell import user_patterns

    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    user_patterns._compile_search.cache_clear()
    assert look("npm version", blacklist_patterns=["VERSION"]).verdict == "deny"
    assert look("npm version", blacklist_patterns=["version("]).verdict == "ordinary"
    assert look("npm 'version('", blacklist_patterns=["version("]).verdict == "deny"
    user_patterns._compile_search.cache_clear()


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
def test_redirections_are_resolved_where_the_shell_stands(line, verdict):
    assert look(line).verdict == verdict


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
def test_variables_are_followed(line, verdict):
    assert look(line).verdict == verdict


def test_a_path_that_cannot_be_asked_about_counts_as_there():
    def exists(path):
        raise OSError(path)

    assert analyse("echo > new", cwd="/w", exists=exists).verdict == "confirm"


@pytest.mark.parametrize("line", ["echo x > 'a\0b'", "cat 'a\0b'", "cd 'a\0b'; echo > x"])
def test_a_nul_in_a_name_is_no_crash(line):
    assert analyse(line, cwd="/w").verdict == "confirm"


def test_the_default_asks_the_file_system(tmp_path):
    (tmp_path / "old").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    verdicts = [analyse(f"echo > {name}", cwd=str(tmp_path)).verdict for name in ("old", "dangling", "new")]
    assert verdicts == ["confirm", "confirm", "ordinary"]


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("name", ["~", "~root", "$HOME", "${HOME}", '"$HOME"'])
def test_a_home_folder_is_found(name):
    there = os.path.expanduser("~root/x" if name == "~root" else "~/x")
    assert analyse(f"echo > {name}/x", cwd="/w", exists=lambda path: path == there).verdict == "confirm"
    assert analyse(f"echo > {name}/y", cwd="/w", exists=lambda path: path == there).verdict == "ordinary"


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
def test_who_shortens_a_file_means_one_that_is_there_by_then(form, size, verdict):
    assert look(form.format(size)).verdict == verdict
