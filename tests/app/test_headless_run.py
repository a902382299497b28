"""What a run tells the model: the prompt's own words mention and choose, what is piped in beside them does not."""

import pytest

from ostler.app.headless_run import _extend_prompt
from ostler.core.prompt import EmbeddedResource, Prompt, PromptTarget, TextContent


@pytest.mark.req("CL-8")
def test_what_is_piped_in_follows_the_words_and_comes_before_what_was_attached():
    prompt = Prompt("p", (TextContent("review"), EmbeddedResource("a.py", "x = 1")))
    made = _extend_prompt(prompt, lambda text: f"{text}\n\nlog")
    assert made.blocks == (TextContent("review\n\nlog"), EmbeddedResource("a.py", "x = 1"))


@pytest.mark.req("CL-8")
def test_a_subagent_is_told_it_with_its_task():
    prompt = Prompt("p", (TextContent("/review"),), target=PromptTarget("explore", task="look around"))
    made = _extend_prompt(prompt, lambda text: f"{text}\n\nlog")
    assert (made.blocks, made.target.task) == ((TextContent("/review"),), "look around\n\nlog")
