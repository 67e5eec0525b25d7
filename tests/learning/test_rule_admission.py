"""Rules that people write: read, previewed and measured before they are admitted, refused with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from acefraud import BulletPlaybook, Learner, Status, Verdict
from acefraud.core.events import THE_ENGINE, BulletAdded
from acefraud.errors import DuplicateRule, InputError, RuleNotUnderstood
from acefraud.learning.rule_admission import (
    TAKEN_AS_POLICY,
    Admitted,
    PolicyOptions,
    admit_rule,
    edit_rule,
    preview_edit,
    preview_rule,
    preview_status,
    read_rule,
    reading_as_json,
)

DECLINE = PolicyOptions(always=Verdict.DECLINE)


@pytest.fixture
def learner(toy: Any) -> Learner:
    """A learner that remembers 60 cases and has decided 60 more."""
    learner = Learner(BulletPlaybook())
    learner.study(toy.cases(60))
    learner.decide_all_sync([case.transaction for case in toy.cases(60, seed=1, prefix="d")])
    return learner


def test_an_admitted_rule_is_measured_previewed_and_signed(learner: Learner) -> None:
    before = learner.playbook.seq
    previewed = preview_rule(learner, "amount > 3000: decline", who="ana")
    assert learner.playbook.seq == before, "a preview writes nothing"
    admitted = admit_rule(learner, "amount > 3000: decline", who="ana", why="agreed on Monday")
    evidence = admitted.bullet.evidence
    assert evidence is not None
    assert admitted.preview is not None
    assert evidence.learnt.support == admitted.preview.fires_on.support > 0
    assert admitted.preview == previewed.preview
    assert (previewed.bullet.condition, previewed.bullet.evidence) == (admitted.bullet.condition, evidence)
    (event,) = learner.playbook.ledger.read(before)
    assert (event.who, event.why) == ("ana", "agreed on Monday")
    assert isinstance(event.payload, BulletAdded)
    assert event.payload.bullet == admitted.bullet == learner.playbook.get_bullet(admitted.bullet.id)


def test_the_preview_is_of_the_playbook_without_the_rule(learner: Learner) -> None:
    planned = preview_rule(learner, "amount > 100", policy=DECLINE, who="ana").preview
    assert planned.flips
    assert admit_rule(learner, "amount > 100", policy=DECLINE, who="ana").preview == planned


def test_a_preview_that_nobody_looks_at_is_left_out(learner: Learner) -> None:
    added = admit_rule(learner, "amount > 3000: decline", with_preview=False, who="ana")
    assert (added.preview, added.bullet.evidence is None) == (None, False)
    assert edit_rule(learner, added.bullet.id, "amount > 3100", with_preview=False, who="ana").preview is None


def test_a_rule_that_is_not_understood_names_the_words_and_what_they_may_mean(learner: Learner) -> None:
    before = learner.playbook.seq
    for refused in (admit_rule, preview_rule):
        with pytest.raises(RuleNotUnderstood, match="amnts") as problem:
            refused(learner, "decline amnts over 900", who="ana")
        assert problem.value.not_understood == ("amnts",)
        assert "amount" in problem.value.did_you_mean
    assert learner.playbook.seq == before
    note = admit_rule(learner, "decline amnts over 900", as_note=True, who="ana").bullet
    assert (note.is_note, note.evidence) == (True, None)


def test_what_the_playbook_says_already_is_refused_with_the_bullet_that_does(learner: Learner) -> None:
    first = admit_rule(learner, "amount > 3000: decline", who="ana").bullet
    before = learner.playbook.seq
    with pytest.raises(DuplicateRule, match=first.id) as problem:
        admit_rule(learner, "Amount above 3,000: decline", who="bob")
    assert problem.value.bullet_id == first.id
    assert learner.playbook.seq == before


def test_what_the_engine_retired_comes_back_under_its_id(learner: Learner) -> None:
    first = admit_rule(learner, "amount > 3000: decline", who="ana").bullet
    learner.playbook.set_status(first.id, Status.RETIRED, who=THE_ENGINE)
    again = admit_rule(learner, "amount > 3000: decline", who="ana").bullet
    assert (again.id, again.status) == (first.id, Status.ACTIVE)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("amount > 3000", PolicyOptions(priority=7), "for policies"),
        ("amount > 3000", PolicyOptions(final=True), "for policies"),
        ("amount > 3000", PolicyOptions(always=Verdict.APPROVE, final=True), "for policies that decline"),
        ("amount > 3000: decline", PolicyOptions(always=Verdict.APPROVE), "argue for DECLINE"),
        ("a purple card", DECLINE, "a note cannot decide"),
        ("  ", PolicyOptions(), "an empty text"),
    ],
)
def test_policies_that_make_no_sense_are_refused(
    learner: Learner, text: str, options: PolicyOptions, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        admit_rule(learner, text, policy=options, as_note=True, who="ana")


def test_a_policy_by_its_words_or_by_option(learner: Learner) -> None:
    def policy_of(admitted: Admitted) -> Any:
        return admitted.bullet.policy and admitted.bullet.policy.model_dump()

    said = admit_rule(learner, "Always decline when the amount is over 3500", who="ana")
    assert policy_of(said) == {"verdict": "DECLINE", "priority": None, "final": False}
    chosen = PolicyOptions(always=Verdict.REVIEW, priority=5)
    asked = admit_rule(learner, "Flag amounts over 3700 for review", policy=chosen, who="ana")
    assert policy_of(asked) == {"verdict": "REVIEW", "priority": 5, "final": False}
    assert TAKEN_AS_POLICY not in asked.remarks
    ordered = admit_rule(learner, "Block amounts over 3900", who="ana")
    assert policy_of(ordered) == {"verdict": "DECLINE", "priority": None, "final": False}
    assert TAKEN_AS_POLICY in ordered.remarks
    weighed = admit_rule(learner, "Block amounts over 3950", policy=PolicyOptions(as_evidence=True), who="ana")
    assert (weighed.bullet.policy, weighed.bullet.argues) == (None, Verdict.DECLINE)


def test_an_edit_is_read_measured_and_previewed_again(learner: Learner) -> None:
    bullet = admit_rule(learner, "amount > 3900: decline", who="ana").bullet
    before = learner.playbook.seq
    previewed = preview_edit(learner, bullet.id, "amount > 3000: decline")
    assert learner.playbook.seq == before
    edited = edit_rule(learner, bullet.id, "amount > 3000: decline", who="bob", why="too narrow")
    assert (edited.bullet.id, str(edited.bullet.condition)) == (bullet.id, "amount > 3000")
    assert edited.bullet.evidence is not None
    assert edited.preview is not None
    assert edited.bullet.evidence.learnt.support == edited.preview.fires_on.support > 0
    assert edited.preview == previewed.preview
    (event,) = learner.playbook.ledger.read(before)
    assert (event.who, event.why) == ("bob", "too narrow")


def test_a_policy_stays_a_policy_unless_the_words_argue_against_it(learner: Learner) -> None:
    policy = admit_rule(learner, "amount > 3900", policy=DECLINE, who="ana").bullet
    edited = edit_rule(learner, policy.id, "amount > 3800", who="ana").bullet
    assert edited.policy == policy.policy
    assert preview_edit(learner, policy.id, "amount > 3700").bullet.policy == policy.policy
    with pytest.raises(InputError, match="always decline"):
        edit_rule(learner, policy.id, "amount > 3800: approve", who="ana")
    with pytest.raises(InputError, match="always decline"):
        preview_edit(learner, policy.id, "amount > 3800: approve")
    note = edit_rule(learner, policy.id, "ask Ana about these", as_note=True, who="ana").bullet
    assert (note.policy, note.condition) == (None, None)


def test_an_edit_of_nothing_or_into_nothing_is_refused(learner: Learner) -> None:
    with pytest.raises(InputError, match="there is no bullet"):
        edit_rule(learner, "b-none", "amount > 3000: decline", who="ana")
    bullet = admit_rule(learner, "amount > 3900: decline", who="ana").bullet
    with pytest.raises(RuleNotUnderstood):
        edit_rule(learner, bullet.id, "decline amnts over 900", who="ana")


def test_the_preview_of_a_status_is_of_the_other_one_unless_it_is_named(learner: Learner) -> None:
    policy = admit_rule(learner, "amount > 100", policy=DECLINE, who="ana").bullet
    retiring = preview_status(learner, policy.id)
    assert retiring.bullet.status is Status.RETIRED
    assert retiring.preview.flips
    pinned = preview_status(learner, policy.id, Status.PINNED)
    assert (pinned.bullet.status, pinned.preview.flips) == (Status.PINNED, ())
    assert preview_status(learner, policy.id, Status.ACTIVE).preview.flips == (), "it is active already"
    learner.playbook.set_status(policy.id, Status.RETIRED, who="ana")
    assert preview_status(learner, policy.id).bullet.status is Status.ACTIVE


def test_a_reading_as_json_has_both_faces_of_a_rule(learner: Learner) -> None:
    read = reading_as_json(read_rule(learner.playbook, "Always decline amounts over $900"))
    assert (read["condition"], read["english"]) == ("amount > 900", "amount above 900")
    assert (read["argues"], read["action"]) == ("DECLINE", "always decline")
