"""`.ci/ship/compose.yaml`, as far as it can be tried without containers."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.core.config import from_mapping
from kernel.server.app import open_kernel
from tests.postgres.calls import add

pytestmark = pytest.mark.postgres
FILE = Path(__file__).parents[2] / ".ci" / "ship" / "compose.yaml"


@pytest.fixture
def services() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]


def test_the_server_starts_with_the_settings_of_the_file(
    services: dict[str, Any], address: str, tmp_path: Path
) -> None:
    environment = dict(services["server"]["environment"])
    user = services["database"]["environment"]["POSTGRES_USER"]
    assert environment["QUIPU_STORE"] == f"postgresql://{user}@database/{user}"

    environment |= {"QUIPU_STORE": address, "QUIPU_DATA": str(tmp_path), "QUIPU_MODEL": "none"}
    kernel = open_kernel(from_mapping(environment))
    try:
        assert add(kernel, "a").fault is None
        assert kernel.config.open
    finally:
        kernel.store.close()


def test_only_this_machine_reaches_the_server_and_only_the_server_the_database(services: dict[str, Any]) -> None:
    whole = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    inside = [name for name, network in whole["networks"].items() if network.get("internal")]

    assert services["server"]["ports"] == ["127.0.0.1:7847:7847"]
    assert "ports" not in services["database"]
    assert services["database"]["networks"] == inside
    assert (FILE.parent / services["server"]["build"]["context"] / "Containerfile").is_file()
