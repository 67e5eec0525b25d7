"""A playbook as text: JSON for machines, Markdown for people and for diffs. Both read back without loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from acefraud.core.bullet import Bullet
from acefraud.core.playbook import Snapshot
from acefraud.core.scoring import Calibration
from acefraud.errors import InputError

_FORMAT = "acefraud playbook 1"
_BULLET = TypeAdapter(Bullet)
_FRAME = TypeAdapter(Calibration)

_FRAME_OF = "frame "

T = TypeVar("T")


class _Parts(BaseModel):
    """The parts of a JSON export."""

    model_config = ConfigDict(extra="forbid")

    format: str
    mapping: str = ""
    frames: dict[str, Calibration]
    bullets: tuple[Bullet, ...]


_PARTS = TypeAdapter(_Parts)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds."""

    bullets: tuple[Bullet, ...]
    calibrations: dict[str, Calibration]
    mapping: str = ""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Exported:
        """Everything of a snapshot but its place in the ledger."""
        return cls(tuple(snapshot.bullets.values()), dict(snapshot.calibrations), snapshot.mapping)


def to_json(exported: Exported) -> str:
    """One object, a line for each bullet's field."""
    content = {
        "format": _FORMAT,
        "mapping": exported.mapping,
        "frames": {node: frame.model_dump(mode="json") for node, frame in exported.calibrations.items()},
        "bullets": [bullet.model_dump(mode="json") for bullet in exported.bullets],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, *, file: str) -> Exported:
    """The export that this text holds."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as broken:
        raise InputError(f"not valid JSON: {broken.msg}", file=file, row=broken.lineno) from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply", file=file) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"expected an export of a playbook ('format': '{_FORMAT}')", file=file)
    parts = _validated(_PARTS, content, file, "playbook")
    return Exported(parts.bullets, parts.frames, parts.mapping)


def to_markdown(exported: Exported) -> str:
    """A heading and the words for each bullet, its fields below, one a line."""
    return "\n".join(_markdown_lines(exported)) + "\n"


def _markdown_lines(exported: Exported) -> Iterator[str]:
    yield f"# {_FORMAT}"
    yield ""
    if exported.mapping:
        yield f"- mapping: {_value(exported.mapping)}"
    for node, frame in exported.calibrations.items():
        yield f"- {_FRAME_OF}{_value(node)}: {_value(frame.model_dump(mode='json'))}"
    for bullet in exported.bullets:
        fields = bullet.model_dump(mode="json", exclude_defaults=True)
        yield ""
        yield f"## {fields.pop('id')}"
        yield ""
        yield f"> {_line(fields.pop('content'))}"
        yield ""
        for name, value in fields.items():
            yield f"- {name}: {_value(value)}"


def from_markdown(text: str, *, file: str) -> Exported:
    """The export that this text holds."""
    lines = text.split("\n")  # not splitlines: other separators are part of what a bullet says
    if not lines or lines[0].strip() != f"# {_FORMAT}":
        raise InputError(f"expected an export of a playbook, beginning with '# {_FORMAT}'", file=file, row=1)
    found: list[tuple[int, dict[str, object]]] = []
    frames: dict[str, Calibration] = {}
    mapping = ""
    for row, line in enumerate(lines[1:], 2):
        if line.startswith("## "):
            found.append((row, {"id": line[3:].strip()}))
        elif line.startswith("> ") and found:
            found[-1][1]["content"] = _unline(line[2:], file, row)
        elif line.startswith("- "):
            name, value = _field(line, file, row)
            if name.startswith(_FRAME_OF):
                frames[name.removeprefix(_FRAME_OF)] = _validated(_FRAME, value, file, name, row)
            elif found:
                found[-1][1][name] = value
            else:
                mapping = str(value)
        elif line.strip():
            raise InputError("expected a heading, a quotation or a field", file=file, row=row)
    bullets = tuple(_validated(_BULLET, fields, file, str(fields["id"]), row) for row, fields in found)
    return Exported(bullets, frames, mapping)


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _line(content: str) -> str:
    """Words as they are, unless they would not survive on one line."""
    plain = content == " ".join(content.split()) and not content.startswith('"')
    return content if plain and content.isprintable() else _value(content)


def _unline(line: str, file: str, row: int) -> str:
    try:
        return str(json.loads(line)) if line.startswith('"') else line
    except json.JSONDecodeError as broken:
        raise InputError(f"not a quoted text: {broken.msg}", file=file, row=row) from None


def _field(line: str, file: str, row: int) -> tuple[str, object]:
    try:
        if line.startswith(f'- {_FRAME_OF}"'):
            node, end = json.JSONDecoder().raw_decode(line, len(f"- {_FRAME_OF}"))
            return f"{_FRAME_OF}{node}", json.loads(line[end:].removeprefix(": "))
        name, _, value = line[2:].partition(": ")
        return name, json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        field = line[2:].partition(":")[0][:40]
        raise InputError(f"expected a value after '{field}: '", file=file, row=row, field=field) from None


def _validated(adapter: TypeAdapter[T], value: object, file: str, field: str, row: int | None = None) -> T:
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join([field, *(str(part) for part in first["loc"])])
        raise InputError(first["msg"], file=file, row=row, field=where) from None
