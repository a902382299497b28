"""What the tests of policy share: a home that is nobody's scratch folder, wherever the tests run."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _home():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/home/somebody")
        yield
