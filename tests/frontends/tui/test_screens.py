"""What each screen shows, at three sizes and in light and dark themes, compared with stored pictures of its text.

`OSTLER_TESTS_WRITE_STORED=1` writes the pictures again.
"""

from pathlib import Path

import pytest
from tests.frontends.tui.tui_user import call, full_screen, say
from tests.stored_examples import rewrite
from textual.color import Color

from ostler.core.sessions import SessionSummary
from ostler.frontends.tui.projects import StoredState
from ostler.frontends.tui.palettes import MIN_CONTRAST, contrast
from ostler.frontends.tui.themes import own_themes
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL

PICTURES = Path(__file__).parents[2] / "data" / "tui"
SIZES = [(120, 36), (80, 24), (50, 20)]
THEMES = ["studio-dark", "studio-light"]
ANSWER = """I looked at `greet.py`:

| file | lines |
|------|-------|
| greet.py | 12 |

```python
def greet(name):
    return f"Hello, {name}!"
```

- one
- two
"""


class Projects:
    """Stored sessions for the overview."""

    async def sessions(self):
        waiting = StoredState(SessionSummary("b", "/work/other", "Fix the parser", turns=3), "waiting", is_open=True)
        return [StoredState(SessionSummary("a", "/work/other", "Write the docs", turns=1), branch="main"), waiting]


async def show_answer(user):
    await user.type("look at it")
    await user.wait_for("● two" if "● two" in user.transcript else "two")
    await user.wait_until(lambda: not user.app.chat.controller.turns.busy)


async def show_approval(user):
    await user.type("look at it")
    await user.wait_until(lambda: not user.app.chat.controller.turns.busy and "two" in user.transcript)
    await user.type("run it")
    await user.wait_for("Allow once")


async def show_help(user):
    await user.press("f1")


async def show_palette(user):
    await user.press("f2")


async def show_overview(user):
    await user.press("f5")


SCREENS = {
    "answer": show_answer,
    "approval": show_approval,
    "help": show_help,
    "palette": show_palette,
    "overview": show_overview,
}


def strips_of(app):
    return app.screen._compositor.render_strips()


@pytest.mark.req("TU-1", "TU-2", "TU-9")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screen_is_as_stored_and_its_text_is_readable(open_session, name, size, theme):
    session = await open_session([say(ANSWER), call("probe", subject="make all")], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session, size=size, theme=theme, projects=Projects()) as user:
        await SCREENS[name](user)
        for _ in range(3):
            await user.pilot.pause(0.05)
        user.app.chat._clear_note()
        await user.pilot.pause()
        strips = strips_of(user.app)
        text = "\n".join(strip.text.rstrip() for strip in strips) + "\n"
        picture = PICTURES / f"{name}-{size[0]}x{size[1]}.txt"
        rewrite(picture, text)
        assert text == picture.read_text("utf-8")
        if name == "answer":  # other screens dim what is behind them
            assert not list(unreadable(strips))


@pytest.mark.req("TU-1", "TU-3")
async def test_text_is_readable_in_each_theme_of_ostler(open_session):
    session = await open_session([say(ANSWER)], [], ASK_ALL)
    async with full_screen(session, size=(120, 36), projects=Projects()) as user:
        await show_answer(user)
        await user.press("f4")
        found = {}
        for theme in [theme.name for theme in own_themes()]:
            user.app.chat.set_theme(theme)
            await user.pilot.pause()
            await user.pilot.pause()
            if bad := sorted(set(unreadable(strips_of(user.app)))):
                found[theme] = bad
        assert not found


def unreadable(strips):
    """Yield the texts whose colour is too similar to their background."""
    for strip in strips:
        for text, style, _ in strip:
            if text.strip(" ─│━┼▐▔█") and style and style.color and style.bgcolor:
                front, back = (Color.from_rich_color(colour) for colour in (style.color, style.bgcolor))
                if style.reverse:
                    front, back = back, front
                if contrast(front, back) < MIN_CONTRAST:
                    yield text, front.hex, back.hex, round(contrast(front, back), 1)
