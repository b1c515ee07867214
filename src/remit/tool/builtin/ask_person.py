"""Asking a person: tools by which a model asks instead of guessing. A call of one is a question, and its answer the result.

Rule 1: nothing here is ever performed: the kernel asks a person, under the code that the tool declares.
Rule 2: asking changes nothing, so it needs no approval; every question costs a review, so no person is asked without end.
"""

from typing import Annotated, NoReturn

from pydantic import Field

from remit.core.failure import Ending
from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.declare.decorator import Tool, tool

PEOPLE_NOT_HERE = "PEOPLE_NOT_HERE"

# What a person reads before answering, and as many choices as a person weighs.
QUESTION_CHARS_MAX = 500
OPTION_CHARS_MAX = 200
OPTIONS_MAX = 10

Question = Annotated[str, Field(min_length=1, max_length=QUESTION_CHARS_MAX)]
Option = Annotated[str, Field(min_length=1, max_length=OPTION_CHARS_MAX)]
Options = Annotated[list[Option], Field(min_length=2, max_length=OPTIONS_MAX)]


def people_tools() -> tuple[Tool, ...]:
    """The tools `ask_user`, `choose` and `request_review`."""

    @tool(effect=Effect.NONE, category=ToolCategory.REVIEW_QUEUE, asks_under=Ending.MISSING_INFO)
    def ask_user(question: Question) -> str:
        """Ask the user for something that is missing: one question about one thing."""
        _alone("ask_user")

    @tool(effect=Effect.NONE, category=ToolCategory.REVIEW_QUEUE, asks_under=Ending.AMBIGUOUS_INTENT)
    def choose(question: Question, options: Options) -> str:
        """Let the user choose, where what they asked for can be meant in more than one way."""
        _alone("choose")

    @tool(effect=Effect.NONE, category=ToolCategory.REVIEW_QUEUE, asks_under=Ending.REVIEW_REQUIRED)
    def request_review(question: Question) -> str:
        """Hand a doubtful matter to a reviewer and wait for what they say."""
        _alone("request_review")

    return ask_user, choose, request_review


def _alone(name: str) -> NoReturn:
    raise ToolRefused(PEOPLE_NOT_HERE, f"{name} asks a person, and only within a run; call it from one")
