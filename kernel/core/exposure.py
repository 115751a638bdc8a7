"""The name by which other devices reach a server, as `quipu expose` keeps it in the data directory."""

from pathlib import Path

import msgspec

from kernel.core.config import Config
from kernel.core.data_dir import make_private, write_private
from kernel.core.errors import Fault

FILE = "expose.json"


class Exposure(msgspec.Struct, frozen=True):
    """The public name, and the addresses of proxies whose `X-Forwarded-For` counts."""

    host: str
    proxies: tuple[str, ...]


def read(data: Path) -> Exposure | None:
    """Return the stored name and proxies, None for none; raises Fault("invalid") if it cannot be read."""
    try:
        return msgspec.json.decode((data / FILE).read_bytes(), type=Exposure)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        raise Fault("invalid", f"{data / FILE} cannot be read: `quipu expose --off` removes it.") from None


def write(data: Path, exposure: Exposure) -> None:
    """Stores it in a file that only its owner can read."""
    make_private(data)
    write_private(data / FILE, msgspec.json.format(msgspec.json.encode(exposure)) + b"\n")


def applied(config: Config, exposure: Exposure) -> Config:
    """Return the configuration with a public name; the environment comes first."""
    return config._replace(
        public=config.public or f"https://{exposure.host}",
        allowed_hosts=(*config.allowed_hosts, exposure.host),
        proxies=config.proxies or exposure.proxies,
    )
