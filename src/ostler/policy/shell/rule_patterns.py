"""How wide an "always allow" rule should be: the words that say what a command does, and no more."""

from collections.abc import Mapping, Sequence

from ostler.policy.danger_tables import split_names

# commands whose first argument says what they do
_WITH_SUBCOMMAND = split_names(
    "apk apt apt-get aptitude asdf bazel brew bun bundle cargo cdk choco composer conda deno dnf docker docker-compose"
    " dotnet flutter fly flyctl gem git go gradle gradlew hatch helm heroku hg jj just kubectl lerna lxc make mamba"
    " minikube mise mix mvn nerdctl ng nix npm nvm nx opam packer pacman pdm pip pip3 pipenv pipx pixi pm2 pnpm podman"
    " poetry pulumi pyenv rails rake rbenv rustup rye sam sbt serverless service skaffold snap stack supabase svn swift"
    " systemctl task terraform tofu tox turbo uv vagrant vercel volta wrangler yarn yum zig zypper"
)
# commands whose first argument is a group and whose second says what they do
_WITH_GROUP = split_names("aws az consul doctl firebase gcloud gh glab ip nomad op vault")
# first arguments after which one more word is needed
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
# commands that run what their arguments say: nothing but the very same line is the same thing
_EXACT_ONLY = frozenset(
    split_names(
        "bash sh zsh dash ksh fish eval exec env xargs parallel ssh watch find fd awk sed perl ruby node php lua python"
        " python3 nohup timeout time nice setsid stdbuf script command builtin sudo su doas npx bunx uvx"
        " busybox trap source"
        " . tmux screen expect osascript"
    )
)
_SCRIPT_RUNNERS = frozenset(split_names("bash sh zsh python python3 node ruby perl php lua deno bun"))


def suggest_rule_pattern(words: Sequence[str]) -> str:
    """The pattern of a rule that allows this command with other arguments: `git checkout *`, `npm run build *`."""
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name in _SCRIPT_RUNNERS and len(words) > 1 and not words[1].startswith("-"):
        return _prefix_pattern(words[:2])
    if name in _SCRIPT_RUNNERS and len(words) > 2 and words[1] == "-m":
        return _prefix_pattern(words[:3])
    if name in _EXACT_ONLY:
        return _exact_pattern(words)
    width = _prefix_length(name, words)
    if len(words) < width or any(word.startswith("-") for word in words[1:width]):
        return _exact_pattern(words)  # no verb yet, or an option before it that may change all that follows
    return _prefix_pattern(words[:width])


def _prefix_length(name: str, words: Sequence[str]) -> int:
    if name in _WITH_GROUP:
        return 3
    if name not in _WITH_SUBCOMMAND:
        return 1
    return 3 if len(words) > 1 and words[1] in _WITH_NESTED_SUBCOMMAND.get(name, ()) else 2


def _prefix_pattern(words: Sequence[str]) -> str:
    return _exact_pattern(words) + " *"


def _exact_pattern(words: Sequence[str]) -> str:
    """The words as a pattern that fits themselves: a star in them stands for one character, not for any number."""
    return " ".join(words).replace("*", "?")
