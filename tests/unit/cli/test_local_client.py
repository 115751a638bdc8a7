"""JSON of a client that imports nothing for it, as the standard library reads and writes it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel.cli.local_client import read_json, write_json
from tests.unit.sql.code import ROOT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@given(VALUES, st.sampled_from(["", " ", "\n\t\r "]), st.booleans())
def test_any_value_is_read_as_by_the_standard_library(value: Any, blanks: str, ascii_only: bool) -> None:
    content = f"{blanks}{json.dumps(value, ensure_ascii=ascii_only)}{blanks}".encode("utf-8", "surrogatepass")
    assert read_json(content) == value
    assert read_json(b"\xef\xbb\xbf" + content) == value


@given(st.text(alphabet='{}[]",:\\u0123tfn -.e\x00', max_size=20))
@example('{"a":1} 2')
@example('{"a":1')
@example("")
def test_other_text_is_refused_as_by_the_standard_library(text: str) -> None:
    wanted: Any = ValueError
    with suppress(ValueError):
        wanted = json.loads(text)
    if wanted is ValueError:
        with pytest.raises(ValueError, match=r"."):
            read_json(text.encode())
    else:
        assert read_json(text.encode()) == wanted


def test_text_that_ends_early_is_refused_before_the_standard_library_is_imported() -> None:
    program = (
        "import sys\nfrom kernel.cli.local_client import read_json\nassert 'json.decoder' not in sys.modules\n"
        "try:\n    read_json(b'{')\nexcept ValueError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("no JSON\n", "")


@given(st.dictionaries(st.text(), st.text(st.characters())))
@example({"half": "\ud83d"})
def test_texts_are_written_as_by_the_standard_library(members: Mapping[str, str]) -> None:
    assert write_json(members) == json.dumps(members, separators=(",", ":")).encode()
