"""A script that an earlier part of the command line may have created or changed is asked about."""

import pytest

FILES = {
    "f.txt": "precious\n",
    "y.sh": "rm f.txt\n",
    "ok.sh": "echo hi\n",
    "clean.mk": "all:\n\trm f.txt\n",
    "src/y.sh": "rm f.txt\n",
    "gen.py": "print(1)\n",
    "tool.py": "#!/usr/bin/env python3\nprint(1)\n",
    "app/Makefile": "all:\n\techo hi\ntest:\n\techo hi\n",
    "app/package.json": '{"scripts": {"test": "jest", "build": "tsc"}}',
    "app/justfile": "test:\n    echo hi\n",
}


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "cp y.sh z.sh && sh z.sh",
        "cp y.sh z.sh; ./z.sh",
        "cp -n y.sh z.sh; ./z.sh",
        "cp y.sh z; ./z",
        "ln -s y.sh z.sh; sh z.sh",
        "ln y.sh z.sh; . ./z.sh",
        "install -m755 y.sh z.sh; ./z.sh",
        "mkdir t; cd t; cp ../y.sh .; cd ..; sh t/y.sh",
        "mkdir t; cp -t t y.sh; sh t/y.sh",
        "cp -r src lib; sh lib/y.sh",
        "ln -s src lib; ./lib/y.sh",
        "cp clean.mk GNUmakefile; make",
        "cp clean.mk src/Makefile; make -C src",
        "git checkout other; sh ok.sh",
        "git -C . checkout other && ./ok.sh",
        "git pull; source ok.sh",
        "git stash pop; sh < ok.sh",
        "bash -c 'git switch x'; sh ok.sh",
        "echo $(git merge x); sh ok.sh",
        "tar xf a.tar -C new; sh z.sh",
        "unzip a.zip; ./z",
        "make ok.o; sh ok.sh",
        "python3 gen.py && sh ok.sh",
        "our-own-tool; sh ok.sh",
        "./tool.py; ./ok.sh",
        "for i in 1 2; do sh ok.sh; git checkout other; done",
        "sh ok.sh & git checkout other",
        "trap 'sh ok.sh' EXIT; git checkout other",
        "f() { sh ok.sh; }; git checkout other; f",
        "git checkout other; xargs sh ok.sh < f.txt",
    ],
)
def test_a_script_that_the_line_may_change_needs_approval(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", False)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "cd app && git checkout main && make test",
        "cd app && git pull && npm test",
        "cd app && git pull && just test",
        "cd app && git stash pop; npm ci",
        "unzip new.zip && make",
        "python3 gen.py && ./tool.py",
    ],
)
def test_tasks_and_programs_that_the_line_may_change_are_unknown_programs(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", True)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "cp ok.sh new.sh && bash new.sh",
        "cp f.txt g.txt && cd app && make",
        "cd app && git status && git fetch; make",
        "cd app && npm install && npm test",
        "cd app && npm ci && npm run build",
        "cd app && make && make test",
        "mkdir -p build && cd build && cmake .. && make",
        "pip install -e . && pytest",
        "python3 -m venv .venv && . .venv/bin/activate && pip install -r r.txt",
        "[ -f .env ] && . ./.env; ls",
        "set -e; cd app; cd ..; git diff; ./ok.sh",
        "docker ps; date; ls | sort; ./ok.sh",
        "mkdir -p out && touch out/x && sh ok.sh",
        "sh ok.sh && git checkout main",
        "sh ok.sh & wait; ls",
        "gcc a.c -o a && ./a",
        "cargo build && ./target/debug/app",
    ],
)
def test_ordinary_lines_stay_ordinary(check, line):
    found = check(line)
    assert (found.verdict, found.reason) == ("ordinary", "")
