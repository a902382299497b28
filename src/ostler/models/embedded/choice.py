"""Selects an installed embedded model."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.models.dialects.dialect import apply_dialect
from ostler.models.embedded.client import EmbeddedModel
from ostler.models.embedded.prefix_cache import PrefixCache
from ostler.models.embedded.runtime import find_runtime
from ostler.models.embedded.server import start_server
from ostler.models.embedded.weights_store import WeightsFile, WeightsStore
from ostler.models.model_choice import ModelChoice, tool_aliases
from ostler.models.model_types import ModelClient

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
    """Return the named embedded model, which edits in the text of its answers. Raises `UsageError`."""
    chosen, runtime = find_installed(env, name)

    def make(other: str) -> ModelClient:
        if other and not is_embedded(other):
            raise UsageError(
                f"this session runs the embedded model and cannot switch to {other[:80]!r}",
                hint=f"start a new session: ostler --model {other[:80]}",
            )
        weights = find_installed(env, other)[0] if other else chosen
        path, states = weights.path.resolve(), WeightsStore(env).states_folder()
        cache = PrefixCache(states, path) if states else None
        start = partial(start_server, path, runtime, states=states)
        model = EmbeddedModel(f"{NAME}/{weights.name}", start, prefix_cache=cache)
        return apply_dialect(model, "files", aliases=tool_aliases())

    def describe(other: str = "") -> str:
        weights = find_installed(env, other)[0] if other else chosen
        return f"{weights.name}, embedded; {CAUTION}"

    return ModelChoice(describe(), make, describe)


def find_installed(env: Mapping[str, str], name: str) -> tuple[WeightsFile, str]:
    """Return a model file and the folder of the runtime library. Raises `UsageError`."""
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
