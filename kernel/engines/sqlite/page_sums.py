"""The checksums that earlier releases expect at the end of each page, for the copy that one of them may go back to."""

from pathlib import Path

_HEADER_BYTES = 21  # as far as the number of bytes that are reserved in each page
_SUMS_BYTES = b"\x08"
_PAGES_AT_ONCE = 256  # 1 MB, which stays in the cache of a core


def write_page_sums(file: Path) -> None:
    """Write the checksums of a file with room for them: two sums of the 32-bit words of a page.

    SQLite keeps that room, but writes no sums into it: sqlite.org/cksumvfs.html.
    """
    with file.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    if header[20:] != _SUMS_BYTES:
        return
    import numpy as np

    count = int.from_bytes(header[16:18]) // 4
    words = np.memmap(file, "<u4", "r+")
    for at in range(0, len(words), count * _PAGES_AT_ONCE):
        pages = words[at : at + count * _PAGES_AT_ONCE].reshape(-1, count)
        sums = np.zeros((2, len(pages)), np.uint32)
        for word in range(0, count - 2, 2):
            sums[0] += pages[:, word] + sums[1]
            sums[1] += pages[:, word + 1] + sums[0]
        pages[:, -2:] = sums.T
    words.flush()
