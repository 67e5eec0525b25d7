"""Lists that outcomes feed, such as "cards with a chargeback, for 90 days"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from acefraud.core.events import ListChanged
from acefraud.core.playbook import Snapshot
from acefraud.core.value_list import Feed, ListItem, ValueList
from acefraud.learning.credits import CreditedOutcome
from acefraud.learning.rule_context import entity_columns, value_of


def fed_lists(
    credited: Sequence[CreditedOutcome], snapshot: Snapshot, clock: Callable[[], datetime]
) -> Iterator[ListChanged]:
    """What new outcomes put on lists, and what revised ones take off again. Opinions of a judge change nothing."""
    truths = [one for one in credited if one.event is not None and not one.judged.is_opinion]
    columns = entity_columns(snapshot.mapping)
    for listed in snapshot.lists.values():
        kept = listed
        for one in truths if listed.feed is not None else ():
            change = _change(kept, one, columns, clock)
            if change is not None:
                kept = kept.changed({item.value: item for item in change.added}, dict.fromkeys(change.removed))
                yield change


def _change(
    listed: ValueList, one: CreditedOutcome, columns: Mapping[str, str], clock: Callable[[], datetime]
) -> ListChanged | None:
    """What one outcome changes in a list."""
    assert listed.feed is not None
    transaction_id = one.judged.outcome.transaction_id
    if not one.judged.outcome.is_fraud:
        gone = tuple(item.value for item in listed.items.values() if item.transaction_id == transaction_id)
        return ListChanged(name=listed.name, removed=gone) if gone else None
    item = _item(listed.feed, one, columns, clock)
    return ListChanged(name=listed.name, added=(item,)) if item is not None and _is_news(listed, item) else None


def _item(
    feed: Feed, one: CreditedOutcome, columns: Mapping[str, str], clock: Callable[[], datetime]
) -> ListItem | None:
    outcome, transaction = one.judged.outcome, one.judged.transaction
    value = None if transaction is None else value_of(transaction, feed.key, columns)
    if value is None:
        return None
    return ListItem(
        value=value,
        reason=f"{outcome.source} of {outcome.transaction_id}",
        who=str(outcome.source),
        until=feed.until(outcome.at or clock()),
        transaction_id=outcome.transaction_id,
    )


def _is_news(listed: ValueList, item: ListItem) -> bool:
    """Whether an item adds anything: it is not listed yet, or it stays longer than before."""
    before = listed.items.get(item.value)
    if before is None:
        return True
    return before.until is not None and (item.until is None or item.until > before.until)
