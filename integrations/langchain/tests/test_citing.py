"""Test agents whose answers cite the results of the tools that support them."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from agent_server import graph_of
from demur import Cite, Strip
from langchain_demur import HallucinationMiddleware, guarded_node
from support.held import HeldByNumbers


@tool
def year(question: str) -> str:
    """When it opened."""
    return "The Louvre opened in 1793."


@tool(response_format="content_and_artifact")
def works(question: str) -> tuple[str, list[Document]]:
    """How many works there are."""
    found = [Document("There are 35000 works.", id="w", metadata={"source": "https://art.example"})]
    return found[0].page_content, found


class Model(GenericFakeChatModel):
    """Give these messages one after the other."""

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


def calls(name: str, number: int, **args: Any) -> AIMessage:
    asked = args or {"question": "?"}
    call = {"name": name, "args": asked, "id": f"call-{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def agent(*says: AIMessage, **options: Any) -> Any:
    agents = {
        key: options.pop(key) for key in ("checkpointer", "response_format") if key in options
    }
    checks = HallucinationMiddleware(HeldByNumbers(), **{"on_pass": Cite(), **options})
    return create_agent(
        Model(messages=iter(says)), tools=[year, works], middleware=[checks], **agents
    )


def asked(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


SAID = AIMessage("It opened in 1793. It has 35000 works.")
CITED = "It opened in 1793 [1]. It has 35000 works [2]."


def test_a_citation_names_the_tool_and_the_call() -> None:
    found = agent(calls("year", 1), calls("works", 2), SAID).invoke(asked("Tell me of it."))
    last = found["messages"][-1]
    assert last.text == CITED
    first, second = last.response_metadata["demur"]["citations"]
    assert first["metadata"] == {"tool": "year", "tool_call_id": "call-1", "turn": 1}
    assert (first["title"], first["quote"]) == ("year", "The Louvre opened in 1793.")
    assert second["metadata"]["tool_call_id"] == "call-2"
    assert (second["id"], second["url"]) == ("w", "https://art.example")


async def test_natively_asynchronous_too() -> None:
    found = await agent(calls("year", 1), calls("works", 2), SAID).ainvoke(asked("Tell me."))
    assert found["messages"][-1].text == CITED


def test_a_stream_has_the_marks() -> None:
    modes: Any = ["messages", "updates", "values"]
    made = agent(calls("year", 1), calls("works", 2), SAID)
    heard = [*made.stream(asked("Tell me."), stream_mode=modes)]
    for mode in modes:
        assert CITED in str([one for one in heard if one[0] == mode])
    assert SAID.text not in str(heard)


def test_an_answer_may_rest_on_an_earlier_turn_and_says_on_which() -> None:
    says = (
        *(calls("year", 1), AIMessage("It opened in 1793.")),
        *(calls("works", 2), AIMessage("It has 35000 works. It opened in 1793.")),
    )
    made = agent(*says, conversation=True, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    made.invoke(asked("When?"), config)
    last = made.invoke(asked("How many, and when?"), config)["messages"][-1]
    assert last.text == "It has 35000 works [1]. It opened in 1793 [2]."
    told = last.response_metadata["demur"]["citations"]
    assert [(one["metadata"]["tool"], one["metadata"]["turn"]) for one in told] == [
        ("works", 2),
        ("year", 1),
    ]


def test_blocks_are_kept_in_the_state() -> None:
    made = agent(calls("year", 1), AIMessage("It opened in 1793."), on_pass=Cite("blocks"))
    last = made.invoke(asked("When?"))["messages"][-1]
    (block,) = last.content_blocks
    assert last.text == "It opened in 1793."
    assert block["annotations"][0]["cited_text"] == "The Louvre opened in 1793."


def test_a_sentence_that_fails_is_taken_out() -> None:
    said = AIMessage("The Louvre opened in 1793. In 1850 it burnt.")
    made = agent(calls("year", 1), said, on_fail="strip")
    heard = list(made.stream(asked("When?"), stream_mode=["messages", "values"]))
    last = heard[-1][1]["messages"][-1]
    assert last.text == "The Louvre opened in 1793 [1]."
    assert last.response_metadata["demur"]["outcome"] == "trimmed"
    assert "burnt" not in str(heard)


class Facts(BaseModel):
    """What is known."""

    year: int
    works: int | None = None


def test_a_structured_response_is_cited_by_its_paths_and_loses_a_value_that_fails() -> None:
    response = calls("Facts", 2, year=1793, works=99)
    made = agent(
        *(calls("year", 1), response), response_format=ToolStrategy(Facts), on_fail=Strip()
    )
    found = made.invoke(asked("When?"))
    assert found["structured_response"] == Facts(year=1793)
    made = agent(
        *(calls("year", 1), calls("Facts", 2, year=1793)), response_format=ToolStrategy(Facts)
    )
    found = made.invoke(asked("When?"))
    assert found["structured_response"] == Facts(year=1793)
    told = [
        message.response_metadata["demur"]["citations"]
        for message in found["messages"]
        if "demur" in message.response_metadata
    ]
    assert [one["path"] for one in told[-1]] == ["$.year"]


def _graph(answer: Any, **options: Any) -> Any:
    def generate(state: Any) -> Any:
        return {"messages": [AIMessage(answer)]}

    def contexts(state: Any) -> Any:
        return [Document("The Louvre opened in 1793."), Document("There are 35000 works.")]

    return graph_of(guarded_node(generate, HeldByNumbers(), contexts=contexts, **options))


def test_a_node_of_any_graph_cites_and_trims_too() -> None:
    last = _graph(SAID.text, on_pass=Cite()).invoke(asked("When?"))["messages"][-1]
    assert last.text == CITED
    told = last.response_metadata["demur"]["citations"]
    assert [one["number"] for one in told] == [1, 2]
    graph = _graph("The Louvre opened in 1793. In 1850 it burnt.", on_fail="strip")
    assert graph.invoke(asked("When?"))["messages"][-1].text == "The Louvre opened in 1793."
