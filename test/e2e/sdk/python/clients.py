"""What a program with Python's `openai` package does every day, against the address in BUSHEL_URL
with the key in BUSHEL_KEY. Each check is
a method of `Checks`; the outcome is one JSON document: check by check, null or what went wrong."""

import json
import os
import sys
import time
import traceback
from typing import Literal

import openai
from openai import OpenAI
from pydantic import BaseModel, ConfigDict

MODEL = "SmolLM2-135M-Instruct"
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
}
TOOL = {"type": "function", "function": WEATHER}


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Literal["Ada", "Grace"]
    age: int


def ask(content: str) -> list:
    return [{"role": "user", "content": content}]


class Checks:
    def __init__(self) -> None:
        self.url = os.environ["BUSHEL_URL"] + "/v1"
        key = os.environ["BUSHEL_KEY"]
        self.client = OpenAI(base_url=self.url, api_key=key, max_retries=0, timeout=60)

    def models_are_listed_and_an_unknown_one_is_a_NotFoundError(self) -> None:
        assert MODEL in [model.id for model in self.client.models.list()]
        assert self.client.models.retrieve(MODEL).id == MODEL
        expect(openai.NotFoundError, "gpt-99", lambda: self.client.models.retrieve("gpt-99"))
        unknown = {"model": "gpt-99", "messages": ask("Hi")}
        expect(openai.NotFoundError, "gpt-99", lambda: self.client.chat.completions.create(**unknown))

    def a_chat_is_the_same_whole_and_streamed(self) -> None:
        asked = {"model": MODEL, "messages": ask("What is the capital of France?"), "max_tokens": 16, "temperature": 0}
        whole = self.client.chat.completions.create(**asked)
        assert "Paris" in whole.choices[0].message.content
        with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            pieces = [event.delta for event in stream if event.type == "content.delta"]
            streamed = stream.get_final_completion()
        assert "".join(pieces) == streamed.choices[0].message.content == whole.choices[0].message.content
        assert len(pieces) > 3
        assert streamed.usage.completion_tokens == whole.usage.completion_tokens
        assert whole.usage.prompt_tokens_details.cached_tokens >= 0

    def a_stream_that_is_left_early_frees_its_place(self) -> None:
        with self.client.chat.completions.create(
            model=MODEL, messages=ask("Tell a long story."), max_tokens=2000, stream=True
        ) as stream:
            next(iter(stream))
        again = self.client.chat.completions.create(model=MODEL, messages=ask("Hi"), max_tokens=2)
        assert again.usage.completion_tokens <= 2

    def logprobs_name_the_chosen_token(self) -> None:
        told = self.client.chat.completions.create(
            model=MODEL, messages=ask("Say yes."), max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
        )
        tokens = told.choices[0].logprobs.content
        assert "".join(token.token for token in tokens) == told.choices[0].message.content
        assert all(len(token.top_logprobs) == 2 and token.logprob <= 0 for token in tokens)

    def a_tool_is_called_and_its_result_answered(self) -> None:
        messages = ask("What is the weather in Paris for 3 days?")
        common = {"model": MODEL, "tools": [TOOL], "max_tokens": 120, "temperature": 0}
        once = {"tool_choice": "required", "parallel_tool_calls": False}
        first = self.client.chat.completions.create(messages=messages, **once, **common)
        assert first.choices[0].finish_reason == "tool_calls"
        message = first.choices[0].message
        for call in message.tool_calls:
            known = json.loads(call.function.arguments)
            assert call.function.name == "get_weather" and set(known) == {"city", "days"} and 0 <= known["days"] <= 9
        results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        second = self.client.chat.completions.create(
            messages=[*messages, message, *results], tool_choice="none", **{**common, "max_tokens": 12}
        )
        assert second.choices[0].message.content and not second.choices[0].message.tool_calls

    def a_streamed_call_is_put_together_by_the_client(self) -> None:
        with self.client.chat.completions.stream(
            model=MODEL,
            messages=ask("What is the weather in Rome?"),
            tools=[{"type": "function", "function": {**WEATHER, "strict": True}}],
            tool_choice={"type": "function", "function": {"name": "get_weather"}},
            max_tokens=120,
            temperature=0,
        ) as stream:
            final = stream.get_final_completion()
        call = final.choices[0].message.tool_calls[0]
        assert call.function.parsed_arguments["city"] in ("Paris", "Rome"), call

    def an_answer_is_parsed_into_a_pydantic_model(self) -> None:
        asked = {"model": MODEL, "messages": ask("Invent a person."), "max_tokens": 80, "temperature": 0}
        parsed = self.client.chat.completions.parse(**asked, response_format=Person)
        assert isinstance(parsed.choices[0].message.parsed, Person)
        loose = self.client.chat.completions.create(**{**asked, "max_tokens": 40}, response_format={"type": "json_object"})
        if loose.choices[0].finish_reason == "stop":
            assert isinstance(json.loads(loose.choices[0].message.content), dict)

    def responses_whole_streamed_continued_and_parsed(self) -> None:
        question = "What is the capital of France?"
        asked = {"model": MODEL, "input": question, "max_output_tokens": 40, "temperature": 0}
        whole = self.client.responses.create(**asked)
        with self.client.responses.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            assert stream.get_final_response().output_text == whole.output_text != ""
        assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
        more = {"input": "And of Italy?", "max_output_tokens": 4, "previous_response_id": whole.id}
        after = self.client.responses.create(**{**asked, **more})
        assert after.usage.input_tokens > whole.usage.input_tokens
        person = self.client.responses.parse(
            model=MODEL, input="Invent a person.", text_format=Person, max_output_tokens=80, temperature=0
        )
        assert isinstance(person.output_parsed, Person)
        called = self.client.responses.create(
            model=MODEL,
            input="Weather in Paris?",
            tools=[{"type": "function", "strict": True, **WEATHER}],
            tool_choice="required",
            parallel_tool_calls=False,
            max_output_tokens=120,
            temperature=0,
        )
        call = next(item for item in called.output if item.type == "function_call")
        assert call.name == "get_weather" and "city" in json.loads(call.arguments)

    def texts_are_embedded_and_a_chat_model_says_why_not(self) -> None:
        texts = ["A cat sat on the mat.", "Rain fell all day."]
        given = self.client.embeddings.create(model="embedder", input=texts)  # asks for base64 by itself
        plain = self.client.embeddings.create(model="embedder", input=texts, encoding_format="float")
        assert given.usage.prompt_tokens == 16 and given.data[0].embedding != given.data[1].embedding
        for one, other in zip(given.data, plain.data):
            assert len(one.embedding) == 32
            assert abs(sum(value * value for value in one.embedding) - 1) < 1e-4
            assert max(abs(a - b) for a, b in zip(one.embedding, other.embedding)) < 1e-6
        words = {"model": "embedder", "messages": ask("Hi")}
        expect(openai.BadRequestError, "is an embedding model", lambda: self.client.chat.completions.create(**words))
        long = {"model": "embedder", "input": "cat " * 80}
        expect(openai.BadRequestError, "82 tokens", lambda: self.client.embeddings.create(**long))
        refused = {"model": MODEL, "input": "a"}
        expect(openai.BadRequestError, "not an embedding model", lambda: self.client.embeddings.create(**refused))

    def wrong_fields_and_keys_raise_the_errors_that_programs_catch(self) -> None:
        wrong = {"model": MODEL, "messages": ask("Hi"), "temperature": 9}
        expect(openai.BadRequestError, "temperature", lambda: self.client.chat.completions.create(**wrong))
        schema = {"name": "x", "schema": {"type": "array", "uniqueItems": True}}
        formed = {
            "model": MODEL,
            "messages": ask("Hi"),
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        expect(openai.BadRequestError, "uniqueItems", lambda: self.client.chat.completions.create(**formed))
        stranger = OpenAI(base_url=self.url, api_key="wrong", max_retries=0)
        expect(openai.AuthenticationError, "key", stranger.models.list)


def expect(kind: type[openai.APIStatusError], words: str, act) -> None:
    try:
        act()
    except kind as error:
        assert words in str(error), f"{kind.__name__} does not say {words!r}: {error}"
        assert isinstance(error.body, dict) and error.body["message"], error.body
        return
    raise AssertionError(f"no {kind.__name__}")


def main() -> None:
    checks, outcome = Checks(), {}
    for name in [name for name in vars(Checks) if not name.startswith("_")]:
        began = time.monotonic()
        try:
            getattr(checks, name)()
            outcome[name.replace("_", " ")] = None
        except Exception:
            outcome[name.replace("_", " ")] = traceback.format_exc()
        print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    print(json.dumps({"version": openai.__version__, "checks": outcome}))


main()
