"""The themes of the full-screen client: those of Textual and a set of its own."""

from functools import cache

from textual.app import App
from textual.theme import Theme

DEFAULT_THEME = "studio-dark"
# Names of the line client and of other programs.
ALIASES = {
    "default": "studio-dark",
    "dark": "studio-dark",
    "light": "studio-light",
    "mono": "high-contrast",
    "claude": "studio-dark",
    "gemini": "studio-light",
    "hacker_green": "hacker-green",
}
# The colours of each theme, in the order of `_COLOUR_NAMES`.
_COLOUR_NAMES = ["background", "surface", "panel", "foreground", "primary", "accent", "success", "warning", "error"]
_COLOURS = """
studio-dark    #16181d #1d2027 #262a33 #d6dae2 #7aa2f7 #6ec7c2 #9ece6a #e0af68 #f07178
studio-light   #fbfbf9 #f1f1ec #e4e4dc #26282e #2f5fb3 #0f766e #2e7d32 #9a5b00 #b3261e
high-contrast  #000000 #000000 #303030 #ffffff #66ccff #ffff00 #00ff00 #ffff00 #ff6666
hacker-green   #050805 #0a110a #112011 #7dff8a #39ff57 #b6ffbd #39ff57 #d7ff5f #ff6b57
high-tech-2026 #0b1020 #121a30 #1b2745 #dce6ff #22d3ee #a78bfa #34d399 #fbbf24 #fb7185
atari-800xl    #0a3a5c #0d4770 #125888 #cfe8f7 #8fd0f5 #f5d98f #a5e89a #f5d98f #ff9a8a
commodore-c64  #40318d #4a3a9c #5444a6 #d0c8ff #a59bf0 #9ae29b #9ae29b #eef18f #f0938b
zx-spectrum    #000000 #0d0d0d #1f1f1f #e0e0e0 #00d7d7 #ff66ff #00e000 #e0e000 #ff5555
atari-st       #ffffff #f0fff0 #c8f0c8 #101010 #006000 #007a3d #006b1f #8a5a00 #b00020
amiga-500      #0055aa #0a60b8 #1a70c8 #ffffff #ffaa33 #ffcc66 #aef0a0 #ffcc66 #ffb0a8
ms-dos-xt-pc   #0000a8 #0000b8 #1c1cd0 #e8e8e8 #55ffff #ffff55 #55ff55 #ffff55 #ff8585
mac-one        #ffffff #f4f4f4 #dddddd #000000 #000000 #333333 #1e5c1e #6b4a00 #8f0000
mac-classic    #dddddd #e8e8e8 #cccccc #1a1a1a #333399 #5a4fcf #1f6b2d #7a4b00 #a31515
mac-aqua       #ecf3fb #ffffff #d5e5f7 #1c2733 #1467c8 #0a84a5 #1f7a3a #9a5b00 #c0281f
"""
_LIGHT_THEMES = ("studio-light", "atari-st", "mac-one", "mac-classic", "mac-aqua")


@cache
def own_themes() -> tuple[Theme, ...]:
    """Return the themes that are not part of Textual."""
    themes = []
    for name, *values in map(str.split, _COLOURS.strip().splitlines()):
        colours = dict(zip(_COLOUR_NAMES, values, strict=True))
        dark = name not in _LIGHT_THEMES
        themes.append(Theme(name, **colours, secondary=colours["accent"], dark=dark))  # type: ignore[arg-type]
    return tuple(themes)


def find_theme(app: App[int], name: str) -> str:
    """Return the name of the theme that a name or alias means, or an empty string."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = ALIASES.get(name.strip().lower(), ALIASES.get(wanted, wanted))
    return wanted if wanted in app.available_themes else ""
