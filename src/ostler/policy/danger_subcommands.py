"""Tables of dangerous subcommands by effect. Data only."""

from collections.abc import Mapping

from ostler.policy.danger_tables import split_names

# words are matched with the first operands; `*` matches any word, or the rest of a word
_DESTRUCTIVE = {
    "nodetool": "decommission, clearsnapshot, removenode, assassinate",
    "fwupdmgr": "install, update, downgrade",
    "fastboot": "flash, erase, format",
    "networkctl": "down, delete",
    "brctl": "delbr, delif",
    "wg-quick": "down",
    "drbdadm": "down, wipe-md, detach",
    "cloud-init": "clean",
    "etcdctl": "auth disable, member remove",
    "quilt": "push, pop, refresh, delete, fold",
    "initctl": "stop",
    "svcadm": "disable",
    "forever": "stop, stopall",
    "goose": "down, down-to, reset, redo, * * down, * * reset",
    "hasura": "metadata clear, migrate delete",
    "dvc": "gc, destroy, remove",
    "pg_ctl": "stop, kill, promote",
    "pg_ctlcluster": "* * stop, stop",
    "consul": "leave, force-leave",
    "railway": "down",
    "fly": "secrets unset",
    "flyctl": "secrets unset",
    "resolvectl": "dns * *, domain * *, revert",
    "qemu-img": "resize, commit, rebase",
    "kioclient": "move, remove",
    "defaults": "write, delete, import, rename",
    "sc": "stop, delete, failure",
    "docker": (
        "rm, rmi, system prune, volume rm, volume prune, container rm, container prune, image rm, image prune,"
        " network rm, network prune, builder prune, swarm leave, stack rm, service rm, secret rm, config rm,"
        " context rm, node rm, buildx prune, buildx rm, compose rm, plugin rm, system reset, node update"
    ),
    "kubectl": "delete, drain, replace, config delete-context, config delete-cluster, config unset, cordon, taint,"
    " rollout undo, adm drain, adm cordon, adm prune",
    "minikube": "stop",
    "helm": "uninstall, delete, rollback, del",
    "terraform": "destroy, apply, state rm, state mv, state push, workspace delete, force-unlock, taint",
    "pulumi": "destroy, up, stack rm, cancel",
    "vagrant": "destroy, box remove, snapshot delete, halt",
    "virsh": "destroy, undefine, shutdown, reboot, vol-delete, pool-destroy, snapshot-delete",
    "lxc": "delete, stop, snapshot delete",
    "zfs": "destroy, rollback, rename",
    "zpool": "destroy, labelclear, remove, add, attach, replace, export, offline, detach, split",
    "btrfs": "subvolume delete, device remove, filesystem resize",
    "cryptsetup": "luksFormat, erase, luksErase, luksRemoveKey, luksKillSlot, reencrypt, close, luksClose",
    "nvme": "format, sanitize",
    "gsutil": "rm, rb, mv",
    "rclone": "delete, deletefile, purge, sync, move, moveto, rmdir, rmdirs, cleanup, dedupe",
    "restic": "forget, prune",
    "borg": "delete, prune, compact, rename, recreate, break-lock",
    "gio": "trash, remove, move, rename",
    "gh": (
        "repo delete, release delete, issue delete, gist delete, secret delete, label delete, run delete, cache"
        " delete, ssh-key delete, gpg-key delete, variable delete, release delete-asset, repo archive, repo rename,"
        " codespace delete, project delete, auth logout, workflow disable, * delete, * remove, * rm,"
        " pr close, issue close, issue transfer"
    ),
    "aws": "s3 rm, s3 rb, s3 mv, s3api delete-*",
    "glab": "mr close, issue close, * delete, ci cancel",
    "schtasks": "/delete, /end",
    "hg": "revert, purge, strip, rollback, remove, rm, rename, mv, shelve, clean",
    "svn": "revert, delete, rm, remove, del, move, mv, cleanup, rename",
    "bzr": "revert, rm, mv, clean-tree",
    "jj": "abandon, restore, op restore, op undo, undo",
    "fossil": "revert, rm, clean, mv",
    "redis-cli": "flushall, flushdb, del, unlink, shutdown, rename, config, debug, script, eval, set",
    "vault": "delete, * delete, kv destroy, * disable, * revoke, operator seal, operator step-down",
    "mysqladmin": "drop, shutdown, kill",
    "rabbitmqctl": "reset, force_reset, forget_cluster_node, delete_*, stop_app, stop",
    "apt": "remove, purge, autoremove, autopurge",
    "apt-get": "remove, purge, autoremove",
    "aptitude": "remove, purge",
    "brew": "uninstall, remove, rm, autoremove, bundle cleanup",
    "pip": "uninstall",
    "conda": "remove, uninstall, env remove",
    "loginctl": "poweroff, reboot, terminate-*, kill-*, suspend, hibernate, halt",
    "systemctl": (
        "poweroff, reboot, halt, suspend, hibernate, hybrid-sleep, kexec, soft-reboot, emergency, rescue, isolate,"
        " exit, stop, disable, mask, kill, revert, set-default, switch-root, clean, set-property, default"
    ),
    "init": "0, 6, 1, s, S",
    "service": "* stop",
    "rc-service": "* stop",
    "ollama": "rm",
    "hostnamectl": "set-hostname, hostname",
    "timedatectl": "set-*",
    "ip": "link set, link delete, addr del, addr flush, route del, route flush, netns delete",
    "nmcli": "connection delete, con delete, connection down, con down, device disconnect, networking off, radio",
    "update-alternatives": "--remove, --remove-all, --set, --install",
    "npm": (
        "unpublish, deprecate, token revoke, owner rm, team destroy, team rm, org rm, dist-tag rm, hook rm,"
        " config set script-shell, set script-shell"
    ),
    "cargo": "yank, owner, uninstall",
    "heroku": "apps:destroy, pg:reset, addons:destroy, destroy, config:unset, maintenance:on, ps:stop, ps:kill",
    "tmutil": "delete, deletelocalsnapshots",
    "diskutil": "eraseDisk, eraseVolume, partitionDisk, reformat, apfs deleteContainer, apfs deleteVolume",
    "crudini": "--set, --del, --merge",
    "rustup": "self uninstall, toolchain uninstall, uninstall, target remove, component remove",
    "uv": "pip uninstall, tool uninstall, python uninstall",
    "nix": "store gc, store delete, profile remove, profile wipe-history",
    "guix": "gc, remove, system",
    "supervisorctl": "stop, shutdown, remove, clear",
    "pm2": "delete, kill, flush, del",
    "sv": "down, stop, exit, kill, force-*",
    "nomad": "job stop, stop, system gc, namespace delete, var purge",
    "launchctl": "unload, bootout, remove, disable, kill, reboot",
    "splunk": "clean",
    "dasel": "put, delete",
    "pass": "rm, remove, delete, mv",
    "alembic": "downgrade",
    "flask": "db downgrade",
    "knex": "migrate:rollback",
    "flyway": "clean, undo",
    "diesel": "database reset, migration redo, migration revert",
    "sqlx": "database drop, database reset",
    "tmux": "kill-server",
    "dmsetup": "remove, remove_all, wipe_table, clear, load, suspend",
    "csrutil": "disable",
    "bq": "rm",
    "security": "delete-*",
    "dotnet": "ef database drop",
    "ostler": "undo, redo, sessions delete, model remove",
}

# subcommands that publish or send something
_PUBLISHES = {
    **dict.fromkeys(
        split_names("npm pnpm bun deno jsr cargo poetry uv hatch flit pdm rye lerna vsce ovsx sbt"),
        "publish, publishSigned",
    ),
    "yarn": "publish, npm publish",
    "dart": "pub publish",
    "flutter": "pub publish",
    "twine": "upload",
    "gem": "push",
    "mix": "hex.publish",
    "mvn": "deploy, * deploy, * * deploy, release:perform, * release:perform",
    **dict.fromkeys(("gradle", "gradlew"), "publish, * publish, publishPlugins"),
    "dotnet": "nuget push",
    "gh": "gist create",
    "pod": "trunk push, repo push",
    **dict.fromkeys(split_names("conan cabal stack luarocks anaconda snapcraft"), "upload, push"),
    "lein": "deploy",
    "fastlane": "deliver, supply, release, pilot",
    "eas": "submit",
    **dict.fromkeys(("helm", "oras"), "push"),
    **dict.fromkeys(("croc", "wormhole", "magic-wormhole"), "send"),
    "ffsend": "upload",
    "ipfs": "add",
}
# subcommands that make something run automatically later
_RUNS_LATER = {
    "systemctl": "enable, reenable, link, edit, preset, preset-all, add-wants, add-requires, unmask,"
    " import-environment, set-environment",
    "loginctl": "enable-linger",
    "launchctl": "load, bootstrap, enable, submit, kickstart, setenv",
    "rc-update": "add, del, delete",
    "svcadm": "enable",
    "pm2": "startup, save",
    "brew": "services start, services restart, services stop",
    "schtasks": "/create, /change, /run",
    "sc": "create, config, start",
    "gh": "workflow enable",
}
# subcommands that grant access, or change where programs are downloaded from
_GRANTS_ACCESS = {
    "npm": "owner add, access grant, access public, team add, token create, config set registry*, set registry*",
    "yarn": "config set registry*, config set npmRegistryServer*, npm tag add",
    "pnpm": "config set registry*",
    "pip": "config set global.index-url, config set global.extra-index-url, config set install.index-url,"
    " config set global.trusted-host",
    "gem": "owner, sources",
    "poetry": "config repositories.*, source add",
    "gh": "secret set, ssh-key add, gpg-key add, repo deploy-key, repo edit, variable set",
    "glab": "variable set, ssh-key add, deploy-key add",
    "docker": "swarm join, plugin install",
    "kubectl": "create clusterrolebinding, create rolebinding, create token, debug node/*",
    "vault": "policy write, token create",
    "ngrok": "tcp, tls",
    "cloudflared": "tunnel",
    "tailscale": "up, funnel, serve",
    "code": "tunnel",
    "gcloud": "auth print-access-token, auth application-default",
    "ostler": "trust",
}

_REASONS: Mapping[str, Mapping[str, str]] = {
    "deletes, stops or replaces something": _DESTRUCTIVE,
    "publishes something or sends it to others": _PUBLISHES,
    "makes something run automatically later": _RUNS_LATER,
    "grants access, or trusts another source": _GRANTS_ACCESS,
}


def _merge_tables() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    merged: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {}
    for reason, table in _REASONS.items():
        for name, phrases in table.items():
            words = tuple((tuple(phrase.split()), reason) for phrase in phrases.split(","))
            merged[name] = merged.get(name, ()) + words
    return merged


# for each command the words of its dangerous subcommands, each with the reason why it needs approval
DANGEROUS_SUBCOMMANDS: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = _merge_tables()
