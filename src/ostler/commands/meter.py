"""What a session used so far, and what was chosen in it: a fold over its events for whoever tells it."""

from ostler.commands.children import Children
from ostler.vocabulary.events import Event, InfoChanged, OptionChanged, UsageReported


class Meter:
    """Hears every event."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}
        self.children = Children()
        self.used = 0
        self.limit = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.tokens_cached = 0

    def hear(self, event: Event) -> None:
        self.children.hear(event)
        match event:
            case UsageReported():
                self.used, self.limit = event.context_used or self.used, event.context_limit or self.limit
                self.tokens_in += event.tokens_in
                self.tokens_out += event.tokens_out
                self.tokens_cached += event.tokens_cached
            case OptionChanged(option_id, value):
                self._options[option_id] = value
            case InfoChanged(info):
                self._options.update({option.id: option.value for option in info.options if option.value})
            case _:
                pass

    def option(self, name: str) -> str:
        """What is chosen now."""
        return self._options.get(name, "")

    @property
    def context(self) -> str:
        """How full the context is, in a word or two."""
        if not self.used:
            return "empty"
        return f"{self.used / self.limit:.0%}" if self.limit else f"{self.used} tokens"
