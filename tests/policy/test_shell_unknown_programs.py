"""Unknown programs, and words that are known only at run time."""

import pytest

from ostler.core.permission import UNKNOWN_PROGRAM
from ostler.policy.shell import analyse
from ostler.policy.shell.program_table import group, known_programs, rows, with_dangerous_subcommands

EXISTING = {"/w", "/w/notes.txt"}


def verdict(line):
    return analyse(line.replace("⏎", "\n"), cwd="/w", exists=EXISTING.__contains__).verdict


DANGEROUS = [
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
UNKNOWN = [
    "frobnicate",
    "frobnicate run",
    "frobnicate --name x -v",
    "frobnicate -o new.txt",
    "frobnicate -e 'print(1)'",
    "frobnicate -m 'rm the old code'",
    "frobnicate --title 'mv is gone'",
    "frobnicate --message='rm x'",
    "frobnicate 'hello world'",
    "echo 'hook: ls' > new.conf; frobnicate new.conf",
    "FROB_PAGER=cat frobnicate",
    "/usr/local/bin/frobnicate x",
    "~/.local/bin/frobnicate x",
    "env A=1 frobnicate x",
    "sudo-less() { frobnicate x; }; sudo-less",
    "npx frobnicate",
    "npx @frob/nicate x",
    "uvx frobnicate x",
    "git frobnicate",
    "docker frobnicate",
    "kubectl -n x frobnicate",
    "aws s3 frobnicate",
    "az vm frobnicate -n x",
    "gh pr frobnicate",
    "systemctl frobnicate x",
    "cargo frobnicate",
    "format-frobs x",
]
KNOWN = [
    "frobnicate list",
    "frobnicate get delete.txt",
    "frobnicate server list",
    "frobnicate delete --help",
    "frobnicate -V",
    "frobnicate apply --dry-run",
    "./frobnicate delete x",
    "bin/frobnicate x",
    "/w/tools/frobnicate x",
    ".venv/bin/frobnicate x",
    "node_modules/.bin/frobnicate x",
    "poetry run frobnicate x",
    "uv run frobnicate x",
    "bundle exec frobnicate x",
    "docker run --rm image frobnicate x",
    "frobnicate() { ls; }; frobnicate x",
    "alias frobnicate=ls; frobnicate x",
    "npm rm lodash",
    "cargo remove serde",
    "clang-tidy-17 x.c",
    "x86_64-linux-gnu-objdump -d x",
    "git st",
    "cargo +nightly fmt",
    "pwsh -c 'Get-ChildItem | Format-Table'",
    "kubectl -n x get pods",
    "aws frob describe-things",
    "az vm show -n x",
    "docker reset-everything --help",
]


@pytest.mark.req("SH-5")
def test_unknown_program_with_dangerous_arguments_needs_approval():
    assert [line for line in DANGEROUS if verdict(line) != "confirm"] == []


@pytest.mark.req("SH-5")
def test_unknown_program_needs_approval_for_no_other_reason():
    analyses = {line: analyse(line, cwd="/w", exists=EXISTING.__contains__) for line in UNKNOWN}
    assert [
        line for line, analysis in analyses.items() if (analysis.verdict, analysis.no_danger_found) != ("confirm", True)
    ] == []
    assert [line for line, analysis in analyses.items() if "know" not in analysis.reason] == []
    assert [
        line for line, analysis in analyses.items() if not any(command.unknown_reason for command in analysis.commands)
    ] == []


@pytest.mark.req("SH-5")
def test_known_read_only_and_project_programs_are_ordinary():
    assert [line for line in KNOWN if verdict(line) != "ordinary"] == []


def test_danger_is_reported_per_command():
    analysis = analyse("ls && frobnicate x", cwd="/w")
    assert [(command.text, analysis.command_danger(command)) for command in analysis.commands] == [
        ("ls", "ordinary"),
        ("frobnicate x", UNKNOWN_PROGRAM),
    ]
    analysis = analyse("rm x && frobnicate x", cwd="/w")
    assert {analysis.command_danger(command) for command in analysis.commands} == {"confirm"}


def test_known_programs_are_not_in_other_tables():
    names = known_programs()
    assert len(names) > 1500
    assert sorted(names & set(rows("always"))) == []
    assert sorted(names & set(rows("verbs"))) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git reset --hard --help", "ordinary"),
        ("aws s3 rm s3://b/x --dryrun", "ordinary"),
        ("apt-get -s purge x", "ordinary"),
        ("helm uninstall x --dry-run", "ordinary"),
        ("kubectl delete pod x --dry-run=none", "confirm"),
        ("git -c core.pager='rm x' log --dry-run", "confirm"),
        ("git -c alias.x='!rm x' x --help", "confirm"),
        ("docker compose run web rm x --dry-run", "confirm"),
        ("npm exec rimraf x --dry-run", "confirm"),
        ("docker exec c rm x --help", "confirm"),
        ("kubectl exec p -- rm x --help", "confirm"),
        ("shutdown -h", "confirm"),
        ("defaults delete x --help", "confirm"),
    ],
)
def test_help_and_dry_runs_are_ordinary_unless_they_belong_to_another_command(line, expected):
    assert verdict(line) == expected


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("word", ["$(cat f)", "$OPTS", '"${OPTS[@]}"', "-$X", "--$X"])
def test_option_known_only_at_run_time_needs_approval(word):
    assert [name for name in sorted(group("option-driven")) if verdict(f"{name} {word} x") != "confirm"] == []


@pytest.mark.req("SH-5")
def test_subcommand_known_only_at_run_time_needs_approval():
    assert [name for name in with_dangerous_subcommands() if verdict(f"{name} $ACTION x") != "confirm"] == []


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
def test_harmless_unknown_words_are_ordinary(line):
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
def test_loop_that_starts_programs_endlessly_is_denied(line, expected):
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
def test_changing_startup_files_and_path_needs_approval(line, expected):
    assert verdict(line) == expected
