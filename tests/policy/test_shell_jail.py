"""Compares the analysis with real runs: bash runs command lines in a jail (bubblewrap)."""

import random
import re
import shutil
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ostler.policy.shell import analyse

CORPUS = Path(__file__).parents[1] / "data" / "shell"
BASE = ["bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
JAIL = [*BASE, "--die-with-parent", "--new-session", "--as-pid-1"]  # all processes end with the first one
RUN = 700  # number of corpus lines to run; the sample changes when the corpus grows
INTENDED_CHANGES = (
    "git mv",
    "git revert",
    "git stash",
    "git switch",
    "npm init",  # completes package.json
    'sqlite3 db.sqlite "insert',
    "sqlite3 db.sqlite 'insert",
)  # the lost content can be restored

FIXTURE = r"""
set -e
mkdir -p src docs empty
for f in notes.txt a.txt b.txt log.txt src/main.py src/app.py docs/guide.md x y f; do
    printf 'line1 %s\nline2\nline3\n' $f > $f
done
printf 'notes.txt\n' > list.txt; printf '1,2\n3,4\n' > data.csv
printf '#!/bin/sh\necho script\n' > script.sh; chmod +x script.sh
echo '{"name":"x","version":"1","scripts":{}}' > package.json
printf 'all test clean:\n\t@echo made\n' > Makefile
head -c 2000 /dev/zero > big.bin
mkdir /tmp/other; echo evil > /tmp/other/notes.txt
tar cf archive.tar -C /tmp/other notes.txt; tar czf archive.tgz -C /tmp/other notes.txt
python3 -c "import shutil; shutil.make_archive('archive', 'zip', '/tmp/other')"
python3 -c "import sqlite3; c = sqlite3.connect('db.sqlite'); c.execute('create table t(a)'); c.commit()"
ln -s notes.txt link.txt
git init -q -b main .; git config user.email a@b; git config user.name n
git add -A; git commit -qm one; git branch topic; echo change >> a.txt; git commit -qam two; echo dirty >> b.txt
"""


pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.req("SH-5")]


@pytest.fixture(scope="module", autouse=True)
def jail():
    if not shutil.which("bwrap") or not shutil.which("bash"):
        pytest.skip("bubblewrap or bash is not installed")
    if subprocess.run([*JAIL, "bash", "-c", ":"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap does not work on this machine")


def state(root):
    """Return every file of a tree with its mode and content, without `.git`."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name == ".git" or name.startswith(".git/"):
            continue
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
        if stat.S_ISLNK(mode):
            content = str(path.readlink()).encode()
        found[name] = (mode, content)
    return found


def lost(before, after):
    """Return the files that are gone or different; appended text is not a loss."""
    return [
        name
        for name, (mode, content) in before.items()
        if name not in after or after[name][0] != mode or not after[name][1].startswith(content)
    ]


def run_jailed(root, script, *arguments):
    command = [*JAIL, "--bind", str(root), str(root), "--chdir", str(root), "--setenv", "HOME", "/tmp"]
    limited = ["timeout", "-s", "KILL", "1", "bash", "-c", script, *arguments]
    subprocess.run([*command, *limited], stdin=subprocess.DEVNULL, capture_output=True, check=False)


@pytest.fixture(scope="module")
def fixture(tmp_path_factory):
    root = tmp_path_factory.mktemp("fixture")
    command = [*JAIL, "--bind", str(root), str(root), "--chdir", str(root), "--setenv", "HOME", "/tmp"]
    subprocess.run([*command, "bash", "-c", FIXTURE], check=True, capture_output=True)
    return root


def test_ordinary_lines_lose_nothing(fixture, tmp_path):
    corpus = [line.replace("⏎", "\n") for line in (CORPUS / "harmless.txt").read_text("utf-8").splitlines() if line]
    lines = random.Random(len(corpus)).sample(corpus, RUN)
    before = state(fixture)

    def losses(numbered):
        number, line = numbered
        root = tmp_path / str(number)
        subprocess.run(["cp", "-a", str(fixture), str(root)], check=True)
        if analyse(line, cwd=str(root)).verdict == "ordinary":
            run_jailed(root, 'eval "$0"', line)
        lost_files = lost(before, state(root))
        shutil.rmtree(root, ignore_errors=True)
        return (line, lost_files)

    with ThreadPoolExecutor(2) as pool:
        found = dict(pool.map(losses, enumerate(lines)))
    assert {
        line: lost_files for line, lost_files in found.items() if lost_files and not line.startswith(INTENDED_CHANGES)
    } == {}


def test_dangerous_lines_lose_something(fixture, tmp_path):
    for number, line in enumerate(
        ["rm notes.txt", "mv a.txt b.txt", "chmod 000 notes.txt", "echo > notes.txt", "git clean -fdx; rm x"]
    ):
        root = tmp_path / str(number)
        subprocess.run(["cp", "-a", str(fixture), str(root)], check=True)
        assert analyse(line, cwd=str(root)).verdict == "confirm"
        run_jailed(root, 'eval "$0"', line)
        subprocess.run(["chmod", "-R", "u+rw", str(root)], check=True)
        assert lost(state(fixture), state(root)), line


# markers: small programs M1…M20 that record that they ran


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


class ScriptGenerator:
    """Generates shell scripts that run markers directly and indirectly."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def marker(self):
        self.count = self.count % 20 + 1
        return f"M{self.count}"

    def name(self):
        marker = self.marker()
        forms = (
            marker,
            marker,
            f"'{marker}'",
            f"{marker[0]}''{marker[1:]}",
            f"\\{marker}",
            f"$(echo {marker})",
            f"`echo {marker}`",
            f"{{{marker},a}}",
            f"$'\\x4d'{marker[1:]}",
        )
        return self.random.choice(
            (*forms, f"{marker[0]}$@{marker[1:]}", f"{marker[0]}\\\n{marker[1:]}", f"${{unset:-{marker}}}")
        )

    def noise(self):
        fragments = (
            "'",
            '"',
            "`",
            "\\",
            "$",
            "{",
            "}",
            "(",
            ")",
            "#",
            "\n",
            ";",
            "'a'",
            '"b"',
            "${x:-'}'}",
            "$((1))",
            "\\'",
            "a#b",
            "$(:)",
        )
        return "".join(self.random.choice(fragments) for _ in range(self.random.randint(0, 3)))

    def line(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            return self.random.choice(
                (self.name, self.name, lambda: ": " + self.noise(), lambda: f': "{self.noise()}"')
            )()
        return self.random.choice((self._nested, self._nested, self._wrapped, self._indirect))(depth - 1)

    def _nested(self, depth):
        a, b = self.line(depth), self.line(depth)
        ticked = re.sub(r"([\\`])", r"\\\1", a)
        forms = (
            f"{a};{b}",
            f"{a}\n{b}",
            f"{a} && {b}",
            f"{a} || {b}",
            f"{a} | {b}",
            f"( {a}\n)",
            f"{{ {a}\n}}",
            f": $({a}\n)",
            f': "$({a}\n)"',
            f": `{ticked}`",
            f": ${{u:-$({a}\n)}}",
            f"if {a}\nthen {b}\nfi",
            f"case a in (a) {a}\n;;esac",
            f": <({a}\n)",
            f": <<E1\n$({a}\n)\nE1\n",
            f": <<'E2'; {a}\n{self.noise()}\nE2\n",
            f"a=($({a}\n))",
            f"[[ $({a}\n) ]]",
            f"! {a}",
            f"{a} & wait",
            f"for i in 1 2; do {a}\ndone",
            f": ${{a[{self.noise()}$({a}\n)]}}",
            f"{a} # {self.noise()}\n{b}",
            f": $((1 + $({a}\n)))",
            f"(({a});{b})",
            f': "${{x:-{self.noise()}}}"; {a}',
            f": '{self.noise()}'; {a}",
            f": $'{self.noise()}';{a}",
        )
        return self.random.choice(forms)

    def _wrapped(self, depth):
        c = quote(self.line(depth))
        forms = (
            f"sh -c {c}",
            f"bash -c {c}",
            f"env x=1 bash -c {c}",
            f"bash <<< {c}",
            f"eval {c}",
            f"trap {c} EXIT",
            f'x={c}; eval "$x"',
            f'x={c}; bash -c "$x"',
            f"printf '%s\\n' {c} | bash",
            f"echo a | xargs -I@ bash -c {c}",
            f"timeout 2 nice sh -c {c}",
            f"find / -maxdepth 0 -exec bash -c {c} \\;",
            f"printf '%s\\n' {c} > /tmp/s; sh /tmp/s",
            f". <(printf '%s\\n' {c})",
        )
        return self.random.choice(forms)

    def _indirect(self, depth):
        m, n, body = self.marker(), self.marker(), self.line(depth)
        forms = (
            f"x={m}; $x",
            f"x={m[0]}; y={m[1:]}; $x$y",
            f'a=({m} b); "${{a[@]}}"',
            f'set -- {m} b; "$@"',
            f'g() {{ "$@"; }}; g {m}',
            f"for c in {m} {n}; do $c; done",
            f"for c in a b; do x=$y; $x; y={m}; done",
            f"x={m}; false && x=:; $x",
            f"x={m}; (x=:); $x",
            f"if false; then x=:; else x={m}; fi; $x",
            f"x=:; g() {{ x={m}; }}; g; $x",
            f"x='{m} a'; $x",
            f"x='$(echo {m})'; eval \"$x\"",
            f"echo {m} | sh",
            f"echo {m} | xargs env",
            f"echo {m} | while read l; do $l; done",
            f"sh <(echo {m})",
            f"g() {{ {body}\n}}; g",
            f"cat <<E | sh\n{m}\nE\n",
            f"{{ echo {m}; }} | sh",
            f"IFS=_; x=a_{m}; set -- $x; $2",
            f"x=:; : && x={m} || x=:; $x",
        )
        return self.random.choice(forms)


MARK = 'for k in $(seq 20); do printf "#!/bin/sh\\necho M$k >> \\$OUT\\n" > bin/M$k; chmod +x bin/M$k; done'
RUN_ALL = r"""
i=0; root=$PWD
while IFS= read -r -d '' s; do
    (
        export OUT=$root/out/$i PATH=$root/bin:/usr/bin:/bin
        cd /tmp; exec < /dev/null > /dev/null 2>&1
        timeout -s KILL 3 bash -c "$s"
    )
    rm -f /tmp/s; i=$((i+1))
done < in
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_every_command_that_runs_was_found(tmp_path, seed):
    generator = ScriptGenerator(seed)
    lines = [generator.line(generator.random.randint(1, 3)) for _ in range(1000)]
    for folder in ("bin", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in").write_text("\0".join(lines) + "\0")
    command = [*JAIL, "--bind", str(tmp_path), str(tmp_path), "--chdir", str(tmp_path), "bash", "-c"]
    subprocess.run([*command, MARK], check=True)
    subprocess.run([*command, RUN_ALL], check=False, capture_output=True)
    ran = {int(path.name): set(path.read_text().split()) for path in (tmp_path / "out").iterdir()}
    assert len(ran) > 500
    missed = {}
    for number, names in ran.items():
        found = analyse(lines[number], cwd="/tmp")
        found_names = {simple.words[0].rpartition("/")[2] for simple in found.commands}
        if found.verdict == "ordinary" and names - found_names:
            missed[lines[number]] = names - found_names
    assert missed == {}
