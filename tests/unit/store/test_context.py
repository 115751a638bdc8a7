"""The provenance of a call, and the state that all transactions of a store share."""

from kernel.store.context import CallContext, StoreContext


def test_a_row_names_the_dialect_the_tool_and_the_actor() -> None:
    call = CallContext("paths", "add_memory", "claude", key="k1")
    assert call.writer == ("paths", "add_memory", "claude")


def test_without_a_model_a_store_has_neither_embedder_nor_dialects() -> None:
    context = StoreContext({"kernel.index.drop": "DELETE"})
    assert (context.embedder, context.dialects, [*context.copies()]) == (None, (), [])
