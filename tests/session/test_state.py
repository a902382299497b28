"""The session info reflects option changes."""

from ostler.core.events import InfoChanged, OptionChanged
from ostler.core.sessions import OptionChoice, SessionInfo, SessionOption
from ostler.session.state import SessionState


def test_info_reflects_changed_option():
    info = SessionInfo("engine", (SessionOption("agent", "build"), SessionOption("model", "small")))
    state = SessionState([InfoChanged(info), OptionChanged("agent", "plan"), OptionChanged("unknown", "x")])
    assert (state.info.option("agent"), state.info.option("model")) == ("plan", "small")
    assert state.options == {"agent": "plan", "unknown": "x"}
    state.apply(InfoChanged(info))
    assert state.info.option("agent") == "build"


def test_value_outside_choices_does_not_change_info():
    info = SessionInfo(
        "acp", (SessionOption("model", "large", choices=(OptionChoice("small"), OptionChoice("large", "Large"))),)
    )
    state = SessionState([InfoChanged(info), OptionChanged("model", "Large")])
    assert state.info.option("model") == "large"
    state.apply(OptionChanged("model", "small"))
    assert state.info.option("model") == "small"
