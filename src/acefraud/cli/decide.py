"""`acefraud decide`: APPROVE or DECLINE, with reasons. `acefraud score`: the same for files of many rows."""

from __future__ import annotations

import asyncio
import json as jsonlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

from rapidfuzz import fuzz, process
from typer import Argument, Option

from acefraud.cli.console import Said, line, note, note_bad_rows, nothing_written, print_json, progress, stoppable
from acefraud.cli.options import (
    DaysAheadOption,
    ForceOption,
    JsonOption,
    MappingOption,
    PlaybookOption,
    SchedulerOption,
    StrictOption,
    WorkersOption,
)
from acefraud.cli.stream import BatchOption, Stream, StreamOptions, as_line, one_line
from acefraud.cli.workspace import (
    Reading,
    existing_playbook,
    is_there,
    learner_with,
    place_of,
    roles_for,
    trained_mapping,
)
from acefraud.core.context_facts import snoozed_in
from acefraud.core.decision import Decision, ProbabilityFrom, Reason, ReasonKind
from acefraud.core.ledger import DecisionFilter
from acefraud.core.review_rule import number_in
from acefraud.core.transaction import Transaction, Verdict, from_text, id_from
from acefraud.datasets import SchemaMapping
from acefraud.display.redaction import cut, visible
from acefraud.engine.decider import remarks_on
from acefraud.engine.familiarity import unfamiliar_remarks
from acefraud.errors import BudgetExceeded, InputError, ModelError
from acefraud.learning.build_roles import Roles
from acefraud.roles.embedded.embedder import DEFAULT_EMBEDDER
from acefraud.settings import ModelSettings, Settings
from acefraud.storage import BulletPlaybook

if TYPE_CHECKING:
    from acefraud.datasets.records import RecordReader

BATCH = 200
"""Decisions that are written and acknowledged together."""
BATCH_WITH_MODEL = 32
"""Decisions of a model that are written together: they should not wait long for the rest."""
BATCH_IN_STREAM = 256
"""Lines of standard input that are decided together if they wait already."""
REASONS_SHOWN = 5
_STYLES = {Verdict.DECLINE: "bold red", Verdict.APPROVE: "bold green", Verdict.REVIEW: "bold yellow"}
_STATED = {
    ProbabilityFrom.STATED: " (stated by the model)",
    ProbabilityFrom.ODDS: " (the model's odds, not calibrated)",
}
_JSON_IF_ANY = ("usage", "fallback", "selection_fallback")
_JSON_FIELDS = {
    *("verdict", "probability", "threshold", "reasons", "unread", "revision", "model", "probability_from"),
    "familiarity",
}
_FILE_ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_PATH_STARTS = ("/", "./", "../", "~")
LONGEST_PATH = 255
LIKE_THE_NAME, NEARLY_THE_NAME = 65.0, 88.0
"""Of 100: how much like that of a file a name has to be, to be suggested and to be taken for it."""


DONE = {Verdict.APPROVE: "approved", Verdict.DECLINE: "declined", Verdict.REVIEW: "sent to review"}
_WIDEST, _LONGEST, _RULES_SHOWN = 40, 120, 5
"""The most characters of who took part in a row, and of a reason; and the most rules in a summary."""
Only = Literal["decline", "review"]
Show = Callable[[Decision], None]


def decide(
    what: Annotated[str, Argument(metavar="[FILE|TEXT|JSON|-]", help="A file, one text, one as JSON, or -.")] = "-",
    playbook: PlaybookOption = None,
    mapping: MappingOption = None,
    strict: Annotated[bool, Option(help="Refuse what cannot be read, unknown facts and times that cannot be.")] = False,
    days_ahead: DaysAheadOption = 1.0,
    json: JsonOption = False,
    batch_ms: BatchOption = 0,
    dry_run: Annotated[bool, Option(help="Decide exactly so, but record nothing.")] = False,
    table: Annotated[bool, Option("--table", help="Print one aligned row for each transaction.")] = False,
    only: Annotated[Only | None, Option(help="Print only these. All are recorded, and the summary counts all.")] = None,
    *,
    settings: ModelSettings,
) -> None:
    """Decide transactions with a playbook and record the decisions.

    A decision is printed after it is safely written, so no printed decision is ever lost. With neither --playbook nor
    a playbook.db, general knowledge decides and nothing is kept. Except as JSON, a file ends with a summary: how many
    were approved, declined and sent to review, in money, and which rules decided or weighed most.

    Standard input is a stream: every line is a transaction, as JSON or as text, and is answered by one line as soon as
    it is decided. A bad line is answered by an error and makes the exit code 1. Lines that wait are decided together.

    Facts that the playbook does not know are pointed out on standard error, each once, with the nearest one that it
    does; so are facts that it relies on and that are missing, and times that cannot be.

        acefraud decide 'User (account age: 3 days) attempts $2,500 purchase at 3:15 AM through a VPN'
        acefraud decide today.csv --playbook book.db --dry-run
        acefraud decide today.csv --playbook book.db --table --only decline
        acefraud decide '{"id": "t1", "facts": {"amount": 2500, "vpn": true}}' --playbook book.db
        acefraud decide today.csv --playbook book.db --json > decisions.jsonl
        tail -f new.jsonl | acefraud decide - --playbook book.db --json | alert
    """
    if table and (json or what == "-"):
        raise InputError("--table is for people who decide a file: without --json, and not for a stream")
    if only and what == "-":
        raise InputError("--only is for files: every line of a stream is answered")
    path = place_of(playbook)
    kept = playbook is not None or is_there(path)
    if kept:
        book = existing_playbook(playbook)
    else:
        note(f"no playbook at {path}: deciding by general knowledge; nothing is kept")
        book = BulletPlaybook()
    with book:
        remembered = trained_mapping(book)
        roles = roles_for(settings, remembered, mapping)
        options = {"strict": strict, "days_ahead": days_ahead}
        if what == "-":
            from acefraud.datasets.records import RecordReader  # noqa: PLC0415  # imports polars

            reader = RecordReader(mapping=mapping, remembered=remembered, strict=strict)
            how = StreamOptions(json=json, strict=strict, batch_ms=batch_ms)
            stream = _decide_stream(roles, book, reader, how, kept=kept, dry_run=dry_run, **options)
            asyncio.run(stream).exit_if_bad()
        else:
            with stoppable(partial(_kept, book, book.seq)):
                transactions = _transactions(what, remembered, mapping, strict)
                summary, width = _Summary(), max(11, *(len(each.id) for each in transactions), 0)
                if table:
                    line(
                        f"{'transaction':<{width}}  {'who':<{_WIDEST}}        amount  verdict   fraud  main reason",
                        "bold",
                    )

                def show(decision: Decision) -> None:
                    summary.add(decision)
                    if only is not None and decision.verdict != only.upper():
                        return
                    if json:
                        print_json(as_json(decision))
                    elif table:
                        line(_row(width, decision), _STYLES[decision.verdict])
                    else:
                        _print(decision)

                asyncio.run(_decide_all(roles, book, transactions, show, dry_run=dry_run, **options))
                if not json and (len(transactions) > 1 or only or table):
                    line("\n".join(summary.lines()))


@stoppable(lambda: "the parts that were written are complete; the same command goes on with the others")
def score(
    book: Reading,
    source: Annotated[
        str, Argument(metavar="FILES", help="A folder of files with transactions, 'days/*.parquet', or one file.")
    ],
    to: Annotated[Path, Option(metavar="FOLDER", help="Where the scores go: a file for each file of transactions.")],
    mapping: MappingOption = None,
    strict: StrictOption = False,
    workers: WorkersOption = 1,
    scheduler: SchedulerOption = None,
    force: ForceOption = False,
) -> Said:
    """Score files of many transactions with a playbook. Nothing is recorded.

    Each file becomes one of the same name with the id, the probability of fraud and the verdict of every row: CSV if it
    is CSV, else Parquet. A file of scores that is there already is skipped, so a run that was stopped can be started
    again; --force scores all of them. A file of scores has its name only once it is complete.

    The embedded engine scores, by policies, costs and review bands too; only the number of reviews a day does not
    count. If the playbook keeps a history of entities, the rows of a file get their facts from what it remembers and
    from the earlier rows of the same file, not from other files.

    The scores are the same with any number of --workers and on the Dask cluster of a --scheduler, whose workers need to
    reach the files and the folder by the same paths, but not the playbook.

        acefraud score 'days/*.parquet' --to scores --playbook book.db
        acefraud score days --to scores --playbook book.db --workers 4
    """
    from acefraud.engine.batch_scoring import Scorer, score_parts, targets_of  # noqa: PLC0415  # imports polars,
    from acefraud.engine.parts import sources_of  # noqa: PLC0415  # which `decide` may not need
    from acefraud.support.runners import runner_for  # noqa: PLC0415

    sources = sources_of(source) or ([source] if Path(source).is_file() else [])
    if not sources:
        raise InputError("no file matches", file=source)
    if to.exists() and not to.is_dir():
        raise InputError("this is a file: expected a folder for the scores", file=str(to))
    every = targets_of(sources, to)
    wanted = {part: target for part, target in every.items() if force or not target.exists()}
    to.mkdir(parents=True, exist_ok=True)
    embedder = Settings.from_environment().embedder or DEFAULT_EMBEDDER
    scorer = Scorer.of(book, mapping=SchemaMapping.load(mapping) if mapping else None, strict=strict, embedder=embedder)
    with runner_for(workers, scheduler) as runner, progress("scoring") as done:
        scored = score_parts(wanted, scorer, runner, done)
    bad_rows = [bad for part in scored for bad in part.bad_rows]
    note_bad_rows(bad_rows)
    verdicts = sum((part.verdicts for part in scored), Counter[Verdict]())
    skipped = len(every) - len(wanted)
    content = {
        "scores": str(to),
        "parts": len(wanted),
        "skipped": skipped,
        "rows": verdicts.total(),
        "bad_rows": len(bad_rows),
        "verdicts": {str(verdict): verdicts[verdict] for verdict in DONE},
    }
    each = ", ".join(f"{verdicts[verdict]:,} {done}" for verdict, done in DONE.items())
    lines = [f"{verdicts.total():,} rows of {len(wanted):,} files scored in {to}: {each}"]
    if skipped:
        lines.append(f"{skipped:,} files were skipped: their scores are there already (--force scores them again)")
    return content, lines


def _row(width: int, decision: Decision) -> str:
    """A row of the table, with its first column of this width."""
    who, reason = cut(decision.transaction.who, _WIDEST), cut(visible(decision.main_reason), _LONGEST)
    about = f"{visible(decision.transaction.id):<{width}}  {who:<{_WIDEST}}  {decision.amount:>12}"
    return f"{about}  {decision.verdict:<7}  {100 * decision.probability:5.1f}%  {reason}"


class _Summary:
    """How many were approved, declined and sent to review, in money, and what decided or weighed most."""

    def __init__(self) -> None:
        self._amounts: dict[Verdict, list[float | None]] = {verdict: [] for verdict in DONE}
        self._reasons = defaultdict[str, list[Reason]](list)

    def add(self, decision: Decision) -> None:
        """Count a decision."""
        self._amounts[decision.verdict].append(number_in(decision.facts, "amount"))
        for reason in decision.reasons:
            # Of a policy's decision only the policy counts; what a model says in its own words never comes again.
            if decision.policy in (None, reason.bullet_id) and (reason.bullet_id or reason.contribution):
                self._reasons[reason.bullet_id or reason.text].append(reason)

    def lines(self) -> Iterator[str]:
        """The summary, line by line: the counts, then policies and what weighed most."""
        amounts = [amount for some in self._amounts.values() for amount in some]
        sums = {verdict: f"({sum(filter(None, some)):,.0f} in money)" for verdict, some in self._amounts.items()}
        each = ", ".join(f"{len(self._amounts[verdict]):,} {done} {sums[verdict]}" for verdict, done in DONE.items())
        unknown = f"; {amounts.count(None):,} without a known amount" if None in amounts else ""
        yield f"{len(amounts):,} decided: {each}{unknown}"
        for uses in sorted(self._reasons.values(), key=_importance, reverse=True)[:_RULES_SHOWN]:
            text, did = cut(visible(uses[0].text), _LONGEST), "decided" if _importance(uses)[0] else "weighed in"
            yield f"  {did} {len(uses):,}: {text}  ({uses[0].bullet_id or uses[0].kind})"


def _importance(uses: list[Reason]) -> tuple[bool, float, int]:
    return uses[0].kind is ReasonKind.POLICY, sum(abs(use.contribution or 0.0) for use in uses), len(uses)


def _kept(book: BulletPlaybook, seq: int) -> str:
    """What is kept of a file that was stopped."""
    made = len(book.ledger.find_decisions(DecisionFilter(), after=seq, limit=sys.maxsize))
    return f"{made:,} decisions were recorded and are kept" if made else nothing_written()


async def _decide_stream(
    roles: Roles, book: BulletPlaybook, reader: RecordReader, how: StreamOptions, *, kept: bool, **options: Any
) -> Stream[Transaction]:
    told: set[str] = set()
    dry_run = options.pop("dry_run")

    def read(line: str, _: int) -> Transaction:
        return reader.transaction(line) if line.startswith("{") else from_text(line)

    async with learner_with(roles, book, **options) as learner:

        async def record(transactions: Sequence[Transaction]) -> list[str]:
            # A playbook in memory keeps every decision, and a stream may go on forever: each batch gets a new one.
            deciding = learner if kept else roles.learner(BulletPlaybook(), **options)
            checked = deciding.check(transactions)
            decisions = await (deciding.score if dry_run else deciding.decide_all)(checked.transactions)
            odd = (remark.words for remark in (*checked.remarks, *remarks_on(decisions)))
            for words in (*reader.remarks, *odd):
                if words not in told:
                    told.add(words)
                    note(words)
            return [as_line(as_json(decision)) if how.json else _in_short(decision) for decision in decisions]

        most = BATCH_IN_STREAM if roles.agent is None else BATCH_WITH_MODEL
        stream = Stream(read, record, most, how)
        await stream.answer()
    return stream


async def _decide_all(
    roles: Roles, book: BulletPlaybook, given: list[Transaction], show: Show, *, dry_run: bool, **options: Any
) -> None:
    size = BATCH if roles.agent is None else BATCH_WITH_MODEL
    facts, verdicts = [], []
    async with learner_with(roles, book, **options) as learner:
        # A second batch of a dry run would not know of the first, and a day's reviews go to the best of a whole file.
        if dry_run or (roles.agent is None and learner.reviews_left() is not None):
            size = max(1, len(given))
        checked = learner.check(given)
        if learner.options.strict:
            checked.refuse()
        transactions = checked.transactions
        for remark in checked.remarks:
            note(str(remark))
        with progress("deciding", len(transactions)) as done:
            for start in range(0, len(transactions), size):
                batch = transactions[start : start + size]
                try:
                    decisions = await (learner.score(batch) if dry_run else learner.decide_all(batch))
                except (ModelError, BudgetExceeded) as failure:
                    kind = BudgetExceeded if isinstance(failure, BudgetExceeded) else ModelError
                    raise kind(f"{failure}; {_undecided(transactions, start)}") from failure
                for decision in decisions:
                    facts.append(decision.facts)
                    verdicts.append(decision.verdict)
                    show(decision)
                done(min(1.0, (start + size) / len(transactions)))
        for remark in unfamiliar_remarks(facts, verdicts):
            note(str(remark))


def _undecided(transactions: Sequence[Transaction], start: int) -> str:
    first, left = transactions[start].id, len(transactions) - start
    rest = " and all after it" if left > 1 else ""
    return f"not decided: '{first}'{rest}, {left:,} of {len(transactions):,}"


def _transactions(what: str, remembered: SchemaMapping | None, mapping: Path | None, strict: bool) -> list[Transaction]:
    if what.lstrip().startswith("{"):
        return _read(StringIO(_one_line(what)), remembered, mapping, True, name="the argument")
    if _is_path(what):
        if not Path(what).exists():
            like = _file_like(Path(what), LIKE_THE_NAME)
            meant = f"; did you mean {Path(what).with_name(like)}?" if like else ""
            raise InputError(f"there is no such file{meant}; a text has more than one word", file=what)
        return _read(Path(what), remembered, mapping, strict)
    return [from_text(what)]


def _is_path(what: str) -> bool:
    """Whether this is a file, or means to be one. One word is never the text of a transaction."""
    if "\n" in what or len(what) > LONGEST_PATH or not what.strip():
        return False
    named = what.lower().endswith(_FILE_ENDINGS) and what.startswith(_PATH_STARTS)
    return named or len(what.split()) == 1 or bool(_file_like(Path(what), NEARLY_THE_NAME))


def _file_like(path: Path, least: float) -> str:
    """The file of the same folder whose name, with or without its ending, is most like this one; empty if none is."""
    names = [file.name for file in path.parent.iterdir() if file.is_file()] if path.parent.is_dir() else []
    called = {name: name for name in names} | {Path(name).stem: name for name in names}
    found = process.extractOne(path.name, list(called), scorer=fuzz.ratio, score_cutoff=least)
    return called[found[0]] if found else ""


def _read(
    source: Path | TextIO, remembered: SchemaMapping | None, mapping: Path | None, strict: bool, name: str | None = None
) -> list[Transaction]:
    """Files and JSON go through the same reader, so that a label never passes for a fact."""
    from acefraud.datasets.rows import read_transactions  # noqa: PLC0415  # imports polars, which a text does not need

    found = read_transactions(source, mapping=mapping, remembered=remembered, strict=strict, name=name)
    note_bad_rows(found.bad_rows, remarks=found.report.remarks)
    return list(found.rows)


def _one_line(what: str) -> str:
    """A transaction given as JSON, on one line and with an id."""
    try:
        content = jsonlib.loads(what)
    except jsonlib.JSONDecodeError as broken:
        raise InputError(f"not valid JSON: {broken.msg} at character {broken.pos}") from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply") from None
    except ValueError:
        raise InputError("not valid JSON: a number with too many digits") from None
    if not any(name in content for name in ("id", "transaction_id")):
        content["id"] = id_from(what)
    return jsonlib.dumps(content)


def _print(decision: Decision) -> None:
    share = f"{100 * decision.probability:.1f}% fraud{_STATED.get(decision.probability_from, '')}"
    line(f"{decision.verdict}  {share}  {decision.transaction.id}  {decision.id}", _STYLES[decision.verdict])
    for reason in decision.reasons[:REASONS_SHOWN]:
        line(f"  {reason.amount}  {reason.text}  ({reason.bullet_id or reason.kind})")
    if decision.unfamiliar or not decision.reasons:
        line(f"  {decision.main_reason}", "yellow")
    more = len(decision.reasons) - REASONS_SHOWN
    if more > 0:
        line(f"  ... and {more} more: acefraud explain {decision.id}", "dim")
    for policy in snoozed_in(decision.facts):
        line(f"  the policy {policy} is snoozed for this transaction", "yellow")
    if decision.selection_fallback:
        line(f"  bullets found by {decision.selection.embedder}: {decision.selection_fallback}", "yellow")
    for piece in decision.unread:
        line(f"  not understood: {piece}", "dim")


def _in_short(decision: Decision) -> str:
    """A decision on one line: what, how likely fraud is, about which transaction, and the first reason."""
    share = f"{100 * decision.probability:.1f}% fraud{_STATED.get(decision.probability_from, '')}"
    return one_line(f"{decision.transaction.id}: {decision.verdict}, {share}: {decision.main_reason}")


def as_json(decision: Decision) -> dict[str, Any]:
    """A decision for scripts."""
    content = decision.model_dump(mode="json", include=_JSON_FIELDS.union(_JSON_IF_ANY))
    for reason in content["reasons"]:
        if reason["contribution"] is not None:
            reason["contribution"] = round(reason["contribution"], 6)
    more = {name: value for name in _JSON_IF_ANY if (value := content.pop(name))}
    named = {"transaction_id": decision.transaction.id, "decision_id": decision.id}
    if decision.familiarity is not None:
        content["familiarity"] = round(decision.familiarity, 4)
    content |= {"probability": round(decision.probability, 6), "unfamiliar": decision.unfamiliar}
    return {**named, **content, **more}
