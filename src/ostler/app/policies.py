"""Makes a session's policy from settings and flags."""

from collections.abc import Sequence

from ostler.app.options import RunOptions
from ostler.policy.presets import BASELINE, BASELINE_READING_ANYWHERE, UNATTENDED, WRITE_FLAG, YOLO_FLAG
from ostler.policy.rules import parse_flag
from ostler.policy.verdict import Policy
from ostler.settings.effective import Settings
from ostler.vocabulary.permission import Rule


def make_policy(settings: Settings, options: RunOptions, directories: Sequence[str] = (), *, attended: bool) -> Policy:
    """Baseline, then the settings' rules in their layers' order; flags pass what they name.

    `directories` may be read besides the workspace, unless a person's rule says otherwise.
    """
    security = settings.config.security
    baseline = (*(BASELINE_READING_ANYWHERE if options.yolo else BASELINE), *_besides(directories))
    return Policy(
        rules=(*baseline, *_deletion(settings), *settings.rules()),
        narrow=(tuple(settings.narrow_rules()),),
        profile=options.profile or security.profile,  # type: ignore[arg-type]  # argparse took only these
        whitelist=security.whitelist,
        flags=_flags(options, attended=attended),
        attended=attended,
        sandbox_passes=not attended,
        checks_pass=settings.trusted,
    )


def _besides(directories: Sequence[str]) -> tuple[Rule, ...]:
    patterns = (pattern for folder in directories for pattern in (folder, f"{folder.rstrip('/')}/*"))
    return tuple(Rule("external_directory", pattern, "allow", "additional directories") for pattern in patterns)


def _deletion(settings: Settings) -> tuple[Rule, ...]:
    action = settings.config.security.delete
    return (Rule("delete", "*", action, "security.delete"),) if action else ()


def _flags(options: RunOptions, *, attended: bool) -> tuple[Rule, ...]:
    """What may pass unasked: what the flags name, and without a person what is decided call by call anyway."""
    flags = YOLO_FLAG if options.yolo else WRITE_FLAG if options.write else ()
    unattended = () if attended else UNATTENDED
    return (*unattended, *flags, *(parse_flag(text) for text in options.allow))
