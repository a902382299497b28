"""A client over another drops nothing that the other has."""

import pytest

from ostler.app.library import _Lent
from ostler.backends.engine.guests.circle_guest import Watched
from ostler.backends.engine.prefix import guide_size
from ostler.backends.engine.role import Role, Sampled
from ostler.models.dialects.wrap import with_dialect
from ostler.models.over import Over
from ostler.testing.scripted_model import Line, ScriptedModel
from ostler.vocabulary.events import PrefixBuilt


class Priced(ScriptedModel):
    price = "a price"
    reasoning = "tags"

    def guide_size(self, tools):
        return 7

    async def learned(self):
        return "learned"

    async def learn_window(self):
        return 4096


WRAPPERS = [Over, _Lent, Watched, lambda client: Sampled(client, Role()), lambda client: with_dialect(client, "native")]


@pytest.mark.parametrize("wrap", WRAPPERS)
async def test_what_only_some_clients_have_is_passed_on(wrap):
    model = wrap(Priced([Line("ok")]))
    assert (model.price, model.reasoning) == ("a price", "tags")
    assert (await model.learned(), await model.learn_window()) == ("learned", 4096)


def test_what_the_tools_take_in_words_is_known_through_every_wrapper():
    model = Watched(Sampled(_Lent(Priced([Line("ok")])), Role()))
    assert guide_size(model, PrefixBuilt("", ())) == 7


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_what_the_other_has_not_is_not_there(wrap):
    model = wrap(ScriptedModel([Line("ok")]))
    assert getattr(model, "learned", None) is None
    assert (model.name, model.context_limit) == (model._client.name, model._client.context_limit)
