"""Git in the workspace of the line client."""

import subprocess

import pytest


@pytest.fixture
def git(ostler):
    """`git("add", "-A")` runs git in the workspace without user settings."""
    names = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*words: str) -> None:
        subprocess.run(["git", *words], cwd=ostler.workspace, env=ostler.environment(names), check=True)

    run("init", "-q")
    return run
