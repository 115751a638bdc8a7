"""Values that fit a JSON schema of ours, the edges of its ranges, and values that do not."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Schema = Mapping[str, Any]
Values = st.SearchStrategy[Any]
_EDGES: Mapping[str, tuple[Any, ...]] = {
    "string": (
        "",
        " ",
        "a",
        "\0",
        "\n",
        "---",
        "null",
        "0",
        "true",
        "\u202eabc",
        "😀" * 20,
        "日本語",
        "e\u0301",
        "\ufeff",
        "x" * 4097,
        "word " * 300,
        "'; DROP TABLE doc; --",
        '" OR 1=1',
        "title:x NEAR(",
        "%_\\",
        "../../etc/passwd",
        "{{7*7}}",
        "\x1b[31m",
        "\ufffe",
        "a\u2028b",
        "[[" * 50,
    ),
    "integer": (0, -1, 1, 2, 5, 100, 1000, 1001, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30),
    "number": (0, -1, 0.5, 1, 1.5, -0.0, 1e308, 5e-324, 2**53, 1e-9, 100),
    "boolean": (True, False),
    "null": (None,),
}
WRONG: tuple[Any, ...] = (
    7,
    -1,
    1.5,
    True,
    "",
    "x",
    " ",
    [],
    [[]],
    {},
    {"a": 1},
    [None],
    2**63,
    10**30,
    "x" * 70_000,
    [{}] * 3,
    "\0",
)


def fitting(schema: Schema, root: Schema | None = None) -> Values:
    """Values that fit the schema, its edges before all else."""
    root = root or schema
    if "$ref" in schema:
        return st.deferred(lambda: fitting(root["$defs"][schema["$ref"].rpartition("/")[2]], root))
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    if "anyOf" in schema:
        return st.one_of([fitting(choice, root) for choice in schema["anyOf"]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return st.one_of([fitting({**schema, "type": one}, root) for one in kind])
    if kind == "object":
        return _object(schema, root)
    if kind == "array":
        most = min(schema.get("maxItems", 4), 4)
        return st.lists(fitting(schema.get("items", {}), root), min_size=schema.get("minItems", 0), max_size=most)
    return _scalar(schema, str(kind)) if kind else st.one_of([_scalar({}, one) for one in _EDGES])


def _object(schema: Schema, root: Schema) -> Values:
    named = {name: fitting(shape, root) for name, shape in schema.get("properties", {}).items()}
    needed = {name: named.pop(name) for name in schema.get("required", [])}
    whole = st.fixed_dictionaries(needed, optional=named)
    more = schema.get("additionalProperties", True)
    if more is False or named or needed:
        return whole
    return st.dictionaries(st.sampled_from(["a", "", "b c", "é"]), fitting(more if more is not True else {}, root))


def _scalar(schema: Schema, kind: str) -> Values:
    fits = Draft202012Validator(schema).is_valid
    edges = [schema[edge] for edge in ("minimum", "maximum") if edge in schema]
    edges += ["x" * schema[edge] for edge in ("minLength", "maxLength") if edge in schema]
    known = [value for value in (*edges, *_EDGES[kind]) if fits(value)]
    if "pattern" in schema and not known:
        return st.from_regex(schema["pattern"])
    free: dict[str, Values] = {"string": st.text(max_size=60), "integer": st.integers(), "number": st.floats(-1e9, 1e9)}
    drawn = free.get(kind)
    return st.one_of(st.sampled_from(known), drawn.filter(fits)) if drawn is not None else st.sampled_from(known)


def unfit(schema: Schema, root: Schema) -> list[Any]:
    """Values that do not fit the schema of a property; null is left out, which often means that nothing was given."""
    validator = Draft202012Validator({**schema, "$defs": root.get("$defs", {})})
    return [value for value in WRONG if not validator.is_valid(value)]
