"""The recipes that make would run are analysed like the command line itself."""

import pytest

from ostler.policy.shell import Analysis, analyse

MAKEFILE = """\
CC ?= gcc
CFLAGS := -Wall
SRCS := $(wildcard *.c)
OBJS := $(SRCS:.c=.o)
REMOVE = rm -f
V ?= 0

ifeq ($(V),1)
Q :=
else
Q := @
endif

all: app docs

app: $(OBJS)
\t$(Q)$(CC) $(CFLAGS) -o $@ $^

%.o: %.c
\t$(CC) $(CFLAGS) -c -o $@ $<

docs:
\t@echo done; \\
\t  ls

.PHONY: all clean distclean deploy show inline twice
clean:
\t-$(REMOVE) $(OBJS) app

distclean: clean
rebuild:
\t$(MAKE) clean
\t$(MAKE) all
sub:
\tfor d in lib; do $(MAKE) -C $$d wipe; done
built_in:
\t$(RM) app
inline: ; rm app
twice::
\techo one
twice::
\tmv a.c b.c
deploy:
\tacme-deploy --now
outside:
\t$(DEPLOY_TOOL_OF_MAKE) app
optional:
\t$(SUDO_OF_MAKE) rm app
show:
\t@echo "rm -f everything"
called:
\t$(call wipe,app)
define wipe
rm -rf $(1)
endef
dollar:
\tx=1; echo $$x
python: SHELL = python3
python:
\timport os; os.remove('a.c')
gone: missing.gen
%.gen: %.tpl
\trm $@
"""


@pytest.fixture
def check(tmp_path, monkeypatch):
    def add(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(line: str) -> Analysis:
        return analyse(line, cwd=str(tmp_path))

    monkeypatch.setenv("DEPLOY_TOOL_OF_MAKE", "x")
    add("Makefile", MAKEFILE)
    add("a.c", "int main;\n")
    add("other.mk", "x:\n\trm a.c\n")
    add("lib/Makefile", "include rules.mk\nwipe:\n\t$(WIPE) .\n")
    add("lib/rules.mk", "WIPE = rm -r\n")
    add("loads/Makefile", "X := $(shell rm ../a.c)\nall:\n\techo $(X)\n")
    add("assigns/Makefile", "X != rm ../a.c\nall:\n\techo $(X)\n")
    add("generated/Makefile", "include $(DEPS_OF_MAKE)\nall:\n\tgcc -c a.c\n")
    add("big/Makefile", "A = aaaaaaaaaaaaaaaa\n" + "".join(
        f"A{i} = $(A{i - 1 if i else ''})$(A{i - 1 if i else ''})\n" for i in range(30)
    ) + "all:\n\techo $(A29)\n")  # fmt: skip
    add("wide/Makefile", f"X = $(subst a,{'b' * 50000},{'a' * 50000})\nall:\n\techo $(X)\n")
    add("evals/Makefile", "$(eval $(call x,y))\nall:\n\techo hi\n")
    add("shellrun/Makefile", "all: $(shell echo app)\n\techo\n%.o: %.c\n\tgcc -o $@ $<\nclean:\n\trm *.o\n")
    add("goal/Makefile", ".DEFAULT_GOAL := wipe\nall:\n\techo hi\nwipe:\n\trm x\n")
    return run


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "make clean",
        "make distclean",
        "make all clean",
        "make -j4 clean",
        "make -k rebuild",
        "make sub",
        "make -C lib wipe",
        "cd lib && make",
        "make -f other.mk",
        "make --file=other.mk x",
        "make built_in",
        "make inline",
        "make twice",
        "make optional",
        "make called",
        "make CC='rm -rf x' app",
        "make CC=rm app",
        "make python",
        "make gone",
        "make -C loads",
        "make -n -C loads",
        "make -C assigns",
        "make -C goal",
        "env FOO=1 make clean",
        "timeout 60 make clean",
        "sh -c 'make clean'",
        "for t in docs clean; do make $t; done",
        "make $(cat a.c)",
        'make --eval="$(cat a.c)"',
        'make "$TARGET_OF_MAKE"',
        "printf 'x:\\n\\trm a.c\\n' > x.mk; make -f x.mk",
        "make --eval='x: ; rm a.c' x",
    ],
)
def test_a_target_with_a_dangerous_recipe_needs_approval(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", False)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "make",
        "make all",
        "make -j8",
        "make V=1",
        "make app CFLAGS=-O2",
        "make -n clean",
        "make --dry-run distclean",
        "make docs show dollar",
        "make missing-target",
        "make --version",
        "cd elsewhere && make",
    ],
)
def test_a_target_that_only_compiles_is_ordinary(check, line):
    assert check(line).verdict == "ordinary"


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "make deploy",
        "make outside",
        "make -C generated",
        "make -C evals",
        "make -C big",
        "make -C wide",
        "make -C shellrun",
    ],
)
def test_a_makefile_that_cannot_be_read_for_certain_is_an_unknown_program(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", True)
    assert [command.text for command in found.commands] == [line]
    assert found.commands[0].unknown_reason
