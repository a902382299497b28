"""The games: rules, pausing, switching off."""

import pytest
from tests.frontends.tui.tui_user import call, full_screen

from ostler.frontends.tui.arcade.arcade_screen import ArcadeScreen
from ostler.frontends.tui.arcade.games import GAMES
from ostler.frontends.tui.arcade.waiting_game import WaitingGame
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import ASK_ALL


@pytest.mark.req("TU-5")
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("size", [(12, 6), (40, 10), (200, 50)])
@pytest.mark.sampled(every=2)
def test_game_plays_by_itself_and_scores_on_a_field_of_any_size(name, size):
    game = GAMES[name]()
    game.resize(*size)
    best = 0
    for _ in range(4000):
        game.step(game.hint())
        best = max(best, game.score)
        assert [len(row) for row in game.rows()] == [size[0]] * size[1]
    assert best > 3


@pytest.mark.req("TU-5")
async def test_key_moves_and_the_game_pauses_when_a_session_asks(open_session):
    session = await open_session([call("probe")], [FakeTool("probe")], ASK_ALL)
    async with full_screen(session, arcade="invaders") as user:
        await user.press("f3")
        await user.wait_until(lambda: isinstance(user.app.screen, ArcadeScreen))
        screen = user.app.screen
        await user.wait_until(lambda: any("A" in row for row in screen.game.rows()))
        before = screen.game.rows()[-1].index("A")
        await user.press("left")
        await user.wait_until(lambda: screen.game.rows()[-1].index("A") == before - 1)
        await user.app.chat.controller.submit("go", "")
        await user.wait_until(lambda: screen.is_paused)
        assert "waits for your answer" in user.dialog
        await user.press("escape")
        await user.wait_for("Allow once")


@pytest.mark.req("TU-5")
async def test_waiting_game_runs_only_while_the_agent_works_and_the_panel_is_open(open_session):
    tool = FakeTool("probe")
    session = await open_session([call("probe")], [tool], ASK_ALL)
    async with full_screen(session, arcade="pong") as user:
        game = user.app.chat.query_one(WaitingGame)
        await user.press("f4")
        await user.pilot.pause()
        assert not game.is_playing
        await user.type("go")
        await user.wait_for("Allow once")
        assert not game.is_playing  # something needs attention
        game.run(True)
        await user.wait_until(lambda: bool(game.is_playing))
        game.run(False)
        assert not game.is_playing


@pytest.mark.req("TU-5")
async def test_games_can_be_switched_off(open_session):
    async with full_screen(await open_session(), arcade="off") as user:
        await user.press("f3")
        await user.wait_until(lambda: "games are off" in user.app.chat._note)
        assert user.app.screen is user.app.chat
        user.app.chat.query_one(WaitingGame).run(True)
        assert not user.app.chat.query_one(WaitingGame).is_playing


@pytest.mark.req("TU-5")
async def test_game_of_the_settings_is_the_first(open_session):
    async with full_screen(await open_session([]), arcade="pong") as user:
        await user.press("f3")
        await user.wait_until(lambda: isinstance(user.app.screen, ArcadeScreen))
        assert user.app.screen.game is user.app.chat._games["pong"]
