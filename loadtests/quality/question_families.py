"""Questions in four wordings each, with other questions about the same thing: pairs that are equal, or look it."""

from typing import NamedTuple

FITTED = """
How do I learn {v}?
What is the best way to learn {v}?
How can I start learning {v}?
What should I do to learn {v} well?
- Where is {v} used?
- Why is {v} so popular?
- How long does it take to learn {v}?
= Python; Spanish; chess; the guitar; statistics; swimming

What causes {v}?
What are the causes of {v}?
Why does {v} happen?
What is the reason for {v}?
- How can {v} be prevented?
- Is {v} dangerous?
- What are the symptoms of {v}?
= inflation; hair loss; back pain; thunder; insomnia; global warming

How can I get rid of {v}?
What is the best way to get rid of {v}?
How do I remove {v}?
What can I do against {v}?
- What does {v} look like?
- Why do I always have {v}?
- Can {v} come back after a year?
= acne; ants in the kitchen; spam mail; old files; a cold; stains on a shirt

Which {v} is the best to buy?
What is the best {v} I can buy?
What {v} should I buy?
Can you recommend a good {v}?
- How does a {v} work?
- How much does a {v} cost?
- Who invented the {v}?
= laptop; camera; phone under 300 euros; bicycle; vacuum cleaner; coffee machine

How can I lose {v}?
What is the fastest way to lose {v}?
How do I lose {v} quickly?
What should I do to lose {v}?
- How do I gain {v}?
- Is it healthy to lose {v}?
- How many people lose {v} every year?
= weight; belly fat; ten kilos; my accent; my fear of heights; interest in social media

What is it like to live in {v}?
How is life in {v}?
What is living in {v} like?
How does it feel to live in {v}?
- How do I move to {v}?
- What language do people speak in {v}?
- How many people live in {v}?
= Berlin; Canada; a small village; Tokyo; Norway; a big city

How do I become a {v}?
What should I do to become a {v}?
How can one become a {v}?
What does it take to become a {v}?
- How much does a {v} earn?
- What does a {v} do all day?
- Why did you stop being a {v}?
= pilot; data scientist; better writer; chef; teacher; good manager

What is the difference between {v}?
How do {v} differ?
What distinguishes {v}?
What are the differences between {v}?
- What do {v} have in common?
- Which is older of {v}?
- Can I use {v} together?
= cats and dogs; TCP and UDP; jam and jelly; Java and Kotlin; a lake and a pond; RNA and DNA

How do I recover {v}?
How can I get {v} back?
What is the way to recover {v}?
Is there a way to restore {v}?
- How do I delete {v} for good?
- How do I change {v}?
- Who can see {v}?
= my Gmail password; deleted photos; a lost file; my old account; my browser history; a stolen phone

Is {v} good for you?
Is {v} healthy?
What are the benefits of {v}?
What is {v} good for?
- What are the risks of {v}?
- Where does {v} come from?
- How do you make {v} at home?
= green tea; running; meditation; dark chocolate; fasting; cold water
"""
HELD_OUT = """
How do I earn money with {v}?
What is the best way to make money with {v}?
How can I make money from {v}?
Can I earn money by {v}, and how?
- Is {v} legal?
- How much money is lost in {v}?
- Who is famous for {v}?
= photography; writing; a blog; translation; gardening; streaming games

Who will win {v}?
Who is going to win {v}?
Which side is likely to win {v}?
Who do you think will win {v}?
- Who won {v} last time?
- When does {v} begin?
- How can I watch {v}?
= the election; the World Cup; the final; the chess match; the Oscar; the race

How does {v} work?
What is the principle behind {v}?
Can somebody explain how {v} works?
How exactly does {v} function?
- Who invented {v}?
- What does {v} cost?
- When does {v} fail?
= a fridge; the stock market; a search engine; radar; a vaccine; public key encryption

What books should I read about {v}?
Which books on {v} are the best?
Can you recommend books about {v}?
What are good books on {v}?
- Who writes books about {v}?
- Why should I read about {v}?
- How many books about {v} are there?
= history; economics; machine learning; the sea; Roman law; parenting

How can I improve {v}?
What can I do to improve {v}?
How do I get better at {v}?
What are good ways of improving {v}?
- How do I measure {v}?
- Why does {v} matter?
- Who is the best at {v}?
= my English; public speaking; my memory; my handwriting; time management; my chess
"""


class Family(NamedTuple):
    """Wordings of one question, other questions about the same thing, and the things they are about."""

    same: list[str]
    others: list[str]
    values: list[str]


def read(families: str) -> list[Family]:
    """The families of a table."""
    found: list[Family] = []
    for family in families.strip().split("\n\n"):
        lines = family.splitlines()
        same = [line for line in lines if line[0] not in "-="]
        found.append(Family(same, [line[2:] for line in lines if line[0] == "-"], lines[-1][2:].split("; ")))
    return found
