"""Tables of dangerous commands, options, variables and files. Data only."""

import re
from collections.abc import Mapping

DELETES_FILES = "deletes files"
MOVES_FILES = "moves files, and may overwrite others"
CHANGES_MODES = "changes file permissions or owners"
CHANGES_DISK = "changes a disk or file system"
STOPS_MACHINE = "stops or restarts the machine"
CHANGES_PRIVILEGES = "runs with different privileges"
CHANGES_ACCOUNTS = "changes accounts or passwords"
CHANGES_SYSTEM = "changes the running system"
EDITS_IN_PLACE = "changes files in place"
RUNS_LATER = "makes something run automatically later"
GRANTS_ACCESS = "gives others access to a machine"


def split_names(names: str) -> tuple[str, ...]:
    """Split a string of names separated by whitespace."""
    return tuple(names.split())


# commands that need approval with any arguments, by reason
_ALWAYS_BY_REASON = {
    DELETES_FILES: "rm rmdir unlink shred srm wipe scrub nwipe trash trash-put trash-empty rimraf del-cli del zf_rm"
    " gvfs-trash zf_rmdir tmpwatch tmpreaper deltree uudecode killall5 skill slay xkill fkill trash-cli pkgrm"
    " ipcrm atrm rip sfill rmvirtualenv bleachbit nix-collect-garbage dropdb dropuser rd erase taskkill tskill"
    " memcflush pg_dropcluster rmtrash macos-trash send2trash mdel mdeltree ldapdelete kdestroy tcpkill",
    MOVES_FILES: "mv mmv zmv rnm detox qmv vidir zf_mv renameat rename.ul prename file-rename perl-rename ren move exch"
    " mren mmove",
    CHANGES_MODES: "chmod chown chgrp chattr chacl setfacl setfattr chcon restorecon setcap chflags lchown zf_chmod"
    " zf_chown takeown",
    CHANGES_DISK: "dd dcfldd dc3dd ddrescue dd_rescue mkfs mke2fs mkdosfs mkntfs mkswap mkreiserfs newfs blkdiscard"
    " fsck e2fsck resize2fs tune2fs xfs_repair pg_resetwal debugfs cfdisk gdisk cgdisk swapoff swapon umount fstrim"
    " lvremove vgremove pvremove lvreduce pvcreate vgcreate grub-install efibootmgr flashrom fw_setenv"
    " diskpart vssadmin wbadmin fsutil lvcreate lvextend lvresize lvconvert vgreduce vgextend vgrename"
    " vgcfgrestore pvmove pvresize eject xfs_growfs sg_format sg_sanitize mformat flashcp nandwrite ubiformat nvflash"
    " update-grub dracut mkinitcpio update-initramfs",
    STOPS_MACHINE: "shutdown reboot halt poweroff telinit kexec rtcwake pm-suspend pm-hibernate",
    CHANGES_PRIVILEGES: "sudoedit visudo vipw vigr nsenter su sudo doas pkexec run0 runuser gosu su-exec setuidgid"
    " calife dzdo pfexec gksudo gksu kdesudo kdesu ksu chroot sg newgrp machinectl please",
    CHANGES_ACCOUNTS: "passwd chpasswd usermod useradd userdel adduser deluser groupadd groupdel groupmod chsh chfn"
    " chage gpasswd",
    CHANGES_SYSTEM: "hostname insmod rmmod modprobe iptables ip6tables nft ufw firewall-cmd pivot_root setenforce"
    " ifdown bcdedit reg regedit netsh net wevtutil rundll32 logoff aa-disable aa-complain aa-teardown auditctl rfkill",
    EDITS_IN_PLACE: "ed red dos2unix unix2dos fromdos todos mogrify sponge patchelf xfs_io chrpath install_name_tool"
    " rpl indent jpegoptim optipng merge rcsmerge vim-addons sd codemod fastmod mkvpropedit bfg upx ambr"
    " savelog",
    RUNS_LATER: "at batch update-rc.d chkconfig anacron",
    GRANTS_ACCESS: "ssh-copy-id sshd dropbear ttyd gotty tmate frpc x11vnc",
    "publishes something or sends it to others": "pastebinit",
}
ALWAYS_DANGEROUS: Mapping[str, str] = {
    name: reason for reason, names in _ALWAYS_BY_REASON.items() for name in split_names(names)
}

# read-only forms of these commands: patterns for all arguments, joined by spaces
READ_ONLY_FORMS: Mapping[str, str] = {
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
    "hostname": r"(?:--?[a-zA-Z]+(?: |$))*",
    "ldconfig": r"-p|-v -N|-vN|-N -v",
    "pmset": r"-g.*",
    "plutil": r"-(?:p|lint|extract|type) .*",
    "codesign": r"(?:-d|-v|--display|--verify|-dv+|-vv+)\b.*",
    "smbclient": r".*(?:^| )-L.*",
    "iwconfig": r"\S*",
    "xhost": r"",
    "networksetup": r"-(?:list|get)\S*.*",
    "dscl": r"(?:\S+ )?-?(?:list|read|search)\b.*",
    "jhead": r"[^-].*",
    "exiv2": r"(?:-p\w+ |pr |-[gK] \S+ )?[^-]\S*",
    "eyeD3": r"[^-]\S*",
    "fsck": r"(?:-\S* )*-N\b.*",
    "machinectl": r"(?:list\S*|status|show)\b.*",
    "restorecon": r".*(?:^| )-\w*n\w*\b.*",
    "mkinitcpio": r"-[LH].*",
    "detox": r".*(?:^| )(?:-n|--dry-run)\b.*",
    "flashrom": r".*(?:^| )-[rv] .*",
    "vidir": r"",
    "sshd": r"-[tTV].*",
    "haproxy": r"-(?:c|v+)\b.*",
    "apachectl": r"configtest|status|fullstatus|-[StvVlM]",
    "mkcert": r"-CAROOT|(?:[^\s-]\S*(?: |$))+",
    "certbot": r"certificates.*|plugins|show_account|.*--dry-run.*",
    "umount": r"-h",
    "auditctl": r"-[lsv]",
    "rfkill": r"(?:list.*)?",
    "upx": r"-[ltV].*",
    "at": r"-l|-V|-c .*|-q \w -l",
    "chkconfig": r"(?:--list.*)?",
    "vssadmin": r"(?i)list .*",
    "wbadmin": r"(?i)get .*",
    "fsutil": r"(?i)\w+ (?:query\w*|info|list\w*|show\w*).*",
    "bcdedit": r"(?i)(?:/enum.*|/v)?",
    "reg": r"(?i)(?:query|compare|export) .*",
    "netsh": r"(?i)(?:\S+ ){0,4}show\b.*",
    "net": r"(?i)(?:view|time|statistics|config|help|user|localgroup|accounts|share|use|start|session)(?: \w+)?",
    "wevtutil": r"(?i)(?:el|gl|ep|gp|qe|gli)\b.*",
    **dict.fromkeys(("dos2unix", "unix2dos"), r"(?:-i\w*|--info\S*) .*|(?:-\w+ ?)*"),
}

# commands that need approval if their arguments include words of these forms, in this order
DANGEROUS_FORMS: Mapping[str, tuple[str, str]] = {
    "format": (CHANGES_DISK, r"(?i)[a-z]:.*"),
    "cipher": (DELETES_FILES, r"(?i)/w.*"),
    **dict.fromkeys(
        ("icacls", "cacls"), (CHANGES_MODES, r"(?i)/(?:grant|deny|remove|reset|setowner|inherit|[gpr]\b).*")
    ),
    "attrib": (CHANGES_MODES, r"[+-][A-Za-z].*"),
    "robocopy": (DELETES_FILES, r"(?i)/(?:mir|purge|move?)"),
    **dict.fromkeys(("xcopy", "copy"), (EDITS_IN_PLACE, r"(?i)/y")),
    "forfiles": (DELETES_FILES, r"(?i).*\b(?:del|erase|rd|rmdir)\b.*"),
    "recode": (EDITS_IN_PLACE, r"[^-].* [^-].*"),
    "dpkg-deb": (EDITS_IN_PLACE, r"-[xXR]|--v?extract|--raw-extract"),
    "unison": (EDITS_IN_PLACE, r"--?(?:force|batch|prefer)\b.*"),
    "kak": (EDITS_IN_PLACE, r"-f"),
    "pngquant": (EDITS_IN_PLACE, r"-f|--force"),
    "exiftool": (EDITS_IN_PLACE, r"(?i)-[\w:-]+[+<-]?=.*|-(?:w|tagsfromfile)"),
    "e2label": (CHANGES_DISK, r".+ .+"),
    "parted": (CHANGES_DISK, r"rm|mkpart|mklabel|mktable|resizepart|name|set"),
    "ipmitool": (STOPS_MACHINE, r"power off|cycle|reset|soft"),
    "systemctl": (
        STOPS_MACHINE,
        r"(?!is-|get-)\S*(?:start|isolate|enable|default|wants|requires)\S*"
        r" (?:poweroff|reboot|halt|rescue|emergency|kexec|shutdown|suspend|hibernate|exit)\.target|ctrl-alt-del.*",
    ),
    **dict.fromkeys(
        ("busctl", "dbus-send", "gdbus", "qdbus"),
        (STOPS_MACHINE, r"(?i).*(?:Logout|PowerOff|Reboot|Halt|Suspend|Hibernate|Shutdown|StopUnit|KillUnit).*"),
    ),
    "systemd-run": (CHANGES_PRIVILEGES, r"(?:-p|--property=)?(?:User|Group|DynamicUser)=.*"),
    "arp": (CHANGES_SYSTEM, r"-[ds]|--delete|--set"),
    **dict.fromkeys(
        ("ebtables", "arptables", "conntrack", "ipvsadm"), (CHANGES_SYSTEM, r"-[ADIFXPZCE]|--flush|--clear")
    ),
    "guix": (
        DELETES_FILES,
        r"package|home|system -r|--remove.*|-d.*|--delete-generations.*|--roll-?back|delete-generations",
    ),
    "avrdude": (CHANGES_DISK, r"-e|-U.*:w:.*|\w+:w:.*"),
    "openocd": (CHANGES_DISK, r".*(?:program|flash|erase|mww).*"),
    "rdfind": (DELETES_FILES, r"-(?:deleteduplicates|make\w+) true"),
    "libtool": (DELETES_FILES, r"--?mode=(?:uninstall|clean|install)|u|uninstall"),
    "nginx": ("stops a service", r"-s stop|quit"),
    "httpd": ("stops a service", r"-k .*stop"),
    "screen": (DELETES_FILES, r"-X quit|kill"),
    "sysctl": (CHANGES_SYSTEM, r"[^-].*=.*"),
    "ifconfig": (CHANGES_SYSTEM, r"down|up"),
    "route": (CHANGES_SYSTEM, r"add|del|delete|flush|change"),
    "tc": (CHANGES_SYSTEM, r"add|del|delete|change|replace|flush"),
    "ethtool": (CHANGES_SYSTEM, r"-[sKGLACEfrp]"),
    **dict.fromkeys(
        split_names("tex latex pdftex pdflatex xelatex lualatex"),
        (
            "lets a document write files or run commands",
            r".*(?:\\(?:immediate\s*)?\\?(?:write|openout|input\s*\|)|--?shell-escape|--?enable-write18).*",
        ),
    ),
    "gpg": ("exports secret keys", r"--export-secret-(?:sub)?keys.*"),
    **dict.fromkeys(
        split_names("kubectl oc docker nomad heroku fly flyctl"),
        ("stops a service that others may use", r"(?:ps:)?scale (?:--(?:replicas|count)=|\w[\w/.-]*=)?0"),
    ),
}

# options that always need approval: letters, long names, and letters that take a value
DANGEROUS_OPTIONS: Mapping[str, tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], str]] = {
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
    **dict.fromkeys(split_names("pacman yay paru trizen yaourt pacaur pikaur aura aurman"), ("R", ("remove",))),
    "qpdf": ("", ("replace-input",)),
    "emerge": ("C", ("unmerge", "depclean")),
    "stow": ("D", ("delete",)),
    "htpasswd": ("D", ()),
    "pass": ("f", ("force",)),
    "kubectx": ("d", ()),
    "crontab": ("re", ()),
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
    "fusermount": ("uz", ()),
    "clamscan": ("", ("move", "remove")),
    "clamdscan": ("", ("move", "remove")),
    "firejail": ("", ("shutdown",)),
    "rpcinfo": ("d", ()),
    "fuser": ("k", ("kill",)),
    "losetup": ("dD", ("detach", "detach-all")),
    "nix-env": ("e", ("uninstall", "rollback", "delete-generations")),
    "nix-store": ("", ("delete", "gc")),
    "ssh-add": ("Dd", ()),
    "hg": ("C", ("clean",)),
    "mlr": ("I", ()),
    "svn": ("", ("force",)),
    "jj": ("", ("deleted",)),
    "argocd": ("", ("prune",)),
    "kubectl": ("", ("prune",)),
    "spctl": ("", ("master-disable", "global-disable")),
    "xattr": ("cdw", ()),
    "nvram": ("cd", ()),
    **dict.fromkeys(("fdupes", "jdupes"), ("dILHB", ("delete", "immediate"))),
    "symlinks": ("dcs", ()),
    "attr": ("sr", ()),
    "json": ("I", ("in-place",)),
    "sdparm": ("scCD", ("set", "clear", "defaults", "command")),
    "systemd-run": (
        "",
        split_names(
            "uid gid on-calendar on-active on-boot on-startup on-unit-active on-unit-inactive on-clock-change"
            " timer-property path-property socket-property"
        ),
    ),
    "setpriv": ("", ("reuid", "regid", "ruid", "euid")),
    "cvs": ("C", ()),
    **dict.fromkeys(("degit", "tiged"), ("f", ("force",))),
    "chpst": ("uU/", ()),
    "ansible": ("bK", ("become",), "amiuMfel"),
    "ss": ("K", ("kill",)),
    "fallocate": ("pczdi", ("punch-hole", "collapse-range", "zero-range", "dig-holes", "insert-range")),
}

# variables that contain a command line
COMMAND_VARIABLES = frozenset(
    split_names(
        "PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER PSQL_PAGER AWS_PAGER GH_PAGER BAT_PAGER DELTA_PAGER EDITOR"
        " VISUAL FCEDIT"
        " GIT_EDITOR GIT_SEQUENCE_EDITOR KUBE_EDITOR SVN_EDITOR HGEDITOR PSQL_EDITOR SUDO_EDITOR SYSTEMD_EDITOR"
        " GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND"
        " RSYNC_RSH CVS_RSH"
        " SVN_SSH BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTC CC CXX LD AR"
        " MAKE SHELL FZF_DEFAULT_COMMAND NPM_CONFIG_SCRIPT_SHELL"
    )
)

# variables that load code or options into the next programs
CODE_VARIABLES = frozenset(
    split_names(
        "LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH LOCPATH NLSPATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH"
        " DYLD_FRAMEWORK_PATH DYLD_FALLBACK_LIBRARY_PATH OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES"
        " BASH_ENV PERL5OPT PERL5DB RUBYOPT PYTHONSTARTUP"
        " PYTHONHOME GIT_EXEC_PATH"
        " GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_TEMPLATE_DIR"
        " SHELLOPTS BASHOPTS"
        " BASH_ALIASES BASH_CMDS GCONV_PATH MAKEFILES EXINIT VIMINIT ZDOTDIR PYTHONEXECUTABLE"
    )
)

# those of them that a project sets for its own programs
LIBRARY_PATHS = frozenset({"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"})

# more variables that contain a command line, with a target or tool in their names
COMMAND_VARIABLE_PATTERN = re.compile(
    r"CARGO_(?:TARGET_\w+_(?:RUNNER|LINKER)|BUILD_RUSTC\w*)|GIT_CONFIG_VALUE_\d+|\w+(?:_COMMAND|_CMD|PAGER|EDITOR"
    r"|_SHELL|_ASKPASS|_BROWSER|_OPENER|_HOOK)|npm_config_\w*shell"
)

PROMPT_VARIABLES = frozenset({"PS0", "PS1", "PS2", "PS3", "PS4", "ENV"})

# variables that contain options, and the texts in them that load or run code
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

# files with credentials
SECRET_FILE = re.compile(
    r"(?:^|/)\.(?:ssh/(?:id_\w+|[\w.-]+\.(?:pem|key|ppk)|identity)|aws/credentials|netrc|pgpass|git-credentials|vault-token"
    r"|gnupg/(?:private-keys\S*|secring\S*)|(?:ssh|aws|gnupg)/?"
    r"|config/(?:gcloud/(?:credentials\.db|application_default_credentials\.json|access_tokens\.db)|gh/hosts\.yml))$"
    r"|/etc/g?shadow-?$|/proc/\w+/environ$"
)

# files that run automatically later or grant access: of the user, of git and of the system
STARTUP_FILE = re.compile(
    r"~/(?:\.(?:bashrc|bash_\w+|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|mkshrc|cshrc|tcshrc|login|logout"
    r"|xinitrc"
    r"|xprofile|xsession|xsessionrc|inputrc|gitconfig|vimrc|exrc|gdbinit|lldbinit|pythonrc|irbrc|Rprofile|npmrc"
    r"|netrc|pypirc|tmux\.conf)"
    r"|\.ssh/(?:authorized_keys2?|config|rc|environment)|\.config/(?:git/config|(?:fish|autostart|systemd"
    r"|environment\.d|pip)(?:/.*)?)|(?:\.local/)?bin/.*"
    r"|Library/Launch\w+/.*)"
    r"|.*/\.git/(?:config(?:\.worktree)?|commondir|hooks/.+|info/attributes|HEAD|refs/.*|objects/.*)"
    r"|.*/(?:\.(?:ostler|vscode|claude|opencode|eidolon|husky)/.*|\.(?:mcp|eidolon)\.json|\.envrc|opencode\.jsonc?)"
    r"|/(?:etc|boot|bin|sbin|lib\w*|usr/(?:local/)?(?:s?bin|lib\w*)|var/spool/cron)/.*"
)
