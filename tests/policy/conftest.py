"""Fixtures of the policy tests: a fixed home directory that is not a temporary folder and occurs in the corpora."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _home():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/home/somebody")
        yield
