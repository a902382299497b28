"""Options by which single tools write a file or run a command. Data."""

from collections.abc import Mapping

import msgspec

from ostler.policy.danger import listed


class Spec(msgspec.Struct, frozen=True):
    """The options of a tool that matter.

    `valued` and `longs` take a value; of these `out` name a file to write and `runs` hold a command line; `operand`
    says which operands are files to write, once there are at `least` so many. What a tool that `builds` makes may be
    made again.
    """

    valued: str = ""
    longs: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    operand: slice = slice(0, 0)
    least: int = 1
    builds: bool = False


_SECOND = slice(1, 2)
_LAST = slice(-1, None)

SPECS: Mapping[str, Spec] = {
    "sort": Spec("kStTo", ("output", "key", "compress-program"), ("o", "output"), ("compress-program",)),
    "shuf": Spec("ino", ("output", "input-range", "head-count"), ("o", "output")),
    "gpg": Spec("our", ("output", "recipient", "homedir"), ("o", "output")),
    "iconv": Spec("fto", ("output", "from-code", "to-code"), ("o", "output")),
    "pandoc": Spec("ofrtVM", ("output", "from", "to"), ("o", "output")),
    "xmllint": Spec("o", ("output", "schema", "xpath"), ("o", "output")),
    "xsltproc": Spec("o", ("output",), ("o", "output")),
    "dot": Spec("oTKGNE", (), ("o",)),
    "tcpdump": Spec("wricsFzGCW", (), ("w",), ("z",)),
    **dict.fromkeys(("tshark", "dumpcap"), Spec("wrifcYTe", (), ("w",))),
    "ab": Spec("geTHCnctps", (), ("g", "e")),
    "sdiff": Spec("ow", ("output",), ("o", "output")),
    "info": Spec("of", ("output", "file"), ("o", "output")),
    "pg_dump": Spec("fhpUdFntTj", ("file", "host", "port", "username", "dbname"), ("f", "file")),
    "mysqldump": Spec("rhuPS", ("result-file", "host", "user"), ("r", "result-file")),
    "axel": Spec("on", ("output",), ("o", "output")),
    **dict.fromkeys(("http", "xh"), Spec("oas", ("output", "auth"), ("o", "output"))),
    **dict.fromkeys(("genisoimage", "mkisofs"), Spec("oV", (), ("o",))),
    "buffer": Spec("ois", (), ("o",)),
    "pv": Spec("osN", ("output",), ("o", "output")),
    "base64": Spec("ow", ("output", "wrap"), ("o", "output")),
    "bison": Spec("oLb", ("output",), ("o", "output")),
    "flex": Spec("oP", ("outfile",), ("o", "outfile")),
    "uniq": Spec("fsw", ("skip-fields", "skip-chars", "check-chars"), operand=_SECOND),
    "xxd": Spec("clsgo", operand=_SECOND),
    **dict.fromkeys(("ps2pdf", "mksquashfs"), Spec(operand=_SECOND)),
    "pdftotext": Spec("fl", operand=_SECOND),
    "lame": Spec("bV", operand=_SECOND),
    "qpdf": Spec("", ("pages", "split-pages"), operand=_SECOND),
    "logsave": Spec(operand=slice(0, 1)),
    **dict.fromkeys(
        ("convert", "sox", "pdfunite", "montage", "composite", "wkhtmltopdf"), Spec(operand=_LAST, least=2)
    ),
    **dict.fromkeys(
        listed(
            "sass lessc ebook-convert weasyprint pdfcrop ocrmypdf cjxl djxl gdal_translate gdalwarp opusenc xml2md"
            " rst2html rst2html5 rst2latex rst2man rst2odt rst2xml"
        ),
        Spec(operand=_LAST, least=2),
    ),
    "objcopy": Spec("IOFBj", operand=_LAST),
    "fallocate": Spec("lo", ("length", "offset"), operand=slice(0, 1)),
    "mkfile": Spec(operand=_LAST),
    "strip": Spec("oRKNF", (), ("o",), operand=slice(0, None)),
    "rg": Spec("efgtTmABCjr", ("pre", "hostname-bin", "regexp", "glob"), runs=("pre", "hostname-bin")),
    "man": Spec("PHMmSesLrRpCE", ("pager", "html"), runs=("P", "H", "pager", "html")),
    **dict.fromkeys(("ag", "ack"), Spec("", ("pager",), runs=("pager",))),
    "bat": Spec("lrH", ("pager",), runs=("pager",)),
    **dict.fromkeys(("fzf", "sk"), Spec("qndc", ("preview", "bind", "cmd"), runs=("preview", "c", "cmd"))),
    "watchmedo": Spec("cp", ("command", "patterns"), runs=("c", "command")),
    "aria2c": Spec(
        "odi", ("out", "dir", "on-download-complete", "on-download-start", "on-download-error"), ("o", "out"),
        ("on-download-complete", "on-download-start", "on-download-error"),
    ),
    "ctags": Spec("foL", (), ("f", "o")),
    "grub-mkconfig": Spec("o", ("output",), ("o", "output")),
}  # fmt: skip

# tools whose long options have one dash
ONE_DASH: Mapping[str, Spec] = {
    "openssl": Spec(
        longs=("out", "keyout", "writerand", "in", "inkey", "passin", "passout"), out=("out", "keyout", "writerand")
    ),
    "go": Spec(
        longs=listed("exec toolexec vettool coverprofile cpuprofile memprofile trace o run"),
        out=listed("coverprofile cpuprofile memprofile trace o"),
        runs=("exec", "toolexec", "vettool"),
        builds=True,
    ),
    "erl": Spec(longs=("eval",), runs=()),
    "nmap": Spec(longs=("oN", "oX", "oG", "oA", "p"), out=("oN", "oX", "oG", "oA")),
    "cjpeg": Spec(longs=("outfile", "quality"), out=("outfile",)),
}

COMPILERS = frozenset(
    listed(
        "cc gcc g++ clang clang++ c++ ld gold lld as rustc tcc tsc nasm ocamlfind ocamlopt ghc-make zig swiftc gfortran"
    )
)
_PRODUCTS = frozenset(listed("o so a out exe bin elf wasm js map class d gch dylib obj s ll bc"))


def is_product(path: str) -> bool:
    """Whether a file is one that compilers make again and again."""
    base = path.rpartition("/")[2]
    return ("." not in base and not base[:1].isupper()) or base.rpartition(".")[2] in _PRODUCTS
