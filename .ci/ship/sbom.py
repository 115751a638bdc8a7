"""Prints the bill of materials of the server as CycloneDX 1.6: the locked packages, the model, the SQLite in apsw.

Versions and hashes are those of `.ci/runtime.lock`; licences and dependencies are what this environment knows of them.
"""

import hashlib
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "kernel" / "model" / "static-multilingual-256-int8"
_LOCKED = re.compile(r"^([\w.-]+)==(\S+)(?: ; ([^\\]+?))? \\$((?:\n +--hash=sha256:[0-9a-f]{64}(?: \\)?)+)", re.M)


def packages() -> dict[str, list[Component]]:
    """The components of the lock file by name; a name may stand there once for each version of Python."""
    found: dict[str, list[Component]] = {}
    for name, version, marker, hashes in _LOCKED.findall((ROOT / ".ci" / "runtime.lock").read_text(encoding="utf-8")):
        component = Component(
            name=name,
            version=version,
            bom_ref=f"{name}=={version}",
            purl=PackageURL("pypi", name=name, version=version),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in re.findall(r"[0-9a-f]{64}", hashes)],
            licenses=[licence(name)] if licence(name) else [],
            properties=[Property(name="quipu:where", value=marker)] if marker else [],
        )
        found.setdefault(name, []).append(component)
    return found


def licence(name: str) -> License | None:
    """The licence a package names, as its words or its classifiers have it."""
    try:
        about = metadata(name)
    except PackageNotFoundError:  # not for this system
        return None
    classes = [line for line in about.get_all("Classifier", []) if line.startswith("License :: OSI Approved :: ")]
    words = about.get("License-Expression") or about.get("License") or " AND ".join(map(_last, classes))
    return LicenseFactory().make_from_string(words) if words and "\n" not in words else None


def _last(classifier: str) -> str:
    return classifier.rpartition(" :: ")[2]


def needs(name: str) -> list[str]:
    """The packages that a package asks for here."""
    try:
        asked = [Requirement(line) for line in metadata(name).get_all("Requires-Dist", [])]
    except PackageNotFoundError:
        return []
    return [canonicalize_name(one.name) for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]


def engine(apsw: Component) -> Component:
    """SQLite, which is compiled into a package of nearly the same version."""
    version = (apsw.version or "").rpartition(".")[0]
    return Component(
        name="sqlite",
        version=version,
        bom_ref="sqlite",
        purl=PackageURL("generic", name="sqlite", version=version),
        licenses=[LicenseFactory().make_from_string("blessing")],
        description="Compiled into apsw",
    )


def model() -> Component:
    """The embedding model that lies in the package."""
    weights = hashlib.sha256((MODEL / "model.safetensors").read_bytes()).hexdigest()
    return Component(
        name=MODEL.name,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=MODEL.name,
        licenses=[LicenseFactory().make_from_string("Apache-2.0 AND MIT")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=weights)],
        description="Static embeddings derived from three encoders; kernel/model/README.md says how",
    )


def main() -> int:
    """Prints it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    server = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        licenses=[LicenseFactory().make_from_string(project["license"])],
        description=project["description"],
    )
    locked = packages()
    locked["sqlite"], locked[MODEL.name] = [engine(locked["apsw"][0])], [model()]
    asked = {name: needs(name) for name in locked}
    asked["apsw"].append("sqlite")
    direct = [MODEL.name, *(canonicalize_name(Requirement(line).name) for line in project["dependencies"])]
    bom = Bom(components=[one for versions in locked.values() for one in versions])
    bom.metadata.component = server
    bom.register_dependency(server, [one for name in direct for one in locked[name]])
    for name, versions in locked.items():
        for version in versions:
            bom.register_dependency(version, [one for need in asked[name] for one in locked.get(need, [])])
    sys.stdout.write(JsonV1Dot6(bom).output_as_string(indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
