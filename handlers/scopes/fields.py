"""The arguments that several tools of `scopes` take, with their bounds."""

from typing import Annotated, Any

from msgspec import Meta

MAX_TEXT = 1_048_576
MAX_NAME = 1024
MAX_ID = 256
_NO_NUL = r"^[^\x00]*$"
_NOT_BLANK = r"^\s*[^\s\x00][^\x00]*$"

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID, pattern=_NO_NUL)]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=_NOT_BLANK)]
Label = Annotated[str, Meta(max_length=MAX_NAME, pattern=_NO_NUL)]
Text = Annotated[str, Meta(max_length=MAX_TEXT, pattern=_NO_NUL)]
Said = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, pattern=_NO_NUL)]
Time = Annotated[str, Meta(max_length=64, pattern=_NO_NUL)]
Object = dict[str, Any]

Page = Annotated[int, Meta(description="Most rows to return; 100 at most are", ge=0, le=2**31)]
Offset = Annotated[int, Meta(description="Rows to skip", ge=0, le=2**53)]
ScopeId = Annotated[Id | None, Meta(description="Id of the org, project or session; needed unless scopeType is global")]
CAP = 100


def window(limit: int, offset: int) -> dict[str, int]:
    """The page a statement is to return; more than `CAP` rows never come at once."""
    return {"limit": min(limit, CAP), "offset": offset}
