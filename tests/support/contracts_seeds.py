"""Calls, values and checks that several tests of seeds share."""

from tests.contracts.seed_texts import Contract, contracts

CONTRACTS = contracts()


def contract(dialect: str, name: str) -> Contract:
    (found,) = (tool for tool in CONTRACTS[dialect] if tool.name == name)
    return found
