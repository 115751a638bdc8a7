"""The state that all transactions of a store share."""

from kernel.store.context import StoreContext


def test_without_a_model_a_store_has_neither_embedder_nor_dialects() -> None:
    context = StoreContext({"kernel.index.drop": "DELETE"})
    assert (context.embedder, context.dialects, [*context.copies()]) == (None, (), [])
