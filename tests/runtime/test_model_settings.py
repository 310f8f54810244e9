"""Settings of the model endpoint: what is refused at the start, and which models somebody has named."""

import pytest

from temporal_supervisor.runtime.settings import load_settings


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("", {}),
        ('{"temperature": 0.2}', {"temperature": 0.2}),
        ('{"chat_template_kwargs": {"enable_thinking": false}}', {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_further_fields_are_a_json_object(monkeypatch: pytest.MonkeyPatch, value: str, fields: object) -> None:
    monkeypatch.setenv("SUPERVISOR_MODEL_EXTRA", value)
    assert load_settings().endpoint_options()["extra"] == fields


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("temperature=0.2", 'write a JSON object, such as {"temperature": 0.2}'),
        ("[1]", "write a JSON object"),
        ("[" * 4000, "write a JSON object"),
        ('{"a": "' + "x" * 4096 + '"}', "it has more than 4096 bytes"),
        *((f'{{"{name}": 1}}', f"are the program's own: {name}") for name in ("model", "messages", "system", "tools")),
        ('{"stream": true, "max_tokens": 1}', "are the program's own: max_tokens, stream"),
    ],
)
def test_what_is_no_further_field_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str, says: str
) -> None:
    monkeypatch.setenv("SUPERVISOR_MODEL_EXTRA", value)
    with pytest.raises(ValueError, match="^SUPERVISOR_MODEL_EXTRA") as refused:
        load_settings()
    assert says in str(refused.value)


def test_the_models_that_somebody_named_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    settings = load_settings()
    assert (settings.chosen_models, settings.asks_endpoint) == ([], True)
    monkeypatch.setenv("SUPERVISOR_WORKER_MODEL", "small, large")
    assert load_settings().chosen_models == ["small", "large"]


@pytest.mark.parametrize(
    "environ", [{"ANTHROPIC_BASE_URL": ""}, {"SUPERVISOR_MODEL": "standin"}, {"SUPERVISOR_MODEL_ASK": "off"}]
)
def test_an_endpoint_that_is_known_is_not_asked(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name, value in {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", **environ}.items():
        monkeypatch.setenv(name, value)
    assert load_settings().asks_endpoint is False
