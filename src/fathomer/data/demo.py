"""The demo corpus: opinions written by a signed grammar, so that their labels follow from meaning.

A rule lists the ways to write a symbol. The sign of a slot says what becomes of the meaning there:

    {+quality}        means what the whole means             the film was {+quality}
    {-quality}        means the opposite of the whole        nobody would call the film {-quality}
    {thing}           means neither                          it was a {+quality} {thing}
    {+claim of part}  is a claim whose subject {S} is part   {-claim of part}, but {+verdict}

Bars separate the ways; a double bar parts those with a positive meaning from those with a negative
one. To write a text, ``compose`` takes the meaning that it must have and works its way down.
Negation, contrast, reported opinions and counterfactuals are nothing but slots with a minus. Praise
and blame stand under a minus so often that counting words says little about the label.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from random import Random
from typing import NamedTuple

from fathomer.data.examples import Example, Examples

LENGTHS = range(5, 41)
"""The numbers of words that a text may have."""

GRAMMAR = """
review    = {+opinion} | {+opinion} | {+opinion} {closer}
          | {opener} {+opinion} | {opener} {+opinion}
opener    = we {tried} {whole} {when}. | I {tried} {whole} {company} {when}.
closer    = we {tried} it {when}. | I {tried} it {company}. | that is all I have to say.
opinion   = {+simple}. | {+simple}. | {+simple}. | {+twofold}. | {+twofold}.
          | {+contrast}. | {+contrast}. | {+report}. | {+report}. | {+unreal}. | {+unreal}.
simple    = {+verdict} | it {be} a {+quality} {thing} | it {be} a {very} {+quality} {thing}
twofold   = {+claim of part}, and {+verdict} | {+verdict}; {+claim of part}
verdict   = {+claim of whole} | {+claim of whole} | {+feeling}
claim     = {+statement} | {+thought}

# One clause: the meaning of {S} is stated plainly, under one negation, or under two.
statement = {+plain} | {+plain} | {+plain} | {+plain} | {+negated} | {+negated} | {+undenied}
plain     = {S} {be} {+quality} | {S} {be} {very} {+quality} | {S} {be} {+quality} {indeed}
negated   = {S} {be} not {-quality} | {S} {be}n't {-quality} | {S} {be}n't {at_all} {-quality}
          | {S} {be} hardly {-quality} | {S} {be} never {-quality} | {S} {be} far from {-quality}
          | {S} {be} anything but {-quality} | there {be} nothing {-quality} about {S}
          | nobody would call {S} {-quality} | nobody thinks that {S} {be} {-quality}
undenied  = nobody can say that {S} {be}n't {+quality} | nobody can deny that {S} {be} {+quality}
          | it is not true that {S} {be}n't {+quality} | there is no doubt that {S} {be} {+quality}
thought   = I found {S} {+quality} | I found {S} {very} {+quality} | I think {S} {be} {+quality}
          | I didn't find {S} {-quality} | I never found {S} {at_all} {-quality}
          | I don't think that {S} {be} {-quality} | I would not call {S} {-quality}
          | I can't say that {S} {be}n't {+quality} | I don't doubt that {S} {be} {+quality}
feeling   = I {+felt} {whole} | I really {+felt} {whole} | I see every reason to {+treat} {whole}
          | I didn't {-like} {whole} | I did not {-like} {whole} at all
          | I see no reason to {-treat} {whole} | I can't say that I didn't {+like} {whole}

# Two clauses that disagree: the main one wins, or the one after "but".
contrast  = {-claim of part}, but {+verdict} | it is true that {-plain of part}, but {+verdict}
          | although {-claim of part}, {+verdict} | {+verdict}, although {-claim of part}
          | though {-claim of part}, {+verdict} | {+verdict}, even though {-claim of part}
          | despite the {-quality} {detail}, {+verdict} | {+verdict} despite the {-quality} {detail}

# The opinions of others: they count if the writer shares them, and are turned round if not.
report    = {+reported}, and {agreement} | {+reported}; I agree | {+told}, and {truth}
          | {-reported}, but {dissent} | {-reported}; I disagree | {-told}, but {error}
          | {-told}, but I found it {+quality} | {-reported}, but {+feeling}
          | {man} called it {+quality}, and he is right | {man} {+felt} {whole}, and so did I
          | {man} called it {-quality}, but he is wrong | {man} {-felt} {whole}, but I didn't
          | {woman} called it {+quality}, and she isn't wrong
          | {woman} called it {-quality}, but she isn't right
reported  = {people} {+judged} {whole} | {+told}
told      = {people} called {whole} {+quality} | "a {+quality} {thing}," {people} said
          | {people} said that {+plain of whole}
agreement = I agree | I don't disagree | I understand why
dissent   = I disagree | I don't agree | I don't understand why
truth     = that is true | that isn't wrong
error     = that is wrong | that isn't true

# What would have been, or was expected, against what was.
unreal    = I would have {-felt} {whole} if {part} had been {-quality} | {+missed} | {+missed}
          | if {part} had been {-quality}, I would have {-felt} {whole}, but it {be}n't
          | if {part} had been {-quality}, I would have {-felt} {whole}, but it {be} {+quality}
          | it could have been a {-quality} {thing}, but it {be}n't
          | without {part}, it would have been a {-quality} {thing}
          | I expected {whole} to be {-quality}, but it {be}n't | I {-awaited}, but I was wrong
          | I expected {whole} to be {+quality}, and it {be} | I {+awaited}, and I was right
awaited   = expected a {+quality} {thing} | thought that it would be {+quality}
missed    = {part} could not have been better | I can't imagine how {part} could have been better
         || {part} could not have been worse
          | I would have {-felt} {whole} if {part} had been better

felt      = loved | enjoyed | liked | adored || hated | disliked | loathed
like      = like | enjoy | appreciate || dislike | regret
treat     = recommend | praise || avoid | criticise
judged    = praised | recommended | admired || mocked | criticised | dismissed
quality   = {+general} | {+special}
general   = good | decent | pleasant | impressive | satisfying | memorable | lovely | remarkable
         || bad | poor | mediocre | unpleasant | tiresome | disappointing | forgettable | lacklustre
very      = very | really | truly | extremely | surprisingly | genuinely | thoroughly
indeed    = indeed | in every way | in every respect
at_all    = at all | in the least | remotely | even slightly | the least bit
man       = my brother | my father | my uncle | my grandfather | my husband
woman     = my sister | my mother | my aunt | my grandmother | my wife
people    = {man} | {woman} | critics | my friends | many people | the newspapers
when      = last week | yesterday | in May | on Sunday | two days ago | last summer
company   = with {man} | with {woman} | with some friends | on my own | for my birthday
whole     = {article} {thing}
part      = the {detail}
article   = the | this
be        = is | was
"""

TOPICS = """
tried   = watched
thing   = film | movie | comedy | thriller | drama | documentary
detail  = plot | acting | ending | dialogue | opening | script
special = gripping | witty | clever | convincing | moving
       || boring | dull | predictable | clumsy | tedious

tried   = read
thing   = book | novel | biography | memoir | story | sequel
detail  = style | beginning | conclusion | translation | prose | narration
special = absorbing | elegant | thoughtful | vivid | touching
       || pompous | repetitive | confused | rambling | lifeless

tried   = ordered
thing   = dinner | lunch | meal | brunch | breakfast | banquet
detail  = soup | dessert | fish | bread | chicken | rice
special = tasty | fresh | delicious | flavourful | wholesome
       || bland | greasy | stale | tasteless | unappetising

tried   = booked
thing   = hotel | hostel | cottage | resort | apartment | lodge
detail  = room | bathroom | lobby | lounge | kitchen | terrace
special = clean | comfortable | cosy | spacious | welcoming
       || dirty | noisy | cramped | shabby | gloomy

tried   = bought
thing   = phone | laptop | tablet | computer | notebook | smartphone
detail  = screen | battery | keyboard | charger | speaker | casing
special = reliable | sturdy | handy | sleek | practical
       || fragile | unreliable | flimsy | clunky | faulty

tried   = attended
thing   = concert | show | musical | festival | opera | recital
detail  = singing | drumming | lighting | sound | encore | choir
special = lively | rousing | passionate | polished | stirring
       || dreary | feeble | monotonous | sluggish | amateurish

tried   = took
thing   = course | class | workshop | seminar | lecture | tutorial
detail  = teaching | homework | material | feedback | introduction | discussion
special = clear | helpful | engaging | inspiring | thorough
       || confusing | vague | chaotic | pointless | muddled
"""
SETTLED = ("thing", "detail", "article", "be")
"""The symbols that are written in the same way throughout a text."""

SLOT = re.compile(r"\{([+-]?)(\w+)(?: of (\w+))?\}")


class Ways(NamedTuple):
    """Hold the ways to write a symbol, for either meaning; those of a neutral one are the same."""

    positive: Sequence[str]
    negative: Sequence[str]


Rules = Mapping[str, Ways]


def parse(grammar: str) -> Rules:
    """Read rules in the notation that stands at the top of this file.

    >>> parse("thing = film | long book")["thing"].negative
    ['film', 'long book']
    """
    rules = {}
    one_line_each = re.sub(r"\n +\|", " |", grammar)
    for symbol, body in re.findall(r"^(\w+) *=(.*)", one_line_each, flags=re.MULTILINE):
        poles = [[way.strip() for way in pole.split("|")] for pole in body.split("||")]
        rules[symbol] = Ways(poles[0], poles[-1])
    return rules


RULES = tuple({**parse(GRAMMAR), **parse(topic)} for topic in TOPICS.split("\n\n"))
"""The rules of each topic."""


def compose(template: str, *, positive: bool, rules: Rules, random: Random) -> str:
    """Write ``template`` out so that it has the wanted meaning.

    >>> rules = parse("quality = good || bad")
    >>> compose("it is not {-quality}", positive=True, rules=rules, random=Random(0))
    'it is not bad'
    """

    def fill(slot: re.Match[str]) -> str:
        sign, symbol, subject = slot.groups()
        meaning = positive != (sign == "-")
        ways = rules[symbol].positive if meaning else rules[symbol].negative
        scope = {**rules, "S": rules[subject]} if subject else rules
        return compose(random.choice(ways), positive=meaning, rules=scope, random=random)

    return SLOT.sub(fill, template)


def settle(rules: Rules, random: Random) -> Rules:
    """Choose what one text is about and its tense, so that all its clauses agree."""
    chosen = {symbol: [random.choice(rules[symbol].positive)] for symbol in SETTLED}
    return {**rules, **{symbol: Ways(way, way) for symbol, way in chosen.items()}}


def polish(text: str) -> str:
    """Set "an" before a vowel, and a capital letter at the start of each sentence.

    >>> polish("we saw it. it was a unpleasant film.")
    'We saw it. It was an unpleasant film.'
    """
    text = re.sub(r"\ba (?=[aeiou])", "an ", text)
    return re.sub(r'(?:^|[.] )"?[a-z]', lambda start: start[0].upper(), text)


def write_examples(random: Random) -> Iterator[Example]:
    """Write examples without end, the labels in turn and no text twice."""
    seen = set()
    for label in cycle(("positive", "negative")):
        text = ""
        while len(text.split()) not in LENGTHS or text in seen:
            rules = settle(random.choice(RULES), random)
            meant = label == "positive"
            text = polish(compose("{+review}", positive=meant, rules=rules, random=random))
        seen.add(text)
        yield Example(text, label)


def demo_corpus(*, seed: int = 0, train: int = 4000, test: int = 600) -> tuple[Examples, Examples]:
    """Write ``train`` and ``test`` texts, all different; the same seed gives the same corpus."""
    random = Random(seed)  # noqa: S311 (a corpus, not a secret)
    examples = write_examples(random)
    splits = [list(islice(examples, count)) for count in (train, test)]
    for split in splits:
        random.shuffle(split)
    return Examples(splits[0]), Examples(splits[1])
