"""The possible input at one moment."""

import msgspec


class AnswerMenu(msgspec.Struct, frozen=True):
    """The possible input: one of the answers (key and label) or, without answers, a line of text."""

    prompt: str
    answers: tuple[tuple[str, str], ...] = ()
    confirmed_keys: tuple[str, ...] = ()  # these need Enter
    quick: bool = False  # answered in quick succession, and not the last step
