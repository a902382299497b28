"""Scenarios of what belongs to the session and applies with every backend: agent, mode, profile, commands, hooks."""

import pytest
from drivers import Crash, Say
from scenario import Scenario, single_call

from ostler.access.active_agent import ActiveAgent
from ostler.core.errors import UsageError
from ostler.core.events import OptionChanged, PermissionAsked, Reminded
from ostler.core.permission import Decision, Need, Permission, Rule
from ostler.core.prompt import Prompt, PromptTarget, TextContent
from ostler.core.sessions import Revert, SetOption
from ostler.core.tools import ToolCall
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.policy.verdict import Policy
from ostler.settings.run_options import RunOptions
from ostler.testing.fake_tool import FakeTool
from ostler.testing.session_fixture import make_prompt, run_turn

pytestmark = pytest.mark.req("PM-12")
ALLOWED = (Rule("*", "*", "allow", "test"),)


def access(mode="", agents=None):
    policy = Policy(rules=ALLOWED)
    return ActiveAgent(agents or builtin_agents(), policy, RunOptions("/", mode=mode))


def targeted(text, **target):
    return Prompt(f"p-{text}", (TextContent(text),), target=PromptTarget(**target))


def statuses(scenario):
    return [result.status for result in scenario.results()]


async def run_user_command(session):
    await session.call(ToolCall("c", "bash", {"command": "ls"}, origin="person"))


async def list_files(arguments, context):
    return "three files"


@pytest.mark.scenario("read-only agent")
@pytest.mark.invariant("S1")
async def test_read_only_agent_denies_changes(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    await scenario.open([[single_call("probe"), Say("No.")], [single_call("probe"), Say("Yes.")]], policy=access())
    assert await scenario.session.apply(SetOption("agent", "plan"))
    await run_turn(scenario.session, "write")
    assert (statuses(scenario), tool.runs) == (["denied"], [])
    assert await scenario.session.apply(SetOption("agent", "build"))
    await run_turn(scenario.session, "write")
    assert (statuses(scenario), len(tool.runs)) == (["denied", "ok"], 1)
    assert scenario.session.info.option("agent") == "build"
    await scenario.close()


@pytest.mark.scenario("read-only agent")
async def test_agent_of_a_new_session_restricts_its_first_turn(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    turns = [[single_call("probe"), Say("No.")]]
    await scenario.open(turns, policy=access(), options={"agent": "plan"})
    await run_turn(scenario.session, "write")
    assert (statuses(scenario), tool.runs) == (["denied"], [])
    assert scenario.session.state.options == {"agent": "plan"}
    await scenario.close()


@pytest.mark.scenario("agent of a prompt")
@pytest.mark.parametrize("for_session", [True, False], ids=["for the session", "for the turn"])
@pytest.mark.invariant("S1")
async def test_agent_of_a_prompt_restricts_its_turn(driver, tmp_path, for_session):
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    await scenario.open([[single_call("probe"), Say("No.")], [single_call("probe"), Say("?")]], policy=access())
    await scenario.session.start(targeted("write", agent="plan", for_session=for_session)).wait()
    assert (statuses(scenario), tool.runs) == (["denied"], [])
    await run_turn(scenario.session, "write")
    assert statuses(scenario)[1:] == (["denied"] if for_session else ["ok"])
    await scenario.close()


@pytest.mark.scenario("agent of a prompt")
async def test_prompt_that_only_selects_an_agent_is_not_sent(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("Hello.")]], policy=access())
    ended = await scenario.session.start(
        targeted("@agent:plan", agent="plan", for_session=True, selects_only=True)
    ).wait()
    assert (ended.reason, scenario.session.state.options["agent"]) == ("done", "plan")
    await run_turn(scenario.session, "hi")
    assert "@agent:plan" not in driver.heard()
    assert "hi" in driver.heard()
    await scenario.close()


@pytest.mark.scenario("agent's instructions")
@pytest.mark.invariant("S3")
async def test_instructions_of_the_agent_are_sent(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("Yes.")]], policy=access(), options={"agent": "plan"})
    await run_turn(scenario.session, "how?")
    assert builtin_agents()["plan"].prompt.splitlines()[0] in driver.heard().replace("\\n", "\n")
    await scenario.close()


@pytest.mark.req("PM-10")
@pytest.mark.scenario("mode")
@pytest.mark.invariant("S1")
async def test_mode_plan_denies_changes(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    await scenario.open([[single_call("probe"), Say("No.")]], policy=access())
    assert await scenario.session.apply(SetOption("mode", "plan"))
    await run_turn(scenario.session, "write")
    assert (statuses(scenario), scenario.session.info.option("mode")) == (["denied"], "plan")
    await scenario.close()


@pytest.mark.req("PM-10")
@pytest.mark.scenario("mode")
async def test_mode_changes_the_policy_during_a_turn(driver, tmp_path):
    scenario = Scenario(driver, tmp_path)

    async def switch(arguments, context):
        assert await scenario.session.apply(SetOption("mode", "plan"))
        return "switched"

    tool = driver.tool("probe", switch)
    scenario.tools.append(tool)
    await scenario.open([[single_call("probe"), single_call("probe"), Say("No.")]], policy=access())
    await run_turn(scenario.session, "write twice")
    assert (statuses(scenario), len(tool.runs)) == (["ok", "denied"], 1)
    await scenario.close()


@pytest.mark.req("PM-11")
@pytest.mark.scenario("all edits")
@pytest.mark.parametrize("answer", ["edits", "folder"])
async def test_answer_for_more_edits_covers_the_next_one(driver, tmp_path, answer):
    tool = driver.tool("probe")

    async def permission(params, workspace):
        return Permission("change a file", (Need("write", f"src/{len(tool.runs)}.py"),))

    tool.permission = permission
    scenario = Scenario(driver, tmp_path, [tool])
    moves = [single_call("probe"), single_call("probe"), Say("Done.")]
    await scenario.open([moves], policy=ActiveAgent(builtin_agents(), Policy(), RunOptions("/")))
    turn = scenario.session.start(make_prompt("write"))
    ask = await scenario.until(PermissionAsked)
    assert answer in [option.id for option in ask.permission.options]
    decision = Decision("allow", by="person", scope="session", option_id=answer)
    assert scenario.session.answer(ask.ask_id, decision)
    await turn.wait()
    assert statuses(scenario) == ["ok", "ok"]
    asked = [event for event in scenario.session.events() if isinstance(event, PermissionAsked)]
    assert len(asked) == 1
    await scenario.close()


@pytest.mark.scenario("profile")
@pytest.mark.invariant("S1")
async def test_profile_applies(driver, tmp_path):
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    await scenario.open([[single_call("probe"), Say("Yes.")]], policy=access())
    assert await scenario.session.apply(SetOption("profile", "paranoid"))
    turn = scenario.session.start(make_prompt("write"))
    ask = await scenario.until(PermissionAsked)
    assert scenario.session.answer(ask.ask_id, Decision("allow", by="person"))
    await turn.wait()
    assert (statuses(scenario), scenario.session.info.option("profile")) == (["ok"], "paranoid")
    with pytest.raises(UsageError, match="unknown security profile 'brave'"):
        await scenario.session.apply(SetOption("profile", "brave"))
    await scenario.close()


@pytest.mark.scenario("unknown option")
@pytest.mark.invariant("S2")
async def test_unknown_option_is_refused(driver, tmp_path):
    with pytest.raises(UsageError, match="no option 'colour'"):
        await Scenario(driver, tmp_path).open([], policy=access(), options={"colour": "red"})


@pytest.mark.scenario("unknown option")
@pytest.mark.invariant("S2")
async def test_option_that_nobody_accepts_is_not_recorded(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([], policy=access())
    assert not await scenario.session.apply(SetOption("colour", "red"))
    assert not [event for event in scenario.session.events() if isinstance(event, OptionChanged)]
    await scenario.close()


@pytest.mark.req("SE-5")
@pytest.mark.scenario("user's command")
@pytest.mark.invariant("S3")
async def test_command_of_the_user_is_sent_with_the_next_prompt(driver, tmp_path):
    scenario = Scenario(driver, tmp_path, [FakeTool("bash", list_files)])
    await scenario.open([[Say("I see.")], [Say("Yes.")]], policy=access())
    await run_user_command(scenario.session)
    await run_turn(scenario.session, "look")
    assert "three files" in driver.heard()
    assert driver.heard().index("three files") < driver.heard().index("look")
    await scenario.session.aclose()


@pytest.mark.req("SE-5")
@pytest.mark.scenario("user's command")
@pytest.mark.invariant("S3")
async def test_command_of_the_user_is_sent_again_after_a_failed_turn(driver, tmp_path):
    scenario = Scenario(driver, tmp_path, [FakeTool("bash", list_files)])
    await scenario.open([[Crash()], [Say("Yes.")]], policy=access())
    await run_user_command(scenario.session)
    _, ended = await run_turn(scenario.session, "look")
    assert ended.reason == "failed"
    await run_turn(scenario.session, "look again")
    assert "three files" in driver.heard()
    await scenario.session.aclose()


@pytest.mark.req("SE-5")
@pytest.mark.scenario("user's command")
@pytest.mark.invariant("S3")
async def test_command_before_a_reverted_prompt_is_sent_with_the_next_one(driver, tmp_path):
    scenario = Scenario(driver, tmp_path, [FakeTool("bash", list_files)])
    await scenario.open([[Say("I see.")], [Say("Yes.")]], policy=access())
    await run_user_command(scenario.session)
    before = scenario.session.records()[-1].seq
    await run_turn(scenario.session, "paint it red")
    assert await scenario.session.apply(Revert(before))
    await run_turn(scenario.session, "paint it green")
    is_still_in_history = "reverted these earlier prompts" in driver.heard()
    assert is_still_in_history or "three files" in driver.heard()
    await scenario.session.aclose()


@pytest.mark.scenario("reminder")
@pytest.mark.invariant("S3")
async def test_reminder_is_sent_with_the_next_prompt(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("I see.")], [Say("Yes.")]], policy=access())
    await run_turn(scenario.session, "hello")
    scenario.session.emit(Reminded("a hook said: be brief"))
    await run_turn(scenario.session, "look")
    assert "a hook said: be brief" in driver.heard()
    await scenario.close()


@pytest.mark.scenario("revert")
@pytest.mark.invariant("S3")
async def test_reverted_prompt_is_withdrawn(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([[Say("I see.")], [Say("Yes.")]], policy=access())
    before = scenario.session.records()[-1].seq
    await run_turn(scenario.session, "paint it red")
    assert await scenario.session.apply(Revert(before))
    await run_turn(scenario.session, "paint it green")
    heard = driver.heard()
    assert "paint it red" not in heard or "reverted these earlier prompts" in heard
    assert "paint it green" in heard
    await scenario.close()


@pytest.mark.scenario("rules of a call")
@pytest.mark.invariant("P3")
async def test_calls_carry_the_rules_of_the_agent(driver, tmp_path, monkeypatch):
    received = []
    tool = driver.tool("probe")
    scenario = Scenario(driver, tmp_path, [tool])
    await scenario.open([[single_call("probe"), Say("No.")]], policy=access(), options={"agent": "plan"})
    run = scenario.session._tools.run

    async def recording_run(call, context):
        received.append(call)
        return await run(call, context)

    monkeypatch.setattr(scenario.session._tools, "run", recording_run)
    await run_turn(scenario.session, "write")
    assert [call.rules for call in received] == [builtin_agents()["plan"].restrictions]
    await scenario.close()


@pytest.mark.req("PM-10")
@pytest.mark.scenario("mode")
@pytest.mark.invariant("S2")
async def test_unknown_mode_is_refused_and_keeps_the_mode(driver, tmp_path):
    scenario = await Scenario(driver, tmp_path).open([], policy=access())
    assert await scenario.session.apply(SetOption("mode", "plan"))
    with pytest.raises(UsageError, match="unknown mode 'yolo'"):
        await scenario.session.apply(SetOption("mode", "yolo"))
    assert scenario.session.state.options["mode"] == scenario.session.info.option("mode") == "plan"
    await scenario.close()
