"""An undo that saves nothing, as a base for tests."""


class NoUndo:
    async def begin(self, turn_id, *, files_only=False):
        return ()

    def heartbeat(self, turn_id):
        pass

    def mark_idle(self, turn_id):
        pass

    def progress(self):
        return ""

    async def discard(self, turn_id):
        pass

    async def finish(self, turn_id):
        pass
