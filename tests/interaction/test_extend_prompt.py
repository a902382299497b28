"""Piped input is added to the prompt or to a subagent's task."""

import pytest

from ostler.core.prompt import EmbeddedResource, Prompt, PromptTarget, TextContent
from ostler.interaction.prompt_builder import extend_prompt


@pytest.mark.req("CL-8")
def test_piped_input_follows_the_text():
    prompt = Prompt("p", (TextContent("review"), EmbeddedResource("a.py", "x = 1")))
    extended = extend_prompt(prompt, lambda text: f"{text}\n\nlog")
    assert extended.blocks == (TextContent("review\n\nlog"), EmbeddedResource("a.py", "x = 1"))


@pytest.mark.req("CL-8")
def test_piped_input_is_added_to_a_task():
    prompt = Prompt("p", (TextContent("/review"),), target=PromptTarget("explore", task="look around"))
    extended = extend_prompt(prompt, lambda text: f"{text}\n\nlog")
    assert (extended.blocks, extended.target.task) == ((TextContent("/review"),), "look around\n\nlog")
