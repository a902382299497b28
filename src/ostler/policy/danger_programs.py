"""Tables of programs that run other programs, are option-driven, or are harmless. Data only."""

from collections.abc import Mapping

from ostler.policy.danger_tables import split_names

# verbs that identify a command among the arguments of another command
DANGEROUS_VERBS = frozenset(
    split_names(
        "rm rmdir unlink shred mv chmod chown chgrp chattr setfacl dd mkfs mkswap truncate sponge"
        " sudo doas su shutdown reboot halt poweroff dropdb userdel wipefs"
    )
)
# the same, with names that are never used for anything else
REMOVERS = frozenset({"rimraf", "del-cli", "shx"})
# programs that run a command or code given by their first arguments
RUNS_ITS_ARGUMENTS = frozenset(
    split_names(
        "sh bash zsh dash ksh ash fish busybox env python python3 perl ruby node php lua find xargs eval cmd.exe cmd"
    )
)

# programs that read, print, open an editor, build or test: their arguments are not searched for commands
HARMLESS_PROGRAMS = frozenset(
    split_names(
        "unalias ri pydoc pydoc3 godoc"
        " echo printf grep egrep fgrep zgrep pcregrep ugrep look which type whereis whatis apropos tldr help cat bat"
        " ls ll"
        " la eza exa lsd tree stat file basename dirname realpath readlink head tail wc nl cut tr comm diff cmp"
        " colordiff"
        " delta expr touch sleep true false : yes cal seq figlet cowsay say notify-send logger wall open xdg-open code"
        " codium subl nano pico micro gedit kate cursor zed idea pgrep ps top htop pidof locate plocate md5sum sha1sum"
        " sha256sum sha512sum b2sum cksum sum column paste join expand unexpand fold fmt pr od hexdump strings dig host"
        " nslookup ping jq gron dasel fx htmlq pup vd mypy pyright ruff black flake8 pylint isort eslint prettier"
        " jest vitest mocha ava playwright cypress rspec phpunit ctest karma gotestsum nosetests shellcheck hadolint"
        " yamllint actionlint markdownlint vale tflint ansible-lint typos cspell perldoc"
        " claude codex aider gemini ollama llm chatgpt mods opencode goose crush ostler zgrep bzgrep xzgrep ngrep"
        " ctags cscope findstr mdfind"
        " global sloc cloc tokei scc espeak banner toilet lolcat fortune"
        " ldd readelf objdump nm size dpkg dpkg-query rpm getcap getfacl lsattr tput xset stty autoflake autopep8"
        " yapf clang-format docformatter"
        " pyupgrade gofmt goimports shfmt rustfmt nixfmt taplo terser last lastlog who w lsof"
    )
)
# package managers and task runners: removing a dependency is an ordinary edit, and a task can have any name
PACKAGE_MANAGERS = frozenset(
    split_names(
        "npm yarn pnpm bun bunx deno poetry pdm rye pipenv hatch pixi cargo go dotnet composer bundle flutter dart"
        " expo ng"
        " swift pod just task gulp grunt nx turbo lerna rush ninja bazel buck2 pants module sbt gradle gradlew mvn"
        " mvnw ant"
        " invoke"
        " inv java tox nox mage meson scons stack cabal dune lein mill kubectl gh pip brew helm tmux svn hg jj"
        " apt apt-get systemctl docker uv"
    )
)

# files that programs run by default
IMPLICIT_SCRIPTS: Mapping[str, str] = {
    "bundle": "Gemfile",
    "rake": "Rakefile",
    "cmake": "CMakeLists.txt",
    "just": "justfile",
    "task": "Taskfile.yml",
    "gradle": "build.gradle",
    "cargo": "build.rs",
    "composer": "composer.json",
    "vagrant": "Vagrantfile",
    "ninja": "build.ninja",
    "gulp": "gulpfile.js",
    "tox": "tox.ini",
    "mvn": "pom.xml",
    "meson": "meson.build",
}

# programs that package managers run by their plain name
PACKAGE_BINARIES = frozenset(
    split_names(
        "prisma typeorm sequelize sequelize-cli knex drizzle-kit wrangler firebase supabase cdk sst serverless sls"
        " vercel netlify tsx ts-node node nodemon concurrently cross-env dotenv zx"
    )
)

# programs that an option can make dangerous; options known only at run time need approval
OPTION_DRIVEN = frozenset(
    split_names(
        "find gfind bfs fd fdfind tar gtar bsdtar sort rsync ln install zip unzip 7z gpg openssl ffmpeg vim vi nvim"
        " rg curl"
        " wget ssh scp split csplit make gmake git docker podman kubectl helm terraform aws gcloud az gh systemctl apt"
        " apt-get pip ansible sqlite3 psql mysql awk gawk sed perl ruby python python2 python3 pypy pypy3 node"
        " nodejs deno"
        " bun php lua sh bash zsh dash ksh ash fish parallel xargs man less zstd gzip crontab socat nc ncat tcpdump gdb"
    )
)
NEEDS_SUBCOMMAND = frozenset(split_names("go tmux poetry pdm bundle yarn pnpm bun deno mise 7z cmake podman nerdctl"))
FINDERS = frozenset({"find", "gfind", "bfs"})
# option-driven programs that are interpreters: arguments after the first operand belong to the script
INTERPRETERS = frozenset(
    split_names(
        "python python2 python3 pypy pypy3 node nodejs deno bun php lua perl ruby sh bash zsh dash ksh ash fish"
    )
)
# programs for which an unknown first word is probably an option
OPTIONS_FIRST = INTERPRETERS | {"tar", "gtar", "bsdtar", "sort", "awk", "gawk", "sed"}
