"""Rule sets from YAML."""

from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.validate.rule_file import load_rules, parse_rules
from remit.validate.rule_set import (
    AllowedValues,
    Citations,
    Length,
    MustMatch,
    MustMention,
    MustNotMatch,
    MustNotMention,
    NoSecrets,
    NotEmpty,
    NumberRange,
    RequiredFields,
    RetryPolicy,
    Rule,
    RuleSet,
    SemanticCheck,
    Severity,
    rules_version,
)

FILE = r"""
name: support_answer
rules:
  - {name: present, check: not_empty}
  - {name: size, check: length, chars_min: 10, chars_max: 500, severity: warn}
  - {name: capital, check: must_match, pattern: '^[A-Z]'}
  - {name: modest, check: must_not_match, pattern: '(?i)\bas an ai\b'}
  - {name: polite, check: must_mention, words: [thank you]}
  - {name: clean, check: must_not_mention, words: [damn]}
  - {name: complete, check: required_fields, fields: [order, reply], at: /body}
  - {name: price, check: number_range, least: 0, most: 9.5, at: '/items/*/price', optional: true}
  - {name: mood, check: allowed_values, values: [good, bad, 3, true], at: /mood}
  - {name: cited, check: citations, citations_min: 2}
  - {name: safe, check: no_secrets, severity: block}
semantic:
  - {name: grounded, question: Does the evidence support it?}
  - {name: tone, question: Is it kind?, severity: warn}
retry: {reasks_max: 1, final_rules: [safe]}
"""
BUILT = RuleSet(
    "support_answer",
    (
        Rule("present", NotEmpty()),
        Rule("size", Length(10, 500), severity=Severity.WARN),
        Rule("capital", MustMatch("^[A-Z]")),
        Rule("modest", MustNotMatch(r"(?i)\bas an ai\b")),
        Rule("polite", MustMention(("thank you",))),
        Rule("clean", MustNotMention(("damn",))),
        Rule("complete", RequiredFields(("order", "reply")), at="/body"),
        Rule("price", NumberRange(0, 9.5), at="/items/*/price", optional=True),
        Rule("mood", AllowedValues(("good", "bad", 3, True)), at="/mood"),
        Rule("cited", Citations(2)),
        Rule("safe", NoSecrets()),
    ),
    (SemanticCheck("grounded", "Does the evidence support it?"), SemanticCheck("tone", "Is it kind?", Severity.WARN)),
    RetryPolicy(1, ("safe",)),
)


def test_a_file_and_python_build_equal_rule_sets_with_equal_versions(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(FILE)
    rules = load_rules(path)
    assert rules.rule_set == BUILT
    assert rules.version == rules_version(BUILT)


def test_a_file_with_a_name_alone_has_no_rules() -> None:
    assert parse_rules("name: empty", "rules.yaml").rule_set == RuleSet("empty")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "r.yaml: the file must be a mapping with the keys name, rules, semantic, retry, not None"),
        ("nam: x", "r.yaml:1: the file has the unknown key 'nam'; did you mean 'name'?"),
        ("name: x\nzebra: 1", "r.yaml:2: the file has the unknown key 'zebra'; known are name, rules, semantic, retry"),
        ("rules: []", "r.yaml: the file has no 'name'; add it"),
        ("name: 5", "r.yaml:1: name must be a text, not 5"),
        ("name: x\nrules: {}", "r.yaml:2: rules must be a list, not a dict"),
        ("name: x\nrules: [5]", "r.yaml:2: rules[0] must be a mapping with the keys name, check, at, severity, optional, not 5"),
        (
            "name: x\nrules:\n- name: a\n  check: lenght\n  chars_max: 5",
            "r.yaml:3: rules[0] has the unknown check 'lenght'; did you mean 'length'?",
        ),
        ("name: x\nrules: [{name: a, check: [1]}]", "rules[0] has the unknown check a list; known are not_empty, length"),
        ("name: x\nrules: [{name: a}]", "rules[0] has the unknown check None; known are not_empty, length"),
        (
            "name: x\nrules:\n- name: a\n  check: length\n  char_max: 5",
            "r.yaml:5: rules[0] has the unknown key 'char_max'; did you mean 'chars_max'?",
        ),
        ("name: x\nrules: [{name: a, check: length, chars_max: 1.5}]", "rules[0].chars_max must be a whole number, not 1.5"),
        ("name: x\nrules: [{name: a, check: length, chars_max: true}]", "rules[0].chars_max must be a whole number, not True"),
        ("name: x\nrules: [{name: a, check: must_match}]", "rules[0] has no 'pattern'; add it"),
        ("name: x\nrules: [{check: not_empty}]", "rules[0] has no 'name'; add it"),
        ("name: x\nrules: [{name: a, check: not_empty, severity: fatal}]", "rules[0].severity must be one of block, warn, not 'fatal'"),
        ("name: x\nrules: [{name: a, check: not_empty, optional: 1}]", "rules[0].optional must be true or false, not 1"),
        ("name: x\nrules: [{name: a, check: must_mention, words: [1]}]", "rules[0].words must be a list of texts, not a list"),
        ("name: x\nrules: [{name: a, check: number_range, least: no}]", "rules[0].least must be a number, not False"),
        ("name: x\nrules: [{name: a, check: number_range, least: 1" + "0" * 400 + "}]", "rules[0].least must be a number"),
        ("name: x\nrules: [{name: a, check: allowed_values, values: [[1]]}]", "rules[0].values must be a list of texts, numbers"),
        ("name: x\nsemantic: [{name: a}]", "r.yaml:2: semantic[0] has no 'question'; add it"),
        ("name: x\nretry: {reask: 1}", "r.yaml:2: retry has the unknown key 'reask'; did you mean 'reasks_max'?"),
        (
            "name: x\nrules:\n- {name: a, check: not_empty}\n- {name: b, check: must_match, pattern: '(?=a)'}",
            "r.yaml:4: rule 'b' of 'x': pattern '(?=a)': it has '(?=a' at character 0",
        ),
        ("name: x\nretry: {reasks_max: -1}", "r.yaml:1: rule set 'x': reasks_max=-1 must be 0 or more"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_with_its_line_and_the_way_out(text: str, said: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        parse_rules(text, "r.yaml")
    assert said in caught.value.message
