"""The words that make a command dangerous: verbs, sub-commands, options, variables. Data, and nothing else."""

import re
from collections.abc import Mapping

REMOVES = "deletes files"
MOVES = "moves files, over others if they are in the way"
RIGHTS = "changes who may read, write or run files"
DISK = "changes a disk or file system"
HALTS = "stops or restarts the machine"
RAISES = "runs with other privileges"
ACCOUNTS = "changes accounts or passwords"
KERNEL = "changes the running system"
IN_PLACE = "changes files in place"
UNINSTALLS = "removes installed software"


def listed(names: str) -> tuple[str, ...]:
    """Names in a row, the blanks taken away."""
    return tuple(names.split())


def _phrases(lines: str) -> tuple[str, ...]:
    """Phrases in a row, cut at the commas."""
    return tuple(phrase.strip() for phrase in lines.split(","))


def _verbs(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(listed(names), why)


# commands that always ask, whatever their arguments
ALWAYS: Mapping[str, str] = {
    **_verbs(
        REMOVES, "rm rmdir unlink shred srm wipe scrub nwipe trash trash-put trash-empty rimraf del-cli del zf_rm"
    ),
    **_verbs(
        REMOVES,
        "gvfs-trash zf_rmdir tmpwatch tmpreaper deltree uudecode killall5 skill slay xkill fkill trash-cli pkgrm ipcrm"
        " atrm rip sfill rmvirtualenv bleachbit nix-collect-garbage",
    ),
    **_verbs(MOVES, "mv mmv zmv rnm detox qmv vidir zf_mv renameat rename.ul prename file-rename"),
    **_verbs(
        RIGHTS,
        "chmod chown chgrp chattr chacl setfacl setfattr chcon restorecon setcap chflags lchown zf_chmod zf_chown",
    ),
    **_verbs(DISK, "dd dcfldd dc3dd ddrescue dd_rescue mkfs mke2fs mkdosfs mkntfs mkswap mkreiserfs newfs blkdiscard"),
    **_verbs(
        DISK,
        "fsck e2fsck resize2fs tune2fs xfs_repair pg_resetwal debugfs cfdisk gdisk cgdisk swapoff swapon umount fstrim",
    ),
    **_verbs(DISK, "lvremove vgremove pvremove lvreduce pvcreate vgcreate grub-install efibootmgr flashrom fw_setenv"),
    **_verbs(HALTS, "shutdown reboot halt poweroff telinit kexec rtcwake pm-suspend pm-hibernate"),
    **_verbs(RAISES, "sudoedit visudo vipw vigr nsenter su sudo doas pkexec run0 runuser gosu su-exec setuidgid"),
    **_verbs(RAISES, "calife dzdo pfexec gksudo gksu kdesudo kdesu ksu chroot sg newgrp machinectl please"),
    **_verbs(
        ACCOUNTS,
        "passwd chpasswd usermod useradd userdel adduser deluser groupadd groupdel groupmod chsh chfn chage gpasswd",
    ),
    **_verbs(KERNEL, "insmod rmmod modprobe iptables ip6tables nft ufw firewall-cmd pivot_root setenforce ifdown"),
    **_verbs(
        IN_PLACE,
        "truncate ed red dos2unix unix2dos fromdos todos mogrify sponge patchelf xfs_io chrpath install_name_tool",
    ),
    **_verbs(IN_PLACE, "rpl indent jpegoptim optipng merge rcsmerge vim-addons sd codemod fastmod mkvpropedit bfg"),
    **_verbs(REMOVES, "dropdb dropuser"),
}

# ways to call these commands that only look
LOOKS: Mapping[str, str] = {
    "iptables": r"(?:(?:-[nvxw]*[LS][nvx]*(?: [A-Z]\w*)?|-[nvxw]+|--line-numbers|--list(?:-rules)?|-t \w+)(?: |$))+",
    "ufw": r"(?:status|show|app list)( \w+)*",
    "nft": r"(?:-\w+ )*list .*",
    "firewall-cmd": r"--(?:state|list-\S+|get-\S+|query-\S+)( --zone=\S+)?",
    "swapon": r"(?:-s|--show|--summary)?",
    "passwd": r"(?:-S|--status)( \S+)?",
    "chage": r"(?:-l|--list) \S+",
    "visudo": r"-c\b.*",
    "efibootmgr": r"(?:-v)?",
    "tune2fs": r"-l \S+",
    "sd": r"(?:-p|--preview) .*|(?:-\w+ )*\S+ \S+",
    "modprobe": r"(?:-n|--dry-run|--show-depends|-c|--showconfig)\b.*",
    "setenforce": r"",
    "umount": r"-h",
    **dict.fromkeys(("dos2unix", "unix2dos"), r"(?:-i\w*|--info\S*) .*|(?:-\w+ ?)*"),
}

# sub-commands that ask; the words are matched against the first operands, `*` matches any one word
SUBCOMMANDS: Mapping[str, tuple[str, ...]] = {
    "docker": _phrases(
        "rm, rmi, system prune, volume rm, volume prune, container rm, container prune, image rm, image prune,"
        " network rm, network prune, builder prune, swarm leave, stack rm, service rm, secret rm, config rm,"
        " context rm, node rm, buildx prune, buildx rm, compose rm, plugin rm, system reset"
    ),
    "kubectl": _phrases("delete, drain, replace, config delete-context, config delete-cluster, config unset"),
    "minikube": _phrases("stop"),
    "helm": _phrases("uninstall, delete, rollback, del"),
    "terraform": _phrases("destroy, apply, state rm, state mv, workspace delete, force-unlock, taint"),
    "pulumi": _phrases("destroy, up, stack rm, cancel"),
    "vagrant": _phrases("destroy, box remove, snapshot delete, halt"),
    "virsh": _phrases("destroy, undefine, shutdown, reboot, vol-delete, pool-destroy, snapshot-delete"),
    "lxc": _phrases("delete, stop, snapshot delete"),
    "zfs": _phrases("destroy, rollback, rename"),
    "zpool": _phrases("destroy, labelclear, remove"),
    "btrfs": _phrases("subvolume delete, device remove, filesystem resize"),
    "cryptsetup": _phrases("luksFormat, erase, luksErase, luksRemoveKey, luksKillSlot, reencrypt"),
    "nvme": _phrases("format, sanitize"),
    "gsutil": _phrases("rm, rb, mv"),
    "rclone": _phrases("delete, deletefile, purge, sync, move, moveto, rmdir, rmdirs, cleanup, dedupe"),
    "restic": _phrases("forget, prune"),
    "borg": _phrases("delete, prune, compact, rename, recreate, break-lock"),
    "gio": _phrases("trash, remove, move, rename"),
    "gh": _phrases(
        "repo delete, release delete, issue delete, gist delete, secret delete, label delete, run delete, cache"
        " delete, ssh-key delete, gpg-key delete, variable delete, release delete-asset, repo archive, repo rename,"
        " codespace delete, project delete, auth logout, workflow disable, * delete, * remove, * rm"
    ),
    "aws": _phrases("s3 rm, s3 rb, s3 mv, s3api delete-*"),
    "hg": _phrases("revert, purge, strip, rollback, remove, rm, rename, mv, shelve, clean"),
    "svn": _phrases("revert, delete, rm, remove, del, move, mv, cleanup, rename"),
    "bzr": _phrases("revert, rm, mv, clean-tree"),
    "jj": _phrases("abandon, restore, op restore, op undo, undo"),
    "fossil": _phrases("revert, rm, clean, mv"),
    "redis-cli": _phrases("flushall, flushdb, del, unlink, shutdown, rename, config, debug, script, eval, set"),
    "vault": _phrases("delete, * delete, kv destroy, * disable, * revoke"),
    "mysqladmin": _phrases("drop, shutdown, kill"),
    "rabbitmqctl": _phrases("reset, force_reset, forget_cluster_node, delete_*, stop_app, stop"),
    "apt": _phrases("remove, purge, autoremove, autopurge"),
    "apt-get": _phrases("remove, purge, autoremove"),
    "aptitude": _phrases("remove, purge"),
    "brew": _phrases("uninstall, remove, rm, autoremove, bundle cleanup"),
    "pip": _phrases("uninstall"),
    "conda": _phrases("remove, uninstall, env remove"),
    "loginctl": _phrases("poweroff, reboot, terminate-*, kill-*, suspend, hibernate, halt"),
    "systemctl": _phrases(
        "poweroff, reboot, halt, suspend, hibernate, hybrid-sleep, kexec, soft-reboot, emergency, rescue, isolate,"
        " exit, stop, disable, mask, kill, revert, set-default, switch-root, clean, set-property, default"
    ),
    "init": _phrases("0, 6, 1, s, S"),
    "service": _phrases("* stop"),
    "rc-service": _phrases("* stop"),
    "ollama": _phrases("rm"),
    "hostnamectl": _phrases("set-hostname, hostname"),
    "timedatectl": _phrases("set-*"),
    "ip": _phrases("link set, link delete, addr del, addr flush, route del, route flush, netns delete"),
    "nmcli": _phrases("connection delete, con delete, networking off, radio"),
    "update-alternatives": _phrases("--remove, --remove-all, --set, --install"),
    "npm": _phrases(
        "unpublish, deprecate, token revoke, owner rm, team destroy, team rm, org rm, dist-tag rm, hook rm,"
        " config set script-shell, set script-shell"
    ),
    "cargo": _phrases("yank, owner, uninstall"),
    "heroku": _phrases("apps:destroy, pg:reset, addons:destroy, destroy"),
    "tmutil": _phrases("delete, deletelocalsnapshots"),
    "diskutil": _phrases("eraseDisk, eraseVolume, partitionDisk, reformat, apfs deleteContainer, apfs deleteVolume"),
    "crudini": _phrases("--set, --del, --merge"),
    "rustup": _phrases("self uninstall, toolchain uninstall, uninstall, target remove, component remove"),
    "uv": _phrases("pip uninstall, tool uninstall, python uninstall"),
    "nix": _phrases("store gc, store delete, profile remove, profile wipe-history"),
    "guix": _phrases("gc, remove, system"),
    "supervisorctl": _phrases("stop, shutdown, remove, clear"),
    "pm2": _phrases("delete, kill, flush, del"),
    "sv": _phrases("down, stop, exit, kill, force-*"),
    "nomad": _phrases("job stop, stop, system gc, namespace delete, var purge"),
    "launchctl": _phrases("unload, bootout, remove, disable, kill, reboot"),
    "splunk": _phrases("clean"),
    "dasel": _phrases("put, delete"),
    "pass": _phrases("rm, remove, delete, mv"),
    "alembic": _phrases("downgrade"),
    "flask": _phrases("db downgrade"),
    "knex": _phrases("migrate:rollback"),
    "flyway": _phrases("clean, undo"),
    "diesel": _phrases("database reset, migration redo, migration revert"),
    "sqlx": _phrases("database drop, database reset"),
    "tmux": _phrases("kill-server"),
    "dmsetup": _phrases("remove, remove_all, wipe_table, clear, load, suspend"),
    "csrutil": _phrases("disable"),
    "bq": _phrases("rm"),
    "security": _phrases("delete-*"),
    "dotnet": _phrases("ef database drop"),
}

# options whose presence alone asks: letters, long names, and letters that take a value
OPTIONS: Mapping[str, tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], str]] = {
    "wipefs": ("a", ("all", "offset")),
    "sysctl": ("wpf", ("write", "load", "system")),
    "dmesg": ("Cc", ("clear", "read-clear")),
    "journalctl": ("", ("vacuum-size", "vacuum-time", "vacuum-files", "rotate", "flush")),
    "date": ("s", ("set",), "dfrI"),
    "hwclock": ("ws", ("hctosys", "systohc", "set")),
    "badblocks": ("wn", ()),
    "hdparm": ("", ("security-erase", "security-erase-enhanced", "trim-sector-ranges", "write-sector", "format")),
    "mdadm": ("S", ("zero-superblock", "stop", "create", "fail", "remove", "grow")),
    "dpkg": ("rP", ("remove", "purge", "force-all", "pre-invoke", "post-invoke")),
    "rpm": ("e", ("erase",)),
    **dict.fromkeys(listed("pacman yay paru trizen yaourt pacaur pikaur aura aurman"), ("R", ("remove",))),
    "rdfind": ("", ("deleteduplicates", "makehardlinks", "makesymlinks")),
    "qpdf": ("", ("replace-input",)),
    "emerge": ("C", ("unmerge", "depclean")),
    "stow": ("D", ("delete",)),
    "htpasswd": ("D", ()),
    "pass": ("f", ("force",)),
    "kubectx": ("d", ()),
    "crontab": ("r", ()),
    "yq": ("i", ("inplace", "in-place")),
    "comby": ("i", ("in-place",)),
    "xmlstarlet": ("L", ("inplace",)),
    "tidy": ("m", ("modify",)),
    "exiftool": ("", ("overwrite_original", "overwrite_original_in_place", "delete_original")),
    "logrotate": ("f", ("force",)),
    "zstd": ("", ("rm",)),
    "lz4": ("", ("rm",)),
    "brotli": ("j", ("rm",)),
    "pngcrush": ("", ("ow",)),
    "convmv": ("", ("notest",)),
    "pg_restore": ("c", ("clean",)),
    "mongorestore": ("", ("drop",)),
    "virtualenv": ("", ("clear",)),
    "jupyter": ("", ("inplace", "clear-output")),
    "sgdisk": ("Zzodn", ("zap-all", "zap", "clear", "delete", "new", "load-backup")),
    "fusermount": ("u", ()),
    "fuser": ("k", ("kill",)),
    "losetup": ("dD", ("detach", "detach-all")),
    "nix-env": ("e", ("uninstall", "rollback", "delete-generations")),
    "nix-store": ("", ("delete", "gc")),
    "ssh-add": ("Dd", ()),
    "hg": ("C", ("clean",)),
    "jj": ("", ("deleted",)),
    "kubectl": ("", ("prune",)),
    "spctl": ("", ("master-disable", "global-disable")),
    "xattr": ("cdw", ()),
    "nvram": ("cd", ()),
    "fdupes": ("dI", ("delete", "immediate")),
    "fallocate": ("pczdi", ("punch-hole", "collapse-range", "zero-range", "dig-holes", "insert-range")),
}

# variables that hold a command line
COMMAND_VARIABLES = frozenset(
    listed(
        "PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER PSQL_PAGER AWS_PAGER GH_PAGER BAT_PAGER DELTA_PAGER EDITOR"
        " VISUAL FCEDIT"
        " GIT_EDITOR GIT_SEQUENCE_EDITOR KUBE_EDITOR SVN_EDITOR HGEDITOR PSQL_EDITOR SUDO_EDITOR SYSTEMD_EDITOR"
        " GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND"
        " RSYNC_RSH CVS_RSH"
        " SVN_SSH BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC CC CXX LD AR"
        " MAKE SHELL FZF_DEFAULT_COMMAND NPM_CONFIG_SCRIPT_SHELL"
    )
)

# variables that load code or options into whatever runs next
CODE_VARIABLES = frozenset(
    listed(
        "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV PERL5OPT PERL5DB RUBYOPT PYTHONSTARTUP"
        " PYTHONHOME GIT_EXEC_PATH"
        " GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_TEMPLATE_DIR"
        " SHELLOPTS BASHOPTS"
        " BASH_ALIASES BASH_CMDS GCONV_PATH MAKEFILES EXINIT VIMINIT ZDOTDIR PYTHONEXECUTABLE"
    )
)

# the same, one for each target or tool
COMMAND_VARIABLE = re.compile(
    r"CARGO_(?:TARGET_\w+_(?:RUNNER|LINKER)|BUILD_RUSTC\w*)|GIT_CONFIG_VALUE_\d+|\w+(?:_COMMAND|_CMD|PAGER|EDITOR"
    r"|_SHELL|_ASKPASS|_BROWSER|_OPENER|_HOOK)|npm_config_\w*shell"
)

PROMPT_VARIABLES = frozenset({"PS0", "PS1", "PS2", "PS3", "PS4", "ENV"})

# variables that hold options; these words in them load or run code
OPTION_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "NODE_OPTIONS": (
        *(
            f"{option}{path}"
            for option in ("-r ", "--require ", "--require=", "--import ", "--import=")
            for path in "./"
        ),
        "data:",
    ),
    "JAVA_TOOL_OPTIONS": ("OnError", "OnOutOfMemory", "agent"),
    "_JAVA_OPTIONS": ("OnError", "OnOutOfMemory", "agent"),
    "GOFLAGS": ("-toolexec", "-exec"),
    "MAKEFLAGS": ("eval", "SHELL", "-f", "$("),
    "GNUMAKEFLAGS": ("eval", "SHELL", "-f", "$("),
    "TAR_OPTIONS": ("exec", "command", "program", "script", "remove"),
    "RIPGREP_CONFIG_PATH": ("/", "."),
    "LESS": ("+", "-o", "-O"),
    "FZF_DEFAULT_OPTS": ("execute", "preview", "become"),
    "PYTHONWARNINGS": ("antigravity",),
    "PYTEST_ADDOPTS": ("basetemp",),
    "PYTHONBREAKPOINT": ("os.", "subprocess", "shutil"),
}

# files that run by themselves later, or say who may come in: the user's, git's, and the machine's
STARTUP_FILE = re.compile(
    r"~/(?:\.(?:bashrc|bash_\w+|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|mkshrc|cshrc|tcshrc|login|logout"
    r"|xinitrc"
    r"|xprofile|xsession|xsessionrc|inputrc|gitconfig|vimrc|exrc|gdbinit|lldbinit|pythonrc|irbrc|Rprofile|npmrc"
    r"|netrc|pypirc|tmux\.conf)"
    r"|\.ssh/(?:authorized_keys2?|config|rc|environment)|\.config/(?:git/config|fish/|autostart/|systemd/"
    r"|environment\.d/|pip/).*|(?:\.local/)?bin/.*"
    r"|Library/Launch\w+/.*)"
    r"|.*/\.git/(?:config(?:\.worktree)?|commondir|hooks/.+|info/attributes|HEAD|refs/.*|objects/.*)"
    r"|.*/(?:\.(?:ostler|vscode|claude|opencode|eidolon|husky)/.*|\.(?:mcp|eidolon)\.json|\.envrc)"
    r"|/(?:etc|boot|bin|sbin|lib\w*|usr/(?:local/)?(?:s?bin|lib\w*)|var/spool/cron)/.*"
)
