"""Fixture tools and a prompt that need the client before they can answer."""

from collections.abc import Callable, Mapping
from typing import Any

from kernel.calls.tools import Hints, InputRequired, Interaction, Prompt, PromptMessage, Tool, read
from tests.contracts.conformance.content import Block, Nothing, text

Input = Mapping[str, Any]


def elicit(message: str, field: str, kind: str) -> Input:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(question: str, tokens: int) -> Input:
    message = {"role": "user", "content": text(question)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


def accepted(turn: Interaction, key: str) -> Input | None:
    """Return the input of the user, or None if the client has not brought it."""
    answer = turn.answers.get(key)
    if isinstance(answer, dict) and answer.get("action") == "accept" and isinstance(answer.get("content"), dict):
        return answer["content"]
    return None


ROOTS: Input = {"method": "roots/list", "params": {}}
NAME = {"user_name": elicit("What is your name?", "name", "string")}
CAPITAL = {"capital_question": sample("What is the capital of France?", 100)}
CONFIRM = {"confirm": elicit("Please confirm", "ok", "boolean")}
STEPS = (
    {"step1": elicit("Step 1: What is your name?", "name", "string")},
    {"step2": elicit("Step 2: What is your favorite color?", "color", "string")},
)
CONTEXT = {"user_context": elicit("What context should the prompt use?", "context", "string")}

Said = list[Block] | InputRequired


def test_input_required_result_elicitation(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks the user for a name."""
    answer = accepted(turn, "user_name")
    return InputRequired(NAME) if answer is None else [text(f"Hello, {answer.get('name')}!")]


def test_input_required_result_sampling(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks the client's model a question."""
    answer = turn.answers.get("capital_question")
    return [answer["content"]] if isinstance(answer, dict) and "content" in answer else InputRequired(CAPITAL)


def test_input_required_result_list_roots(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks the client for its roots."""
    answer = turn.answers.get("client_roots")
    if not isinstance(answer, dict) or "roots" not in answer:
        return InputRequired({"client_roots": ROOTS})
    return [text(f"{len(answer['roots'])} roots")]


def test_input_required_result_request_state(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks for a confirmation and hands out state to be brought back with it."""
    if turn.state is None or accepted(turn, "confirm") is None:
        return InputRequired(CONFIRM, "asked")
    return [text("state-ok")]


def test_input_required_result_multiple_inputs(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks for three things at once."""
    wanted = {**NAME, "greeting": sample("Greet the user.", 50), "client_roots": ROOTS}
    if turn.state is None or not wanted.keys() <= turn.answers.keys():
        return InputRequired(wanted, "asked")
    return [text("All three arrived.")]


def test_input_required_result_multi_round(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks twice, and remembers the first answer in its state."""
    if turn.state is None:
        return InputRequired(STEPS[0], {"step": 1})
    if turn.state["step"] == 1:
        answer = accepted(turn, "step1")
        return (
            InputRequired(STEPS[0], {"step": 1})
            if answer is None
            else InputRequired(STEPS[1], {"step": 2, "name": answer.get("name")})
        )
    answer = accepted(turn, "step2")
    if answer is None:
        return InputRequired(STEPS[1], turn.state)
    return [text(f"{turn.state['name']} likes {answer.get('color')}.")]


def test_input_required_result_tampered_state(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Hands out state that must come back unchanged."""
    return InputRequired(CONFIRM, "untouched") if turn.state is None else [text("The state is intact.")]


def test_input_required_result_capabilities(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks only for capabilities that the client declares."""
    wanted = {
        **(NAME if "elicitation" in turn.capabilities else {}),
        **(CAPITAL if "sampling" in turn.capabilities else {}),
    }
    if wanted and not wanted.keys() & turn.answers.keys():
        return InputRequired(wanted)
    return [text("Nothing to ask.")]


def test_missing_capability(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Needs the client's model, even if the client does not declare it."""
    return [text("Answered.")] if "capital_question" in turn.answers else InputRequired(CAPITAL)


def test_streaming_elicitation(tx: Any, request: Nothing, turn: Interaction) -> Said:
    """Asks the user within the response, never by a request of its own."""
    answer = accepted(turn, "user_name")
    return InputRequired(NAME) if answer is None else [text(f"Hello, {answer.get('name')}!")]


def test_input_required_result_prompt(
    tx: Any, arguments: Mapping[str, str], turn: Interaction
) -> list[PromptMessage] | InputRequired:
    answer = accepted(turn, "user_context")
    return (
        InputRequired(CONTEXT) if answer is None else [PromptMessage("user", text(f"Context: {answer.get('context')}"))]
    )


_HANDLERS: tuple[Callable[..., Said], ...] = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_tampered_state,
    test_input_required_result_capabilities,
    test_missing_capability,
    test_streaming_elicitation,
)
TOOLS: tuple[Tool, ...] = tuple(read(handler, Hints(short=True), interactive=True) for handler in _HANDLERS)
PROMPT = Prompt(
    "test_input_required_result_prompt",
    "A prompt that asks for its context first.",
    test_input_required_result_prompt,
    interactive=True,
)
