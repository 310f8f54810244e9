"""Messages for questions that the stand-in can't answer, with three ways to use a real model."""

NEEDS_MODEL = "This needs a model"
STANDIN_LIMITS = "The stand-in looks up values and sentences, it does not reason."
WAYS_TO_A_MODEL = (
    "a key: `export ANTHROPIC_API_KEY=sk-ant-...`",
    "a model on this machine: `export ANTHROPIC_BASE_URL=http://127.0.0.1:11434` "
    "(Ollama; llama.cpp has port 8080, LM Studio 1234)",
    "any server with the Messages API: "
    "`export ANTHROPIC_BASE_URL=https://... ANTHROPIC_AUTH_TOKEN=...`",
)
AFTERWARDS = "Then unset SUPERVISOR_MODEL if it is set, and start the demo or the Worker again."


def ways_to_a_model() -> list[str]:
    """Returns the ways to a real model as numbered lines, and a line on the next step."""
    numbered = [f"{number}. {way}" for number, way in enumerate(WAYS_TO_A_MODEL, 1)]
    return ["Three ways to a model:", *numbered, AFTERWARDS]
