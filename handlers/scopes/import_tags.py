"""Attaches the tags and relations of an import, after all its entries are written."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import RelationItem, TagItem, as_list, convert, timestamp
from handlers.scopes.import_scopes import Problem
from handlers.scopes.relations import RELATION_SPACE
from handlers.scopes.results import EntryTag, Relation
from handlers.scopes.tags import TAG_SPACE, id_by_name
from handlers.scopes.targets import LABELS
from kernel.store import history
from kernel.store.long_work import Steps
from kernel.store.transaction import Tx

_CHUNK = 100  # items between two steps: some 20 ms


class Tagging(NamedTuple):
    """An entry or a project, and its tags and relations in the document; None changes nothing.

    With `exact`, tags and relations that the document does not have are removed.
    """

    kind: str
    id: str
    label: str
    tags: Sequence[str] | None
    relations: Sequence[RelationItem] | None
    exact: bool


class Attached(NamedTuple):
    """The result of `attach_all`: the problems found, and the ids of the items that got or lost a tag or a relation."""

    problems: list[Problem]
    changed_ids: set[str]


def attach_all(
    tx: Tx, definitions: Any, tagged: Sequence[Tagging], ids: Mapping[tuple[str, str], str]
) -> Steps[Attached]:
    """Attaches tags, created as the document defines them if missing, and relations: a chunk a step.

    `ids` maps kind and id of an entry in the document to its id here. A relation without an existing
    target is a problem.
    """
    defined, problems = _parse_definitions(definitions)
    _tag_ids(tx, defined, list(defined))
    changed: set[str] = set()
    for start in range(0, len(tagged), _CHUNK):
        tx = yield
        chunk = tagged[start : start + _CHUNK]
        known = _tag_ids(tx, defined, [name for one in chunk for name in one.tags or ()])
        taken = {link.id for one in chunk for link in one.relations or () if link.id is not None}
        used = set(tx.all("scopes.import_tags.used_relation_ids", str, ids=list(taken)))
        for one in chunk:
            if one.tags is not None and _attach(tx, one, [known[name] for name in one.tags]):
                changed.add(one.id)
            if one.relations is not None and _relate(tx, one, ids, used, problems):
                changed.add(one.id)
    return Attached(problems, changed)


def _parse_definitions(definitions: Any) -> tuple[dict[str, TagItem], list[Problem]]:
    defined: dict[str, TagItem] = {}
    problems: list[Problem] = []
    for number, raw in enumerate(as_list(definitions)):
        try:
            found = convert(raw, TagItem)
            found.created_at = timestamp("createdAt", found.created_at)
            found.name = normal_name(found.name)
            if not found.name:
                raise ValueError("Validation error: name - must not be blank")
            defined[found.name] = found
        except ValueError as error:
            problems.append(Problem(f"tags[{number}]", str(error)))
    return defined, problems


def _tag_ids(tx: Tx, defined: Mapping[str, TagItem], names: Sequence[str]) -> dict[str, str]:
    """Return the id of each tag, created if missing."""
    known: dict[str, str] = {}
    for given in dict.fromkeys(names):
        name = normal_name(given)
        known[given] = id_by_name(tx, name) or _add_tag(tx, defined.get(name) or TagItem(name))
    return known


def _add_tag(tx: Tx, tag: TagItem) -> str:
    columns = {
        "name": tag.name,
        "fold": tag.name.casefold(),
        "category": tag.category,
        "predefined": tag.is_predefined,
        "description": tag.description,
        "now": tag.created_at or tx.now,
    }
    fresh = tx.new_id("tag")
    kept = tag.id and tx.one("scopes.import_tags.add_tag", str, id=tag.id, **columns)
    return kept or tx.one("scopes.import_tags.add_tag", str, id=fresh, **columns) or fresh


def _attach(tx: Tx, one: Tagging, tags: Sequence[str]) -> int:
    """Attaches the tags of one item. The number of tags that it got and lost."""
    changed = 0
    for tag in tags:
        key = {"type": one.kind, "entry_id": one.id, "tag_id": tag}
        changed += tx.run("scopes.tags.attach", id=tx.new_id("et"), now=tx.now, **key)
    if one.exact:
        removed = tx.all("scopes.import_tags.detach_others", EntryTag, kind=one.kind, id=one.id, tags=tags)
        for row in removed:
            history.append(tx, TAG_SPACE, row.id, "detached", before=msgspec.json.encode(row).decode())
        changed += len(removed)
    return changed


def _relate(tx: Tx, one: Tagging, ids: Mapping[tuple[str, str], str], used: set[str], problems: list[Problem]) -> int:
    """Adds the relations of one item. The number of those added and removed.

    `used` are the relation ids that are taken. A relation that is left out is added to `problems`.
    """
    changed = 0
    kept: list[str] = []
    for link in one.relations or ():
        target = ids.get((link.target_type, link.target_id), link.target_id)
        try:
            created_at = _checked_time(tx, link, target)
        except ValueError as error:
            problems.append(Problem(one.label, str(error)))
            continue
        ends = {
            "source_type": one.kind,
            "source_id": one.id,
            "target_type": link.target_type,
            "target_id": target,
            "relation_type": link.relation_type,
        }
        number = link.id if link.id is not None and link.id not in used else tx.new_id("rel")
        added = tx.one("scopes.relations.add", Relation, id=number, now=created_at, created_by=link.created_by, **ends)
        found = added or tx.one("scopes.relations.get", Relation, **ends)
        used.add(number)
        changed += added is not None
        kept += [found.id] if found else []
    if one.exact:
        removed = tx.all("scopes.import_tags.delete_other_relations", Relation, kind=one.kind, id=one.id, kept=kept)
        for row in removed:
            history.append(tx, RELATION_SPACE, row.id, "deleted", before=msgspec.json.encode(row).decode())
        changed += len(removed)
    return changed


def _checked_time(tx: Tx, link: RelationItem, target: str) -> str:
    """Return the creation time of a relation; raises ValueError if its target type, time or target is invalid."""
    if link.target_type not in LABELS:
        unknown = f"relations.targetType - {link.target_type} is not one of {', '.join(LABELS)}"
        raise ValueError(f"Relation {link.relation_type} left out: {unknown}")
    created_at = timestamp("relations.createdAt", link.created_at) or tx.now
    if not tx.one("scopes.targets.exists", int, kind=link.target_type, id=target):
        missing = f"{LABELS[link.target_type]} not found: {link.target_id}"
        raise ValueError(f"Relation {link.relation_type} left out: {missing}")
    return created_at
