"""The methods of /v1/memory_stores by the vendor's Python SDK: a call a line in, its answer a line out, as JSON.

Run by a Python that has the SDK, with the address and a key as its arguments. A call is the name of a method below
`beta.memory_stores`, its positional and its named arguments. A list is answered page by page.
"""

import importlib
import json
import sys
from functools import reduce
from typing import Any

SDK: Any = importlib.import_module("anthropic")


def main(address: str, key: str) -> None:
    stores = SDK.Anthropic(base_url=address, api_key=key, max_retries=0).beta.memory_stores
    for line in sys.stdin:
        name, positional, named = json.loads(line)
        named = {field.replace("[", "_").removesuffix("]"): value for field, value in named.items()}
        try:
            found = reduce(getattr, name.split("."), stores)(*positional, **named)
            answer = shown(found, listed=name.endswith("list"))
        except SDK.APIStatusError as error:
            body: Any = error.body
            answer = {"status": error.status_code, "type": error.type, "error": body["error"]}
            answer |= {"id": error.request_id, "id in the body": body["request_id"]}
        print(json.dumps(answer), flush=True)


def shown(found: Any, *, listed: bool) -> Any:
    if listed:
        return [[item.to_dict(mode="json") for item in page.data] for page in found.iter_pages()]
    return found.to_dict(mode="json")


if __name__ == "__main__":
    main(*sys.argv[1:])
