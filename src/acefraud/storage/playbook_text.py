"""A playbook as text: JSON for machines, Markdown for people and diffs. Both read back without loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from acefraud.core.bullet import Bullet
from acefraud.core.calibration import Calibration
from acefraud.core.playbook import Snapshot
from acefraud.errors import InputError

_FORMAT = "acefraud playbook 1"
_FOR_NOW = {"recent", "held", "anchor_shift"}
"""What a calibration says only of the latest outcomes."""
_NOT_EXPORTED = {"calibrations": {"__all__": _FOR_NOW}}
"""Elsewhere other outcomes are the latest."""
_CALIBRATION = "frame "
"""How the line of a node's calibration begins; JSON calls them "frames"."""

M = TypeVar("M", bound=BaseModel)


class Exported(BaseModel):
    """The content of a playbook: everything but its ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    format: str = _FORMAT
    mapping: str = ""
    calibrations: dict[str, Calibration] = Field(validation_alias="frames", serialization_alias="frames")
    bullets: tuple[Bullet, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Exported:
        """The content of a snapshot."""
        return cls(
            bullets=tuple(snapshot.bullets.values()), calibrations=dict(snapshot.calibrations), mapping=snapshot.mapping
        )


def to_json(exported: Exported) -> str:
    """The export as an indented JSON object."""
    content = exported.model_dump(mode="json", by_alias=True, exclude=_NOT_EXPORTED)
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, *, file: str) -> Exported:
    """The export in a JSON text. Raises InputError if it is not one."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as broken:
        raise InputError(f"not valid JSON: {broken.msg}", file=file, row=broken.lineno) from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply", file=file) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"expected an export of a playbook ('format': '{_FORMAT}')", file=file)
    return _validated(Exported, content, file, "playbook")


def to_markdown(exported: Exported) -> str:
    """The export as Markdown: for each bullet a heading, its content as a quotation, and its other fields as a list."""
    return "\n".join(_markdown_lines(exported)) + "\n"


def _markdown_lines(exported: Exported) -> Iterator[str]:
    yield from (f"# {_FORMAT}", "")
    if exported.mapping:
        yield f"- mapping: {_value(exported.mapping)}"
    for node, calibration in exported.calibrations.items():
        yield f"- {_CALIBRATION}{_value(node)}: {_value(calibration.model_dump(mode='json', exclude=_FOR_NOW))}"
    for bullet in exported.bullets:
        fields = bullet.model_dump(mode="json", exclude_defaults=True)
        yield from ("", f"## {fields.pop('id')}", "", f"> {_one_line(fields.pop('content'))}", "")
        for name, value in fields.items():
            yield f"- {name}: {_value(value)}"


def from_markdown(text: str, *, file: str) -> Exported:
    """The export in a Markdown text. Raises InputError if it is not one."""
    lines = text.split("\n")  # not splitlines: other separators belong to the content of a bullet
    if not lines or lines[0].strip() != f"# {_FORMAT}":
        raise InputError(f"expected an export of a playbook, beginning with '# {_FORMAT}'", file=file, row=1)
    found: list[tuple[int, dict[str, object]]] = []
    calibrations: dict[str, Calibration] = {}
    mapping = ""
    for row, line in enumerate(lines[1:], 2):
        if line.startswith("## "):
            found.append((row, {"id": line[3:].strip()}))
        elif line.startswith("> ") and found:
            found[-1][1]["content"] = _unquoted(line[2:], file, row)
        elif line.startswith("- "):
            name, value = _field(line, file, row)
            if name.startswith(_CALIBRATION):
                calibrations[name.removeprefix(_CALIBRATION)] = _validated(Calibration, value, file, name, row)
            elif found:
                found[-1][1][name] = value
            else:
                mapping = str(value)
        elif line.strip():
            raise InputError("expected a heading, a quotation or a field", file=file, row=row)
    bullets = tuple(_validated(Bullet, fields, file, str(fields["id"]), row) for row, fields in found)
    return Exported(bullets=bullets, calibrations=calibrations, mapping=mapping)


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _one_line(content: str) -> str:
    """The content as it is, or quoted as JSON if it would not survive on one line."""
    plain = content == " ".join(content.split()) and not content.startswith('"')
    return content if plain and content.isprintable() else _value(content)


def _unquoted(line: str, file: str, row: int) -> str:
    try:
        return str(json.loads(line)) if line.startswith('"') else line
    except json.JSONDecodeError as broken:
        raise InputError(f"not a quoted text: {broken.msg}", file=file, row=row) from None


def _field(line: str, file: str, row: int) -> tuple[str, object]:
    try:
        if line.startswith(f'- {_CALIBRATION}"'):
            node, end = json.JSONDecoder().raw_decode(line, len(f"- {_CALIBRATION}"))
            return f"{_CALIBRATION}{node}", json.loads(line[end:].removeprefix(": "))
        name, _, value = line[2:].partition(": ")
        return name, json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        field = line[2:].partition(":")[0][:40]
        raise InputError(f"expected a value after '{field}: '", file=file, row=row, field=field) from None


def _validated(model: type[M], value: object, file: str, field: str, row: int | None = None) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join([field, *(str(part) for part in first["loc"])])
        raise InputError(first["msg"], file=file, row=row, field=where) from None
