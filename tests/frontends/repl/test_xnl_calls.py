"""Calls of the XNL dialect in the chat."""

import pytest
from tests.conftest import at

from ostler.testing.model_server import text

CALL = 'SysBuiltIn.write_file({ path: "a.txt", content: "x" })'
BLOCK = f'!unquote_start\n<tool_call id="c1" #>{CALL}</#>\n!unquote_end'


@pytest.mark.req("CL-5", "TL-4")
@pytest.mark.parametrize("after", ["", "\nThat is all."], ids=["last", "with text behind it"])
def test_line_of_an_approved_call_is_printed_once(terminal, models, after):
    with models.playing(text(f"I write.\n{BLOCK}{after}"), text("Done.")) as server:
        term = terminal("chat", "--dialect", "xnl", *at(server))
        term.ready()
        term.type("go\r")
        term.wait_for("allow")
        term.type("y\r")
        term.wait_for("Done.")
        shown = "\n".join(term.lines())
    assert shown.count("⏺ SysBuiltIn.write_file") == 1, shown
