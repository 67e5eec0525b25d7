"""What a command works with: the playbook, the mapping it was trained with, and who plays which role."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer.models import OptionInfo

from acefraud.cli.console import note, print_result
from acefraud.cli.options import MODEL_OPTIONS, DatabaseOption, JsonOption, PlaybookOption, WhoOption, WhyOption
from acefraud.core.events import THE_ENGINE
from acefraud.core.ledger import Ledger
from acefraud.core.scope import Author
from acefraud.datasets import SchemaMapping, mapping_of
from acefraud.errors import ConfigurationError, InputError, StoreError
from acefraud.learning.build_roles import Roles, build_roles
from acefraud.learning.learner import Learner
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.selection.hybrid import HybridSelector
from acefraud.settings import ModelSettings, Settings
from acefraud.storage import BulletPlaybook, open_playbook
from acefraud.storage.open_ledger import open_ledger
from acefraud.storage.sql_ledger import SqlLedger
from acefraud.support.database_address import is_database

REFUSALS_SHOWN = 5
OVER_BUDGET = 3
"""Exit code if a budget ran out: what was learnt until then is kept."""
_DATABASE: ContextVar[str | None] = ContextVar("database", default=None)
"""The address that the command was given with --database, if any."""
Reading = Annotated[BulletPlaybook, True]
"""A playbook to read, which must be there."""
Changing = Annotated[BulletPlaybook, False]
"""A playbook to read and change, which must be there."""


def complete(command: Callable[..., Any]) -> Callable[..., None]:
    """A command with the options that follow from what it takes and returns.

    One that takes `playbook`, or `book` to get it opened, has --playbook and --database; one that takes `by` has --who
    and --why; one that takes `settings` has the options that choose models, but those that its annotation names; one
    that returns what it says has --json, and it is printed. `place_of` reads --database.

    >>> def greet(name: str, settings: ModelSettings) -> None:
    ...     print(f"{name}, the agent is {settings.agent}")
    >>> list(inspect.signature(complete(greet)).parameters)[:3]
    ['name', 'models', 'agent']
    >>> complete(greet)(name="Ana", agent="openai:gpt-4o-mini")
    Ana, the agent is openai:gpt-4o-mini
    """
    signature = inspect.signature(command, eval_str=True)
    taken, says = signature.parameters, signature.return_annotation is not None
    reads = taken["book"].annotation.__metadata__[0] if "book" in taken else None
    own: list[inspect.Parameter] = []
    for name, parameter in taken.items():
        if name in ("book", "playbook"):
            own += [_added("playbook", PlaybookOption, None), _added("database", DatabaseOption, None)]
        elif name not in ("by", "settings"):
            own.append(_added(name, parameter.annotation, parameter.default))
    if "by" in taken:
        own += [_added("who", WhoOption, None), _added("why", WhyOption, "")]
    if says:
        own.append(_added("json", JsonOption, False))
    if "settings" in taken:
        without = getattr(taken["settings"].annotation, "__metadata__", ())
        models = {name: option for name, option in MODEL_OPTIONS.items() if name not in without}
        own += [_added(name, option, False if name == "no_cache" else None) for name, option in models.items()]

    @functools.wraps(command)
    def completed(**given: Any) -> None:
        if "database" in given:
            _DATABASE.set(given.pop("database"))
        if "by" in taken:
            given["by"] = Author(who=author(given.pop("who")), why=given.pop("why"))
        if "settings" in taken:
            flags = {name: given.pop(name) for name in MODEL_OPTIONS if name in given}
            given["settings"] = Settings.from_environment(flags=flags).models
        json = given.pop("json") if says else False
        with ExitStack() as stack:
            if reads is not None:
                given["book"] = stack.enter_context(existing_playbook(given.pop("playbook"), read_only=reads))
            said = command(**given)
            if says:
                print_result(*said, json=json)

    completed.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    setattr(completed, "__signature__", inspect.Signature(own))  # noqa: B010  # a function does not declare it
    return completed


def _added(name: str, option: Any, default: Any) -> inspect.Parameter:
    """A parameter whose option has its name, unless it says another. Of a flag, typer would make two options."""
    (told,) = getattr(option, "__metadata__", (None,))
    if isinstance(told, OptionInfo) and told.default is ...:  # where typer keeps the name until it is read
        told.param_decls = (f"--{name.replace('_', '-')}",)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)


def author(given: str | None) -> str:
    """Who edits by hand: the --who option, $ACEFRAUD_WHO or the user. Nobody may take the engine's own name."""
    who = given or Settings.from_environment().who
    if who == THE_ENGINE:
        raise InputError(f"'{THE_ENGINE}' is the playbook's own name; pass yours with --who")
    return who


def place_of(given: Path | None) -> Path | str:
    """Where the playbook of a command is: the path of a file, or the address of a database.

    Flags come first, then the environment. `shown_place` is what may be printed.
    """
    address = _DATABASE.get()
    if address is not None:
        if given is not None:
            raise ConfigurationError("--playbook and --database contradict each other; give one of them")
        if not is_database(address):
            raise ConfigurationError("--database: expected an address such as postgresql://user@host:5432/database")
        return address
    if given is not None:
        return given
    settings = Settings.from_environment()
    return settings.database or settings.playbook


def is_there(place: Path | str) -> bool:
    """Whether there is a playbook file. A database is taken to be there: opening it tells."""
    return isinstance(place, str) or place.exists()


def existing_playbook(given: Path | None, *, read_only: bool = False) -> BulletPlaybook:
    """Open a playbook that is there. A missing one is an error: a mistyped name must not start an empty playbook."""
    durability = Settings.from_environment().durability
    return open_playbook(_existing(given), create=False, read_only=read_only, durability=durability)


def existing_ledger(given: Path | None, *, read_only: bool = True) -> SqlLedger:
    """Open the ledger of a playbook that is there, without reading its bullets."""
    durability = Settings.from_environment().durability
    return open_ledger(_existing(given), create=False, read_only=read_only, durability=durability)


def ledger_to_fill(given: Path | None) -> SqlLedger:
    """Open the ledger of a playbook to write to it. A database gets its tables if it has none; a file must be there."""
    return open_ledger(_existing(given), durability=Settings.from_environment().durability)


def any_ledger(given: Path | None) -> SqlLedger:
    """Open a ledger, or start it if there is none."""
    return open_ledger(place_of(given), durability=Settings.from_environment().durability)


def _existing(given: Path | None) -> Path | str:
    path = place_of(given)
    if not is_there(path):
        raise StoreError(
            f"there is no playbook at {path}; `acefraud train FILE --playbook {path}` makes one from labelled history, "
            f"and `acefraud playbook add` starts one by hand"
        )
    return path


def copy_to_file(given: Path | None, file: Path, *, force: bool = False) -> int:
    """Copy a playbook to a file. Returns the size of the copy in bytes."""
    from acefraud.storage.copies import copy_playbook, write_to_file  # noqa: PLC0415  # most commands copy nothing

    place = place_of(given)
    if isinstance(place, Path):
        return copy_playbook(place, file, force=force)
    with existing_ledger(given) as ledger:
        return write_to_file(ledger, file, force=force)


@contextmanager
def playbook_copy(given: Path | None) -> Iterator[BulletPlaybook]:
    """A copy of a playbook to try something on. It is gone afterwards."""
    _existing(given)
    with TemporaryDirectory(prefix="acefraud-") as folder:
        copy_to_file(given, Path(folder) / "copy.db")
        with open_playbook(Path(folder) / "copy.db") as book:
            yield book


def any_playbook(given: Path | None) -> BulletPlaybook:
    """Open a playbook, or start it if there is none."""
    return open_playbook(place_of(given), durability=Settings.from_environment().durability)


def not_recorded(message: str, wanted: str, ledger: Ledger) -> InputError:
    """The error for a decision that is not in a playbook, with the archive that has it."""
    assert isinstance(ledger, SqlLedger), "commands work on files and databases"
    from acefraud.storage.archive import place_of_archived  # noqa: PLC0415  # polars is slow to import

    place = place_of_archived(ledger, wanted)
    return InputError(f"{message}: {place}" if place else message)


def trained_mapping(playbook: BulletPlaybook) -> SchemaMapping | None:
    """The mapping of the file that the playbook was trained on."""
    return mapping_of(playbook.snapshot().mapping)


def roles_for(settings: ModelSettings, *mappings: SchemaMapping | Path | None) -> Roles:
    """Who plays which role. Models never see the facts that one of the mappings names as sensitive."""
    sensitive = [name for mapping in mappings if mapping for name in _loaded(mapping).sensitive_facts]
    return build_roles(settings, sensitive=tuple(sensitive))


def _loaded(mapping: SchemaMapping | Path) -> SchemaMapping:
    return SchemaMapping.load(mapping) if isinstance(mapping, Path) else mapping


def embedded_learner(playbook: BulletPlaybook) -> Learner:
    """A learner on the embedded engine, with the embedder that the environment names."""
    settings = Settings.from_environment()
    return Learner(playbook, selector=HybridSelector(embedding_model=settings.embedder or DEFAULT_EMBEDDER))


@asynccontextmanager
async def learner_with(roles: Roles, playbook: BulletPlaybook, **options: Any) -> AsyncIterator[Learner]:
    """A learner on the playbook, with these options.

    Afterwards, connections are closed and model usage goes to standard error.
    """
    learner = roles.learner(playbook, **options)
    try:
        yield learner
    finally:
        await roles.close()
        note_usage(roles)
        _note_proposals(learner)


def note_usage(roles: Roles) -> None:
    """Say on standard error what models were asked, and what it cost."""
    if roles.client is None:
        return
    for role, used in roles.client.usage.by_role.items():
        price = f"${used.cost:.4f}" + (f" and {used.unpriced:,} calls without a known price" if used.unpriced else "")
        note(
            f"{role}: {used.calls:,} calls ({used.failed:,} failed), {used.cached:,} answered from the cache, "
            f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {price}"
        )
    if roles.tier is not None and (cases := roles.tier.by_model + roles.tier.by_tier):
        note(f"the agent's model was asked about {roles.tier.by_model:,} of {cases:,} cases")


def _note_proposals(learner: Learner) -> None:
    proposed = learner.proposed
    if proposed is None or not (proposed.counts or proposed.stopped):
        return
    counts = proposed.counts
    note(
        f"proposals: {counts['asked']:,} asked for, {counts['measured']:,} measured and confirmed, "
        f"{counts['unverified']:,} not measurable yet, {counts['refused']:,} refused, {counts['failed']:,} failed"
    )
    for ruling in proposed.refused[:REFUSALS_SHOWN]:
        note(f"refused: {ruling.proposal.content} ({ruling.reason})")
    if proposed.stopped:
        note(f"no more calls: {proposed.stopped}. What was learnt until then is kept")


def model_report(roles: Roles, learner: Learner | None = None) -> dict[str, Any]:
    """For scripts: what became of a model's proposals, and what calls cost. Empty if no model was asked."""
    report: dict[str, Any] = {}
    if learner is not None and learner.proposed is not None:
        proposed = learner.proposed
        refused = [{"bullet": ruling.proposal.content, "reason": ruling.reason} for ruling in proposed.refused]
        report["proposals"] = {**proposed.counts, "refused_because": refused, "stopped": proposed.stopped}
    if roles.client is not None:
        report["usage"] = roles.client.usage.as_json()
    if roles.tier is not None:
        report["cases"] = {"asked": roles.tier.by_model, "not_asked": roles.tier.by_tier}
    return report


def budget_code(learner: Learner, unfitted: str = "") -> int:
    """The exit code of a run: one of its own if a budget stopped it early."""
    return OVER_BUDGET if unfitted or (learner.proposed is not None and learner.proposed.stopped) else 0
