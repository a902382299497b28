"""Joins the embedded model to the choice of models: what is installed, and how a session is fitted to it."""

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
CAUTION = "small, slow to begin, and no substitute for a large model"


def is_embedded(name: str) -> bool:
    """Whether a model's name means one of ours: `embedded`, or `embedded/NAME`."""
    return name == NAME or name.startswith(f"{NAME}/")


def is_installed(env: Mapping[str, str]) -> bool:
    """Whether there is one to fall back on."""
    store = WeightsStore(env)
    return any(one.size is not None for one in store.list_installed()) and find_runtime(store.folder) is not None


def embedded_choice(env: Mapping[str, str], name: str = NAME) -> ModelChoice:
    """The embedded model of that name, with the prompt and the tools that it has room for."""
    chosen, runtime = _find_installed(env, name)

    def make(other: str) -> EmbeddedModel:
        if other and not is_embedded(other):
            raise UsageError(
                f"the embedded model is at work, not {other[:80]!r}",
                hint=f"begin a session with it: ostler --model {other[:80]}",
            )
        weights = _find_installed(env, other)[0] if other else chosen
        return EmbeddedModel(f"{NAME}/{weights.name}", lambda: start_server(weights.path.resolve(), runtime))

    return ModelChoice(f"{chosen.name} in a process of ours; it is {CAUTION}", make, embedded_prompt(), embedded_tools)


def _find_installed(env: Mapping[str, str], name: str) -> tuple[WeightsFile, str]:
    store = WeightsStore(env)
    weights = store.find(name.removeprefix(NAME).removeprefix("/"))
    runtime = find_runtime(store.folder)
    if runtime is None:
        raise UsageError(
            "the library that computes embedded models is missing", hint=f"{_install_command(weights)} fetches it"
        )
    return weights, runtime


def _install_command(weights: WeightsFile) -> str:
    file: Path | None = weights.path.resolve() if weights.is_linked else None
    return f"`ostler model install --file {file}`" if file else "`ostler model install`"
