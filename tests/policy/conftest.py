"""Fixtures of the policy tests: a fixed home directory, which occurs in the corpora, and a folder with programs."""

import pytest

from ostler.policy.shell import analyse


@pytest.fixture(autouse=True, scope="session")
def _home():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/home/somebody")
        yield


@pytest.fixture
def check(request, tmp_path):
    """Write the `FILES` of the test module as programs, and return a function that analyses a command line there."""
    for name, text in request.module.FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return lambda line: analyse(line, cwd=str(tmp_path))
