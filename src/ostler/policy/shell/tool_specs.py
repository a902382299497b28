"""Table of options by which single tools write a file or run a command. Data only."""

from collections.abc import Mapping

import msgspec

from ostler.policy.danger_tables import split_names


class ToolOptionSpec(msgspec.Struct, frozen=True):
    """The options of a tool that write a file or run a command.

    `output_options` name a file to write, `command_options` contain a command line. `output_operands` selects the
    operands that are written, if there are at least `min_operands`. A build tool may overwrite compiler output.
    """

    shorts_with_value: str = ""
    longs_with_value: tuple[str, ...] = ()
    output_options: tuple[str, ...] = ()
    command_options: tuple[str, ...] = ()
    output_operands: slice = slice(0, 0)
    min_operands: int = 1
    is_build_tool: bool = False


_SECOND = slice(1, 2)
_LAST = slice(-1, None)

TOOL_SPECS: Mapping[str, ToolOptionSpec] = {
    "sort": ToolOptionSpec("kStTo", ("output", "key", "compress-program"), ("o", "output"), ("compress-program",)),
    "shuf": ToolOptionSpec("ino", ("output", "input-range", "head-count"), ("o", "output")),
    "gpg": ToolOptionSpec("our", ("output", "recipient", "homedir"), ("o", "output")),
    "iconv": ToolOptionSpec("fto", ("output", "from-code", "to-code"), ("o", "output")),
    "pandoc": ToolOptionSpec("ofrtVM", ("output", "from", "to"), ("o", "output")),
    "xmllint": ToolOptionSpec("o", ("output", "schema", "xpath"), ("o", "output")),
    "xsltproc": ToolOptionSpec("o", ("output",), ("o", "output")),
    "dot": ToolOptionSpec("oTKGNE", (), ("o",)),
    "tcpdump": ToolOptionSpec("wricsFzGCW", (), ("w",), ("z",)),
    **dict.fromkeys(("tshark", "dumpcap"), ToolOptionSpec("wrifcYTe", (), ("w",))),
    "ab": ToolOptionSpec("geTHCnctps", (), ("g", "e")),
    "sdiff": ToolOptionSpec("ow", ("output",), ("o", "output")),
    "info": ToolOptionSpec("of", ("output", "file"), ("o", "output")),
    "pg_dump": ToolOptionSpec("fhpUdFntTj", ("file", "host", "port", "username", "dbname"), ("f", "file")),
    "mysqldump": ToolOptionSpec("rhuPS", ("result-file", "host", "user"), ("r", "result-file")),
    "axel": ToolOptionSpec("on", ("output",), ("o", "output")),
    **dict.fromkeys(("http", "xh"), ToolOptionSpec("oas", ("output", "auth"), ("o", "output"))),
    **dict.fromkeys(("genisoimage", "mkisofs"), ToolOptionSpec("oV", (), ("o",))),
    "buffer": ToolOptionSpec("ois", (), ("o",)),
    "pv": ToolOptionSpec("osN", ("output",), ("o", "output")),
    "base64": ToolOptionSpec("ow", ("output", "wrap"), ("o", "output")),
    "bison": ToolOptionSpec("oLb", ("output",), ("o", "output")),
    "flex": ToolOptionSpec("oP", ("outfile",), ("o", "outfile")),
    "uniq": ToolOptionSpec("fsw", ("skip-fields", "skip-chars", "check-chars"), output_operands=_SECOND),
    "xxd": ToolOptionSpec("clsgo", output_operands=_SECOND),
    **dict.fromkeys(("ps2pdf", "mksquashfs"), ToolOptionSpec(output_operands=_SECOND)),
    "pdftotext": ToolOptionSpec("fl", output_operands=_SECOND),
    "lame": ToolOptionSpec("bV", output_operands=_SECOND),
    "qpdf": ToolOptionSpec("", ("pages", "split-pages"), output_operands=_SECOND),
    "logsave": ToolOptionSpec(output_operands=slice(0, 1)),
    **dict.fromkeys(
        ("convert", "sox", "pdfunite", "montage", "composite", "wkhtmltopdf"),
        ToolOptionSpec(output_operands=_LAST, min_operands=2),
    ),
    **dict.fromkeys(
        split_names(
            "sass lessc ebook-convert weasyprint pdfcrop ocrmypdf cjxl djxl gdal_translate gdalwarp opusenc xml2md"
            " rst2html rst2html5 rst2latex rst2man rst2odt rst2xml"
        ),
        ToolOptionSpec(output_operands=_LAST, min_operands=2),
    ),
    "objcopy": ToolOptionSpec("IOFBj", output_operands=_LAST),
    "fallocate": ToolOptionSpec("lo", ("length", "offset"), output_operands=slice(0, 1)),
    "mkfile": ToolOptionSpec(output_operands=_LAST),
    "strip": ToolOptionSpec("oRKNF", (), ("o",), output_operands=slice(0, None)),
    "rg": ToolOptionSpec(
        "efgtTmABCjr", ("pre", "hostname-bin", "regexp", "glob"), command_options=("pre", "hostname-bin")
    ),
    "man": ToolOptionSpec("PHMmSesLrRpCE", ("pager", "html"), command_options=("P", "H", "pager", "html")),
    **dict.fromkeys(("ag", "ack"), ToolOptionSpec("", ("pager",), command_options=("pager",))),
    "bat": ToolOptionSpec("lrH", ("pager",), command_options=("pager",)),
    **dict.fromkeys(
        ("fzf", "sk"), ToolOptionSpec("qndc", ("preview", "bind", "cmd"), command_options=("preview", "c", "cmd"))
    ),
    "watchmedo": ToolOptionSpec("cp", ("command", "patterns"), command_options=("c", "command")),
    "aria2c": ToolOptionSpec(
        "odi", ("out", "dir", "on-download-complete", "on-download-start", "on-download-error"), ("o", "out"),
        ("on-download-complete", "on-download-start", "on-download-error"),
    ),
    "ctags": ToolOptionSpec("foL", (), ("f", "o")),
    "grub-mkconfig": ToolOptionSpec("o", ("output",), ("o", "output")),
}  # fmt: skip

# tools whose long options start with one dash
ONE_DASH_SPECS: Mapping[str, ToolOptionSpec] = {
    "openssl": ToolOptionSpec(
        longs_with_value=("out", "keyout", "writerand", "in", "inkey", "passin", "passout"),
        output_options=("out", "keyout", "writerand"),
    ),
    "go": ToolOptionSpec(
        longs_with_value=split_names("exec toolexec vettool coverprofile cpuprofile memprofile trace o run"),
        output_options=split_names("coverprofile cpuprofile memprofile trace o"),
        command_options=("exec", "toolexec", "vettool"),
        is_build_tool=True,
    ),
    "erl": ToolOptionSpec(longs_with_value=("eval",), command_options=()),
    "nmap": ToolOptionSpec(longs_with_value=("oN", "oX", "oG", "oA", "p"), output_options=("oN", "oX", "oG", "oA")),
    "cjpeg": ToolOptionSpec(longs_with_value=("outfile", "quality"), output_options=("outfile",)),
}

COMPILERS = frozenset(
    split_names(
        "cc gcc g++ clang clang++ c++ ld gold lld as rustc tcc tsc nasm ocamlfind ocamlopt ghc-make zig swiftc gfortran"
    )
)
_COMPILER_OUTPUT_SUFFIXES = frozenset(split_names("o so a out exe bin elf wasm js map class d gch dylib obj s ll bc"))


def is_compiler_output(path: str) -> bool:
    """Return whether a path looks like compiler output, which may be overwritten."""
    base = path.rpartition("/")[2]
    return ("." not in base and not base[:1].isupper()) or base.rpartition(".")[2] in _COMPILER_OUTPUT_SUFFIXES
