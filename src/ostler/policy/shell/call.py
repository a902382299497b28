"""One command as the judge sees it: its name, its arguments, what it is fed, and ways to look deeper."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from ostler.policy.shell.args import Arg, plain
from ostler.policy.shell.places import Places
from ostler.policy.shell.scope import Scope, Value
from ostler.policy.shell.tree import Node


class Feed(msgspec.Struct, frozen=True):
    """What a standard input is: nothing special, known text, a file, or a pipe whose content is not known.

    Text that was `echoed` holds backslashes that some shells would have read on the way.
    """

    kind: Literal["none", "text", "file", "pipe"] = "none"
    text: str = ""
    echoed: bool = False


NO_FEED = Feed()
PIPED = Feed("pipe")


class Walker(Protocol):
    """What a call may ask of the walk that met it."""

    places: Places
    written: dict[str, str | None]

    @property
    def commands_seen(self) -> int: ...
    def run(self, argv: Sequence[Arg], scope: Scope, feed: Feed) -> None: ...
    def text(self, text: str, scope: Scope, feed: Feed, positional: tuple[str, ...] | None) -> None: ...
    def text_here(self, text: str, scope: Scope, feed: Feed) -> None: ...
    def evaluated(self, text: str) -> None: ...
    def node(self, node: Node, scope: Scope, feed: Feed) -> None: ...
    def assigned(self, name: str, value: Value, scope: Scope) -> None: ...
    def deny(self, why: str) -> None: ...
    def confirm(self, why: str) -> None: ...


class Call(msgspec.Struct):
    """A command about to run; `stranger` says why nobody can tell what it does."""

    walk: Walker
    scope: Scope
    path: str
    name: str
    args: list[Arg]
    feed: Feed
    stranger: str = ""

    def run(self, argv: Sequence[Arg], feed: Feed | None = None) -> None:
        """Judge another command that this one would start."""
        if argv:
            self.walk.run(argv, self.scope, self.feed if feed is None else feed)

    def run_texts(self, *texts: str) -> None:
        """Judge another command, given as plain words."""
        self.run(plain(*texts))

    def text(self, text: str, feed: Feed | None = None, positional: tuple[str, ...] | None = ()) -> None:
        """Judge shell text that this command would run."""
        self.walk.text(text, self.scope, self.feed if feed is None else feed, positional)

    def overwrites(self, arg: Arg, *, appends: bool = False) -> str:
        """Why writing to a file must be asked for."""
        return self.walk.places.overwrites(arg, self.scope, appends=appends)

    def overwrites_any(self, args: Sequence[Arg]) -> str:
        """Why writing to one of several files must be asked for; all of them are looked at."""
        return next(filter(None, [self.overwrites(arg) for arg in args]), "")

    def wrote(self, arg: Arg) -> str | None:
        """What this very line has put into a file before: its text, None when unknown. KeyError when it has not."""
        for path in self.scope.places(arg.text):
            if path in self.walk.written:
                return self.walk.written[path]
            if path in self.walk.places.writes and path.rpartition("/")[2] not in self.walk.places.copies:
                return None
        raise KeyError(arg.text)

    def texts(self) -> list[str]:
        """The arguments as text."""
        return [arg.text for arg in self.args]


Handler = Callable[[Call], str]  # why the command must be asked for; empty when it is ordinary
