"""`acefraud explain`: how a decision came about."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.table import Table

from acefraud.cli.console import JsonOption, PlaybookOption, existing_playbook, learner_on, line, out, print_json
from acefraud.core.decision import Decision
from acefraud.embedded.embedder import key_of
from acefraud.errors import InputError
from acefraud.storage import BulletPlaybook


def explain(
    decision_id: Annotated[str, typer.Argument(help="Id of a decision, or of a transaction (its latest decision).")],
    playbook: PlaybookOption = None,
    replay: Annotated[bool, typer.Option("--replay", help="Decide again from the ledger alone and compare.")] = False,
    json: JsonOption = False,
) -> None:
    """Show the stages, scores and reasons of a decision.

    The reasons add up: log-odds = base + every contribution. With --replay the playbook is rebuilt as it was at
    that revision and the decision made again; it must come out the same (exit code 1 where it does not).

        acefraud explain d-4f0c2a917be31d55 --playbook book.db --replay
    """
    with existing_playbook(playbook, read_only=True) as book:
        decision = _find(book, decision_id)
        learner = learner_on(book, key_of(decision.selection.embedder))
        same = asyncio.run(learner.replay(decision)) == decision if replay else None
        outcomes = book.ledger.outcomes_of(decision.transaction.id)
        if json:
            content = decision.model_dump(mode="json")
            content["outcomes"] = [heard.model_dump(mode="json") for heard in outcomes]
            print_json({**content, "replayed_the_same": same})
        else:
            _print(decision, book)
            for heard in outcomes:
                line(
                    f"Outcome ({heard.outcome.source}): {heard.outcome.truth}; the verdict was {heard.judgement.ruling}"
                )
            if same is not None:
                line("Replayed from the ledger: the same decision." if same else "Replayed: NOT the same decision.")
    if same is False:
        raise typer.Exit(1)


def _find(book: BulletPlaybook, wanted: str) -> Decision:
    decision = book.ledger.decision(wanted)
    if decision is not None:
        return decision
    made = book.ledger.decisions_of(wanted)
    if not made:
        raise InputError(f"there is no decision '{wanted}', and none on a transaction of that id, in this playbook")
    return made[-1].decision


def _print(decision: Decision, book: BulletPlaybook) -> None:
    share, threshold = 100 * decision.probability, 100 * decision.threshold
    line(f"{decision.verdict}  {share:.1f}% fraud (declined from {threshold:.0f}%)", "bold")
    line(f"{decision.id} on {decision.transaction.id}, playbook revision {decision.revision}, {decision.model}", "dim")
    if decision.transaction.text:
        out.print(decision.transaction.text, style="italic", markup=False, highlight=False)
    line("\nStages left: " + " > ".join(f"{count.stage} {count.left}" for count in decision.selection.stages))
    if decision.selection.scores:
        out.print(_scores(decision))
        for score in decision.selection.scores:
            bullet = book.get_bullet(score.bullet_id)
            line(f"{score.bullet_id}  {bullet.content if bullet else ''}")
    line(f"\nReasons, in log-odds of fraud, beginning at {decision.base:+.2f}:")
    for reason in decision.reasons:
        line(f"  {reason.contribution:+.2f}  {reason.text}  ({reason.bullet_id or reason.kind})")
    line("\nFacts: " + ", ".join(f"{name}={value}" for name, value in sorted(decision.facts.items())))
    for piece in decision.unread:
        line(f"Not understood: {piece}", "yellow")


def _scores(decision: Decision) -> Table:
    table = Table(title="Selected bullets")
    for heading in ("bullet", "quality", "relevance", "draw", "combined", "diversity", "total"):
        table.add_column(heading, justify="left" if heading == "bullet" else "right")
    for score in decision.selection.scores:
        parts = (score.quality, score.semantic, score.thompson, score.combined, score.diversity, score.total)
        table.add_row(score.bullet_id, *(f"{part:.3f}" for part in parts))
    return table
