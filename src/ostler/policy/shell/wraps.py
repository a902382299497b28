"""How the commands that only run other commands take their arguments. Data."""

import msgspec

from ostler.policy.danger import listed


class Wrap(msgspec.Struct, frozen=True):
    """The way a wrapper takes its arguments.

    `valued` and `longs` are the options with a value, `skip` counts the operands before the command, `code` names
    options whose value is shell text, `out` those that name a file to write. With `env` assignments may stand before
    the command, with `shell` its words are joined into shell text, with `late` options may follow operands.
    """

    valued: str = ""
    longs: tuple[str, ...] = ()
    skip: int = 0
    code: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    env: bool = False
    shell: bool = False
    late: bool = False


_PLAIN = Wrap()
_TRACE = Wrap("aeEIoOpPsSuX", ("output", "expr"), out=("o", "output"))
_LIBRARY_TRACE = Wrap("aADeFlnopsuwx", ("output",), out=("o", "output"))
_SUDO = ("user", "group", "host", "prompt", "chdir", "role", "type", "close-from", "other-user", "command-timeout")
_UV = ("with", "python", "extra", "group", "project", "directory", "env-file", "package", "with-requirements")
_PLAIN_NAMES = (
    "nohup builtin busybox toybox setsid chronic ifne unbuffer fakeroot fakechroot catchsegv torsocks"
    " torify proxychains"
    " proxychains4 tsocks tini dumb-init shx noglob nocorrect linux32 linux64 i386 x86_64 caffeinate dbus-run-session"
    " eatmydata xvfb-run firejail coproc bunx uvx tsp dbus-launch gnome-terminal konsole"
)

WRAPS: dict[str, Wrap] = {
    **dict.fromkeys(_PLAIN_NAMES.split(), _PLAIN),
    "exec": Wrap("a"),
    "nice": Wrap("n", ("adjustment",)),
    "ionice": Wrap("cnpPu", ("class", "classdata")),
    "timeout": Wrap("ks", ("kill-after", "signal"), 1),
    "stdbuf": Wrap("ioe", ("input", "output", "error")),
    "time": Wrap("of", ("output", "format"), out=("o", "output")),
    "chrt": Wrap("TPD", ("sched-runtime", "sched-period", "sched-deadline"), 1),
    "taskset": Wrap(skip=1),
    "setpriv": Wrap("", ("reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "ruid")),
    "prlimit": Wrap("p", ("pid", "output")),
    "numactl": Wrap("CNmpi", ("cpunodebind", "membind", "interleave", "physcpubind", "preferred")),
    "cpulimit": Wrap("lpe", ("limit",)),
    "logsave": Wrap(skip=1),
    "faketime": Wrap("f", (), 1),
    "rlwrap": Wrap("fHDpPl", out=("l",)),
    "watch": Wrap("nq", ("interval",), shell=True),
    "hyperfine": Wrap(
        "wrmMpscSNuPD", ("warmup", "runs", "prepare", "setup", "cleanup", "shell", "export-json", "export-markdown"),
        code=("p", "s", "c", "prepare", "setup", "cleanup"), out=("export-json", "export-markdown"), shell=True,
    ),
    "strace": _TRACE,
    "ltrace": _LIBRARY_TRACE,
    "valgrind": Wrap(out=("log-file",)),
    "unshare": Wrap("", ("wd", "root", "setuid", "setgid", "map-user", "map-group")),
    "systemd-run": Wrap("pEMHu", ("unit", "property", "slice", "uid", "gid", "on-calendar", "on-active", "setenv")),
    "systemd-inhibit": Wrap("", ("what", "who", "why", "mode")),
    "proot": Wrap("rbqwk"),
    "chpst": Wrap("uUbnemdoprftc/"),
    "softlimit": Wrap("adfmoprstcl"),
    "cgexec": Wrap("g"),
    "ssh-agent": Wrap("atPE"),
    "dtach": Wrap("EezrR", (), 1),
    "screen": Wrap("SscehtTp"),
    "sudo": Wrap("ugprtTCchDRUa", _SUDO, env=True),
    "doas": Wrap("uC", env=True),
    "pkexec": Wrap("", ("user",)),
    "run0": Wrap("ug", ("user", "group", "unit", "property", "setenv")),
    "gosu": Wrap(skip=1),
    "su-exec": Wrap(skip=1),
    "setuidgid": Wrap(skip=1),
    "chroot": Wrap("", ("userspec", "groups"), 1),
    "nsenter": Wrap("tSGR", ("target", "setuid", "setgid")),
    "su": Wrap("cgGsw", ("command", "group", "shell"), 99, code=("c", "command"), late=True),
    "sg": Wrap("c", (), 99, code=("c",), late=True),
    "runuser": Wrap("cugGsw", ("command", "user", "group", "shell"), code=("c", "command")),
    "nix-shell": Wrap("pIA", ("run", "command", "packages", "attr"), 99, code=("run", "command"), late=True),
    "cross-env": Wrap(env=True),
    "dotenv": Wrap("fe", ("file", "env-file"), env=True),
    "nodemon": Wrap("xewi", ("exec", "ext", "watch", "ignore"), 99, code=("x", "exec"), late=True),
    "watchexec": Wrap("wefirso", ("watch", "exts", "filter", "ignore"), shell=True),
    "npx": Wrap("pcw", ("package", "call", "workspace"), code=("c", "call")),
    "schedtool": Wrap("nMap"),
    "choom": Wrap("np", ("adjust", "pid")),
    **dict.fromkeys(("mpirun", "mpiexec"), Wrap("n", ("np", "host", "hostfile", "map-by", "bind-to"))),
    "srun": Wrap("nNcpJtwAG", ("ntasks", "nodes", "partition", "time", "mem", "gres", "job-name", "cpus-per-task")),
    **dict.fromkeys(("gamemoderun", "prime-run", "mangohud", "scan-build", "noti", "retry"), _PLAIN),
    "trickle": Wrap("duwtls"),
    "pdsh": Wrap("wlutfx", shell=True),
    "start-stop-daemon": Wrap("xanpucg", ("exec", "startas", "name", "pidfile", "user"), code=("x", "a", "exec")),
    "yt-dlp": Wrap("o", ("exec", "output"), 99, code=("exec",), out=("o", "output"), late=True),
    "xterm": Wrap("T", ()),
}  # fmt: skip

# runners with a sub-command: after it comes a command of its own
RUNNERS: dict[str, tuple[tuple[str, ...], Wrap]] = {
    "perf": (("stat", "record", "trace"), Wrap("eoFCGcprtu", ("event", "output"), out=("o", "output"))),
    "rr": (("record",), _PLAIN),
    "direnv": (("exec",), Wrap(skip=1)),
    "uv": (("run",), Wrap("p", _UV)),
    "poetry": (("run",), _PLAIN),
    "pipenv": (("run",), _PLAIN),
    "pdm": (("run",), _PLAIN),
    "rye": (("run",), _PLAIN),
    "hatch": (("run",), _PLAIN),
    "pixi": (("run",), Wrap("e", ("environment", "manifest-path"))),
    "conda": (("run",), Wrap("npv", ("name", "prefix", "cwd"))),
    "mamba": (("run",), Wrap("np", ("name", "prefix"))),
    "npm": (("exec", "x"), Wrap("pcw", ("package", "call", "workspace"), code=("c", "call"))),
    "pnpm": (("exec", "dlx"), Wrap("cF", ("package", "filter"), code=("c",))),
    "yarn": (("exec", "dlx"), Wrap("p", ("package",))),
    "bun": (("x",), _PLAIN),
    "bundle": (("exec",), _PLAIN),
    "rbenv": (("exec",), _PLAIN),
    "pyenv": (("exec",), _PLAIN),
    "asdf": (("exec",), _PLAIN),
    "mise": (("exec", "x"), Wrap("c", ("command",), code=("c", "command"))),
    "rustup": (("run",), Wrap(skip=1)),
    "aws-vault": (("exec",), Wrap("d", ("duration",), 1)),
    "op": (("run",), Wrap("", ("env-file",))),
    "doppler": (("run",), Wrap("pc", ("project", "config", "command"), code=("command",))),
    "sops": (("exec-env", "exec-file"), Wrap(skip=1, shell=True)),
    "heroku": (("run",), Wrap("a", ("app",))),
    "lxc": (("exec",), Wrap(skip=1)),
    "pipx": (("run",), Wrap("", ("spec", "python"))),
    "vagrant": (("ssh",), Wrap("c", ("command",), 99, code=("c", "command"), late=True)),
    "docker": (
        ("run", "exec", "create", "container run", "container exec", "compose run", "compose exec"),
        Wrap(
            "acehlmpuvw",
            listed(
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
# of these, the ones that fetch what they run; the others run what the project, a container or an environment has
FETCHERS = frozenset(listed("npm bun pipx mise asdf rustup perf op doppler sops aws-vault direnv heroku vagrant lxc"))
