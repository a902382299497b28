"""Suggests the pattern of an "always allow" rule for a command."""

from collections.abc import Mapping, Sequence

from ostler.policy.danger_tables import split_names

# commands with a subcommand
_WITH_SUBCOMMAND = split_names(
    "apk apt apt-get aptitude asdf bazel brew bun bundle cargo cdk choco composer conda deno dnf docker docker-compose"
    " dotnet flutter fly flyctl gem git go gradle gradlew hatch helm heroku hg jj just kubectl lerna lxc make mamba"
    " minikube mise mix mvn nerdctl ng nix npm nvm nx opam packer pacman pdm pip pip3 pipenv pipx pixi pm2 pnpm podman"
    " poetry pulumi pyenv rails rake rbenv rustup rye sam sbt serverless service skaffold snap stack supabase svn swift"
    " systemctl task terraform tofu tox turbo uv vagrant vercel volta wrangler yarn yum zig zypper"
)
# commands with a group and a subcommand
_WITH_GROUP = split_names("aws az consul doctl firebase gcloud gh glab ip nomad op vault")
# subcommands that have subcommands
_WITH_NESTED_SUBCOMMAND: Mapping[str, tuple[str, ...]] = {
    "bun": ("run", "x"),
    "bundle": ("exec",),
    "cargo": ("run",),
    "conda": ("env", "config"),
    "deno": ("run", "task"),
    "docker": split_names(
        "builder buildx compose config container context image network plugin secret service system volume"
    ),
    "dotnet": ("add", "ef", "nuget", "tool"),
    "git": split_names("bisect config lfs notes remote stash submodule worktree"),
    "go": ("mod", "run", "tool", "work"),
    "hatch": ("run", "env"),
    "helm": ("dependency", "get", "plugin", "repo", "show"),
    "kubectl": ("auth", "config", "create", "rollout", "set", "top"),
    "mise": ("exec", "run", "x"),
    "npm": ("cache", "config", "exec", "run", "run-script", "x"),
    "pip": ("cache", "config"),
    "pnpm": ("dlx", "exec", "run"),
    "podman": ("compose", "container", "image", "network", "system", "volume"),
    "poetry": ("run", "env"),
    "pipenv": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "pixi": ("run",),
    "terraform": ("providers", "state", "workspace"),
    "uv": ("pip", "python", "run", "tool"),
    "yarn": ("dlx", "run", "workspace"),
}
# commands that run their arguments, or change what later commands do: only the exact command line is suggested
_EXACT_ONLY = frozenset(
    split_names(
        "bash sh zsh dash ksh fish eval exec env xargs parallel ssh watch find fd awk sed perl ruby node php lua python"
        " python3 nohup timeout time nice setsid stdbuf script command builtin sudo su doas npx bunx uvx"
        " busybox trap source"
        " . tmux screen expect osascript export declare typeset readonly local set unset read mapfile readarray"
    )
)
_SCRIPT_RUNNERS = frozenset(split_names("bash sh zsh python python3 node ruby perl php lua deno bun"))


def suggest_rule_pattern(words: Sequence[str]) -> str:
    """Return a pattern that allows this command with other arguments: `git checkout *`, `npm run build *`."""
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name in _SCRIPT_RUNNERS and len(words) > 1 and not words[1].startswith("-"):
        return _prefix_pattern(words[:2])
    if name in _SCRIPT_RUNNERS and len(words) > 2 and words[1] == "-m":
        return _prefix_pattern(words[:3])
    if name in _EXACT_ONLY:
        return _exact_pattern(words)
    length = _prefix_length(name, words)
    if len(words) < length or any(word.startswith("-") for word in words[1:length]):
        return _exact_pattern(words)  # no subcommand, or an option before it
    return _prefix_pattern(words[:length])


def _prefix_length(name: str, words: Sequence[str]) -> int:
    if name in _WITH_GROUP:
        return 3
    if name not in _WITH_SUBCOMMAND:
        return 1
    return 3 if len(words) > 1 and words[1] in _WITH_NESTED_SUBCOMMAND.get(name, ()) else 2


def _prefix_pattern(words: Sequence[str]) -> str:
    return _exact_pattern(words) + " *"


def _exact_pattern(words: Sequence[str]) -> str:
    """Return a pattern that matches exactly these words; `*` is replaced by `?`."""
    return " ".join(words).replace("*", "?")
