"""Suggested patterns for "always allow" rules."""

import pytest

from ostler.policy.shell.rule_patterns import suggest_rule_pattern
from ostler.policy.wildcard import matches


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("ls -la src", "ls *"),
        ("ls", "ls *"),
        ("git checkout -b x", "git checkout *"),
        ("git stash pop", "git stash pop *"),
        ("git", "git"),
        ("git -C dir status", "git -C dir status"),
        ("npm run build -- --watch", "npm run build *"),
        ("npm test", "npm test *"),
        ("docker compose up -d", "docker compose up *"),
        ("docker ps", "docker ps *"),
        ("kubectl get pods", "kubectl get *"),
        ("gh pr list", "gh pr list *"),
        ("gh pr", "gh pr"),
        ("make test", "make test *"),
        ("make", "make"),
        ("./gradlew build", "./gradlew build *"),
        ("python script.py a", "python script.py *"),
        ("python -m pytest -q", "python -m pytest *"),
        ("python -c print(1)", "python -c print(1)"),
        ("bash -c ls", "bash -c ls"),
        ("bash build.sh fast", "bash build.sh *"),
        ("xargs ls", "xargs ls"),
        ("env X=1 ls", "env X=1 ls"),
        ("find . -name *.py", "find . -name ?.py"),
        ("", ""),
    ],
)
def test_suggested_pattern(line, pattern):
    assert suggest_rule_pattern(line.split()) == pattern


@pytest.mark.parametrize(
    "line", ["ls", "ls -la", "git log --oneline", "npm run build", "find . -name *.py", "env X=* ls"]
)
def test_pattern_matches_its_own_command(line):
    assert matches(suggest_rule_pattern(line.split()), line)


def test_pattern_does_not_match_other_commands():
    assert not matches(suggest_rule_pattern(["git", "log"]), "git push")
    assert not matches(suggest_rule_pattern(["npm", "run", "build"]), "npm run deploy")
    assert not matches(suggest_rule_pattern(["bash", "-c", "ls *"]), "bash -c ls; whatever")
