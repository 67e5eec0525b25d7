"""The words for flags about pace, place, goods and where the money goes."""

from __future__ import annotations

from .flag_words import FlagWords

_HABIT = r"\b(?:usually|normally|typically|generally|often) "
_SAME = (
    r"(?:match(?:es|ed|ing)?|agrees?|are identical|is identical to|same as|is the same as|identical|consistent"
    r" with)"
)

CONDUCT_FLAGS: tuple[FlagWords, ...] = (
    FlagWords(
        "velocity",
        (
            r"velocity(?: alert| spike| pattern| testing| flag| rule)?",
            r"(?:burst|flurry|spree|barrage|series of rapid|string of rapid)",
            r"(?:in |in a )?(?:rapid|quick) succession",
            r"back-to-back",
            r"rapid(?:ly)? (?:repeated )?(?:transactions|purchases|payments|attempts)",
            r"(?:transactions|purchases|payments|attempts|charges) in (?:short|quick) order",
        ),
        (
            r"velocity (?:check |checks |is |was |looks |rule ){0,2}(?:normal|ok|fine|low|passed|clear|within"
            r" (?:the )?limits?|unremarkable)",
            r"(?:normal|low|usual|ordinary|regular|unremarkable) (?:velocity|pace)(?! of)",
            r"pace (?:of (?:payments|transactions) )?(?:is |was |looks |seems )?(?:normal|usual|ordinary"
            r"|unremarkable|as usual)",
        ),
        unless=r"geo-?velocity",
    ),
    FlagWords(
        "escalating_amounts",
        (
            r"(?:increasing|escalating|rising|climbing|growing|ramping(?: up)?|stepped"
            r"|ascending) (?:amounts|sums|values|purchases|charges)",
            r"amounts (?:are |were |keep |kept |have been )?(?:increasing|rising|climbing"
            r"|growing|escalating|ramping up|stepping up)",
            r"escalating (?:pattern|spend)",
            r"each (?:[a-z]+ )?(?:is |was )?(?:larger|bigger|higher) than the (?:last|previous|{count} before)",
            r"amounts (?:(?:then|now|all|keep on|steadily) )?(?:climb|escalate|rise|increase|grow|step up)(?: step"
            r" by step| steadily)?",
            r"(?:climbing|rising|escalating|increasing|growing|ascending) (?:series|pattern|sequence)",
            r"(?:series|sequence|string) of (?:increasing|rising|climbing|escalating|growing)(?: \w+)?",
        ),
        (r"(?:stable|steady|flat|constant) amounts",),
    ),
    FlagWords(
        "impossible_travel",
        (
            r"physically impossible",
            r"impossible (?:journey|geography|distance)",
            r"(?:could not|couldn't|cannot) have travell?ed",
            r"geo-?velocity (?:alert|violation|breach|flag|rule (?:hit|fired))",
            r"faster than (?:a plane|any flight|possible)",
            r"impossible[- ]travel(?: alert| flag| rule| hit)?",
        ),
        (
            r"(?:travel|geo-?velocity) (?:check|screening|rule)s? (?:is |was |were |came back )?(?:clear|clean"
            r"|passed|ok|negative)",
        ),
    ),
    FlagWords(
        "travel",
        (
            r"travel (?:notice|notification|plans?|flag)",
            r"(?:announced|declared|registered|reported|known|planned) (?:the |a |an |his |her |their |this"
            r" )?(?:trip|travel|journey|stay)",
            r"(?:trip|journey|travel) (?:is |was |has been |had been )?(?:announced|known|declared|registered|on"
            r" file|booked)",
            r"(?:trips?|flew|flight booked|flights?) to [a-z]+",
            r"travell?ing (?:in|to|abroad|for)",
            r"frequent(?:ly)? travel(?:l?er|s)?",
            r"(?:known|regular) travell?er",
            r"on (?:vacation|holiday|a business trip|a trip)",
            r"booked (?:a |an |the )?(?:flight|hotel|trip)",
            r"business trip",
            r"notified (?:us|the bank) of (?:the |her |his |their )?(?:trip|travel)",
        ),
        unless=r"\bimpossible|\bpayment went",
    ),
    FlagWords(
        "address_mismatch",
        (
            r"(?:address|addresses|avs|billing and shipping(?: address(?:es)?)?|shipping address|billing address"
            r"|delivery address) (?:\w+ ){0,4}?(?:mismatch(?:es|ed)?|differs?|(?:do|does|did) ?(?:not|n't) match"
            r"|not matching|is different)",
            r"(?:mismatch(?:ed|ing)?|different|non-matching) (?:\w+ )?(?:address|addresses|billing|shipping)",
            r"avs (?:fail(?:ed|ure)?|no match|mismatch)",
            r"(?:billing|shipping|delivery) ?(?:/|and|vs\.?|versus|-) ?(?:billing|shipping|delivery)(?:"
            r" address(?:es)?)? (?:mismatch"
            r"(?:ed)?|differ(?:s|ent)?)",
            r"(?:address|shipping|delivery) (?:[a-z]+ ){0,3}?other than (?:the |his |her |their )?(?:billing|home"
            r"|registered)",
            r"(?:goes|go|going|sent|delivered|shipped) to an? (?:address )?other than (?:the )?billing",
            r"addresses (?:that )?(?:do not|don't) match",
            r"shipp(?:ing|ed) to (?:a |an )?(?:different|new|unrelated|third[- ]party) address",
            r"(?:freight forwarder|reshipper|drop address)",
        ),
        (
            rf"(?:billing|shipping|delivery|address|addresses|avs)(?: address(?:es)?)?(?: (?:and|and the)"
            rf" (?:billing|shipping|delivery)(?: address(?:es)?)?)? (?:that |fully |both |all )?{_SAME}(?:"
            rf" (?:the )?(?:billing|delivery|shipping|home)(?: address)?)?",
            r"avs (?:passed|match(?:ed)?|ok|full match)",
            r"(?:delivery|shipping) address is (?:also )?(?:the|his|her|their) (?:billing|home|registered)(?:"
            r" address)?",
            r"(?:shipped|ships|delivered|goes) to (?:the|his|her|their) (?:billing|home|registered) address",
            r"matching (?:billing|shipping|addresses)(?: \w+)?",
        ),
    ),
    FlagWords(
        "new_payee",
        (
            r"(?:new|first-time|unknown|newly added|never[- ]paid|just[- ]added|unfamiliar|unrecogni[sz]ed)"
            r" (?:payee|beneficiary|recipient|receiver|payees|beneficiaries)",
            r"(?:payee|beneficiary|recipient) (?:was |is |has been )?(?:only |just |newly |first )?(?:added"
            r"|created|set up|registered)(?: (?:only |just )?(?:{day_word}|{duration} (?:ago|earlier|before)"
            r"|minutes (?:ago|earlier|before)))",
            r"added (?:a |the |this )?(?:new )?(?:payee|beneficiary|recipient)",
            r"(?:payee|beneficiary|recipient) (?:is |was |has been )?(?:only |just |newly )?(?:new\b|just added"
            r"|(?:added|created"
            r"|set up|registered) (?:just now|moments? (?:ago|before)|right before))(?: to \w+)?",
            r"no (?:prior|previous|earlier) (?:payments?|transfers?) to (?:this|the) (?:payee|beneficiary|recipient)",
            r"never (?:before )?paid (?:this|the) (?:payee|beneficiary|recipient)",
        ),
        (
            r"(?:known|existing|trusted|usual|regular|established|long-standing|saved|familiar) (?:payee"
            r"|beneficiary|recipient)",
            r"(?:payee|beneficiary|recipient) (?:is |was )?(?:a |an )?(?:well )?(?:known|familiar|trusted)(?: one)?",
            r"(?<!never )paid (?:this|the|that|the same) (?:payee|beneficiary|recipient) (?:before|previously"
            r"|earlier|many times|often)",
        ),
    ),
    FlagWords(
        "funds_forwarded",
        (
            r"(?:funds|money|balance|proceeds|the full sum|cash) (?:is |are |was |were |then |immediately "
            r"|quickly |being |all |at once ){0,3}(?:forwarded|moved on|passed on|sent on|transferred (?:out|on"
            r"|onwards?)|swept|withdrawn (?:at once|immediately|straight away)|moved out|drained|emptied)",
            r"(?:forward(?:ed|s|ing)?|pass(?:ed|es|ing)? on|mov(?:ed|es|ing) on|send(?:s|ing)? on|sent on|swept"
            r"|drained) (?:the |all |those |these |most of the )?(?:funds|money|balance|proceeds|deposit)",
            r"(?:money )?mul(?:e|ing)(?: account| pattern| behaviou?r)?",
            r"(?:on-?)?forwarding of (?:the |any |incoming )?(?:funds|money)",
            r"(?:funds|money|proceeds|deposit)(?: that| which)? (?:had |have |has )?(?:only |just |only just"
            r" )*(?:arrived|come in|came in)"
            r" (?:and )?(?:is|are|was|were) (?:being )?(?:moved|passed|sent) on",
            r"pass-through",
        ),
        (
            r"(?:funds|money|proceeds) (?:is |are |was |were |has |have )?(?:not|never) (?:been |being"
            r" )?(?:forwarded|moved on"
            r"|passed on|sent on|transferred out|withdrawn)",
            r"funds (?:stay(?:ed)?|remain(?:ed)?|kept|held) (?:in|on) (?:the )?account",
        ),
    ),
    FlagWords(
        "crypto",
        (
            r"(?:crypto(?:currency|currencies)?|bitcoin|btc|ethereum|usdt|stablecoins?|coinbase|binance"
            r"|kraken|crypto (?:exchange|wallet|merchant))",
        ),
        unless=_HABIT,
    ),
    FlagWords(
        "gift_cards",
        (r"(?:gift|store-value|voucher)[- ]cards?", r"(?:gift|itunes|steam) (?:card|voucher)s?", r"e-?gift"),
        unless=_HABIT,
    ),
    FlagWords("prepaid_card", (r"pre-?paid(?: (?:debit |visa |mastercard )?card)?",)),
    FlagWords(
        "first_time_merchant",
        (
            r"first[- ](?:ever )?(?:purchase|order|transaction|payment|visit|time)(?: (?:purchase|buyer"
            r"|shopper))? (?:at|with|from|to) (?:this|the|that)(?: same)? (?:merchant|store|shop|seller|retailer"
            r"|site|vendor|restaurant|supplier)",
            r"never (?:before )?(?:bought|purchased|ordered|shopped|paid|transacted|used)(?: anything)? (?:at"
            r"|from|with|here|on)?(?: (?:this|the) (?:merchant|store|shop|seller|retailer|site|vendor))?(?: before)?",
            r"(?:new|unknown|unfamiliar|first[- ]time|never[- ]used) (?:to this )?(?:merchant|seller|retailer"
            r"|vendor)",
            r"(?:merchant|seller|retailer|vendor|store|shop) (?:is |was )?(?:new|unknown|unfamiliar) (?:to|for)"
            r" (?:the |this )?"
            r"(?:customer|client|user|cardholder|account ?holder|account|buyer|her|him|them)",
            r"first (?:ever )?(?:purchase|order|payment|transaction) (?:here|(?:at|with|from) (?:merchant|the"
            r" (?:merchant|seller|shop)))",
            r"no (?:history|previous purchases?|prior purchases?|earlier purchases?|prior orders?)"
            r" (?:with|at|from) (?:this|the) (?:merchant|store|shop|seller|site)",
        ),
        (
            r"(?:known|familiar|regular|usual|trusted|favou?rite) (?:merchant|seller|retailer|vendor)",
            r"(?:merchant|seller|retailer|vendor|store|shop) (?:is |was )?(?:well )?(?:known|familiar) to (?:the "
            r"|this )?"
            r"(?:customer|client|user|cardholder|account ?holder|buyer|her|him|them)",
            r"(?:same|this) (?:merchant|store|shop|seller) (?:before|previously|last (?:{duration}|week|month|year))",
            r"(?:repeat|returning|regular) (?:customer|buyer|shopper)(?: (?:at|of) (?:this|the) (?:merchant|store"
            r"|shop))?",
            r"(?:bought|purchased|ordered|shopped) (?:here|there|from (?:this|the same) \w+)"
            r" (?:before|previously|many times|often|regularly)",
        ),
        unless=r"merchant (?:account|category)",
    ),
    FlagWords(
        "disputes_before",
        (
            r"(?:prior|previous|earlier|past|former|{number}) (?:\w+ )?disputes?",
            r"(?:has |had |have )?(?:disputed|contested) (?:\w+ ){0,2}?(?:charges?|transactions?|payments?"
            r"|purchases?)(?: before| previously| earlier)?",
            r"disputes? (?:on (?:the |this )?account|on file|on record|before|in the past)",
            r"history of disputes",
            r"serial disputer",
            r"disputes",
        ),
        (
            r"dispute-free",
            r"never (?:disputed|(?:raised|filed|opened|lodged|had) (?:a|any) disputes?)(?: (?:a|any) (?:charge|payment"
            r"|transaction))?",
            r"(?:no|zero) (?:\w+ )?disputes?(?: on (?:the "
            r"|this )?account)?(?: before)?",
        ),
    ),
    FlagWords(
        "location_change",
        (
            r"(?:unusual|unfamiliar|new|different|unexpected|foreign|atypical|never[- ]visited|unknown)"
            r" (?:location|place|city|country|region|geography|town|geolocation)",
            r"(?:far|away) from (?:home|(?:the |his |her |their |its )?(?:usual|home|normal|billing|known)"
            r" (?:\w+)?|customer's home)",
            r"outside (?:of )?(?:the |his |her |their |its )?(?:usual|home|normal|regular) (?:area|region|city"
            r"|country|location|state|footprint|places?)",
            r"location (?:mismatch|change|anomaly|jump|differs|does not match)",
            r"(?:never|not) (?:before )?(?:transacted|shopped|been|been seen|used|spent) (?:in|at) (?:this|that)"
            r" (?:city|country|place|location|area|region)",
            r"geo(?:location)? (?:mismatch|anomaly)",
            r"{distance} (?:away )?from (?:home|(?:(?:the|his|her|their|its) )?(?:[a-z]+ ){0,2}?(?:[a-z]+'s"
            r" )?(?:usual|home|normal|known)"
            r" (?:location|place|area|city|town|region|{count}|one)s?)",
            r"(?:location|place) (?:is|was) (?:unusual|unfamiliar|new|different)(?: (?:for|to) \w+(?: \w+)?)?",
            r"(?:not|none) (?:{count}|one) of (?:[a-z']+ ){1,4}?(?:usual|normal|known|regular) (?:places|locations"
            r"|areas|cities|ones)",
        ),
        (
            r"(?:(?:is|was) )?(?:{count}|one) of (?:[a-z']+ ){1,4}?(?:usual|normal|known|regular) (?:places"
            r"|locations|areas|cities|ones)",
            r"(?:usual|home|regular|normal|familiar|known|local|habitual|own) (?:location|neighbou?rhood|place"
            r"|area|city|town|region|store|state|locations)(?!:| (?:is|was|are|were|being) )",
            r"(?:near|close to|around the corner from|at) (?:his |her |their |the customer's )?home(?! page)",
            r"(?:location|place|area) (?:is |was )?(?:consistent|matches|in line|agrees)(?: with)? (?:the |his |her "
            r"|their )?(?:usual|history"
            r"|habits?|past|home)(?: \w+)?",
            r"location (?:is |was )?(?:consistent|matches|usual|unchanged|as usual|normal|familiar|known)(?: \w+)?",
            r"regular(?:ly)? visits?(?: to)?",
            r"same (?:city|town|place|area|neighbou?rhood) as (?:usual|always|before)",
        ),
    ),
    FlagWords(
        "high_risk_country",
        (
            r"high[- ]risk (?:country|countries|jurisdiction|geography|region|place|nation)",
            r"fatf (?:grey|black|gray)[- ]?list(?:ed)?",
            r"(?:country|place|region|jurisdiction) (?:is |was |has been )?(?:rated |considered |listed as |classed"
            r" as |ranked )?(?:as )?(?:a )?"
            r"high[- ]risk(?: one)?",
        ),
        (
            r"(?:country|place|region|jurisdiction) (?:is |was )?(?:not|never) (?:rated |considered |listed as "
            r"|classed as )?(?:as )?(?:a )?"
            r"high[- ]risk(?: one)?",
            r"low[- ]risk (?:country|jurisdiction)",
        ),
    ),
    FlagWords(
        "sanctioned",
        (
            r"sanctioned (?:country|countries|region|place|person|entity|party|jurisdiction"
            r"|individual|bank)",
            r"sanctions? (?:hit|match|list match|list hit|alert)",
            r"(?:is |falls |place |country |bank )under sanctions",
            r"(?:ofac|sdn)(?:[- ]list(?:ed)?)?(?: hit| match)?",
        ),
        (
            r"sanctions? (?:check|screening|screen|list check)s? (?:is |was |were |came back |all )?(?:clear"
            r"|clean|passed|negative|ok)",
            r"(?:ofac|sdn) (?:check |screening )?(?:clear|clean|passed)",
        ),
    ),
)
