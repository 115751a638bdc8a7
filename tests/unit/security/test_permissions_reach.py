"""Places of keys: their forms, and their content."""

import pytest

from kernel.core.errors import Fault
from kernel.security.permissions import Reach, parse

FORMS = {"paths": ("FOLDER",), "brain": ("DATABASE",), "graph": ()}


def test_a_place_holds_itself_and_all_below_it() -> None:
    places = Reach(frozenset({"brain"}), frozenset({"paths:work", "paths:a/b"})).readable
    held = {place: places.hold("paths", place) for place in ("work", "work/x", "workshop", "a", "a/b/c", "", None)}
    assert held == {"work": True, "work/x": True, "workshop": False, "a": False, "a/b/c": True, "": False, None: False}
    assert [places.hold(name, None) for name in ("brain", "graph")] == [True, False]
    assert [places.enter("paths", name) for name in ("", "a", "b", "work/x")] == [True, True, False, True]
    assert [places.whole(name) for name in ("brain", "paths", "graph")] == [True, False, False]


def test_a_whole_dialect_holds_more_than_a_place_in_it() -> None:
    assert Reach(frozenset({"paths:work", "paths"}), frozenset()).readable.hold("paths", "diary")
    assert not Reach(frozenset({"paths"}), frozenset({"paths:work"})).writable.hold("paths", "diary")


def test_names_are_kept_in_one_form() -> None:
    assert parse(["paths:caf\u0065\u0301/", "brain", "brain"], FORMS, "--read") == ("brain", "paths:caf\u00e9")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("diary", "--read: 'diary' must begin with one of brain, graph, paths."),
        ("paths:", "--read: 'paths:' must be paths or paths:FOLDER."),
        ("paths:a\nb", "--read: 'paths:a\\nb' must be paths or paths:FOLDER."),
        ("graph:a", "--read: 'graph:a' must be graph."),
    ],
)
def test_a_name_that_is_no_place_is_refused_with_the_forms(name: str, message: str) -> None:
    with pytest.raises(Fault) as caught:
        parse([name], FORMS, "--read")
    assert caught.value.message == message
