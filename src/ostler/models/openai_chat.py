"""The client of OpenAI-compatible chat completions."""

from typing import TYPE_CHECKING

from ostler.models.http_model import HttpModel, Setup
from ostler.models.openai_request import Habits, chat_body
from ostler.models.words import Request

if TYPE_CHECKING:
    from ostler.models.stream_reply import Reader


class OpenAIChat(HttpModel):
    """A model behind `<base>/chat/completions`."""

    kind = "openai"
    endpoint = "chat/completions"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._habits = Habits()

    def _key_headers(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._setup.key}"),) if self._setup.key else ()

    def _body(self, request: Request) -> bytes:
        return chat_body(self.name, request, self._habits, self._setup.extra)

    def _reader(self, request: Request) -> "Reader":
        from ostler.models.openai_reply import OpenAIReader

        return OpenAIReader(self._setup.http.origin.where, request, self._setup.hidden)

    def _learn(self, said: str, request: Request) -> bool:
        learned = self._habits.learned(said, request)
        self._habits = learned or self._habits
        return learned is not None
