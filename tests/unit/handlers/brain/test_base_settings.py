"""The settings of brain, and the refused values."""

import pytest

from handlers.brain.base import SETTINGS
from kernel.calls.settings import read_settings
from kernel.core.errors import Fault


def test_without_a_word_the_databases_are_those_of_the_contract() -> None:
    found = read_settings(SETTINGS, {})

    assert found["QUIPU_BRAIN_DATABASES"] == ("core", "therapy", "dnd", "hlg")
    assert found["QUIPU_BRAIN_HALF_LIFE_DAYS"] == 30.0


def test_databases_are_named_once_each_in_their_order() -> None:
    found = read_settings(SETTINGS, {"QUIPU_BRAIN_DATABASES": "work, home,work,a-1_b"})

    assert found["QUIPU_BRAIN_DATABASES"] == ("work", "home", "a-1_b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QUIPU_BRAIN_DATABASES", ","),
        ("QUIPU_BRAIN_DATABASES", "Core"),
        ("QUIPU_BRAIN_DATABASES", "a b"),
        ("QUIPU_BRAIN_DATABASES", "core:memory"),
        ("QUIPU_BRAIN_DATABASES", "x" * 65),
        ("QUIPU_BRAIN_HALF_LIFE_DAYS", "0"),
        ("QUIPU_BRAIN_HALF_LIFE_DAYS", "nan"),
        ("QUIPU_BRAIN_DUPLICATE_DISTANCE", "3"),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Fault, match=name):
        read_settings(SETTINGS, {name: value})
