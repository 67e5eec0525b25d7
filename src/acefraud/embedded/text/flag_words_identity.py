"""The words for flags about the device, the way in and who the customer is."""

from __future__ import annotations

from .flag_words import FlagWords

_HABIT = r"\b(?:usually|normally|typically|generally|often) "
_PEOPLE = r"(?:customer|account|user|identity|cardholder|client|id|buyer|profile|owner|sender|kyc)"
_OK = r"(?:passed|succeeded|successful|successfully|completed|ok|authenticated|confirmed|verified|approved)"
_BAD = (
    r"(?:failed|fails|unsuccessful|not completed|abandoned|not passed|missing|bypassed|skipped|declined|refused"
    r"|not attempted|not performed)"
)
_WAY = r"(?:e-?mail|phone(?: number)?|mobile(?: number)?|contact(?: details| info| information)?|telephone(?: number)?)"

IDENTITY_FLAGS: tuple[FlagWords, ...] = (
    FlagWords(
        "vpn",
        (
            r"(?:vpn|vpns|proxy|proxies|tor|anonymi[sz]er|anonymi[sz]ing (?:service|network)|proxied)",
            r"(?:hosting|data ?cent(?:er|re)) ip",
        ),
        (
            r"(?:residential|home|clean) ip(?: address)?",
            r"direct(?: internet| network)? connection",
            r"connection (?:is |was )direct",
        ),
        unless=_HABIT,
    ),
    FlagWords(
        "emulator",
        (r"(?:emulators?|emulated|virtual machine|simulator|rooted device|jailbroken)",),
        (r"(?:real|physical|genuine) (?:device|handset|phone)",),
    ),
    FlagWords(
        "new_device",
        (
            r"(?:new|unknown|unrecogni[sz]ed|unfamiliar|never[- ](?:before[- ])?seen|first[- ]seen|different"
            r"|unregistered|untrusted) (?:[a-z]+ )?(?:device|phone|handset|laptop|browser|computer|tablet)(?:"
            r" fingerprint)?",
            r"(?:device|phone|browser|laptop) (?:is |was )?new to (?:us|(?:the|this|his|her|their) (?:account"
            r"|profile|customer))",
            r"(?:never|not) (?:been )?seen (?:on (?:the |this )?account |with us )?before on (?:the|this) account",
            r"device (?:is |was |: ?|= ?)?(?:new|unknown|unrecogni[sz]ed|unfamiliar|never seen(?: before)?|not"
            r" (?:known|recogni[sz]ed|seen before|registered))",
            r"dev(?:ice)? ?[:=] ?(?:new|unknown)",
            r"(?:device|handset|phone|laptop|browser|computer) (?:that |which )?(?:we |we've |has |was |had |have"
            r" ){0,2}never (?:been )?"
            r"seen(?: before)?",
            r"(?:first|1st) (?:time|use|login) (?:on|from|of|with) (?:this|the) device",
        ),
        (
            r"(?:known|usual|trusted|recogni[sz]ed|familiar|regular|registered|same|long-standing|enrolled"
            r"|customary|own) (?:(?!the |this |that |his |her |their )[a-z]+ )?(?:device|phone|handset|laptop"
            r"|browser|computer|tablet)",
            r"device (?:is |was |: ?|= ?)?(?:a |an )?(?:(?:well[- ])?known|trusted|recogni[sz]ed|familiar|the"
            r" usual(?: one)?"
            r"|registered|unchanged|seen before|on file)(?: one)?(?!(?: to| with| on)?(?: us| the account)?"
            r"(?: only| just)?(?: for| since)? (?:{about}{duration}|{day_word}|at {clock}))",
        ),
        unless=r"device (?:age|first seen)",
    ),
    FlagWords(
        "password_reset",
        (
            r"passwords? (?:was |has been |had been |is |were )?(?:just |recently )?(?:reset"
            r"|changed|recovered|updated)",
            r"(?:reset|changed|changes|changing|resetting|updated) (?:the |his |her |their "
            r"|its |a )?(?:account |login |online )?(?:password|pin|passcode)",
            r"(?:password|credential|pin|passcode) (?:reset|change|recovery)s?",
            r"forgot(?:ten)? password",
        ),
        (
            r"passwords? (?:is |was |remains |stayed )?unchanged",
            r"passwords? (?:was |were |is |has |have |had )?not (?:been )?(?:just |recently )?(?:reset|changed"
            r"|touched)",
            r"(?:same|long-standing) password",
        ),
    ),
    FlagWords(
        "contact_changed",
        (
            r"sim[- ]?(?:swap(?:ped)?|change)",
            rf"{_WAY}(?: address)? (?:on file )?(?:was |were |has been |have"
            rf" been |had been |is |had |has |have )?(?:just |recently |only just )?(?:been )?(?:changed|updated"
            rf"|replaced|swapped|modified)",
            rf"(?:changed|updated|replaced|modified|changes|changing) (?:the |his |her |their "
            rf"|its )?(?:registered |account )?{_WAY}",
            r"(?:new|recent|recently changed) (?:e-?mail(?: address)?|phone number|mobile number|contact details)",
            rf"{_WAY}(?: address)? (?:change|update)",
            r"(?:number|line) (?:was )?ported(?: out)?",
            r"changed contact details",
            r"change of (?:e-?mail|phone|contact details)",
        ),
        (
            r"unchanged (?:contact details|e-?mail|phone)",
            rf"{_WAY}(?: address)? (?:is |are |remains? |was |were )?unchanged",
            r"(?:same|long-standing) (?:e-?mail|phone number)",
        ),
    ),
    FlagWords(
        "remote_access",
        (
            r"remote[- ](?:access|desktop|control|session|support)(?: (?:tool|software|session"
            r"|app|trojan))?",
            r"(?:anydesk|teamviewer|screen[- ]sharing|screen[- ]share"
            r"|rustdesk|quicksupport)",
            r"remotely controlled",
        ),
    ),
    FlagWords(
        "kyc_missing",
        (
            r"kyc (?:is |was |still |checks? |status |verification |documents? |: ?|= ?){0,3}(?:missing"
            r"|incomplete|pending|failed|expired|outstanding|overdue|not (?:done|complete|completed|passed|on"
            r" file|finished|yet \w+)|none|absent|never completed)",
            r"(?:no|without|missing|incomplete|pending|failed|lacks|lacking) kyc",
            r"identity (?:checks?|documents?|verification) (?:is |are |was |were |have |has |still |yet"
            r" ){0,3}(?:missing"
            r"|incomplete|pending|outstanding|not (?:yet )?(?:been )?(?:completed?|provided|done|passed|carried out))",
            r"(?:no|missing) (?:identity documents?|id documents?|identity checks?|proof of identity)",
        ),
        (
            r"kyc (?:is |was |fully |checks? |status |verification |documents? |: ?|= ?){0,3}(?:complete"
            r"|completed|passed|done|ok|verified|approved|clear(?:ed)?|up to date|current|on file|valid|in order)",
            r"(?:full|complete|completed|passed|valid) kyc",
            r"identity checks? (?:is |are |were |all )?(?:complete|completed|passed|done|in order)",
        ),
    ),
    FlagWords(
        "verified",
        (
            rf"(?:fully |id[- ]|well )?verified {_PEOPLE}",
            rf"{_PEOPLE}(?:'s identity)? (?:is |was |has been |fully |already |: ?|= ?|confirmed"
            rf" and ){{0,3}}(?:verified\b|confirmed(?! (?:it|the|this|that|by|with|via|having|being|to)\b))",
            r"(?:address|e-?mail|phone|id|identity) verification (?:was |is )?(?:successful|passed|complete(?:d)?"
            r"|succeeded)",
            r"(?:legitimate|successful) (?:e-?mail|phone|address|identity) verification",
            r"(?:e-?mail|phone(?: number)?|address) (?:is |was |has been )?verified",
            r"verified (?:history|e-?mail|phone)",
            r"confirmed identity",
        ),
        (
            rf"(?:unverified|non-verified|not verified) ?(?:{_PEOPLE}|e-?mail|phone)?",
            rf"{_PEOPLE} (?:is |was |has been |: ?)?(?:still )?(?:unverified|not (?:yet |been )?verified|could not"
            rf" be verified|never verified)",
            r"(?:e-?mail|phone(?: number)?|address) (?:is |was |has )?(?:still )?(?:unverified|not (?:been "
            r"|yet )?verified)",
            r"(?:address|e-?mail|phone|id|identity) verification (?:was |is )?(?:failed"
            r"|unsuccessful|pending)",
        ),
        unless=r"\b3-?ds|verified by visa",
    ),
    FlagWords(
        "strong_authentication",
        (
            r"(?:3-?d ?s(?:ecure)?|strong customer authentication|strong authentication|sca|two-factor(?:"
            r" authentication)?|2fa|mfa|otp|biometrics?|biometric (?:check|login|authentication)|face ?id"
            r"|one-time (?:password|passcode|code)|verified by visa|step-up)"
            rf"(?: \w+)?(?: ?[:=] ?| )(?:was |is |has been |check ){{0,2}}{_OK}",
            r"(?:passed|completed|cleared|confirmed (?:by|with|via)|authenticated (?:with|via|by)|approved"
            r" (?:with|via|by)) (?:the |a |an )?(?:3-?d ?s(?:ecure)?|{factor}|sca|2fa|mfa|otp|biometrics?"
            r"|strong (?:customer )?authentication|two-factor|face ?id|fingerprint|one-time)",
            rf"{{factor}} (?:authentication |challenge |check ){{0,2}}(?:was |is |: ?)?{_OK}",
            r"biometric(?:s|ally)?",
            r"strong(?:ly)? authenticat(?:ion|ed)",
        ),
        (
            rf"(?:3-?d ?s(?:ecure)?|{{factor}}|strong (?:customer )?authentication|sca|two-factor(?:"
            rf" authentication)?|2fa|mfa|otp|biometrics?|biometric check|one-time (?:password|passcode|code)"
            rf"|step-up)(?: \w+)?(?: ?[:=] ?| )(?:was |is |has been |challenge ){{0,2}}{_BAD}",
            r"(?:failed|abandoned|bypassed|skipped) (?:the )?(?:3-?d ?s|{factor}|otp|2fa|mfa|biometric|sca"
            r"|strong authentication)(?: \w+)?",
            r"{factor} (?:authentication |challenge )?(?:was |is |were )?(?:not|never) (?:used|done|requested|asked"
            r" for|completed"
            r"|passed|performed|attempted|triggered)",
            r"(?:no|without(?: a)?) (?:second|additional|further|2nd|{ordinal}) factor(?: (?:was )?(?:asked for"
            r"|requested|used))?",
            r"(?:no|without) (?:{factor}|3-?d ?s|2fa|mfa|otp|sca|strong (?:customer )?authentication"
            r"|biometrics?|two-factor)",
        ),
    ),
    FlagWords(
        "vip",
        (
            r"(?:vip|platinum|private banking|premier|high[- ]net[- ]worth)(?: (?:customer|client|status"
            r"|tier|member|card ?holder))?",
        ),
    ),
    FlagWords(
        "business_account",
        (
            r"(?:business|corporate|company|merchant services|commercial) (?:account|customer"
            r"|client|card ?holder|entity|profile)",
            r"(?:sme|b2b) (?:account|customer|client)",
            r"account (?:is |was )?(?:held|owned|run|opened) by an? (?:company|business|firm|corporation|llc)",
        ),
        (
            r"(?:personal|private|consumer|retail) (?:account|customer|profile)",
            r"account is (?:a )?(?:personal|private)(?: one)?",
        ),
    ),
)
