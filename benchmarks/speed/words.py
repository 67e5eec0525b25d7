"""The parts that sentences about fraud are put together from."""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("\n", " ").split("|"))


WORDS: dict[str, tuple[str, ...]] = {
    "scheme": _listed(
        """account takeover|card testing|gift card fraud|synthetic identity|romance scam|refund abuse|friendly fraud|
        money mule activity|SIM swap|remote access scam|crypto cash-out|triangulation fraud|promotion abuse|
        loyalty point theft|invoice redirection|payroll diversion|bust-out fraud|merchant collusion|reshipping scheme|
        loan stacking|check kiting|card skimming|stolen card use|application fraud|push payment scam|investment scam|
        rental deposit scam|charity scam|tech support scam|subscription trap|wallet provisioning fraud|
        credential stuffing|tax refund fraud|airline miles theft|business email compromise|overpayment scam"""
    ),
    "shop": _listed(
        """gift card shop|camera seller|crypto exchange|fashion boutique|pharmacy|filling station|restaurant|
        travel agency|budget airline|hotel booking site|jewellery store|print shop|money transfer desk|gaming service|
        marketplace|furniture outlet|grocery delivery|car rental desk|ticket reseller|streaming platform|casino|
        betting site|donation page|top-up kiosk|hardware store|perfume counter|toy shop|bookstore|wine merchant|
        spare parts dealer|watch dealer|phone trader|software vendor|hosting company|dating app|fitness club|
        dental clinic|garden centre|drone seller|camera shop|sneaker reseller|coin dealer|music store"""
    ),
    "way": _listed(
        """online|in store|by phone order|through the mobile app|at a kiosk|at a cash machine|by bank transfer|
        through a payment link|with a stored wallet|by contactless tap|with a virtual card|through a call centre|
        by standing order|through a QR code|by instant payment"""
    ),
    "sign": _listed(
        """the device was first seen today|the password was reset within the hour|the connection runs through a VPN|
        a remote access tool is active|the account is only days old|an emulator was detected|
        the second factor was skipped|the email domain is disposable|the phone number was ported recently|
        the user was dormant for months|contact details changed this week|the session lasted only seconds|
        the browser language does not fit the country|the customer has had chargebacks before|the travel check failed|
        the login came from a data centre|the name on the card does not match the profile|
        the account shares a device with a blocked one|the identity was never verified|
        the time zone jumped twice in a day|the card number was pasted|mouse movements look scripted|
        a new payee was created minutes ago|the customer is far from home"""
    ),
    "act": _listed(
        """several declines came just before|amounts climb step by step|the payment method was added today|
        the shipping address differs from the billing address|the funds are forwarded at once|
        the merchant has fresh fraud reports|the merchant is badly rated|the amount is far above the usual range|
        the purchase falls in the small hours|the basket holds several gift cards|
        there is a burst of six or more payments|three different cards were tried|
        the recipient also appears in other disputes|the order asks for express delivery|
        the buyer pays with a prepaid card|the currency is unusual for the customer|
        the delivery goes to a freight forwarder|the caller pressed for urgency|round amounts repeat all day|
        the pace is ten times the weekly norm|a small test charge went first|the refund goes to a different card|
        the beneficiary is new|the same address serves many accounts"""
    ),
    "calm": _listed(
        """the account has been verified for years|strong authentication passed|the device has been known for months|
        the merchant was used many times before|the amount lies within the usual range|
        the customer filed a travel notice|the addresses match|there are no disputes on file|
        the payment happens in the home city|the merchant is well rated|the payment method is more than a year old|
        no declines preceded it|the customer spends as much every December|
        the same subscription was billed last month|the staff saw an identity card|the payee is a family member|
        the employer pays on the same date each month|the customer confirmed by call-back|
        the pattern repeats every Friday|the order is collected in person|a hotel booking explains the country|
        chip and PIN were used|the direct connection has no proxy"""
    ),
    "advice": _listed(
        """decline and call the customer|hold it for manual review|ask for a second factor|treat it as fraud|
        lean towards fraud|approve it|lean towards legitimate|do not raise the alarm|lower the score by a notch|
        look at the device before anything else|check the history of the beneficiary|delay the payout by a day|
        freeze the account until confirmed|require an identity document|let it pass but watch the next hour|
        compare it with the last ninety days|ignore the amount alone|block the card and reissue it|
        file a report|notify the merchant|cancel the shipment|ask what the money is for"""
    ),
    "people": _listed(
        """students|retirees|freelancers|small businesses|frequent travellers|new customers|corporate card holders|
        teenagers with a linked card|expats|seasonal workers|landlords|online sellers|gamers|nurses on night shift|
        truck drivers|premium clients|joint account holders|tourists|treasurers of clubs"""
    ),
    "place": _listed(
        """Lagos|Nairobi|Austin|Omaha|Berlin|Manila|Bucharest|Toronto|Sao Paulo|Mexico City|Mumbai|Dubai|Kyiv|Warsaw|
        Lisbon|Seattle|Miami|Denver|Hong Kong|Singapore|Istanbul|Jakarta|Johannesburg|Madrid|Paris|Tampa|Boise|
        Atlanta|Richmond|Portland|Tucson|Buffalo|San Diego|Vancouver|Oslo|Prague|Athens|Cairo|Accra|Hanoi"""
    ),
    "reason": _listed(
        """because the thief wants goods that resell fast|since stolen credentials are used within hours|
        because honest buyers rarely behave so|as mules move money before anyone looks|
        because this was wrong in most cases we looked back on|since the loss per case is high|
        because the signal held in four of five reviews|as the pattern spread this quarter|
        because genuine customers explain it easily|since false alarms here cost goodwill|
        because one sign alone proves nothing|as victims are coached to say it is fine|
        since the dispute window is long|as bots probe cards overnight|since the merchant carries the liability"""
    ),
    "sum": _listed(
        """$20|$50|$75|$120|$150|$200|$250|$400|$500|$750|$1,000|$1,500|$2,500|$4,000|$6,000|$9,000|
        twice the usual spend|three times the usual spend|six times the usual spend|a month's income"""
    ),
    "count": tuple(str(number) for number in range(2, 31)),
    "hours": tuple(f"{number} hours" for number in range(2, 49)),
}
"""The parts by what they say."""
