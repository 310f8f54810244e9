"""Tools made of plain functions, tried as a Worker would run them."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from temporal_supervisor import Tool, ToolContext, ToolMisuse, ToolOutput, call_tool, tool


@tool
def weigh(
    pears: Annotated[int, Field(ge=1, description="How many pears.")],
    unit: str = "g",
) -> str:
    """Weighs pears."""
    return f"{pears * 100} {unit}"


def test_the_schema_is_that_of_the_parameters() -> None:
    schema = weigh.schema()
    assert schema["properties"]["pears"]["description"] == "How many pears."
    assert schema["properties"]["pears"]["minimum"] == 1
    assert schema["properties"]["unit"]["default"] == "g"
    assert (schema["required"], schema["additionalProperties"]) == (["pears"], False)


def test_name_and_description_are_the_functions() -> None:
    assert isinstance(weigh, Tool)
    assert (weigh.name, weigh.description) == ("weigh", "Weighs pears.")


def test_it_stays_the_function_that_it_was() -> None:
    assert weigh(2, unit="kg") == "200 kg"


async def test_a_worker_calls_it_with_arguments_by_name() -> None:
    assert (await call_tool(weigh, pears=3)).text == "300 g"


async def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ToolMisuse, match="pears"):
        await call_tool(weigh, pears=0)
    with pytest.raises(ToolMisuse, match="apples"):
        await call_tool(weigh, pears=1, apples=1)


async def test_a_parameter_of_that_type_gets_the_context() -> None:
    @tool(name="note", description="Keeps a note.", effects="write")
    async def note_down(text: str, context: ToolContext) -> ToolOutput:
        read = await context.attachments["list"]()
        return ToolOutput(f"{text}, {read}", sources=[context.idempotency_key])

    output = await call_tool(note_down, attachments={"list": "two pears"}, text="bought")
    assert (output.text, output.sources) == ("bought, two pears", ["test:note"])
    assert (note_down.effects, list(note_down.schema()["properties"])) == ("write", ["text"])


async def test_lists_are_json_and_failures_are_named() -> None:
    @tool
    def orchard(tree: str) -> list[str]:
        """Lists the pears of a tree."""
        if tree != "old":
            raise LookupError("no such tree")
        return ["ripe", "unripe"]

    assert (await call_tool(orchard, tree="old")).text == '["ripe", "unripe"]'
    with pytest.raises(ToolMisuse, match="LookupError: no such tree"):
        await call_tool(orchard, tree="new")


def test_functions_of_which_none_can_be_made_are_refused_in_words() -> None:
    def untyped(title):  # type: ignore[no-untyped-def]
        """Finds."""

    def starred(*titles: str) -> None:
        """Finds."""

    def silent(title: str) -> None: ...

    cases: list[tuple[Any, str]] = [
        (untyped, "tool untyped, parameter 'title': it needs a type"),
        (starred, "tool starred, parameter 'titles': models give arguments by name"),
        (silent, "tool silent: it needs a docstring"),
    ]
    for function, problem in cases:
        with pytest.raises(TypeError, match=problem):
            tool(function)
