"""Unit tests of the plain console."""

import asyncio
import io
import os

import pytest

from ostler.frontends.repl.console import IDLE_MENU, LineEntered
from ostler.frontends.repl.plain_console import PlainConsole
from ostler.interaction.answer_menu import AnswerMenu

ASK = AnswerMenu("allow? ", (("y", "Allow"), ("n", "Deny")))


@pytest.fixture
def typing():
    read, write = os.pipe()
    out = io.StringIO()
    yield PlainConsole(read, out, is_terminal=True), out, lambda text: os.write(write, text.encode())
    os.close(write)
    os.close(read)


@pytest.mark.req("PM-5", "CL-1")
async def test_menu_prompt_is_printed_once_and_numbers_select_answers(typing):
    console, out, type_in = typing
    console.set_menu(ASK)
    type_in("2\nhello\n")
    assert await console.read() == LineEntered("n")
    assert await console.read() == LineEntered("hello")
    assert out.getvalue().count("allow? ") == 1
    console.set_menu(ASK)
    assert out.getvalue().count("allow? ") == 2


async def test_idle_prompt_is_repeated_after_each_line(typing):
    console, out, type_in = typing
    console.set_menu(IDLE_MENU)
    type_in("\n2\n")
    assert await console.read() == LineEntered("")
    assert await console.read() == LineEntered("2")
    assert out.getvalue() == "> > "


@pytest.mark.req("CL-1")
async def test_very_long_line(typing):
    console, _, type_in = typing
    text = "long " * 500_000

    def write_all():
        data = f"{text}\n"
        while data:
            data = data[type_in(data[:60_000]) :]

    writer = asyncio.create_task(asyncio.to_thread(write_all))
    assert await console.read() == LineEntered(text)
    await writer
