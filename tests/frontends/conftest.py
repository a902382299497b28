"""Runs the command line on a pseudo-terminal, or in tmux."""

import pytest
from tests.frontends.multiplexer import Tmux
from tests.frontends.terminal import Terminal


@pytest.fixture
def terminal(ostler):
    """`terminal("chat", …)` starts the command line on a new pseudo-terminal."""
    made: list[Terminal] = []

    def start(*args, **options) -> Terminal:
        made.append(Terminal(ostler, *args, **options))
        return made[-1]

    yield start
    for started in made:
        started.close()


@pytest.fixture
def tmux(ostler, tmp_path):
    """`tmux("chat", …)` starts the command line in a new tmux server."""
    made: list[Tmux] = []

    def start(*args, **options) -> Tmux:
        made.append(Tmux(ostler, tmp_path, *args, **options))
        return made[-1]

    yield start
    for started in made:
        started.close()
