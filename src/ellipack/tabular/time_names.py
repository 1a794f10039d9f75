"""Names of months and of time zones in dates."""

from typing import Final

_MONTHS = {
    "English": "january february march april may june july august september october november december",
    "German": "januar februar märz april mai juni juli august september oktober november dezember",
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "Dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "Swedish": "januari februari mars april maj juni juli augusti september oktober november december",
}
_SHORT_MONTHS = [
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mär apr mai jun jul aug sep okt nov dez",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "ene feb mar abr may jun jul ago sept oct nov dic",
    "gen feb mar apr mag giu lug ago set ott nov dic",
    "jan fev mar abr mai jun jul ago set out nov dez",
    "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "jän feb mrz apr maj jun jul aug sep okt nov dec",
]

MONTH_NAMES: Final = {
    name: number for names in [*_MONTHS.values(), *_SHORT_MONTHS] for number, name in enumerate(names.split(), start=1)
}
"""Number of each month by its lower-case name or abbreviation, in several languages."""

_EUROPEAN_ZONES = {"WET": 0, "CET": 60, "WEST": 60, "CEST": 120, "EET": 120, "EEST": 180}
_AMERICAN_ZONES = {
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
}

ZONE_OFFSETS: Final = {"UTC": 0, "GMT": 0, "UT": 0, "Z": 0, **_EUROPEAN_ZONES, **_AMERICAN_ZONES}
"""Minutes by which time zones are ahead of UTC. The American ones are those of RFC 822."""
