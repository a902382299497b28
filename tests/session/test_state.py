"""What is so now follows what was changed, whoever told it last."""

from ostler.core.events import InfoChanged, OptionChanged
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption
from ostler.session.state import SessionState


def test_the_info_follows_an_option_that_was_set():
    told = SessionInfo("engine", (SessionOption("agent", "build"), SessionOption("model", "small")))
    state = SessionState([InfoChanged(told), OptionChanged("agent", "plan"), OptionChanged("unknown", "x")])
    assert (state.info.option("agent"), state.info.option("model")) == ("plan", "small")
    assert state.options == {"agent": "plan", "unknown": "x"}
    state.apply(InfoChanged(told))
    assert state.info.option("agent") == "build"


def test_a_value_by_another_name_is_told_by_the_backend_alone():
    told = SessionInfo(
        "acp", (SessionOption("model", "large", choices=(OptionChoice("small"), OptionChoice("large", "Large"))),)
    )
    state = SessionState([InfoChanged(told), OptionChanged("model", "Large")])
    assert state.info.option("model") == "large"
    state.apply(OptionChanged("model", "small"))
    assert state.info.option("model") == "small"
