"""A registry keeps tools by name in their order, and knows what the manifest pins."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import Effect
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import make_manifest
from remit.core.run.messages import user_message
from remit.tool.declare.decorator import tool
from remit.tool.registry import TOOL_NAME_TAKEN, Registry
from tests.unit.kernel.builders import manifest_of


@tool(effect="read")
def zebra() -> int:
    return 1


def ant(a: int) -> int:
    return a


def test_tools_stand_in_the_order_they_were_given() -> None:
    registry = Registry([zebra, ant])
    assert [one.name for one in registry] == ["zebra", "ant"]
    assert [one.name for one in registry.definitions] == ["zebra", "ant"]
    assert [one.attribute for one in registry.sources] == ["zebra", "ant"]
    assert len(registry) == 2
    assert "ant" in registry
    assert "bee" not in registry


def test_a_plain_function_becomes_a_tool_of_the_worst_effect() -> None:
    found = Registry([ant]).get("ant")
    assert found is not None
    assert found.definition.effect is Effect.EXTERNAL
    assert Registry([zebra]).get("zebra") is zebra
    assert Registry().get("ant") is None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(RequestRejected, match="two tools are called 'zebra'") as caught:
        Registry([zebra, zebra])
    assert caught.value.code == TOOL_NAME_TAKEN


def test_the_version_is_the_one_the_manifest_names() -> None:
    registry = Registry([zebra, ant])
    manifest = make_manifest(
        run_id="run",
        request=SystemRequest((user_message("x"),)),
        boundary=Boundary(name="b"),
        graph=manifest_of().graph,
        models=(ModelInfo("m", 8192, Price(0, 0)),),
        tools=registry.definitions,
    )
    assert registry.version == manifest.versions.tools
    assert manifest.tools == registry.definitions
    assert registry.version != Registry([ant, zebra]).version
