"""Facts as agents save them, each in three wordings, from which near-duplicates and hard negatives are built."""

from typing import NamedTuple

FITTED = """
{s} prefers {v} for the editor
The editor {s} likes best is {v}
{s} writes code in {v}, the editor of choice
Vim Emacs Helix Zed Nano

{s} drinks {v} in the morning
In the morning {s} has {v} to drink
The morning drink of {s} is {v}
coffee matcha cocoa juice milk

The birthday of {s} is in {v}
{s} was born in {v}
{s} has a birthday in {v}
January March June August October

{s} is allergic to {v}
{s} has an allergy to {v}
An allergy to {v} troubles {s}
peanuts pollen penicillin shellfish lactose

{s} lives in {v} since last year
Since last year {s} has been living in {v}
The home of {s} is in {v} since last year
Lisbon Oslo Vienna Nairobi Lima

The manager of {s} is called {v}
{s} reports to {v} as manager
{v} is the manager of {s}
Ingrid Mateo Yuki Omar Petra

{s} wants short answers without {v}
Answers for {s} should be short, with no {v}
Keep answers to {s} short and leave out {v}
emoji tables apologies jargon footnotes

{s} plays the {v} on weekends
On weekends {s} plays the {v}
The instrument {s} plays on weekends is the {v}
cello oboe trumpet guitar piano

{s} deploys only on {v}
Deployments by {s} happen only on {v}
{v} is the only day on which {s} deploys
Monday Tuesday Wednesday Thursday Friday

The deadline of {s} for the report is {v}
{s} must hand in the report by {v}
The report of {s} is due {v}
Easter midsummer Halloween Christmas payday

{s} decided to store sessions in {v}
The decision of {s} is to keep sessions in {v}
Sessions are kept in {v}, {s} decided
Redis Postgres cookies memory DynamoDB

{s} learned that retries need {v}
Retries need {v}, as {s} found out
What {s} learned about retries: they need {v}
backoff jitter limits logging patience
"""
HELD_OUT = """
{s} supports {v} in football
In football {s} is a fan of {v}
The football club {s} supports is {v}
Ajax Benfica Celtic Porto Sevilla

{s} takes the {v} to work
To get to work {s} takes the {v}
{s} commutes to work by {v}
train tram ferry bicycle scooter

The laptop of {s} runs {v}
{s} has {v} on the laptop
{v} is what the laptop of {s} runs
Debian Fedora Arch Windows NixOS

{s} is learning to speak {v}
{s} takes lessons to speak {v}
The language {s} is learning to speak is {v}
Welsh Korean Greek Swahili Danish

{s} keeps a {v} as a pet
The pet of {s} is a {v}
{s} has a {v} for a pet
parrot hamster tortoise ferret gecko

The flight of {s} leaves from {v}
{s} flies from {v}
{v} is where the flight of {s} leaves from
Zurich Madrid Munich Warsaw Milan

{s} reviews pull requests in the {v}
Pull requests are reviewed by {s} in the {v}
In the {v} {s} does reviews of pull requests
morning afternoon evening night weekend

{s} chose {v} for the charts
For the charts {s} picked {v}
The chart library {s} chose is {v}
Plotly Vega Bokeh Chartist Highcharts

The doctor told {s} to avoid {v}
{s} should avoid {v}, said the doctor
On the advice of the doctor {s} avoids {v}
salt sugar alcohol gluten caffeine

{s} pays the rent on the {v}
The rent of {s} is paid on the {v}
On the {v} {s} pays the rent
first third tenth fifteenth last

{s} found a bug in the {v} parser
There is a bug in the {v} parser, found by {s}
The {v} parser has a bug that {s} found
date address invoice header token

The team of {s} builds the {v} service
{s} belongs to the team that builds the {v} service
The {v} service is built by the team of {s}
billing search login mail export
"""
PEOPLE = (
    "Alice Bruno Chen Dalia Emeka Farah Goran Hilda Ivan Joanna Karim Leila Marek Nadia Olga Pavel Quinn Rosa Stefan "
    "Tariq Ulla Vera Wanda Xavier Yara Zoltan Anders Bianca Cedric Dorota"
).split()


class Fact(NamedTuple):
    """A fact: its family, its subject and its value; `wordings` render it."""

    family: int
    who: str
    value: str
    wordings: tuple[str, ...]


def facts(table: str) -> list[Fact]:
    """A fact of every family about every subject; values repeat."""
    found: list[Fact] = []
    for family, lines in enumerate(table.strip().split("\n\n")):
        *wordings, values = lines.splitlines()
        for at, who in enumerate(PEOPLE):
            found.append(worded(family, who, values.split()[(at + family) % 5], wordings))
    return found


def newer(table: str, fact: Fact) -> Fact:
    """The same fact about the same subject with another value."""
    *wordings, values = table.strip().split("\n\n")[fact.family].splitlines()
    known = values.split()
    return worded(fact.family, fact.who, known[(known.index(fact.value) + 1) % len(known)], wordings)


def worded(family: int, who: str, value: str, wordings: list[str]) -> Fact:
    """The fact in all its wordings."""
    return Fact(family, who, value, tuple(wording.format(s=who, v=value) for wording in wordings))
