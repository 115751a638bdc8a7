"""One browser for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.ui.browser import Browser, browsing, programs

FOUND = programs()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert FOUND, "no chromedriver and Chromium: `make test-ui` unpacks Debian's"
    with browsing(*FOUND, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The browser; logs and requests of earlier tests do not count."""
    chromium.logged("browser")
    chromium.requested()
    chromium.look()
    return chromium
