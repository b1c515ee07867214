"""The file that names the queues of a store."""

from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.queue import QUEUE_INVALID, QueueLimits
from remit.core.schema.strict_yaml import YamlFault
from remit.orchestrate.people.queues import read_queues


def test_a_file_and_python_name_the_same_queues(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "queues:\n  - name: user\n    load_max: 5\n    age_ms_max: 1000\n    webhook: https://example.org/\n  - name: sre\n    answered_by: [ann, bob]\n"
    )
    named = QueueLimits("sre", answered_by=("ann", "bob"))
    assert read_queues(path) == (QueueLimits("user", 5, 1000, "https://example.org/"), named)
    path.write_text("queues: []\n")
    assert read_queues(path) == ()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("queues:\n  - {name: user, load: 5}", YamlFault.KEY_UNKNOWN, "did you mean 'load_max'?"),
        ("queues:\n  - {load_max: 5}", YamlFault.VALUE_INVALID, "queues[0] has no name"),
        (
            "queues:\n  - {name: user, load_max: many}",
            YamlFault.VALUE_INVALID,
            "queues[0].load_max must be a whole number",
        ),
        ("queues:\n  - {name: user, load_max: true}", YamlFault.VALUE_INVALID, "whole number, not True"),
        ("queues:\n  - {name: 5}", YamlFault.VALUE_INVALID, "queues[0].name must be a text"),
        ("queues: user", YamlFault.VALUE_INVALID, "must be a list"),
        ("- a", YamlFault.VALUE_INVALID, "must be a mapping"),
        ("queues:\n  - {name: user, load_max: -1}", QUEUE_INVALID, "queues.yaml: queue='user' has load_max=-1"),
        ("queues:\n  - {name: a}\n  - {name: a}", QUEUE_INVALID, "named twice"),
        ("queues:\n  - {name: a, answered_by: ann}", YamlFault.VALUE_INVALID, "must be a list"),
        ("queues:\n  - {name: a, answered_by: [5]}", YamlFault.VALUE_INVALID, "answered_by[0] must be a name"),
        ("queues:\n  - {name: a, answered_by: ['']}", QUEUE_INVALID, "answered_by='' is no name"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, code: str, says: str) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    with pytest.raises(RequestRejected) as refused:
        read_queues(path)
    assert refused.value.code == code
    assert says in refused.value.message
    assert "queues.yaml" in refused.value.message
