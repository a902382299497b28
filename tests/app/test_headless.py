"""What a run tells the model: the prompt's own words mention and choose, what is piped in beside them does not."""

import pytest

from ostler.app.headless import _extended
from ostler.vocabulary.prompt import Cast, Prompt, Resource, Text


@pytest.mark.req("CL-8")
def test_what_is_piped_in_follows_the_words_and_comes_before_what_was_attached():
    prompt = Prompt("p", (Text("review"), Resource("a.py", "x = 1")))
    made = _extended(prompt, lambda text: f"{text}\n\nlog")
    assert made.blocks == (Text("review\n\nlog"), Resource("a.py", "x = 1"))


@pytest.mark.req("CL-8")
def test_a_subagent_is_told_it_with_its_task():
    prompt = Prompt("p", (Text("/review"),), cast=Cast("explore", task="look around"))
    made = _extended(prompt, lambda text: f"{text}\n\nlog")
    assert (made.blocks, made.cast.task) == ((Text("/review"),), "look around\n\nlog")
