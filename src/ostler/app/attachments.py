"""Files that a prompt mentions, brought along whole: a person's from anywhere, a file's own from the workspace."""

import os
from pathlib import Path

from ostler.core.errors import OstlerError, UsageError
from ostler.core.prompt import EmbeddedResource, PromptContent, ResourceLink
from ostler.knowledge.mentions import find_mentions
from ostler.knowledge.prompt_syntax import AGENT_PREFIX
from ostler.workspace.local_workspace import LocalWorkspace

URL_PREFIXES = ("https://", "http://")
SUMMARIZE_FROM, MAX_NAMED = 3, 5
MAX_BYTES = 1024 * 1024  # as much as fits into large windows


class AttachmentCollector:
    """Gathers the blocks that follow a prompt's words, each file once, and what a person is told of them."""

    def __init__(self, cwd: Path, *, allow_outside: bool) -> None:
        """`outside`: a path that the person typed may lead out of the workspace."""
        self._cwd = cwd
        self._allow_outside = allow_outside
        self.blocks: dict[str, PromptContent] = {}
        self._notices: list[str] = []
        self._missing: dict[str, str] = {}

    @property
    def notices(self) -> list[str]:
        """A line for each file; those that are not there share one: code that was pasted is full of such words."""
        if len(self._missing) < SUMMARIZE_FROM:
            return [*self._notices, *self._missing.values()]
        named, more = list(self._missing)[:MAX_NAMED], len(self._missing) - MAX_NAMED
        names = ", ".join(f"@{path}" for path in named) + (f" and {more} more" if more > 0 else "")
        return [*self._notices, f"sent as they stand, for there are no such files: {names}"]

    async def add_mentions(self, text: str) -> None:
        """What a person mentioned in their own words."""
        for _, end, mention in find_mentions(text):
            if mention.startswith(URL_PREFIXES):
                self.blocks[mention] = ResourceLink(mention)
            elif not mention.startswith(AGENT_PREFIX):
                await self.add_file(_mentioned_path(text, end, mention), typed=True)

    async def add_file(self, path: str, *, typed: bool) -> None:
        """One file; one that cannot be had is told, and its mention stands as it is."""
        if not path:
            return
        try:
            found = await self._read_file(os.path.expanduser(path) if typed else path, typed=typed)
        except OstlerError as error:
            told = f"@{path} is sent as it stands: {error}"
            if error.fault.code == "not_found":
                self._missing[path] = told
            else:
                self._notices.append(told)
            return
        if found.uri not in self.blocks:
            self.blocks[found.uri] = found
            lines = len(found.text.splitlines())
            self._notices.append(f"attached {found.uri} ({lines:,} line{'s' * (lines != 1)})")

    async def _read_file(self, path: str, *, typed: bool) -> EmbeddedResource:
        from ostler.text.redact import is_sensitive_file

        workspace = LocalWorkspace(str(self._cwd))
        try:
            place = workspace.resolve(path)
            if not place.in_workspace:
                if typed and self._allow_outside and not os.path.isabs(path):
                    raise UsageError("it leads out of the workspace", hint=f"say it whole: @{place.absolute}")
                if not (typed and self._allow_outside):
                    raise UsageError("it is outside the workspace", hint="--yolo reads anywhere" if typed else "")
                workspace.grant_read(place.absolute)
            if not typed and is_sensitive_file(place.display_path):
                raise UsageError("such a file is not attached unless you name it yourself")
            if os.path.isdir(place.absolute):
                names = [f"{e.name}{'/' * (e.kind == 'directory')}" for e in await workspace.entries(path)]
                return EmbeddedResource(place.display_path, "\n".join(names))
            if (size := _file_size(place.absolute)) > MAX_BYTES:
                raise UsageError(
                    f"its {size:,} bytes are more than can be attached", hint="the agent can read parts of it"
                )
            return EmbeddedResource(place.display_path, (await workspace.read_text(path)).text)
        finally:
            workspace.close()


def _file_size(path: str) -> int:
    """None that counts where there is no such file: whoever reads it says so."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _mentioned_path(text: str, end: int, mention: str) -> str:
    """`file:` is only a way to say that it is one; a name in quotes may follow it."""
    if mention != "file" or text[end : end + 1] != ":":
        return mention.removeprefix("file:")
    quote, rest = text[end + 1 : end + 2], text[end + 2 :]
    return rest.partition(quote)[0].partition("\n")[0] if quote in ("'", '"') else ""
