"""Selects an installed embedded model, with the prompt and tools it can handle."""

from collections.abc import Mapping
from pathlib import Path

from ostler.app.model_choice import ModelChoice
from ostler.core.errors import UsageError
from ostler.models.embedded.client import EmbeddedModel
from ostler.models.embedded.runtime import find_runtime
from ostler.models.embedded.server import start_server
from ostler.models.embedded.step_protocol import embedded_prompt, embedded_tools
from ostler.models.embedded.weights_store import WeightsFile, WeightsStore

NAME = "embedded"
CAUTION = "small, slow to start, and does not replace a large model"


def is_embedded(name: str) -> bool:
    """Return whether a model name is `embedded` or `embedded/NAME`."""
    return name == NAME or name.startswith(f"{NAME}/")


def is_installed(env: Mapping[str, str]) -> bool:
    """Return whether a model and its runtime library are installed."""
    store = WeightsStore(env)
    return any(model.size is not None for model in store.list_installed()) and find_runtime(store.folder) is not None


def embedded_choice(env: Mapping[str, str], name: str = NAME) -> ModelChoice:
    """Return the named embedded model, with a shorter prompt and fewer tools. Raises `UsageError`."""
    chosen, runtime = _find_installed(env, name)

    def make(other: str) -> EmbeddedModel:
        if other and not is_embedded(other):
            raise UsageError(
                f"this session runs the embedded model and cannot switch to {other[:80]!r}",
                hint=f"start a new session: ostler --model {other[:80]}",
            )
        weights = _find_installed(env, other)[0] if other else chosen
        return EmbeddedModel(f"{NAME}/{weights.name}", lambda: start_server(weights.path.resolve(), runtime))

    def describe(other: str = "") -> str:
        weights = _find_installed(env, other)[0] if other else chosen
        return f"{weights.name}, embedded; {CAUTION}"

    return ModelChoice(describe(), make, embedded_prompt(), embedded_tools, describe)


def _find_installed(env: Mapping[str, str], name: str) -> tuple[WeightsFile, str]:
    store = WeightsStore(env)
    weights = store.find(name.removeprefix(NAME).removeprefix("/"))
    runtime = find_runtime(store.folder)
    if runtime is None:
        raise UsageError(
            "the runtime library for embedded models is missing", hint=f"install it with {_install_command(weights)}"
        )
    return weights, runtime


def _install_command(weights: WeightsFile) -> str:
    file: Path | None = weights.path.resolve() if weights.is_linked else None
    return f"`ostler model install --file {file}`" if file else "`ostler model install`"
