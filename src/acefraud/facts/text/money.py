"""Sums: the amount of this transaction, what the customer usually spends, and how one compares with the other.

The usual amounts are read first and take their sums. The amount of this transaction is then looked for among the sums
that remain, from the most explicit wording to a sum on its own. Sums are not converted between currencies.
"""

from __future__ import annotations

from itertools import pairwise

from acefraud.core.transaction import FactValue

from .document import Document
from .fact_patterns import FactPattern, Found, count_or_zero, middle, read_all, states
from .patterns import search_pattern

_DEAL = r"(?:purchases?|payments?|transactions?|txns?|orders?|transfers?|charges?|buys?|withdrawals?|spends?|spending)"
_ONE_DEAL = (
    r"(?:purchase|payment|transfer|order|transaction|txn|withdrawal|charge|wire|sale|deposit|top-?up|checkout|basket"
    r"|cart"
    r"|booking|authori[sz]ation|debit|remittance|bill|ticket)\b"
)
_HABIT = (
    r"(?:avg|averag(?:e|es|ed|ing)|mean|median|typical(?:ly)?|usual(?:ly)?|normal(?:ly)?|regular(?:ly)?|mostly"
    r"|generally"
    r"|ordinar(?:y|ily)|habitual(?:ly)?|routine(?:ly)?|baseline|customary|tends? to|ranging|ranged|ranges)\b"
)
_PAST = r"(?:previous|prior|earlier|past|recent|historic(?:al)?|(?:last|first|latest) ?{number}?) ?"
# the gap must not run over into what happens now
_THEN = (
    r"(?:(?! [/-] |attempt|this |now |current|want|tries|but |exceed|limit|balance)"
    r"[^.,;|!?\n{money}{money_range}]){0,50}?"
)
_BELOW = (
    r"(?:under|below|less than|up to|at most|(?:never|not|rarely|seldom) (?:been |gone |spent |spends |paid |pays )?"
    r"(?:above|over|more than|beyond|exceed(?:s|ed|ing)?)|no more than|max(?:imum)?(?: of)?|smaller than|capped at)"
)
_OTHERS = r"\b(?:merchant|store|shop|seller|peers?|other (?:customers|users|people)|limit|balance|salary|income|fee)\b"


def _highest(found: Found) -> FactValue | None:
    sums = found.figures("money", "money_range")
    return max(figure.high for figure in sums) if sums else None


def _mean(found: Found) -> FactValue | None:
    sums = found.figures("money", "money_range")
    return round(sum(figure.middle for figure in sums) / len(sums), 2) if sums else None


def _half(found: Found) -> FactValue | None:
    """ "All under 200" names the top only; the middle of nothing and the top is the least bold reading of "usual"."""
    highest = _highest(found)
    return highest / 2 if isinstance(highest, float) else None


def _climbs(found: Found) -> FactValue | None:
    """Four or more earlier sums, each above the one before, are an escalation even when nobody calls it so."""
    sums = [figure.middle for figure in found.figures("money")]
    rises = len(sums) >= 4 and all(low < high for low, high in pairwise(sums))
    return True if rises else None


_SIZE = r"(?:over|above|exceeding|more than|of at least|greater than|around|about|near|>|of)"
_EARLIER = r"(?:earlier|previous|prior|past|former)"
_AS_LARGE = (
    r"(?:(?:of|in) (?:a |an |the )?(?:similar|comparable|this|that|such(?: a)?|equal|same|like) (?:size|magnitude"
    r"|amount"
    r"|value|sum)(?: or (?:more|larger|above|bigger|over))?|(?:this|that|so|as|equally) (?:large|big|high|size"
    r"|expensive)\b)"
)
_LARGER: tuple[FactPattern, ...] = (
    states(
        rf"(?:{{number}}|no|only {{number}}) (?:\w+ ){{0,2}}?{_DEAL} (?:\w+ )?{_SIZE} (?:{{money}}"
        rf"|{{money_range}}){{window}}",
        larger_purchases=count_or_zero,
    ),
    states(
        rf"{{number}} (?:\w+ )?{_DEAL} (?:of |in the range of )?{{money_range}}{{window}}",
        larger_purchases=count_or_zero,
    ),
    states(r"\({number} (?:over|above) {money}{window}", larger_purchases=count_or_zero),
    states(
        rf"{{number}} (?:\w+ )?(?:similar|comparable|similarly sized|equally large|large|larger|big"
        rf"|bigger) {_DEAL}{{window}}",
        larger_purchases=count_or_zero,
    ),
    states(
        rf"(?:never|no) (?:made |had )?(?:a |any )?(?:such |comparable |similar |previous )?(?:large|larger"
        rf"|big) {_DEAL} before",
        larger_purchases=0.0,
    ),
    states(
        rf"(?:{{number}}|no|zero|not a single) (?:[a-z]+ ){{0,2}}?{_DEAL} {_AS_LARGE}{{window}}",
        larger_purchases=count_or_zero,
    ),
    states(
        rf"(?:{{number}}|no|zero) (?:{_EARLIER} )?(?:similar|comparable|equal|same)(?:ly)?(?:[- ](?:sized?|large|big))?"
        rf" (?:{_EARLIER} )?{_DEAL}(?! (?:at|from|with)\b){{window}}",
        larger_purchases=count_or_zero,
    ),
    states(
        rf"(?:never|not) (?:before |yet |previously )?(?:made |had |spent |placed )(?:a |an |any )?(?:{_DEAL}"
        rf" {_AS_LARGE}"
        rf"|(?:this|so|as|that) much(?: before)?)",
        larger_purchases=0.0,
    ),
)

_TOP = rf"(?:largest|highest|biggest|max(?:imum)?) (?:{_PAST}|ever )?(?:single )?(?:{_DEAL}|amount|ticket)"
_NORMAL = r"(?:usual|normal|typical|regular|ordinary|habitual|customary)(?:ly)?\b"
_BEYOND = r"(?:above|over|more than|beyond|past|exceed(?:s|ed|ing)?|top(?:s|ped)?)"
_USUAL: tuple[FactPattern, ...] = (
    states(
        rf"{_TOP}(?: so far| to date| before| ever)?(?: is| was|:|=| of){{0,2}} ?{{about}}{{money}}",
        unless=_OTHERS,
        usual_amount_max=_highest,
    ),
    states(
        rf"{_NORMAL}(?: [a-z][a-z'-]*){{0,3}}? (?:max(?:imum)?|ceiling|peak|top)(?: is| was| of|:|=| at){{0,2}}"
        rf" ?{{about}}{{money}}",
        unless=_OTHERS,
        usual_amount_max=_highest,
    ),
    states(
        rf"(?:upper|high|top) (?:end|limit|edge|bound|range) of (?:[a-z][a-z'-]* ){{0,4}}?{_NORMAL}(?:"
        rf" [a-z][a-z'-]*){{0,3}}?"
        rf"(?: is| was| at| lies at|:|=){{0,2}} ?{{about}}{{money}}",
        unless=r"\b(?:merchant|store|shop|seller|peers?|balance|salary|income|fee)\b",
        usual_amount_max=_highest,
    ),
    states(
        rf"{_NORMAL}(?: [a-z][a-z'-]*){{0,4}}? (?:up to|top(?:s|ped)? out at|max(?:es)? out at|peaks? at"
        rf"|go(?:es)? up to|reach(?:es)?(?: up to)?|(?:is|are) capped at|ends? at|stays? (?:under|below|within)"
        rf"|(?:no|not) more than|at most"
        rf"|max(?:imum)?)"
        rf" {{about}}{{money}}(?: at (?:the )?most| or less)?",
        unless=_OTHERS,
        usual_amount_max=_highest,
    ),
    states(
        rf"(?:rarely|seldom|hardly ever|never|not once) (?:[a-z]+ ){{0,2}}?{_BEYOND} {{money}}",
        unless=_OTHERS,
        usual_amount_max=_highest,
    ),
    states(
        rf"{_NORMAL}(?: [a-z][a-z'-]*){{0,4}}? (?:under|below|less than) {{about}}{{money}}",
        unless=_OTHERS,
        usual_amount_max=_highest,
    ),
    states(
        r"(?:increasing|rising|growing|escalating|climbing)(?: \w+)?(?: \w+)?:? ?{money_list}",
        escalating_amounts=True,
        usual_amount=_mean,
        usual_amount_max=_highest,
    ),
    states(
        rf"{_PAST}{_DEAL}{_THEN}{{money_list}}",
        tier=1,
        unless=_OTHERS,
        usual_amount=_mean,
        usual_amount_max=_highest,
        escalating_amounts=_climbs,
    ),
    states(
        rf"(?:{_PAST}{_DEAL}|{_HABIT}|always|all|spen[dt]s?|buys){_THEN}{_BELOW} {{money}}",
        tier=2,
        unless=_OTHERS,
        usual_amount=_half,
        usual_amount_max=_highest,
    ),
    states(
        rf"(?:{_PAST}{_DEAL}|{_HABIT}){_THEN}{{money_range}}",
        tier=1,
        unless=_OTHERS,
        usual_amount=_mean,
        usual_amount_max=_highest,
    ),
    states(
        r"(?:avg|average[sd]?|mean|median)(?: \w+){0,3}?(?: is| of| at|:|=)? ?{about}{money}",
        unless=_OTHERS,
        usual_amount=_mean,
    ),
    states(
        rf"{_HABIT}{_THEN}{{money}}(?! {_ONE_DEAL} (?:at|from) (?:{{clock}}|'))", unless=_OTHERS, usual_amount=_mean
    ),
    states(
        r"(?:avg|average|mean|median)[ _](?:\w+ ){0,2}?(?:is |of |: ?|= ?)?{about}{count}(?!\s?\w)",
        unless=_OTHERS + r"|transactions?|orders?|purchases?|score|rating|logins?",
        usual_amount=middle("count"),
    ),
    states(
        r"{money_range} (?:on average|is (?:usual|typical|normal)|per (?:visit|order|purchase)|as a rule)",
        usual_amount=_mean,
        usual_amount_max=_highest,
    ),
    states(
        r"{money} (?:on average|average|avg|is (?:usual|typical|normal)|as a rule)", unless=_OTHERS, usual_amount=_mean
    ),
    states(
        rf"{_PAST}{_DEAL}(?: of| was| were|:| for| all| each| at| only){{0,3}} {{about}}{{money}}",
        tier=1,
        unless=_OTHERS,
        usual_amount=_mean,
        usual_amount_max=_highest,
    ),
    states(r"spends {about}{money_range}", usual_amount=_mean, usual_amount_max=_highest),
)

_ACTS = (
    r"(?:attempt(?:s|ed|ing)?|tr(?:ies|ied|ying)|wants?|wanted|request(?:s|ed|ing)?|initiat(?:es|ed|ing)|submit(?:s"
    r"|ted|ting)"
    r"|plac(?:es|ed|ing)|mak(?:es|ing)|send(?:s|ing)|is buying|buys|is paying|pays|authori[sz](?:es|ing))"
)
_NOT_NOW = (
    r"\b(?:previous(?:ly)?|prior|earlier|past|last|history|historic|usual(?:ly)?|typical(?:ly)?|normal(?:ly)?"
    r"|average|refund(?:ed)?"
    r"|balance|limit|salary|income|fee|other|others|each|per|used to|test charge|over|under|above|below|threshold"
    r"|cashback"
    r"|worth of previous|(?<!we )received|credited|incoming|deposit(?:ed)? (?:on|of))\b|{day_word}|{duration} ago"
)
_AMOUNT: tuple[FactPattern, ...] = (
    states(
        r"this (?:{count}|time)(?: it)?(?: is| was)? (?:for )?{about}{money}", unless=_NOT_NOW, amount=middle("money")
    ),
    states(
        rf"{_ACTS} (?:[a-z'-]+ ){{0,5}}?{{money}}",
        unless=r"\b(?:previously|last|yesterday|earlier|usually)\b",
        amount=middle("money"),
    ),
    states(
        r"(?:transaction |txn |payment |purchase |order )?(?:amount|amt|value|total)(?: is| was|"
        r" of)?[:=]? ?{sum}(?! ?[\w%])",
        unless=_NOT_NOW,
        amount=middle("money", "count"),
    ),
    states(
        r"(?:transaction |txn |payment |purchase |order )?(?:amount|amt|value|total)(?: is| was| of)?[:=]? ?{money}",
        unless=_NOT_NOW,
        amount=middle("money"),
    ),
    states(
        rf"(?:this|current|present|new) {_ONE_DEAL} (?:\w+ ){{0,3}}?{{money}}", unless=_NOT_NOW, amount=middle("money")
    ),
    states(rf"{{money}} (?:[a-z'-]+ ){{0,3}}?{_ONE_DEAL}", tier=1, unless=_NOT_NOW, amount=middle("money")),
    states(
        rf"{_ONE_DEAL}s? (?:\w+ ){{0,3}}?(?:of|for|worth|totall?ing|at|in the amount of)[:=]? ?{{about}}{{money}}",
        tier=1,
        unless=_NOT_NOW,
        amount=middle("money"),
    ),
    states(
        r"(?:for|spends|spending|spent|bought|buying|paying|paid|charged|sending|sent|withdrawing|withdrew"
        r"|transferring|wired) "
        r"(?:a total of )?{about}{money}",
        tier=1,
        unless=_NOT_NOW,
        amount=middle("money"),
    ),
)
_LONE_STOP = search_pattern(_NOT_NOW)


# --- multiples of the usual amount, where the text states them itself ----------------------------------------------

_WHOSE = (
    r"(?:the |his |her |their |its |this |what is )?(?:(?:customer|client|user|cardholder|buyer|member|account"
    r" holder)'s )?"
)
_SPEND = r"(?:amounts?|spend(?:ing)?|payments?|purchases?|transactions?|orders?|tickets?|baskets?|ranges?|level|sum)"
_USUAL_TOP = (
    rf"{_WHOSE}(?:(?:usual|normal|typical|customary|previous|historic(?:al)?) (?:{_SPEND} )?(?:max(?:imum)?|top"
    rf"|ceiling|peak)\b"
    rf"|(?:largest|highest|biggest|max(?:imum)?|top) (?:usual|normal|typical|previous|earlier|past|ordinary) {_SPEND}\b"
    rf"|(?:top|upper end|high end|upper bound|ceiling) of {_WHOSE}(?:usual|normal|typical|customary) {_SPEND}\b)"
)
_NOT_SUMS = r"number|count|volume|pace|frequency|velocity|rate|daily|weekly|monthly|distance|hours?|limit|balance"
_USUAL_LEVEL = (
    rf"(?!{_USUAL_TOP}){_WHOSE}(?:(?:usual|normal|typical|customary|average|avg|mean|median|ordinary)(?: {_SPEND})?\b"
    rf"(?! (?:{_NOT_SUMS}))"
    r"|what (?:[a-z']+ ){1,3}(?:usually|normally|typically) (?:spends?|pays?)\b)"
)
_TIMES = r"(?:{multiple}|{count} times)(?: as (?:much|high|large) as)?(?: of)?"
_THIS = (
    r"(?:,? (?:this|it|that|the (?:amount|payment|purchase|transaction)) (?:is|was|comes to|stands at|makes|means))?"
)
_FACTOR = (
    r"(?:(?:a )?(?:factor|multiple) of {about}{count}|{about}(?:{multiple}|{count} times)(?: as (?:much|high|large))?)"
)
# Who else's habits, or which other event, is spoken of.
_OTHER_HABITS = (
    r"\b(?:merchant's|store's|shop's|peers?|peer group|last (?:week|month|year)|yesterday|bought|visited|income"
    r"|salary|never|not|no more than|at most|below|under|less than|limit|threshold|if)\b(?!.* and )"
)


def _multiple(found: Found) -> FactValue | None:
    figures = found.figures("multiple", "count")
    return figures[0].middle if len(figures) == 1 else None


def _compared_with(base: str) -> tuple[str, ...]:
    """The ways of setting this transaction against a base: "3x the usual", "against the usual, 3 times as much"."""
    return (
        rf"{_TIMES} {base}",
        rf"(?:measured |compared |set )?(?:against|with|to|relative to) {base}{_THIS}:? {_FACTOR}",
        rf"(?:ratio|multiple|factor) (?:to|of|over|against) {base}(?: is|:| of|=)? ?"
        rf"{{about}}(?:{{count}}|{{multiple}})(?! ?%)",
    )


_MULTIPLES: tuple[FactPattern, ...] = (
    *(states(one, unless=_OTHER_HABITS, amount_to_usual_max=_multiple) for one in _compared_with(_USUAL_TOP)),
    *(states(one, unless=_OTHER_HABITS, amount_to_usual=_multiple) for one in _compared_with(_USUAL_LEVEL)),
)


def read_multiples(document: Document) -> None:
    """How many times the usual amount this transaction is."""
    read_all(_MULTIPLES, document)


def read_usual(document: Document) -> None:
    """What the customer usually spends, and how many earlier purchases were as large as this one."""
    read_all((*_LARGER, *_USUAL), document)


def read_amount(document: Document) -> None:
    """The amount of this transaction. A single sum that is left over counts if its clause speaks of nothing else."""
    read_all(_AMOUNT, document)
    if any(statement.fact == "amount" for statement in document.statements):
        return
    left = [
        index for index, figure in enumerate(document.figures) if figure.kind == "money" and not document.taken[index]
    ]
    if len(left) != 1:
        return
    place = document.places[left[0]]
    if _LONE_STOP.regex.search(document.clause_text(place)) is None:
        figure = document.figures[left[0]]
        document.add("amount", figure.middle, place, place + 1, tier=2, currency=figure.currency)
