"""Programs that no table knows, and words that are known only when they run."""

import pytest

from ostler.policy import danger_programs as programs
from ostler.policy.danger_subcommands import SUBCOMMANDS
from ostler.policy.shell import analyse

THERE = {"/w", "/w/notes.txt"}


def verdict(line):
    return analyse(line.replace("⏎", "\n"), cwd="/w", exists=THERE.__contains__).verdict


SPEAKING = [
    "frobnicate delete x",
    "frobnicate -y remove x",
    "frobnicate server destroy --force x",
    "frobnicate db:drop",
    "frobnicate batch-delete-items x",
    "frobnicate --purge",
    "frobnicate --delete-all x",
    "frobnicate-rm x",
    "wipe-frobs",
    "frobnicate rm x",
    "frobnicate -- rm x",
    "frobnicate run mv a b",
    "frobnicate -e rm x",
    "frobnicate /bin/rm",
    "frobnicate --tty /sbin/reboot",
    "frobnicate 'rm x' ls",
    "frobnicate --pre-hook 'chmod 000 x'",
    "frobnicate -Dexec=rm",
    "frobnicate 'commands=[\"rm x\"]'",
    "frobnicate --exec 'cat a > notes.txt'",
    "frobnicate sh -c 'echo hi > notes.txt'",
    "frobnicate -e 'file.delete(\"x\")'",
    "frobnicate --eval='os.system(\"x\")'",
    "frobnicate <(echo 'unlink(\"x\")')",
    "frobnicate 'DELETE FROM users'",
    "frobnicate -o notes.txt",
    "frobnicate --output=notes.txt",
    "echo 'hook: rm x' > new.conf; frobnicate new.conf",
    "FROB_PAGER='rm x' frobnicate",
]
SILENT = [
    "frobnicate",
    "frobnicate list",
    "frobnicate get delete.txt",
    "frobnicate --name x -v",
    "frobnicate -o new.txt",
    "frobnicate -e 'print(1)'",
    "frobnicate -- ls",
    "frobnicate sh -c 'ls'",
    "frobnicate -m 'rm the old code'",
    "frobnicate --title 'mv is gone'",
    "frobnicate --message='rm x'",
    "frobnicate 'hello world'",
    "frobnicate delete --help",
    "./frobnicate delete x",
    "npm rm lodash",
    "cargo remove serde",
    "echo 'hook: ls' > new.conf; frobnicate new.conf",
    "FROB_PAGER=cat frobnicate",
]


@pytest.mark.req("SH-5")
def test_a_stranger_that_speaks_of_harm_is_asked_about():
    assert [line for line in SPEAKING if verdict(line) != "confirm"] == []


@pytest.mark.req("SH-5")
def test_a_stranger_that_does_not_is_ordinary():
    assert [line for line in SILENT if verdict(line) != "ordinary"] == []


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("word", ["$(cat f)", "$OPTS", '"${OPTS[@]}"', "-$X", "--$X"])
def test_an_option_that_is_not_known_is_asked_about(word):
    assert [name for name in sorted(programs.OPTION_DRIVEN) if verdict(f"{name} {word} x") != "confirm"] == []


@pytest.mark.req("SH-5")
def test_a_subcommand_that_is_not_known_is_asked_about():
    assert [name for name in SUBCOMMANDS if verdict(f"{name} $ACTION x") != "confirm"] == []


@pytest.mark.parametrize(
    "line",
    [
        'grep -n "$pattern" file',
        'cat "$f"',
        "ls $dir",
        'for f in *.py; do python -m py_compile "$f"; done',
        "for f in tests/*.sh; do bash $f; done",
        "for f in $(git ls-files); do python3 $f; done",
        "echo $(date)",
        'find "$dir" -name "*.py"',
        "find $(git rev-parse --show-toplevel) -type f",
        'python3 "$script" start',
        'bash "$script" --verbose',
        'git checkout "$branch"',
        "kubectl -n $NS get pods",
        "docker logs $id",
        "curl $URL",
        'sort "$f"',
        "make -j$(nproc)",
        'tar czf new.tgz "$dir"',
        "vim $(git diff --name-only | head -3)",
    ],
)
def test_what_is_not_known_where_it_does_not_matter_is_ordinary(line):
    assert verdict(line) == "ordinary"


@pytest.mark.req("SH-6")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("while :; do bash & done", "deny"),
        ("while true; do (sleep 99 &); done", "deny"),
        ("for ((;;)); do ls & done", "deny"),
        ("until false; do { ls & }; done", "deny"),
        ("while true; do ls & sleep 1; done", "ordinary"),
        ("while true; do ls & wait; done", "ordinary"),
        ("for i in 1 2; do ls & done", "ordinary"),
        ("while read x; do ls & done", "ordinary"),
    ],
)
def test_a_loop_that_starts_programs_without_end_is_refused(line, expected):
    assert verdict(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PATH=. ls", "confirm"),
        ("export PATH=:$PATH", "confirm"),
        ("PATH=/tmp/x:$PATH ls", "confirm"),
        ("PATH=/w ls", "confirm"),
        ("PATH=/w/node_modules/.bin:$PATH ls", "ordinary"),
        ("export PATH=$HOME/bin:$PATH", "ordinary"),
        ("echo x >> ~/.bashrc", "confirm"),
        ("tee ~/.ssh/authorized_keys < x", "confirm"),
        ("echo x > .git/hooks/pre-commit", "confirm"),
        ("echo x >> /etc/hosts", "confirm"),
        ("echo x >> .gitignore", "ordinary"),
        ("ssh-keyscan h >> ~/.ssh/known_hosts", "ordinary"),
    ],
)
def test_what_others_run_later_is_not_changed_unasked(line, expected):
    assert verdict(line) == expected
