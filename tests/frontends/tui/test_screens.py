"""What each screen shows, at three sizes and in a light and a dark theme, compared with stored SVG pictures.

`OSTLER_TESTS_WRITE_STORED=1` writes the pictures again.
"""

import asyncio
import re
import time
from pathlib import Path

import pytest
from pyte.screens import Char
from tasks.terminal import draw
from tests.frontends.tui.scenes import ANSWER, TOOLS, Projects, run, scenes, turns
from tests.frontends.tui.tui_user import full_screen, say
from tests.stored_examples import rewrite
from textual.color import Color

from ostler.frontends.tui import session_controller, status
from ostler.frontends.tui.arcade import arcade_screen
from ostler.frontends.tui.arcade.waiting_game import WaitingGame
from ostler.frontends.tui.palettes import MIN_CONTRAST, contrast
from ostler.frontends.tui.screens import chat_screen
from ostler.frontends.tui.themes import own_themes
from ostler.interaction import event_feed
from ostler.testing.session_fixture import ASK_ALL

PICTURES = Path(__file__).parents[2] / "data" / "tui"
SIZES = [(120, 36), (80, 24), (50, 20)]
THEMES = ["studio-dark", "studio-light"]
UNCHANGED_SECONDS = 3.0  # after which a screen that differs from its stored picture is the final one


@pytest.fixture
def still(monkeypatch):
    """Make nothing depend on the time."""
    for module in (session_controller, status):
        monkeypatch.setattr(module, "elapsed", lambda seconds: "3 s")
    monkeypatch.setattr(event_feed, "strftime", lambda form, moment: "12:00:00")
    monkeypatch.setattr(chat_screen, "SPIN_SECONDS", (3600.0, 3600.0))
    monkeypatch.setattr(arcade_screen, "FRAME_SECONDS", 3600.0)
    monkeypatch.setattr(WaitingGame, "_next_frame", lambda game: game.show(["(a game)"]))


@pytest.mark.req("TU-1", "TU-2", "TU-9", "TU-5")
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.sampled
async def test_screens_are_as_stored_and_their_text_is_readable(open_session, size, theme, still):
    finish = asyncio.Event()
    session = await open_session(turns(finish), TOOLS, ASK_ALL)
    changed, unread = [], {}
    async with full_screen(session, size=size, theme=theme, projects=Projects(), arcade="invaders") as user:
        async for name in scenes(user, finish):
            picture = PICTURES / f"{name}-{size[0]}x{size[1]}-{theme}.svg"
            stored = picture.read_text("utf-8") if picture.exists() else ""
            strips, drawn = await drawn_screen(user, name, stored)
            rewrite(picture, drawn)
            if stored != drawn:
                changed.append(f"{picture.name}:\n" + "\n".join(strip.text.rstrip() for strip in strips))
            if user.app.screen is user.app.chat:  # other screens dim what is behind them
                unread[name] = sorted(set(unreadable(strips)))
    assert not changed, "\n".join(changed)
    assert not {name: found for name, found in unread.items() if found}


async def drawn_screen(user, name, stored):
    """Return the lines of the screen and their picture, as soon as it is the stored one or does not change any more."""
    ends = time.monotonic() + UNCHANGED_SECONDS
    before = ""
    while True:
        user.app.chat._clear_note()
        await user.pilot.pause(0.02)
        strips = user.app.screen._compositor.render_strips()
        drawn = draw([list(cells(strip)) for strip in strips], name)
        if drawn == stored or (drawn == before and time.monotonic() > ends):
            return strips, drawn
        if drawn != before:
            before, ends = drawn, time.monotonic() + UNCHANGED_SECONDS


def cells(strip):
    for text, style, _ in strip:
        front, back = (_hex(colour) for colour in ((style.color, style.bgcolor) if style else (None, None)))
        for letter in text:
            yield Char(
                letter,
                front,
                back,
                bool(style and style.bold),
                bool(style and style.italic),
                reverse=bool(style and style.reverse),
            )


def _hex(colour):
    return Color.from_rich_color(colour).hex6.lower().removeprefix("#") if colour else "default"


def stored_rows(picture):
    """The words of a picture."""
    return re.sub(r"<[^>]+>", "\n", picture.read_text("utf-8")).replace("\u00a0", " ").split("\n")


@pytest.mark.req("TU-1")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_no_key_hint_is_cut_off(open_session, size):
    async with full_screen(await open_session(), size=size) as user:
        await user.pilot.pause()
        footer = user.app.chat.query_one("#footer")
        shown = footer.render_line(0).text.split("  ")
    assert len(" ".join(shown)) <= size[0]
    labels = {"send", "help", "commands", "sessions", "mode", "panel", "search", "new line", "quit"}
    assert {hint.strip().partition(" ")[2] for hint in shown if hint.strip()} <= labels


@pytest.mark.req("TU-1", "TU-3")
async def test_text_is_readable_in_each_theme_of_ostler(open_session):
    session = await open_session([say(ANSWER)], [], ASK_ALL)
    async with full_screen(session, size=(120, 36), projects=Projects()) as user:
        await run(user, "look at it")
        await user.press("f4")
        found = {}
        for theme in [theme.name for theme in own_themes()]:
            user.app.chat.set_theme(theme)
            await user.pilot.pause()
            await user.pilot.pause()
            if bad := sorted(set(unreadable(user.app.screen._compositor.render_strips()))):
                found[theme] = bad
        assert not found


def unreadable(strips):
    """Yield the texts whose colour is too similar to their background."""
    for strip in strips:
        for text, style, _ in strip:
            if text.strip(" ─│━┼▐▌▔█") and style and style.color and style.bgcolor:
                front, back = (Color.from_rich_color(colour) for colour in (style.color, style.bgcolor))
                if style.reverse:
                    front, back = back, front
                if contrast(front, back) < MIN_CONTRAST:
                    yield text, front.hex, back.hex, round(contrast(front, back), 1)
