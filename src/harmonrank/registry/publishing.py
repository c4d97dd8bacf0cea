"""Publishing: a model becomes a version, checked, numbered and perhaps current."""

__all__ = ["publish"]

from pathlib import Path

import msgspec

import harmonrank
from harmonrank.data import Log, Source, read_log
from harmonrank.data.reading.tables import column_names
from harmonrank.fusion import Method, load
from harmonrank.fusion.position.correction import corrected
from harmonrank.registry.golden import Golden, golden_rows
from harmonrank.registry.guardrails import checks_of
from harmonrank.registry.registry import VERSIONS, Registry, now
from harmonrank.registry.version import (
    GOLDEN,
    MODEL_FOLDER,
    Check,
    Version,
    contents,
    write_version,
)
from harmonrank.support.errors import ModelFileError
from harmonrank.support.storage.files import flush, write_json
from harmonrank.support.storage.staging import replace, staged


def publish(
    registry: Registry,
    model: Method | str | Path,
    data: Source | None,
    window: str,
    note: str,
    *,
    recalibrated: bool,
) -> Version:
    """Add a version, and make it current if it passes the guardrails (`Registry.publish`).

    The guardrails may take minutes, in which another version may become current; then this one,
    which was compared with another, is refused.
    """
    fitted = model if isinstance(model, Method) else load(model)
    parent = registry.current()
    log = None if data is None else _read(data, fitted)
    with staged(registry.path / VERSIONS / "new") as hidden:
        made = hidden / "version"
        made.mkdir()
        fitted.save(made / MODEL_FOLDER)
        golden = golden_rows(fitted)
        write_json(made / GOLDEN, msgspec.to_builtins(golden))
        version = _checked(registry, load(made / MODEL_FOLDER), parent, log, golden)
        version = msgspec.structs.replace(
            version, window=window, note=note, recalibrated=recalibrated, checksums=contents(made)
        )
        with registry.alone():
            if registry.current() != parent:
                version = _with_checks(version, (*version.checks, _overtaken(registry.current())))
            number = max(registry.numbers(), default=0) + 1
            version = msgspec.structs.replace(version, number=number)
            write_version(made, version)
            flush(made)
            replace(made, registry.folder(number))
            if version.refused is None:
                registry.point(number, "publish")
    return version


def _checked(
    registry: Registry, model: Method, parent: int | None, log: Log | None, golden: Golden
) -> Version:
    """Return the record of a model after all guardrails, as far as it is known then."""
    present = None if parent is None else registry.load(parent)
    before = None if parent is None else registry.version(parent).fused
    found, fused = checks_of(registry.guardrails, model, present, log, before)
    labelled = log is not None and log.labels is not None and fused is not None
    version = Version(
        number=1,
        parent=parent,
        created=now(),
        method=model.name,
        harmonrank=harmonrank.__version__,
        window="",
        note="",
        recalibrated=False,
        refused=None,
        checks=(),
        metrics=model.evaluate(log).to_dict() if labelled and log is not None else None,
        fused=fused,
        checksums={},
    )
    return _with_checks(version, (_self_test(golden, model), *found))


def _with_checks(version: Version, checks: tuple[Check, ...]) -> Version:
    failed = [f"{check.name}: {check.sentence}" for check in checks if check.passed is False]
    refused = "; ".join(failed) or None
    return msgspec.structs.replace(version, checks=checks, refused=refused)


def _self_test(golden: Golden, copy: Method) -> Check:
    try:
        golden.test(copy)
    except ModelFileError as error:
        return Check("golden rows", False, str(error).rstrip("."))
    return Check("golden rows", True, f"{len(golden.fused)} rows score as they did before saving")


def _overtaken(number: int | None) -> Check:
    what = f"version {number} became current while this one was checked; publish it again"
    return Check("publication", False, what)


def _read(data: Source, fitted: Method) -> Log:
    if isinstance(data, Log):
        return data
    labelled = set(fitted.schema.names) <= set(column_names(data))
    log = corrected(read_log(data, fitted.schema, labels=labelled))
    if labelled:
        log.require_both_classes("guardrail")
    return log.counted()
