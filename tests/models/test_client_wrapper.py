"""Client wrappers pass on every attribute of the wrapped client."""

import pytest

from ostler.backends.engine.plugins.loop_detector import RepetitionGuard
from ostler.backends.engine.request_prefix import guide_size
from ostler.backends.engine.role import SampledModel
from ostler.core.events import PrefixBuilt
from ostler.knowledge.agent_definition import AgentRole
from ostler.models.client_wrapper import ModelClientWrapper
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.fixed_model import BorrowedModel
from ostler.models.model_types import ModelClient
from ostler.testing.scripted_model import ScriptedLine, ScriptedModel


class ClientWithExtras(ScriptedModel):
    price = "a price"
    reasoning = "tags"

    def guide_size(self, tools):
        return 7

    async def wait_for_window(self):
        self.waited = True

    async def fetch_window(self):
        return 4096


WRAPPERS = [
    ModelClientWrapper,
    BorrowedModel,
    RepetitionGuard,
    lambda client: SampledModel(client, AgentRole()),
    lambda client: apply_dialect(client, "native"),
]


@pytest.mark.parametrize("wrap", WRAPPERS)
async def test_attributes_are_passed_on(wrap):
    model = wrap(ClientWithExtras([ScriptedLine("ok")]))
    assert (model.price, model.reasoning) == ("a price", "tags")
    await model.wait_for_window()
    assert model._client.waited
    assert await model.fetch_window() == 4096


def test_guide_size_is_available_through_every_wrapper():
    model = RepetitionGuard(SampledModel(BorrowedModel(ClientWithExtras([ScriptedLine("ok")])), AgentRole()))
    assert guide_size(model, PrefixBuilt("", ())) == 7


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_wrapper_has_every_member_of_the_protocol(wrap):
    model = wrap(ScriptedModel([ScriptedLine("ok")]))
    assert not [name for name in dir(ModelClient) if not name.startswith("_") and not hasattr(model, name)]
    assert (model.name, model.context_limit, model.price) == ("scripted", 32_000, "reported")
