"""The plain console by itself: what it prints, and what a line means."""

import asyncio
import io
import os

import pytest

from ostler.frontends.repl.console import IDLE_MENU, AnswerMenu, LineEntered
from ostler.frontends.repl.plain_console import PlainConsole

ASK = AnswerMenu("allow? ", (("y", "Allow"), ("n", "Deny")))


@pytest.fixture
def typing():
    read, write = os.pipe()
    out = io.StringIO()
    yield PlainConsole(read, out, is_terminal=True), out, lambda text: os.write(write, text.encode())
    os.close(write)
    os.close(read)


@pytest.mark.req("PM-5", "CL-1")
async def test_an_answer_is_asked_for_once_and_a_number_stands_for_it(typing):
    console, out, type_in = typing
    console.set_menu(ASK)
    type_in("2\nhello\n")
    assert await console.read() == LineEntered("n")
    assert await console.read() == LineEntered("hello")
    assert out.getvalue().count("allow? ") == 1
    console.set_menu(ASK)
    assert out.getvalue().count("allow? ") == 2


async def test_an_idle_prompt_comes_again_after_each_line(typing):
    console, out, type_in = typing
    console.set_menu(IDLE_MENU)
    type_in("\n2\n")
    assert await console.read() == LineEntered("")
    assert await console.read() == LineEntered("2")
    assert out.getvalue() == "> > "


@pytest.mark.req("CL-1")
async def test_a_line_of_megabytes_is_one_line(typing):
    console, _, type_in = typing
    text = "long " * 500_000

    def all_of_it():
        data = f"{text}\n"
        while data:
            data = data[type_in(data[:60_000]) :]

    writer = asyncio.create_task(asyncio.to_thread(all_of_it))
    assert await console.read() == LineEntered(text)
    await writer
