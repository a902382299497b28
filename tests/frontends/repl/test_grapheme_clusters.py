"""Multi-code-point characters in the editor: handled as one and drawn with a known width."""

import os
import pty

import pytest
from prompt_toolkit.application.current import set_app
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.utils import get_cwidth

from ostler.frontends.repl.console import IDLE_MENU
from ostler.frontends.repl.grapheme_clusters import GraphemeProcessor, size_after, size_before
from ostler.frontends.repl.line_editor import LineEditorConsole
from ostler.interaction.answer_menu import AnswerMenu
from ostler.text.width import width

FAMILY, THUMB, HEART, FLAG, ACCENT = "👨‍👩‍👧‍👦", "👍🏽", "❤️", "🇩🇪", "e\u0301"
ALL = (FAMILY, THUMB, HEART, FLAG, ACCENT, "世", "x", "각")


class Typist:
    """Presses keys in an editor without a visible terminal."""

    def __init__(self, console):
        self.console, self.app = console, console._session.app
        self.buffer = console._session.default_buffer

    def press(self, *keys):
        with set_app(self.app):
            for key in keys:
                self.app.key_processor.feed(KeyPress(key))
                self.app.key_processor.process_keys()


@pytest.fixture(params=[False, True], ids=["emacs", "vi"])
async def typist(request):
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as out:
        yield Typist(LineEditorConsole(out, None, vi=request.param))
    os.close(master)


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("character", ALL)
def test_size_of_a_character(character):
    assert size_before(Document(f"a{character}")) == size_after(Document(f"{character}a", 0)) == len(character)
    assert size_before(Document(f"{character}\n")) == size_after(Document("")) == 1


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("character", ALL)
@pytest.mark.sampled(every=2)
async def test_keys_handle_a_character_as_one(typist, character):
    typist.buffer.text = f"a{character}b"
    typist.buffer.cursor_position = 1 + len(character)
    typist.press(Keys.Left)
    assert typist.buffer.cursor_position == 1
    typist.press(Keys.Right, Keys.Backspace)
    assert typist.buffer.text == "ab"
    typist.buffer.insert_text(character, move_cursor=False)
    typist.press(Keys.Delete)
    assert typist.buffer.text == "ab"


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("character", ALL)
def test_width_of_a_character_is_the_width_of_its_parts(character):
    text = f"a{character}b"
    control = BufferControl()
    given = TransformationInput(control, Document(text), 0, lambda at: at, [("", "a"), ("bold", text[1:])], 80, 24)
    made = GraphemeProcessor().apply_transformation(given)
    shown = "".join(fragment[1] for fragment in made.fragments)
    assert all(get_cwidth(code) == width(code) for code in shown)
    assert sum(map(get_cwidth, shown)) == width(shown)
    assert made.source_to_display(len(text)) == len(shown)
    assert made.source_to_display(len(text) - 1) == len(shown) - 1
    assert made.display_to_source(len(shown)) == len(text)
    assert made.source_to_display(len(text) + 3) == len(shown) + 3


@pytest.mark.req("CL-1", "PM-5")
async def test_vi_mode_is_reset_after_a_line_and_at_a_dialog(typist):
    typist.press(*"words")
    typist.app.vi_state.input_mode = InputMode.NAVIGATION
    typist.console.send()
    assert typist.app.vi_state.input_mode == InputMode.INSERT
    typist.app.vi_state.input_mode = InputMode.NAVIGATION
    typist.console.set_menu(AnswerMenu("allow? ", (("y", "Allow"), ("n", "Deny"))))
    typist.console.answer_keys.mark_visible()
    typist.press("y")
    assert typist.console.answer_keys.pending_key == "y"
    typist.console.set_menu(IDLE_MENU)
