"""A model client that the caller created, as the only choice of a session."""

from ostler.core.errors import UsageError
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.model_choice import ModelChoice
from ostler.models.model_types import ModelClient


def fixed_model(client: ModelClient) -> ModelChoice:
    """Return a choice that always uses the given client."""

    def make(name: str) -> ModelClient:
        if name not in ("", client.name):
            raise UsageError(f"unknown model {name[:80]!r}; this session was opened with {client.name!r} only")
        return BorrowedModel(client)

    return ModelChoice(f"{client.name}, set by the program", make)


class BorrowedModel(ModelClientWrapper):
    """A client that the caller created and closes."""

    async def aclose(self) -> None:
        """Do nothing: the caller closes the client."""
