"""The stores of LangGraph and LangMem, and the graphs of Graphiti and Zep, as JSON; their rows become those of COGX."""

from collections.abc import Iterator

import msgspec

from handlers.importers import cogx
from handlers.importers.programs import Export, unless_deleted
from handlers.importers.records import (
    CREATED,
    UPDATED_AT,
    Item,
    LeftOut,
    Values,
    clean_line,
    filled,
    is_deleted,
    list_in,
    mapping_in,
    other_members,
    text_of,
    texts_in,
    time_in,
)
from kernel.memories.json_rows import Element

LANGGRAPH, GRAPHITI = "langgraph", "graphiti"
_TEXTS = ("content", "memory", "text", "data")
_ITEM = ("namespace", "prefix", "key", "value", *CREATED, *UPDATED_AT)
_TIMES = ("created_at", "updated_at")
_FACT = ("uuid", "fact", "name", "source_node_uuid", "target_node_uuid", "valid_at", "invalid_at", "expired_at")
_NODE = ("uuid", "name", "labels", "summary", "attributes")
_EPISODE = ("uuid", "content")


def _stored(element: Element, name: str) -> Iterator[Item]:
    """Yield the memory of an item: its text, or all of its values; LangMem has them below `content`, and a `kind`."""
    row = element.row
    if row and all(isinstance(part, list) for part in row.values()):  # of claude-flow, a list for each namespace
        for namespace, part in ((namespace, part) for namespace, parts in row.items() for part in list_in(parts)):
            inner = {"namespace": namespace, **mapping_in(part)} if isinstance(part, dict) else part
            yield from _stored(element._replace(value=inner), name)
        return
    if "value" not in row or "key" not in row:
        yield LeftOut("has no key and value", element.place, is_damage=True)
        return
    value, labels = mapping_in(row["value"]), _labels(row.get("namespace") or row.get("prefix"))
    inner = mapping_in(value.get("content")) if "kind" in value else {}
    values = inner or value or {"content": row["value"]}
    values = {name: _joined(part) if name in _TEXTS else part for name, part in values.items()}
    member = next((member for member in _TEXTS if text_of(values, member)), "")
    more = other_members(values, member) if member else {}
    translated = {
        "external_id": "/".join(map(_escaped, (*labels, str(row["key"])))),
        "content": text_of(values, member) if member else "\n".join(_lines(values)),
        "metadata": {**other_members(row, *_ITEM), **more, **filled({"namespace": "/".join(labels)})},
        "created_at": time_in(row, *CREATED),
        "updated_at": time_in(row, *UPDATED_AT),
    }
    category = clean_line(text_of(value, "kind") if inner else "", 100)
    yield unless_deleted(row, cogx.base(translated, LANGGRAPH, "item", name)._replace(category=category))


def _joined(value: object) -> object:
    """Return lines of a file, as agents keep files in a store, as a text; another value as it is."""
    lines = list_in(value)
    return "\n".join(lines) if lines and all(isinstance(line, str) for line in lines) else value


def _labels(namespace: object) -> list[str]:
    """Return the labels of a namespace: a list, also as JSON, or a text that is the only label."""
    is_label = isinstance(namespace, str) and not namespace.lstrip().startswith("[")
    return [namespace] if is_label else [str(label) for label in list_in(namespace) or texts_in(namespace)]


def _escaped(label: str) -> str:
    """Return a label without the mark between labels, so that no two namespaces and keys are one id."""
    return label.replace("%", "%25").replace("/", "%2F")


def _lines(values: Values) -> Iterator[str]:
    for name, value in filled(values).items():
        yield f"{name}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"


def _of_graph(element: Element, name: str) -> Iterator[Item]:
    """Yield a fact with its validity, an entity, or the text of an episode."""
    row = element.row
    if is_deleted(row):
        yield unless_deleted(row, cogx.base(_whole(row, {}, ()), GRAPHITI, "fact", name))
    elif text_of(row, "fact"):
        fact = {
            "fact_text": row["fact"],
            "predicate": row.get("name"),
            "subject_ref": row.get("source_node_uuid"),
            "object_ref": row.get("target_node_uuid"),
            "valid_at": row.get("valid_at"),
            "invalid_at": row.get("invalid_at") or row.get("expired_at"),
        }
        yield from cogx.fact(fact, cogx.base(_whole(row, fact, _FACT), GRAPHITI, "fact", name))
    elif text_of(row, "content"):
        episode = _whole(row, {"content": row["content"]}, _EPISODE)
        yield cogx.base(episode, GRAPHITI, "episode", name)._replace(category="episode")
    elif text_of(row, "name"):
        label = next((label for label in list_in(row.get("labels")) if label != "Entity"), "")
        node = {
            "name": row["name"],
            "description": row.get("summary"),
            "entity_type": label,
            "attributes": row.get("attributes"),
        }
        yield from cogx.entity(node, cogx.base(_whole(row, node, _NODE), GRAPHITI, "entity", name))
    else:
        yield LeftOut("has no fact, content or name", element.place, is_damage=True)


def _whole(row: Values, translated: Values, placed: tuple[str, ...]) -> Values:
    """Return a row with its id, its times, and the members without a place as metadata."""
    more = other_members(row, *placed, *_TIMES)
    return {
        **translated,
        "external_id": row.get("uuid"),
        "metadata": more,
        **{time: row.get(time) for time in _TIMES},
    }


EXPORTS = {
    LANGGRAPH: Export(("items", "results"), (), _stored),
    GRAPHITI: Export(("edges", "facts", "nodes", "episodes"), (), _of_graph),
}
