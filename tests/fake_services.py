"""What slash commands need of a machine, as plain values: what was asked of it is noted."""

from ostler.commands.services import BuiltPrompt, NamedItem
from ostler.core.errors import UsageError
from ostler.core.prompt import Prompt, TextContent


class FakeServices:
    def __init__(self):
        self.took = []
        self.left = ""
        self.known_sessions = []
        self.prompts = 0
        self.slow = None
        self.no_models = False
        self.known_profiles = []

    async def build_prompt(self, typed):
        self.prompts += 1
        return BuiltPrompt(Prompt(f"typed-{self.prompts}", (TextContent(typed),)))

    async def expand(self, name, arguments, call):
        if name != "review":
            return None
        return BuiltPrompt(Prompt("expanded", (TextContent(f"Please review {arguments}."),)), ["attached a.py"])

    async def undo(self, direction, turns):
        self.took.append((direction, list(turns)))
        return ["restored a.py"]

    def undo_gaps(self):
        return [".git (what git keeps for itself)"]

    async def models(self):
        if self.no_models:
            raise UsageError("nobody answers at http://x", hint="start it")
        return ["one", "two"]

    def profiles(self):
        return self.known_profiles

    def environment_labels(self):
        return ()

    async def agents(self):
        return [NamedItem("build", "works"), NamedItem("plan", "changes nothing")]

    async def skills(self):
        return [NamedItem("pdf", "reads pages")]

    async def commands(self):
        return [NamedItem("review", "review the code")]

    async def sessions(self, words):
        return [one for one in self.known_sessions if words in one.title]

    async def find_session(self, wanted):
        found = [one.id for one in self.known_sessions if wanted in one.id]
        if len(found) != 1:
            raise UsageError(f"there is no session {wanted!r}")
        return found[0]

    async def fork(self, session_id, at):
        return f"{session_id}-copy-{at}"

    async def export(self, session_id, output):
        return output or f"{session_id}.md"

    async def mcp(self):
        return ()

    async def diff(self, path):
        return "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"

    def context(self, session):
        return []

    async def doctor(self):
        return ["✓ python"]

    def memory(self):
        return "AGENTS.md"

    def take_unsent_prompts(self):
        left, self.left = self.left, ""
        return left

    async def files(self, wanted):
        if self.slow:
            await self.slow.wait()
        known = ["src/", "src/main.py", "with space/", "with space/x y.txt"]
        return [path for path in known if wanted in path]
