"""Table of how wrapper commands take their arguments. Data only."""

import msgspec

from ostler.policy.danger_tables import split_names


class WrapperSpec(msgspec.Struct, frozen=True):
    """The arguments of a wrapper command.

    `skip_operands` is the number of operands before the command. The values of `code_options` are shell text, those of
    `output_options` files to write. With `takes_assignments`, assignments may precede the command; with `joins_words`,
    its words are joined to shell text; with `options_after_operands`, options may follow operands.
    """

    shorts_with_value: str = ""
    longs_with_value: tuple[str, ...] = ()
    skip_operands: int = 0
    code_options: tuple[str, ...] = ()
    output_options: tuple[str, ...] = ()
    takes_assignments: bool = False
    joins_words: bool = False
    options_after_operands: bool = False


_PLAIN_WRAPPER = WrapperSpec()
_TRACE = WrapperSpec("aeEIoOpPsSuX", ("output", "expr"), output_options=("o", "output"))
_LIBRARY_TRACE = WrapperSpec("aADeFlnopsuwx", ("output",), output_options=("o", "output"))
_SUDO = ("user", "group", "host", "prompt", "chdir", "role", "type", "close-from", "other-user", "command-timeout")
_UV = ("with", "python", "extra", "group", "project", "directory", "env-file", "package", "with-requirements")
_PLAIN_NAMES = (
    "nohup builtin busybox toybox setsid chronic ifne unbuffer fakeroot fakechroot catchsegv torsocks"
    " torify proxychains"
    " proxychains4 tsocks tini dumb-init shx noglob nocorrect linux32 linux64 i386 x86_64 caffeinate dbus-run-session"
    " eatmydata xvfb-run firejail coproc bunx uvx tsp dbus-launch gnome-terminal konsole"
)

WRAPPER_SPECS: dict[str, WrapperSpec] = {
    **dict.fromkeys(_PLAIN_NAMES.split(), _PLAIN_WRAPPER),
    "exec": WrapperSpec("a"),
    "nice": WrapperSpec("n", ("adjustment",)),
    "ionice": WrapperSpec("cnpPu", ("class", "classdata")),
    "timeout": WrapperSpec("ks", ("kill-after", "signal"), 1),
    "stdbuf": WrapperSpec("ioe", ("input", "output", "error")),
    "time": WrapperSpec("of", ("output", "format"), output_options=("o", "output")),
    "chrt": WrapperSpec("TPD", ("sched-runtime", "sched-period", "sched-deadline"), 1),
    "taskset": WrapperSpec(skip_operands=1),
    "setpriv": WrapperSpec(
        "", ("reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "ruid")
    ),
    "prlimit": WrapperSpec("p", ("pid", "output")),
    "numactl": WrapperSpec("CNmpi", ("cpunodebind", "membind", "interleave", "physcpubind", "preferred")),
    "cpulimit": WrapperSpec("lpe", ("limit",)),
    "logsave": WrapperSpec(skip_operands=1),
    "faketime": WrapperSpec("f", (), 1),
    "rlwrap": WrapperSpec("fHDpPl", output_options=("l",)),
    "watch": WrapperSpec("nq", ("interval",), joins_words=True),
    "hyperfine": WrapperSpec(
        "wrmMpscSNuPD", ("warmup", "runs", "prepare", "setup", "cleanup", "shell", "export-json", "export-markdown"),
        code_options=("p", "s", "c", "prepare", "setup", "cleanup"),
        output_options=("export-json", "export-markdown"), joins_words=True,
    ),
    "strace": _TRACE,
    "ltrace": _LIBRARY_TRACE,
    "valgrind": WrapperSpec(output_options=("log-file",)),
    "unshare": WrapperSpec("", ("wd", "root", "setuid", "setgid", "map-user", "map-group")),
    "systemd-run": WrapperSpec(
        "pEMHu", ("unit", "property", "slice", "uid", "gid", "on-calendar", "on-active", "setenv")
    ),
    "systemd-inhibit": WrapperSpec("", ("what", "who", "why", "mode")),
    "proot": WrapperSpec("rbqwk"),
    "chpst": WrapperSpec("uUbnemdoprftc/"),
    "softlimit": WrapperSpec("adfmoprstcl"),
    "cgexec": WrapperSpec("g"),
    "ssh-agent": WrapperSpec("atPE"),
    "dtach": WrapperSpec("EezrR", (), 1),
    "screen": WrapperSpec("SscehtTp"),
    "sudo": WrapperSpec("ugprtTCchDRUa", _SUDO, takes_assignments=True),
    "doas": WrapperSpec("uC", takes_assignments=True),
    "pkexec": WrapperSpec("", ("user",)),
    "run0": WrapperSpec("ug", ("user", "group", "unit", "property", "setenv")),
    "gosu": WrapperSpec(skip_operands=1),
    "su-exec": WrapperSpec(skip_operands=1),
    "setuidgid": WrapperSpec(skip_operands=1),
    "chroot": WrapperSpec("", ("userspec", "groups"), 1),
    "nsenter": WrapperSpec("tSGR", ("target", "setuid", "setgid")),
    "su": WrapperSpec(
        "cgGsw", ("command", "group", "shell"), 99, code_options=("c", "command"), options_after_operands=True
    ),
    "sg": WrapperSpec("c", (), 99, code_options=("c",), options_after_operands=True),
    "runuser": WrapperSpec("cugGsw", ("command", "user", "group", "shell"), code_options=("c", "command")),
    "nix-shell": WrapperSpec(
        "pIA", ("run", "command", "packages", "attr"), 99, code_options=("run", "command"), options_after_operands=True
    ),
    "cross-env": WrapperSpec(takes_assignments=True),
    "dotenv": WrapperSpec("fe", ("file", "env-file"), takes_assignments=True),
    "nodemon": WrapperSpec(
        "xewi", ("exec", "ext", "watch", "ignore"), 99, code_options=("x", "exec"), options_after_operands=True
    ),
    "watchexec": WrapperSpec("wefirso", ("watch", "exts", "filter", "ignore"), joins_words=True),
    "npx": WrapperSpec("pcw", ("package", "call", "workspace"), code_options=("c", "call")),
    "schedtool": WrapperSpec("nMap"),
    "choom": WrapperSpec("np", ("adjust", "pid")),
    **dict.fromkeys(("mpirun", "mpiexec"), WrapperSpec("n", ("np", "host", "hostfile", "map-by", "bind-to"))),
    "srun": WrapperSpec(
        "nNcpJtwAG", ("ntasks", "nodes", "partition", "time", "mem", "gres", "job-name", "cpus-per-task")
    ),
    **dict.fromkeys(("gamemoderun", "prime-run", "mangohud", "scan-build", "noti", "retry"), _PLAIN_WRAPPER),
    "trickle": WrapperSpec("duwtls"),
    "pdsh": WrapperSpec("wlutfx", joins_words=True),
    "start-stop-daemon": WrapperSpec(
        "xanpucg", ("exec", "startas", "name", "pidfile", "user"), code_options=("x", "a", "exec")
    ),
    "yt-dlp": WrapperSpec(
        "o", ("exec", "output"), 99, code_options=("exec",), output_options=("o", "output"), options_after_operands=True
    ),
    "xterm": WrapperSpec("T", ()),
}  # fmt: skip

# runners with a subcommand that is followed by another command
RUNNERS: dict[str, tuple[tuple[str, ...], WrapperSpec]] = {
    "perf": (
        ("stat", "record", "trace"),
        WrapperSpec("eoFCGcprtu", ("event", "output"), output_options=("o", "output")),
    ),
    "rr": (("record",), _PLAIN_WRAPPER),
    "direnv": (("exec",), WrapperSpec(skip_operands=1)),
    "uv": (("run",), WrapperSpec("p", _UV)),
    "poetry": (("run",), _PLAIN_WRAPPER),
    "pipenv": (("run",), _PLAIN_WRAPPER),
    "pdm": (("run",), _PLAIN_WRAPPER),
    "rye": (("run",), _PLAIN_WRAPPER),
    "hatch": (("run",), _PLAIN_WRAPPER),
    "pixi": (("run",), WrapperSpec("e", ("environment", "manifest-path"))),
    "conda": (("run",), WrapperSpec("npv", ("name", "prefix", "cwd"))),
    "mamba": (("run",), WrapperSpec("np", ("name", "prefix"))),
    "npm": (("exec", "x"), WrapperSpec("pcw", ("package", "call", "workspace"), code_options=("c", "call"))),
    "pnpm": (("exec", "dlx"), WrapperSpec("cF", ("package", "filter"), code_options=("c",))),
    "yarn": (("exec", "dlx"), WrapperSpec("p", ("package",))),
    "bun": (("x",), _PLAIN_WRAPPER),
    "bundle": (("exec",), _PLAIN_WRAPPER),
    "rbenv": (("exec",), _PLAIN_WRAPPER),
    "pyenv": (("exec",), _PLAIN_WRAPPER),
    "asdf": (("exec",), _PLAIN_WRAPPER),
    "mise": (("exec", "x"), WrapperSpec("c", ("command",), code_options=("c", "command"))),
    "rustup": (("run",), WrapperSpec(skip_operands=1)),
    "aws-vault": (("exec",), WrapperSpec("d", ("duration",), 1)),
    "op": (("run",), WrapperSpec("", ("env-file",))),
    "doppler": (("run",), WrapperSpec("pc", ("project", "config", "command"), code_options=("command",))),
    "sops": (("exec-env", "exec-file"), WrapperSpec(skip_operands=1, joins_words=True)),
    "heroku": (("run",), WrapperSpec("a", ("app",))),
    "lxc": (("exec",), WrapperSpec(skip_operands=1)),
    "pipx": (("run",), WrapperSpec("", ("spec", "python"))),
    "vagrant": (
        ("ssh",),
        WrapperSpec("c", ("command",), 99, code_options=("c", "command"), options_after_operands=True),
    ),
    "docker": (
        ("run", "exec", "create", "container run", "container exec", "compose run", "compose exec"),
        WrapperSpec(
            "acehlmpuvw",
            split_names(
                "name env env-file volume workdir user publish network mount label memory"
                " cpus entrypoint hostname platform add-host device gpus ulimit shm-size index restart cap-add cap-drop"
                " security-opt tmpfs pid ipc dns expose link pull log-driver volumes-from cidfile runtime stop-signal"
            ),
            1,
        ),
    ),
}  # fmt: skip
RUNNERS["podman"] = RUNNERS["nerdctl"] = RUNNERS["docker"]
RUNNERS["docker-compose"] = (("run", "exec"), RUNNERS["docker"][1])
# runners that download or find programs elsewhere; the others run programs of the project or of a container
FETCHERS = frozenset(
    split_names("npm bun pipx mise asdf rustup perf op doppler sops aws-vault direnv heroku vagrant lxc")
)
