"""No input makes the analysis raise or hang."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.policy.shell import analyse

TOKENS = [
    "'", '"', "`", "$(", ")", "((", "))", "$((", "${x", "${x:-", "}", "{", "{a,b}", "{1..9}", '\\', '\n', " ",
    ";", "&", "&&", "|", "||", ">", ">>", '<<E\n', '\nE\n', "<<<", "<(", ">&", "&>", "<>", "[[ ", " ]]", "[",
    "]", "!", "#", "~", "$", "$'", "*", "?", "=", "x=", "x+=", "if ", "then ", "fi", "for x in ", "do ", "done",
    "case ", " in ", "esac", ";;", "while ", "function f ", "f() ", "coproc ", "time ", "rm ", "ls ", "echo ",
    "eval ", "sh -c ", "env ", "xargs ", "find . ", "-exec ", "git ", "-c ", "sed ", "s/a/b/w", "awk ",
    "{print > ", "python -c ", "open(", "perl -e ", "tar x", "cp ", "cd ", "-f ", "--", "a", "/", "..", "$x",
    "$@", "-i", "trap ", "alias a=", "make ", "sqlite3 ", "docker run ", "ssh h ", "@P}", '\ue000', '\x00', "é",
    "😀",
]  # fmt: skip


def check(line):
    found = analyse(line, cwd="/w", exists=lambda path: len(path) % 2 == 0)
    assert found.verdict in {"deny", "confirm", "ordinary"}
    assert bool(found.reason) == (found.verdict != "ordinary")
    assert found.parsed or found.verdict != "ordinary"
    assert all(path.startswith("/") for command in found.commands for path in command.paths)
    assert all(path.startswith("/") for path in found.written_paths)


@given(st.text(max_size=120))
@examples(150)
def test_any_text_gets_a_verdict(line):
    check(line)


@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
@examples(400)
def test_any_token_sequence_gets_a_verdict(line):
    check(line)


@given(
    st.text(max_size=80),
    st.sampled_from(["sed", "awk", "python3 -c", "perl -e", "node -e", "sqlite3 x", "eval", "make --eval"]),
)
@examples(200)
def test_any_code_gets_a_verdict(text, program):
    check(f"{program} '" + text.replace("'", "'\\''") + "'")


HOSTILE = {
    "one word": lambda n: "a" * n,
    "blanks": lambda n: "echo " + " " * n,
    "arguments": lambda n: "echo " + "a " * (n // 2),
    "commands": lambda n: "a;" * (n // 2),
    "brackets": lambda n: "(" * n,
    "substitutions": lambda n: "$(" * (n // 2),
    "arithmetic": lambda n: "$((" * (n // 3),
    "quotes": lambda n: "'" * n,
    "backticks": lambda n: "`" * n,
    "escaped backticks": lambda n: "\\`" * (n // 2),
    "braces": lambda n: "echo " + "{a,b}" * (n // 5),
    "open braces": lambda n: "{a," * (n // 3),
    "expansions": lambda n: "${x:-" * (n // 5),
    "here-documents": lambda n: "cat <<a\n" * (n // 8),
    "pipes": lambda n: "a|" * (n // 2) + "b",
    "redirections": lambda n: "ls " + ">a " * (n // 3),
    "words and redirections": lambda n: "echo " + "a " * (n // 4) + ">a " * (n // 6),
    "wrappers": lambda n: "env " * (n // 4),
    "folders": lambda n: "cd a;" * (n // 5),
    "links": lambda n: "ln -s a b;" * (n // 10),
    "branches": lambda n: "if a;then x=1;else x=2;fi;" * (n // 26),
    "loops": lambda n: "for a in 1 2;do x=$x$a;done;" * (n // 28),
    "nested loops": lambda n: "for a in 1 2;do " * 20 + "x=$x$a;" + "done;" * 20,
    "functions": lambda n: ";".join(f"f{i}() {{ f{i + 1}; }}" for i in range(n // 20)) + ";f0",
    "variables": lambda n: ";".join(f"x{i}=$x{i - 1}$x{i - 1}" for i in range(n // 16)) + "; $x100",
    "sed": lambda n: "sed '" + "s/a/b/;" * (n // 7) + "' f",
    "awk": lambda n: "awk '" + "{print $1}" * (n // 10) + "' f",
    "awk slashes": lambda n: "awk '" + "/" * n + "' f",
    "python": lambda n: "python -c '" + "x=1\n" * (n // 4) + "'",
    "python brackets": lambda n: "python -c '" + "(" * n + "'",
    "perl opens": lambda n: 'perl -e "' + "open " * (n // 5) + '"',
    "ruby opens": lambda n: 'ruby -e "' + "open " * (n // 5) + '"',
    "node requires": lambda n: 'node -e "' + "require(" * (n // 8) + '"',
    "sql": lambda n: 'psql -c "' + "update a " * (n // 9) + '"',
    "makefile": lambda n: "make --eval='" + "$(shell " * (n // 8) + "'",
    "options": lambda n: "git " + "-c a=b " * (n // 7),
    "arguments of an unknown program": lambda n: "frob " + "a=b -e x -- " * (n // 12),
    "text for an unknown program": lambda n: "frob '" + "a=(;|: " * (n // 7) + "'",
    "code for an unknown program": lambda n: "frob -e '" + "open (" * (n // 6) + "'",
    "nested unknown programs": lambda n: "frob sh -c " * (n // 11),
    "file for an unknown program": lambda n: "echo '" + "a: x\n" * (n // 6) + "' > new; frob new",
    "dashes for a read-only program": lambda n: "hostname " + "-" * n,
    "words for a read-only program": lambda n: "mkcert " + "a" * (n // 2) + " " + "a " * (n // 4) + "-x",
    "printed text": lambda n: "julia -e 'print(" + '"a' * (n // 2) + "'",
    "quoted text": lambda n: "perl -e 'print " + '"' + "\\" * n + "'",
    "unknown words": lambda n: "find . " + "$x " * (n // 3),
    "background loops": lambda n: "while :; do { " * 20 + "a & " * (n // 40) + "} ; done; " * 20,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_lines_are_fast(kind):
    line = HOSTILE[kind](8000)
    start = time.process_time()
    check(line)
    assert time.process_time() - start < 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_lines_of_full_length_are_fast_enough(kind):
    line = HOSTILE[kind](65000)
    start = time.process_time()
    check(line)
    assert time.process_time() - start < 6


@pytest.mark.req("SH-3")
def test_line_that_is_too_long_needs_approval():
    found = analyse("ls " + "a" * 70000, cwd="/w")
    assert (found.verdict, found.parsed) == ("confirm", False)


@pytest.mark.req("SH-3")
def test_many_commands_do_not_hide_a_dangerous_one():
    assert analyse("true; " * 5000 + "rm x", cwd="/w").verdict == "confirm"
    assert analyse("true && " * 60 + "rm -rf /", cwd="/w").verdict == "deny"


@pytest.mark.slow
def test_ordinary_line_takes_less_than_a_millisecond():
    line = "cd src && git log --oneline -5 | head -3 && python -m pytest -q 2>&1 | tail -5"
    analyse(line, cwd="/w")
    best = min(_time(line) for _ in range(20))
    assert best < 0.001


def _time(line):
    start = time.process_time()
    analyse(line, cwd="/w", exists=lambda _: False)
    return time.process_time() - start


@pytest.mark.parametrize("line", ["{path}", "./pipe", "cp {path} copy", "sh {path}", ". {path}", "make -f {path}"])
def test_named_pipe_is_not_waited_for(tmp_path, line):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read_script in (None, lambda path: None):
        assert analyse(line.format(path=pipe), cwd=str(tmp_path), read_script=read_script).verdict


@pytest.mark.parametrize("line", ["/w/\0", "./\0.sh", "/w/\0 x", "cp /w/\0 x", "sh /w/\0", ". /w/\0"])
def test_path_with_a_nul_byte_needs_approval(line):
    for read_script in (None, lambda path: None):
        assert analyse(line, cwd="/w", read_script=read_script).verdict == "confirm"
