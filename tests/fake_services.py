"""A fake of the services that slash commands use; it records the undo requests."""

from ostler.core.errors import UsageError
from ostler.core.prompt import Prompt, TextContent
from ostler.interaction.services import BuiltPrompt, NamedItem


class FakeServices:
    def __init__(self):
        self.undo_requests = []
        self.unsent_prompts = ""
        self.known_sessions = []
        self.prompt_count = 0
        self.files_delay = None
        self.endpoint_down = False
        self.known_profiles = []

    async def build_prompt(self, text, source=None):
        self.prompt_count += 1
        return BuiltPrompt(Prompt(f"typed-{self.prompt_count}", (TextContent(text),)))

    async def expand(self, name, arguments, run_tool, source=None):
        if name != "review":
            return None
        return BuiltPrompt(Prompt("expanded", (TextContent(f"Please review {arguments}."),)), ["attached a.py"])

    async def undo(self, direction, turns, session_id):
        assert session_id == "session-1"
        self.undo_requests.append((direction, list(turns)))
        return ["restored a.py"]

    def undo_gaps(self):
        return [".git (git's own data)"]

    async def models(self):
        if self.endpoint_down:
            raise UsageError("cannot connect to http://x", hint="start it")
        return ["one", "two"]

    def profiles(self):
        return self.known_profiles

    def environment_labels(self):
        return ()

    async def agents(self):
        return [NamedItem("build", "works"), NamedItem("plan", "read-only")]

    async def skills(self):
        return [NamedItem("pdf", "reads pages")]

    async def commands(self, session):
        return [NamedItem("review", "review the code")]

    async def sessions(self, query):
        return [session for session in self.known_sessions if query in session.title]

    async def has_session(self, session_id):
        return any(session.id == session_id for session in self.known_sessions)

    async def find_session(self, session_ref):
        found = [session.id for session in self.known_sessions if session_ref in session.id]
        if len(found) != 1:
            raise UsageError(f"there is no session {session_ref!r}")
        return found[0]

    async def fork(self, session_id, seq):
        return f"{session_id}-copy-{seq}"

    async def export(self, session, output):
        return output or f"{session.id}.md"

    async def mcp(self, session, action):
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
        text, self.unsent_prompts = self.unsent_prompts, ""
        return text

    async def resources(self, session, query):
        known = [NamedItem("docs:", "MCP server"), NamedItem("docs:file:///a b.txt", "letters")]
        return [item for item in known if item.name.startswith(query)] if query else []

    async def files(self, query):
        if self.files_delay:
            await self.files_delay.wait()
        known = ["src/", "src/main.py", "with space/", "with space/x y.txt"]
        return [path for path in known if query in path]
