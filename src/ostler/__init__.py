"""Ostler, a harness for coding agents. The Python API is imported on first use, so `import ostler` is fast."""

__version__ = "0.1.0.dev0"
__all__ = ("CompletedCall", "Conversation", "TurnResult", "__version__", "open_session", "run")

TYPE_CHECKING = False  # importing `typing` would take longer than the rest of this module
if TYPE_CHECKING:
    from ostler.app.python_api import CompletedCall, Conversation, TurnResult, open_session, run


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ostler' has no attribute {name!r}")
    from ostler.app import python_api

    return getattr(python_api, name)


def __dir__() -> list[str]:
    return list(__all__)
