"""A provider that makes the system prompt of every run, in place of a text."""

import asyncio
from dataclasses import dataclass, field

from remit import AgentLoop, Message, PromptProvider, ScriptedEngine, system_message


@dataclass
class InstructionSet:
    """A role and rules, put together when a run begins."""

    role: str
    rules: list[str] = field(default_factory=list)

    def build_system_prompt(self) -> Message:
        """What the model is told first."""
        return system_message("\n".join([self.role, *(f"- {rule}" for rule in self.rules)]))


async def main() -> None:
    """A rule that is added holds from the next exchange on."""
    prompts = InstructionSet("You answer for the tea shop.")
    provider: PromptProvider = prompts
    engine = ScriptedEngine([{"text": "It opens at nine."}])
    async with AgentLoop(engine, system_prompt=provider) as agent:
        await agent.chat("When do you open?")
        prompts.rules.append("Be brief.")
        await agent.chat("And on Sundays?")
        print(agent.messages[0].content)


if __name__ == "__main__":
    asyncio.run(main())
