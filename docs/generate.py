"""Writes the reference pages from the code: API, commands, the scorecard of vanilla mode, facts, and the transcript."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer
from pydantic import BaseModel
from typer.testing import CliRunner

import acefraud
from acefraud import errors
from acefraud.cli import app
from acefraud.core.fact_names import NAMED_FACTS
from acefraud.rules.scorecard import GENERAL, scorecard

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- transcript: made by `make docs` -->", "<!-- end of transcript -->"


# --- the API ---

GROUPS = {
    "Decide and learn": "Learner Transaction Decision Reason Verdict Outcome",
    "Playbook and bullets": "BulletPlaybook open_playbook Bullet Policy Source Status Condition Evidence Record",
    "Estimators": "AceFraudClassifier backtest_scorer StreamClassifier",
    "The service": "Client AsyncClient",
    "Data": "load_dataset load_transactions Dataset ReadingReport SchemaMapping Case Cases Transactions FactTable "
    "Columns InputWarning NaiveTimeWarning ShippedDatasetWarning",
    "The roles": "HybridSelector BulletScore SimpleFraudAgent SimpleJudge LLMJudge Judgement Reflector Curator "
    "Roles build_roles",
    "Evaluation and modes": "compare Comparison backtest Backtest TrainingPipeline Mode ModeRun label_stream known_by",
    "Options and settings": "LearnerOptions ReflectionPolicy ModelSettings",
}
"""Every exported name, under what a reader wants to do."""
OTHERS = "Other names"
"""Where a name stands that nobody has put in a group."""
ALIASES = {
    "BoolArray": "NDArray[np.bool_]",
    "Categories": "tuple[NDArray[np.int32], tuple[str, ...]]",
    "Clock": "Callable[[], datetime]",
    "Fact": "bool | float | str",
    "FactValue": "bool | float | str",
    "Flags": "NDArray[np.int8]",
    "FloatArray": "NDArray[np.float64]",
    "Fold": "tuple[Cases, Cases]",
    "IdText": "str",
    "Ids": "NDArray[np.object_]",
    "IntArray": "NDArray[np.int64]",
    "LabelText": "str",
    "Leaf": "Test | PairTest",
    "OptionalTimestamp": "datetime | None",
    "Part": "Test | PairTest | AnyOf",
    "PlainFlag": "bool",
    "RowIndex": "NDArray[np.bool_] | NDArray[np.int64] | slice",
    "Step": 'tuple[Literal["decide", "hear"], NDArray[np.int64]]',
}
"""What the short names of types in annotations stand for."""
WIDTH = 100


def api() -> str:
    """Every public name: signature, what it is, fields, methods, and examples."""
    groups = {title: [getattr(acefraud, name) for name in names] for title, names in grouped().items()}
    groups["Errors"] = [
        one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, errors.AcefraudError)
    ]
    links = Links([one for members in groups.values() for one in members])
    lines = [
        "# API reference",
        "",
        "Made by `make docs` from the code. Every example runs in the test suite. The examples take the names of "
        "`acefraud` and `acefraud.errors` as imported; anything else they import themselves. `await` before a "
        "signature means that the method is a coroutine: await it, or call its twin that blocks, such as "
        "`learner.decide_sync(...)`. In the signature of a class, `...` stands for a default that is listed below it.",
        "",
    ]
    for title, members in groups.items():
        names = ", ".join(links.to(one.__name__) for one in members)
        lines.append(f"- [{title}](#{_anchor(title)}): {names}")
    lines.append("- [Types in signatures](#types-in-signatures)")
    for title, members in groups.items():
        lines += ["", f"## {title}", ""]
        if title == "Errors":
            tree = inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2]
            lines += ["They are in `acefraud.errors`.", "", "```text", tree, "```", ""]
        for member in members:
            lines += _of_class(member, links) if inspect.isclass(member) else _of_function(member, links)
    lines += ["", "## Types in signatures", "", "These are not exported; import them from their modules.", ""]
    lines += ["| type | module | what it is |", "| --- | --- | --- |"]
    for found in sorted(_types_in_signatures(links.members), key=lambda one: one.__name__):
        first = inspect.cleandoc(found.__doc__ or "").partition("\n")[0]
        lines.append(f"| `{found.__name__}` | `{found.__module__}` | {links.linked(first)} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def grouped() -> dict[str, list[str]]:
    """The exported names by group. Earlier names of a thing stand with it; names in no group stand at the end."""
    exported = [name for name in acefraud.__all__ if getattr(acefraud, name).__name__ == name]
    groups = {title: [name for name in names.split() if name in exported] for title, names in GROUPS.items()}
    groups[OTHERS] = [name for name in exported if not any(name in names for names in groups.values())]
    return {title: names for title, names in groups.items() if names}


class Links:
    """Turns the names of documented things into links to where they stand on the page."""

    def __init__(self, members: list[Any]) -> None:
        self.members = members
        self._names = {one.__name__ for one in members}
        self._functions = {one.__name__ for one in members if inspect.isfunction(one)}
        self._errors = "|".join(one.__name__ for one in members if one.__module__ == "acefraud.errors")
        classes = [one for one in members if inspect.isclass(one)]
        self._methods = {
            f"{one.__name__}.{name}"
            for one in classes
            for name, method in methods_of(one).items()
            if not isinstance(method, property)
        }

    def to(self, name: str) -> str:
        """A link to a documented name. Functions stand under their full name: some are called like a class."""
        return f"[`{name}`](#{_anchor(f'acefraud.{name}' if name in self._functions else name)})"

    def linked(self, text: str, owner: str = "") -> str:
        """Prose in which names that stand elsewhere on the page are links."""

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name in self._names | self._methods and name != owner:
                return self.to(name)
            own = f"{owner.partition('.')[0]}.{name}"
            return f"[`{name}`](#{_anchor(own)})" if own in self._methods and own != owner else match[0]

        text = re.sub(r"``([^`]+)``", r"`\1`", text)
        text = re.sub(r"`([\w.]+)`", replaced, text)
        errors_here = rf"(?<![`\w.])({self._errors})\b(?!`)"
        return re.sub(errors_here, lambda match: match[0] if match[1] == owner else self.to(match[1]), text)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _of_class(cls: type, links: Links) -> list[str]:
    name, init, fields = cls.__name__, vars(cls).get("__init__"), list(_fields(cls))
    title = "Fields"
    if issubclass(cls, Enum):
        title, fields = "Members", list(_members(cls))
    if issubclass(cls, Enum | Warning) or (issubclass(cls, Exception) and init is None):
        made = f"class {name}({', '.join(base.__name__ for base in cls.__bases__)})"
    elif _takes_fields(cls):
        made = _written(name, list(_constructor(cls)))
    else:
        made = f"{name}()" if init is None else _signature(init, name).removesuffix(" -> None")
    lines = [f"### `{name}`", "", "```python", made, "```", "", *_prose(cls, links, name)]
    if init is not None and not _takes_fields(cls):
        lines += _prose(init, links, name)
        title, fields = ("Attributes", _set_in(init)) if not fields else (title, fields)
    lines += _listed(title, [(one.declared, [links.linked(one.doc, name)]) for one in fields])
    methods = methods_of(cls)
    properties = {one: value for one, value in methods.items() if isinstance(value, property)}
    lines += _listed(
        "Properties",
        [(_property(one, value), _prose(value, links, name)) for one, value in properties.items()],
    )
    for one, method in methods.items():
        if one not in properties:
            lines += [f"#### `{name}.{one}`", "", "```python", _method(cls, one, method), "```", ""]
            lines += _prose(method, links, f"{name}.{one}")
    for base in cls.__mro__[1:]:
        others = [one for one in methods_of(base) if one not in methods] if base in links.members else []
        if others:
            listed = ", ".join(links.linked(f"`{one}`", base.__name__) for one in others)
            lines += [f"From {links.to(base.__name__)}: {listed}.", ""]
    return lines


def _listed(title: str, items: list[tuple[str, list[str]]]) -> list[str]:
    lines = [f"**{title}**", ""]
    for declared, (first, *rest) in items:
        lines.append(f"- `{declared}`" + (f": {first}" if first else ""))
        lines += textwrap.indent("\n".join(rest).rstrip(), "  ").splitlines()
    return [*lines, ""] if items else []


def _property(name: str, one: property) -> str:
    assert one.fget is not None
    return f"{name}: {_type(inspect.signature(one.fget).return_annotation)}"


def _of_function(function: Callable[..., Any], links: Links) -> list[str]:
    name = function.__name__
    return [
        f"### `acefraud.{name}`",
        "",
        "```python",
        _signature(function, name),
        "```",
        "",
        *_prose(function, links, name),
    ]


def methods_of(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class: its own, and those of bases that are not on the page."""
    bases = [one for one in cls.__mro__[1:] if one.__module__.startswith("acefraud") and one.__name__ not in _on_page()]
    found: dict[str, Any] = {}
    for one in (*reversed(bases), cls):
        for name, value in vars(one).items():
            plain = getattr(value, "__func__", value)
            if not name.startswith("_") and (isinstance(value, property) or inspect.isfunction(plain)):
                found[name] = value
    return {name: one for name, one in found.items() if not _is_earlier_name(name, one, found)}


def _on_page() -> set[str]:
    return {*acefraud.__all__, *vars(errors)}


def _is_earlier_name(name: str, one: Any, found: dict[str, Any]) -> bool:
    present = getattr(one, "__name__", name)
    return present != name and found.get(present) is one


def _method(cls: type, name: str, method: Any) -> str:
    if isinstance(method, classmethod | staticmethod):
        return _signature(method.__func__, f"{cls.__name__}.{name}")
    if inspect.isgeneratorfunction(getattr(method, "__wrapped__", None)):  # a context manager
        return "with " + _signature(method, name).removesuffix(" -> Iterator[None]")
    return ("await " if inspect.iscoroutinefunction(method) else "") + _signature(method, name)


def _signature(function: Callable[..., Any], name: str) -> str:
    """A signature as written in the code, without `self` or `cls`, one parameter on a line if it is long."""
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    result = signature.return_annotation
    return _written(name, list(_parameters(parameters)), "" if result is signature.empty else _type(result))


def _parameters(parameters: Iterable[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f" = {_value(one.default)}"
        yield f"{stars}{one.name}: {_type(one.annotation)}{default}"


def _written(name: str, parts: list[str], result: str = "") -> str:
    end = f") -> {result}" if result else ")"
    line = f"{name}({', '.join(parts)}{end}"
    if len(line) <= WIDTH:
        return line
    if any(":" in part for part in parts):
        return "\n".join([f"{name}(", *(f"    {part}," for part in parts), end])
    return "\n".join(
        [f"{name}(", *textwrap.wrap(", ".join(parts), WIDTH, initial_indent="    ", subsequent_indent="    "), end]
    )


def _type(annotation: str) -> str:
    """An annotation with the short names of types spelled out."""
    if annotation.startswith("Annotated["):
        annotation = annotation.removeprefix("Annotated[").partition(",")[0]
    for _ in range(2):  # an alias may stand for another
        annotation = re.sub(r"\b(?<!\.)([A-Z]\w+)\b", lambda match: ALIASES.get(match[1], match[1]), annotation)
    return annotation.replace("npt.", "").replace("'", '"')


def _value(value: Any) -> str:
    """A default, the same on every run and every version of Python."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if callable(value):
        return "..." if value.__name__ == "<lambda>" else str(value.__name__)
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(...)"
    return repr(value)


class Field(NamedTuple):
    """A field or attribute of a class."""

    name: str
    type: str
    default: str
    doc: str

    @property
    def declared(self) -> str:
        """As it is declared."""
        return f"{self.name}{f': {self.type}' if self.type else ''}{f' = {self.default}' if self.default else ''}"


def _takes_fields(cls: type) -> bool:
    """Whether its constructor takes its fields."""
    return issubclass(cls, BaseModel) or (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.init)  # type: ignore[attr-defined]


def _constructor(cls: Any) -> Iterator[str]:
    if issubclass(cls, BaseModel):
        yield "*"
        for name, model_field in cls.model_fields.items():
            yield name if model_field.is_required() else f"{name}=..."
        return
    starred = False
    for one in dataclasses.fields(cls):
        if one.kw_only and not starred:
            starred = True
            yield "*"
        yield f"{one.name}=..." if _default(one) else one.name


def _fields(cls: type) -> Iterator[Field]:
    """The fields of a model or a dataclass, in the order and the words of its source."""
    defaults: dict[str, str] = {}
    if issubclass(cls, BaseModel):
        defaults = {name: _default(one) for name, one in cls.model_fields.items()}
    elif dataclasses.is_dataclass(cls):
        defaults = {one.name: _default(one) for one in dataclasses.fields(cls)}
    for name, kind, doc in _documented(_source(cls).body):
        if name in defaults:
            yield Field(name, _type(kind), defaults[name], doc)


def _default(field: Any) -> str:
    """The default of a field of a model or a dataclass; blank if it has none."""
    if field.default_factory not in (None, dataclasses.MISSING):
        return {dict: "{}", list: "[]"}.get(field.default_factory, f"{field.default_factory.__name__}()")
    required = field.default is dataclasses.MISSING or type(field.default).__name__ == "PydanticUndefinedType"
    return "" if required else _value(field.default)


def _members(cls: type[Enum]) -> Iterator[Field]:
    docs = {name: doc for name, _, doc in _documented(_source(cls).body)}
    return (Field(one.name, "", json.dumps(one.value), docs[one.name]) for one in cls)


def _set_in(init: Callable[..., Any]) -> list[Field]:
    """The public attributes that a constructor sets and describes."""
    found = _documented(_source(init).body)
    return [Field(name, _type(kind), "", doc) for name, kind, doc in found if doc and not name.startswith("_")]


def _source(thing: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str, str]]:
    """Name, annotation and docstring of what is assigned."""
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        target: ast.expr
        if isinstance(statement, ast.AnnAssign):
            target, kind = statement.target, ast.unparse(statement.annotation)
        elif isinstance(statement, ast.Assign):
            target, kind = statement.targets[0], ""
        else:
            continue
        doc = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            doc = " ".join(after.value.value.split())
        if isinstance(target, ast.Name | ast.Attribute):
            yield target.id if isinstance(target, ast.Name) else target.attr, kind, doc


def _prose(thing: Any, links: Links, owner: str) -> list[str]:
    """A docstring as Markdown, with its examples as blocks."""
    lines: list[str] = []
    inside = False
    for line in _without_sections(inspect.cleandoc(thing.__doc__ or "").splitlines()):
        if not inside and line.startswith(">>>"):
            inside = True
            lines.append("```pycon")
        elif inside and not line:
            inside = False
            lines.append("```")
        lines.append(line if inside else links.linked(line, owner))
    return [*lines, *(["```"] if inside else []), ""]


def _without_sections(lines: list[str]) -> Iterator[str]:
    """A docstring in which the sections that scikit-learn's tools read are lists."""
    entry: list[str] = []
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        if entry and not line.startswith("    "):
            yield " ".join(entry)
            entry = []
        if re.fullmatch("-{3,}", below):
            yield from ("" if line == "Examples" else f"**{line}**", "")
        elif " : " in line and below.startswith("    "):
            name, kind = line.split(" : ", 1)
            entry = [f"- `{name}` ({kind}):"]
        elif entry:
            entry.append(line.strip())
        elif not re.fullmatch("-{3,}", line):
            yield line


def _types_in_signatures(members: Iterable[Any]) -> set[type]:
    """The classes of the package that signatures name and that are not on the page themselves."""
    listed, found = set(members), set()
    for member in members:
        functions = (
            [member] if inspect.isfunction(member) else [vars(member).get("__init__"), *methods_of(member).values()]
        )
        words = " ".join(one.type for one in _fields(member)) if inspect.isclass(member) else ""
        names = dict(vars(sys.modules[member.__module__]))
        for one in functions:
            plain = getattr(one, "fget", None) or getattr(one, "__func__", one)
            if inspect.isfunction(plain):
                words += " ".join(["", *(_type(str(kind)) for kind in plain.__annotations__.values())])
                names |= vars(sys.modules[plain.__module__])
        for word in set(re.findall(r"\w+", words)):
            thing = names.get(word)
            if inspect.isclass(thing) and thing.__module__.startswith("acefraud.") and thing not in listed:
                found.add(thing)
    return found


# --- the other pages ---


def commands() -> str:
    """Every command with its help and options."""
    lines = ["# Commands", "", "Made by `make docs` from the commands themselves.", ""]
    for path, command in _walk(typer.main.get_command(app), ["acefraud"]):
        lines += [f"## {' '.join(path)}", "", inspect.cleandoc(command.help or ""), ""]
        context = command.context_class(command, info_name=" ".join(path))
        # arguments first, as they are written
        for parameter in sorted(command.get_params(context), key=lambda given: given.param_type_name != "argument"):
            record = parameter.get_help_record(context)
            if record is not None and record[0] != "--help":
                lines.append(f"- `{record[0]}`: {record[1]}")
            elif parameter.param_type_name == "argument":
                lines.append(f"- `{parameter.make_metavar(context)}`: {getattr(parameter, 'help', '') or ''}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    for name, listed in command.commands.items():
        child = getattr(listed, "loaded", listed)  # commands are imported when they are called
        if hasattr(child, "commands"):
            yield from _walk(child, [*path, name])
        else:
            yield [*path, name], child


def general_knowledge() -> str:
    """The scorecard that vanilla mode decides by."""
    lines = [
        "# General knowledge: the scorecard of vanilla mode",
        "",
        "Made by `make docs` from `rules/scorecard.toml`. Points are log-odds of fraud; a transaction starts at "
        f"{GENERAL.intercept:+.1f} and is declined at even odds or higher. The points were set by judgement, from "
        "commonly published red and green flags. None was fitted to a data set. "
        "A playbook fits points of its own from labelled history.",
        "",
        "| condition | points |",
        "| --- | ---: |",
        *(f"| {point.words} | {point.points:+.1f} |" for point in scorecard()),
    ]
    return "\n".join(lines) + "\n"


def facts() -> str:
    """The facts that texts are read for."""
    lines = [
        "# Facts the engine knows by name",
        "",
        "Made by `make docs` from `core/fact_names.toml`. These facts are read from texts. A column with "
        "one of these names is described in the words beside it. Any other column is a fact too, under its own name.",
        "",
        "| fact | kind | in words |",
        "| --- | --- | --- |",
        *(
            f"| `{w.name}` | {w.kind} | {w.true or w.noun}{f' ({w.unit})' if w.unit else ''} |"
            for w in NAMED_FACTS.values()
        ),
    ]
    return "\n".join(lines) + "\n"


TRANSCRIPT = (
    ["train", "complex_fraud_detection"],
    [
        "decide",
        "Phone order of $640 at 14:20. The account is 8 months old with 64 transactions, usual amount $110. "
        "The card was added 20 days ago. 2 chargebacks before. No VPN.",
    ],
    ["playbook", "add", "VPN and a new device = 95% fraud", "--who", "ana"],
)


_DECISION_ID = re.compile(r"d-[0-9a-f]{16}")
"""It covers every bit of the scores, and the last bits differ between processors."""


def transcript() -> str:
    """What an analyst types, and what the commands print."""
    lines = []
    with TemporaryDirectory() as folder:
        for arguments in TRANSCRIPT:
            result = CliRunner().invoke(app, [*arguments, "--playbook", f"{folder}/book.db"], catch_exceptions=False)
            lines.append(f"$ acefraud {shlex.join([*arguments, '--playbook', 'book.db'])}")
            lines.append(_DECISION_ID.sub("d-0e6237ba6dcdce84", result.stdout.replace(f"{folder}/", "")).rstrip())
    return "```console\n" + "\n".join(lines) + "\n```"


def readme() -> str:
    """The README with the current transcript."""
    text = README.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{transcript()}\n{END}{after}"


PAGES = {"api.md": api, "commands.md": commands, "general-knowledge.md": general_knowledge, "facts.md": facts}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        print(f"docs/{name}")
    README.write_text(readme(), "utf-8")
    print("README.md")
