"""Files that a prompt mentions, brought along whole: a person's from anywhere, a file's own from the workspace."""

import os
from pathlib import Path

from ostler.knowledge.mentions import mentions
from ostler.knowledge.triggers import AGENT
from ostler.vocabulary.errors import OstlerError, UsageError
from ostler.vocabulary.prompt import Block, Link, Resource
from ostler.workspace.ground import Workspace

ADDRESS = ("https://", "http://")
SEVERAL, MOST_NAMED = 3, 5
MOST_BYTES = 1024 * 1024  # as much as fits into large windows


class Attaching:
    """Gathers the blocks that follow a prompt's words, each file once, and what a person is told of them."""

    def __init__(self, cwd: Path, *, outside: bool) -> None:
        """`outside`: a path that the person typed may lead out of the workspace."""
        self._cwd = cwd
        self._outside = outside
        self.blocks: dict[str, Block] = {}
        self._told: list[str] = []
        self._missing: dict[str, str] = {}

    @property
    def told(self) -> list[str]:
        """A line for each file; those that are not there share one: code that was pasted is full of such words."""
        if len(self._missing) < SEVERAL:
            return [*self._told, *self._missing.values()]
        named, more = list(self._missing)[:MOST_NAMED], len(self._missing) - MOST_NAMED
        names = ", ".join(f"@{path}" for path in named) + (f" and {more} more" if more > 0 else "")
        return [*self._told, f"sent as they stand, for there are no such files: {names}"]

    async def mentioned(self, text: str) -> None:
        """What a person mentioned in their own words."""
        for _, end, mention in mentions(text):
            if mention.startswith(ADDRESS):
                self.blocks[mention] = Link(mention)
            elif not mention.startswith(AGENT):
                await self.take(_path(text, end, mention), typed=True)

    async def take(self, path: str, *, typed: bool) -> None:
        """One file; one that cannot be had is told, and its mention stands as it is."""
        if not path:
            return
        try:
            found = await self._read(os.path.expanduser(path) if typed else path, typed=typed)
        except OstlerError as error:
            told = f"@{path} is sent as it stands: {error}"
            if error.fault.code == "not_found":
                self._missing[path] = told
            else:
                self._told.append(told)
            return
        if found.uri not in self.blocks:
            self.blocks[found.uri] = found
            lines = len(found.text.splitlines())
            self._told.append(f"attached {found.uri} ({lines:,} line{'s' * (lines != 1)})")

    async def _read(self, path: str, *, typed: bool) -> Resource:
        from ostler.text.redact import sensitive_file

        ground = Workspace(str(self._cwd))
        try:
            place = ground.place(path)
            if not place.inside:
                if typed and self._outside and not os.path.isabs(path):
                    raise UsageError("it leads out of the workspace", hint=f"say it whole: @{place.absolute}")
                if not (typed and self._outside):
                    raise UsageError("it is outside the workspace", hint="--yolo reads anywhere" if typed else "")
                ground.grant_read(place.absolute)
            if not typed and sensitive_file(place.shown):
                raise UsageError("such a file is not attached unless you name it yourself")
            if os.path.isdir(place.absolute):
                names = [f"{e.name}{'/' * (e.kind == 'directory')}" for e in await ground.entries(path)]
                return Resource(place.shown, "\n".join(names))
            if (size := _size(place.absolute)) > MOST_BYTES:
                raise UsageError(
                    f"its {size:,} bytes are more than can be attached", hint="the agent can read parts of it"
                )
            return Resource(place.shown, (await ground.read_text(path)).text)
        finally:
            ground.close()


def _size(path: str) -> int:
    """None that counts where there is no such file: whoever reads it says so."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _path(text: str, end: int, mention: str) -> str:
    """`file:` is only a way to say that it is one; a name in quotes may follow it."""
    if mention != "file" or text[end : end + 1] != ":":
        return mention.removeprefix("file:")
    quote, rest = text[end + 1 : end + 2], text[end + 2 :]
    return rest.partition(quote)[0].partition("\n")[0] if quote in ("'", '"') else ""
