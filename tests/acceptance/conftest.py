"""The `missing` mark for acceptance scenarios of features that do not exist yet.

Such a scenario has `@pytest.mark.missing("what")` and raises NotImplementedError. When you implement the feature, write
the test with the `ostler` fixture and remove the mark. A marked test that passes or fails differently is an error.
"""

import pytest
from tests.frontends.terminal import Terminal


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "missing(what): the feature that does not exist yet")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Turn `missing` into a strict xfail that names the requirements and the feature."""
    for mark in item.iter_markers("missing"):
        ids = ", ".join(name for req in item.iter_markers("req") for name in req.args)
        reason = f"{ids}: {mark.args[0]}"
        item.add_marker(pytest.mark.xfail(strict=True, raises=NotImplementedError, reason=reason))


@pytest.fixture
def terminal(ostler):
    """`terminal("chat", …)` starts the command line in a pseudo-terminal."""
    terminals: list[Terminal] = []

    def start(*args, **options) -> Terminal:
        terminals.append(Terminal(ostler, *args, **options))
        return terminals[-1]

    yield start
    for opened in terminals:
        opened.close()
