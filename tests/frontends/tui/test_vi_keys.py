"""Vi keys of the input field, against what vi does."""

import pytest
from tests.frontends.tui.tui_user import full_screen

KEYS = {"$": "dollar_sign", "^": "circumflex_accent", "~": "tilde", ".": "full_stop", ",": "comma", ";": "semicolon"}
TEXT = "one two, three"


@pytest.mark.req("TU-4")
@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("keys", "text", "at"),
    [
        *[
            ("0dw", "two, three", 0),
            ("0wx", "one wo, three", 4),
            ("0ex", "on two, three", 2),
            ("0$x", "one two, thre", 12),
        ],
        *[
            ("0ftx", "one wo, three", 4),
            ("0ttx", "onetwo, three", 3),
            ("$Fox", "one tw, three", 6),
            ("$Tox", "one two three", 7),
        ],
        *[
            ("0fo;x", "one tw, three", 6),
            ("0fe;,x", "on two, three", 2),
            ("0dfo", ", three", 0),
            ("0dtt", "two, three", 0),
        ],
        *[
            ("0Wx", "one wo, three", 4),
            ("0WEx", "one two three", 7),
            ("$Bx", "one two, hree", 9),
            ("$bbx", "one two three", 7),
        ],
        *[
            ("0s!", "!ne two, three", 1),
            ("0S!", "!", 1),
            ("$X", "one two, thre", 12),
            ("0~", "One two, three", 1),
        ],
        *[("0dwu", TEXT, None), ("0x.", "e two, three", 0), ("03x", " two, three", 0), ("0d2w", ", three", 0)],
        *[
            ("0cwX", "X two, three", 1),
            ("0yyp", f"{TEXT}\n{TEXT}", None),
            ("0ywP", f"one {TEXT}", 3),
            ("0rX", "Xne two, three", 0),
        ],
        *[
            ("0D", "", 0),
            ("0C!", "!", 1),
            ("0qx", "ne two, three", 0),
            ("0dqx", "ne two, three", 0),
            ("0xp", "noe two, three", 1),
        ],
        *[("0wdb", "two, three", 0), ("0i>", f">{TEXT}", 1), ("0A!", f"{TEXT}!", 15), ("$a!", f"{TEXT}!", 15)],
    ],
)
async def test_command_does_what_vi_does(open_session, keys, text, at):
    session = await open_session()
    async with full_screen(session, keys={"editing": "vi"}) as user:
        prompt = user.app.chat.prompt
        prompt.insert(TEXT)
        await user.press("escape", *(KEYS.get(key, key) for key in keys))
        assert prompt.text == text
        assert at is None or prompt.cursor_location == (0, at)


@pytest.mark.req("TU-4")
async def test_commands_on_lines_and_the_mode_is_shown(open_session):
    session = await open_session()
    async with full_screen(session, keys={"editing": "vi"}) as user:
        prompt, footer = user.app.chat.prompt, user.app.chat.query_one("#footer")
        assert "INSERT" in footer.lines[0]
        prompt.insert("a\nb\nc")
        await user.press("escape")
        await user.wait_until(lambda: "NORMAL" in footer.lines[0])
        await user.press(*"ggddJ")
        assert prompt.text == "b c"
        await user.press(*"onew", "escape", *"kdGiend", "escape")
        assert prompt.text == "end"
