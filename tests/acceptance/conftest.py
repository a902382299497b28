"""The acceptance ledger's `missing` mark, for what does not exist yet.

A scenario that waits is `@pytest.mark.missing("what")` over a body that raises NotImplementedError. Whoever builds the
capability writes the body for real, against the `ostler` fixture, and takes the mark away; a mark left on a test that
passes, or that fails in any other way, fails the suite.
"""

import pytest
from tests.frontends.repl.conftest import Terminal


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "missing(what): the capability this scenario waits for")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Turn `missing` into a strict xfail that names the requirements and the capability."""
    for mark in item.iter_markers("missing"):
        ids = ", ".join(name for req in item.iter_markers("req") for name in req.args)
        reason = f"{ids}: {mark.args[0]}"
        item.add_marker(pytest.mark.xfail(strict=True, raises=NotImplementedError, reason=reason))


@pytest.fixture
def terminal(ostler):
    """`terminal("chat", …)` starts the command line on a pseudo-terminal of its own."""
    made: list[Terminal] = []

    def start(*args, **options) -> Terminal:
        made.append(Terminal(ostler, *args, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()
