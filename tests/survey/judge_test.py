#!/usr/bin/env python3
"""Tests the judge of drafts: each class of mistake is planted in a small draft, and the judge finds it alone.

    tests/survey/judge_test.py [PROGRAM]

PROGRAM is the real `switchback`, for the clean pair; without it that test is skipped.
"""
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOADER = importlib.machinery.SourceFileLoader("judge", str(HERE / "judge"))
judge = importlib.util.module_from_spec(importlib.util.spec_from_loader("judge", LOADER))
LOADER.exec_module(judge)
PROGRAM = None

DOCUMENT = """
openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /people/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      operationId: getPerson
      parameters: [{name: full, in: query, schema: {type: boolean}}]
      responses:
        200: {description: it, content: {application/json: {schema: {$ref: '#/components/schemas/Person'}}}}
        302: {description: moved}
        401: {description: unknown, content: {application/json: {schema: {$ref: '#/components/schemas/Error'}}}}
    put:
      operationId: putPerson
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Person'}}}}
      responses: {204: {description: done}}
  /coupons/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete: {responses: {204: {description: done}}}
components:
  schemas:
    Person:
      type: object
      required: [name]
      properties:
        name: {type: string, minLength: 2}
        nick: {type: string}
        born: {type: string, format: date}
        kind: {type: string, enum: [a, b]}
    Error: {type: object, required: [message], properties: {message: {type: string}}}
"""
PACK = """
sides: {old: old, new: new}
credentials:
  old: {read: [authorization], send: authorization, scheme: Bearer}
  new: {read: [authorization], send: authorization, scheme: Bearer}
"""
KEYS = ["GET /people/{id}", "PUT /people/{id}", "DELETE /coupons/{id}"]


def report(**more):
    """The report of a draft that serves everything, exactly; `more` adds to the operations of `GET` and so on."""
    operations = [{"operation": key, "route": "pair", "counterpart": key, **more.get(key.split()[0], {})} for key in KEYS]
    return {"sides": [{"side": "old", "operations": operations}]}


def plain(row):
    return {goal: row[goal] for goal in judge.GOALS if row[goal]}


class Planted(unittest.TestCase):
    def judge(self, change=("", ""), files=None, report=report(), lies=None, program=None, document=DOCUMENT):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            old, new = folder / "shop-old.yaml", folder / "shop-new.yaml"
            old.write_text(document)
            self.assertIn(change[0], document)
            new.write_text(document.replace(*change) if change[0] else document)
            scenario = folder / "scenario.json"
            scenario.write_text(json.dumps({"files": {"pack.yaml": PACK} | (files or {}), "report": report, "lies": lies or {}}))
            os.environ["LIAR"] = str(scenario)
            liar = folder / "liar"
            liar.write_text(f"#!{sys.executable}\n" + (HERE / "judging/liar.py").read_text())
            liar.chmod(0o755)
            options = Namespace(pack=None, seconds=60, requests=6, no_traffic=False, labels=folder / "labels.tsv")
            options.labels.write_text("wrong\tline\tshop-old shop-new\tPerson rename nick: name\n")
            return judge.judge(program or str(liar), old, new, options, folder)

    def test_a_clean_pair_has_no_finding(self):
        row = self.judge(lies={"own_error": {"message": "no"}})
        self.assertEqual(plain(row), {}, row)
        self.assertEqual((row["operations"], row["served"], row["differences"], row["excused"]), (3, 3, 0, 0))
        self.assertGreater(row["sent"], 8)

    def test_the_real_program_serves_a_clean_pair(self):
        if PROGRAM is None:
            self.skipTest("no program is given")
        row = self.judge(program=PROGRAM)
        self.assertEqual((row["served"], row["differences"]), (3, 0), row)
        self.assertEqual(plain(row), {}, row)

    def test_a_member_that_vanishes_undisclosed_is_found(self):
        row = self.judge(("        nick: {type: string}\n", ""), lies={"own_error": {"message": "no"}})
        rules = {(one["operation"], one["rule"]) for one in row["undisclosed_differences"]}
        self.assertEqual(rules, {("GET /people/{id}", "response-optional-property-removed"),
                                 ("PUT /people/{id}", "request-property-removed")})
        # The new version does not know `nick` in a request either.
        self.assertEqual({one["where"] for one in row["traffic"]}, {"body nick undeclared"})

    def test_a_member_that_the_report_and_the_decisions_name_is_disclosed(self):
        disclosed = report(GET={"lost": [{"place": "$.nick"}]})
        files = {"DECISIONS.md": "# Decisions\n\n## Served\n\n- `PUT /people/{id}`: `nick` goes nowhere.\n"}
        row = self.judge(("        nick: {type: string}\n", ""), files, disclosed, {"own_error": {"message": "no"}})
        self.assertEqual(plain(row), {}, row)
        self.assertEqual((row["differences"], row["excused"] > 0), (2, True))

    def test_each_case_of_a_decision_is_about_its_own_operation(self):
        group = {"weight": "changed", "text": "it does not go over", "cases": [{"operation": KEYS[1], "at": ["$.nick"]}]}
        row = self.judge(("        nick: {type: string}\n", ""), {"DECISIONS.json": json.dumps({"decisions": [group]})})
        self.assertEqual([one["operation"] for one in row["undisclosed_differences"]], ["GET /people/{id}"])

    def test_a_mapping_line_carries_a_difference_of_its_own_operation_only(self):
        lines = "mapping: 1\nshapes: {Person: {of: {old: Person, new: Person}, same: [name], rename: {nick: alias}}}\n" \
                "routes:\n  - {pair: {old: 'GET /people/{id}', new: 'GET /people/{id}', front: old}, response: Person}\n"
        row = self.judge(("nick: {", "alias: {"), {"a.map.yaml": lines})
        self.assertEqual([one["operation"] for one in row["undisclosed_differences"]], ["PUT /people/{id}"])

    def test_a_rename_does_not_carry_a_change_of_type(self):
        lines = "mapping: 1\nroutes:\n  - {pair: {old: 'GET /people/{id}', new: 'GET /people/{id}'}, path: {id: other}}\n"
        row = self.judge(("{name: id, in: path, required: true, schema: {type: string}}",
                          "{name: id, in: path, required: true, schema: {type: integer}}"), {"a.map.yaml": lines})
        self.assertEqual({one["rule"] for one in row["undisclosed_differences"]}, {"request-parameter-type-changed"})
        self.assertEqual(row["undisclosed"], 3)

    def test_a_line_that_a_person_called_wrong_is_found(self):
        lines = "mapping: 1\nshapes: {Person: {of: {old: Person, new: Person}, rename: {nick: name}}}\n"
        self.assertEqual(plain(self.judge(files={"a.map.yaml": lines}, lies={"own_error": {"message": "no"}})), {"wrong_lines": 1})

    def test_a_call_that_the_new_document_does_not_allow_is_found(self):
        row = self.judge(("format: date}", "format: date-time}"))
        calls = [one for one in row["traffic"] if one["kind"] == "call"]
        self.assertEqual([(one["operation"], one["where"]) for one in calls], [("PUT /people/{id}", "body born format")])
        self.assertIn("2024-03-09", calls[0]["example"]["calls"][0])

    def test_a_renamed_path_variable_is_disclosed_under_its_old_name(self):
        changed = {"changed": ["`path.id` of old: texts longer than 3 characters"]}
        narrower = report(GET=dict(changed), PUT=dict(changed))
        document = DOCUMENT.replace("  /people/{id}:\n    parameters: [{name: id, in: path, required: true, schema: {type: string}}]",
                                    "  /people/{key}:\n    parameters: [{name: key, in: path, required: true, schema: {type: string, maxLength: 3}}]")
        narrower["sides"][0]["operations"][0]["counterpart"] = "GET /people/{key}"
        narrower["sides"][0]["operations"][1]["counterpart"] = "PUT /people/{key}"
        row = self.judge((DOCUMENT, document), report=narrower, lies={"own_error": {"message": "no"}})
        self.assertEqual(plain(row), {}, row)
        self.assertGreater(row["excused"], 0)
        narrower["sides"][0]["operations"][0]["changed"] = []
        row = self.judge((DOCUMENT, document), report=narrower, lies={"own_error": {"message": "no"}})
        self.assertGreater(row["invalid_calls"], 0)

    def test_an_answer_that_the_old_document_does_not_allow_is_found(self):
        row = self.judge(("minLength: 2}", "minLength: 2, nullable: true}"), lies={"answer": {"kind": "c"}})
        answers = {(one["operation"], one["where"]) for one in row["traffic"] if one["kind"] == "answer"}
        self.assertEqual(answers, {("GET /people/{id}", "body kind enum"), ("GET /people/{id}", "body message own-error-required"),
                                   ("GET /people/{id}", "body name type")})

    def test_an_alternative_that_the_old_document_lacks_is_found_unless_it_is_disclosed(self):
        one = "{$ref: '#/components/schemas/Person'}}}}\n        302"
        both = "{oneOf: [{$ref: '#/components/schemas/Person'}, {$ref: '#/components/schemas/Robot'}]}}}}\n        302"
        robot = "    Robot: {type: object, required: [serial], properties: {serial: {type: string}}}\n"
        document = DOCUMENT.replace(one, both.replace("Robot", "Animal")) \
            + robot.replace("Robot", "Animal").replace("serial", "race")
        new = DOCUMENT.replace(one, "{oneOf: [{$ref: '#/components/schemas/Robot'}, "
                               "{$ref: '#/components/schemas/Person'}]}}}}\n        302") + robot
        lies = {"own_error": {"message": "no"}}
        row = self.judge((document, new), report=report(GET={"changed": ["the body of new: other values"]}), lies=lies, document=document)
        self.assertEqual({one["where"] for one in row["traffic"]}, {"body name required"}, row)
        lost = [{"side": "new", "place": "$", "to": "old", "values": "values that are Robot"}]
        disclosed = report(GET={"lost": lost, "changed": ["the body of new: values that are Robot"]})
        row = self.judge((document, new), report=disclosed, lies=lies, document=document)
        self.assertEqual(plain(row), {}, row)
        self.assertGreater(row["excused"], 0)
        # A value of an alternative that both have is judged by that alternative, and no other.
        stricter = new.replace("required: [name]", "required: []").replace("minLength: 2", "minLength: 1")
        row = self.judge((document, stricter), report=disclosed, lies=lies, document=document)
        self.assertIn("body name required", {one["where"] for one in row["traffic"] if one["operation"] == KEYS[0]}, row)
        self.assertGreater(row["invalid_answers"], 0)

    def test_a_path_variable_with_the_name_of_a_credential_is_no_credential(self):
        row = self.judge(lies={"own_error": {"message": "no"}}, document=DOCUMENT.replace("/people/{id}", "/people/{authorization}")
                         .replace("[{name: id, in: path", "[{name: authorization, in: path", 1), report=self.renamed("{authorization}"))
        self.assertEqual(plain(row), {}, row)

    def renamed(self, variable):
        text = json.dumps(report()).replace("/people/{id}", f"/people/{variable}")
        return json.loads(text)

    def test_an_operation_in_a_file_of_its_own_is_read(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "put").mkdir()
            (folder / "put/one.yaml").write_text("parameters: [{$ref: 'p.yaml'}]\nrequestBody: {$ref: 'b.yaml'}\n"
                                                 "responses: {200: {$ref: 'a.yaml'}}\n")
            (folder / "put/p.yaml").write_text("name: q\nin: query\n")
            (folder / "put/b.yaml").write_text("required: true\ncontent: {application/json: {schema: {type: object}}}\n")
            (folder / "put/a.yaml").write_text("description: it\ncontent: {application/json: {schema: {type: array}}}\n")
            path = folder / "root.yaml"
            path.write_text("openapi: 3.0.3\npaths: {/a: {put: {$ref: put/one.yaml}}}\n")
            operation = judge.documents.Document(path).operations["PUT /a"]
            self.assertEqual(([one.name for one in operation.parameters], operation.body.required, list(operation.answers)),
                             (["q"], True, ["200"]))
            self.assertEqual(list(operation.answers["200"].media), ["application/json"])

    def test_a_destructive_wrong_pair_is_found(self):
        wrong = report(DELETE={"counterpart": "DELETE /customers/{id}"})
        row = self.judge(("/coupons/{id}", "/customers/{id}"), report=wrong,
                         lies={"path": ["coupons", "customers"], "own_error": {"message": "no"}})
        self.assertEqual(plain(row), {"wrong_pairs": 1}, row)
        self.assertEqual(row["pairs"][0]["old"], "DELETE /coupons/{id}")

    def test_equal_operations_may_not_change_on_the_way(self):
        row = self.judge(lies={"drop": "full", "own_error": {"message": "no"}})
        self.assertEqual(set(plain(row)), {"invalid_calls"})
        self.assertEqual({one["where"] for one in row["traffic"]}, {"query altered"})
        row = self.judge(lies={"path": ["/text", "/another"], "own_error": {"message": "no"}})
        self.assertEqual({one["where"] for one in row["traffic"]}, {"path altered"})

    def test_a_declared_answer_that_the_gateway_does_not_pass_is_found(self):
        row = self.judge(lies={"fails": [302], "own_error": {"message": "no"}})
        self.assertEqual({one["where"] for one in row["traffic"]}, {"status 302 not-passed"})
        self.assertEqual(set(plain(row)), {"invalid_answers"})

    def test_a_success_that_neither_document_declares_passes_as_it_is(self):
        document = DOCUMENT.replace("delete: {responses: {204: {description: done}}}", "delete: {responses: {401: {description: no}}}")
        row = self.judge(lies={"own_error": {"message": "no"}}, document=document)
        self.assertEqual(plain(row), {}, row)
        row = self.judge(lies={"fails": [200], "own_error": {"message": "no"}}, document=document)
        self.assertIn("DELETE /coupons/{id}", {one["operation"] for one in row["traffic"]})

    def test_a_served_operation_that_calls_nothing_is_found(self):
        row = self.judge(lies={"refuse": True, "own_error": {"message": "no"}})
        self.assertEqual({one["where"] for one in row["traffic"]}, {"status 501 not-called"})

    def test_an_error_of_the_gateway_in_another_form_is_found(self):
        row = self.judge(lies={"own_error": {"error": "no"}})
        self.assertEqual({one["where"] for one in row["traffic"]}, {"body message own-error-required"})
        self.assertEqual(plain(row), {"invalid_answers": 1})


# A schema of the old version, one of the new version, and the rules that find a difference in requests and in
# responses.
SCHEMAS = [
    ("{type: string}", "{type: string}", "", ""),
    ("{type: integer}", "{type: number}", "", "type-changed"),
    ("{type: string}", "{type: integer}", "type-changed", "type-changed"),
    ("{type: string, format: date}", "{type: string, format: date-time}", "type-changed", "type-changed"),
    ("{type: string}", "{type: string, nullable: true}", "", "became-nullable"),
    ("{type: string, nullable: true}", "{type: string}", "become-not-nullable", ""),
    ("{type: string, enum: [a, b]}", "{type: string, enum: [a]}", "enum-value-removed", ""),
    ("{type: string, enum: [a]}", "{type: string, enum: [a, b]}", "", "enum-value-added"),
    ("{type: string}", "{type: string, enum: [a]}", "became-enum", ""),
    ("{type: string}", "{type: string, pattern: '^a'}", "pattern-added", ""),
    ("{type: integer, maximum: 9}", "{type: integer, maximum: 5}", "maximum-decreased", ""),
    ("{type: integer, maximum: 5}", "{type: integer, maximum: 9}", "", "maximum-increased"),
    ("{type: string}", "{type: string, maxLength: 9}", "max-length-set", ""),
    ("{type: array, items: {type: string}}", "{type: array, items: {type: boolean}}", "type-changed", "type-changed"),
    ("{properties: {a: {}}, type: object}", "{properties: {b: {}}, type: object}", "removed", "optional-property-removed"),
    ("{properties: {a: {}}, required: [a]}", "{properties: {a: {}}}", "", "became-optional"),
    ("{properties: {a: {}}}", "{properties: {a: {}}, required: [a]}", "became-required", ""),
    ("{type: object}", "{properties: {a: {}}, required: [a]}", "new-required-request-property", ""),
    ("{oneOf: [{type: string}, {type: integer}]}", "{type: string}", "one-of-removed", ""),
    ("{type: string}", "{oneOf: [{type: string}, {type: integer}]}", "", "one-of-added"),
    ("{type: object}", "{type: object, dependentRequired: {a: [b]}}", "dependent-required-added", ""),
    ("{type: array, contains: {type: string}}", "{type: array, contains: {type: integer}}", "contains-changed", "contains-changed"),
    ("{allOf: [{type: object}, {properties: {a: {type: string}}}]}", "{properties: {a: {type: string}}, type: object}", "", ""),
]
TEMPLATE = """
openapi: 3.0.3
paths:
  /a:
    post:
      requestBody: {content: {application/json: {schema: {type: object, properties: {m: SCHEMA}}}}}
      responses: {200: {description: it, content: {application/json: {schema: {type: object, properties: {m: SCHEMA}}}}}}
"""
# Operations of the old and the new version, and the rules that find their differences.
OPERATIONS = [
    ("parameters: [{name: q, in: query}]", "parameters: []", ["request-parameter-removed"]),
    ("parameters: [{name: q, in: query}]", "parameters: [{name: q, in: header}]", ["request-parameter-moved"]),
    ("parameters: [{name: q, in: query}]", "parameters: [{name: q, in: query, required: true}]", ["request-parameter-become-required"]),
    ("parameters: []", "parameters: [{name: q, in: query, required: true}]", ["new-required-request-parameter"]),
    ("parameters: [{name: q, in: query, schema: {type: array, items: {}}}]",
     "parameters: [{name: q, in: query, explode: false, schema: {type: array, items: {}}}]", ["request-parameter-style-changed"]),
    ("parameters: [{name: q, in: query, schema: {default: 1}}]", "parameters: [{name: q, in: query, schema: {default: 2}}]",
     ["request-parameter-default-value-changed"]),
    ("responses: {200: {description: it}}", "responses: {202: {description: it}}",
     ["response-success-status-added", "response-success-status-removed"]),
    ("responses: {200: {headers: {x-a: {schema: {type: string}}}}}", "responses: {200: {}}", ["optional-response-header-removed"]),
    ("responses: {200: {content: {application/json: {schema: {}}}}}", "responses: {200: {content: {text/csv: {schema: {}}}}}",
     ["response-media-type-removed"]),
    ("responses: {404: {content: {application/json: {schema: {type: array}}}}}",
     "responses: {404: {content: {application/json: {schema: {type: object}}}}}", ["response-property-type-changed"]),
    ("requestBody: {content: {application/json: {}}}", "{}", ["request-body-removed"]),
    ("requestBody: {content: {application/xml: {}}}", "requestBody: {content: {application/json: {}}}",
     ["request-body-media-type-removed"]),
]


class Differences(unittest.TestCase):
    def rules(self, texts, key):
        with tempfile.TemporaryDirectory() as name:
            read = []
            for at, text in enumerate(texts):
                path = Path(name, f"{at}.yaml")
                path.write_text(text)
                read.append(judge.documents.Document(path))
            differ = judge.Differ(*read)
            return differ.compare(*(document.operations[key] for document in read))

    def test_schemas_differ_by_direction(self):
        for old, new, *expected in SCHEMAS:
            with self.subTest(old=old, new=new):
                found = self.rules([TEMPLATE.replace("SCHEMA", one) for one in (old, new)], "POST /a")
                for direction, rule in zip(("request", "response"), expected):
                    rules = [one.rule.removeprefix(f"{direction}-property-").removeprefix("response-") for one in found
                             if one.direction == direction]
                    self.assertEqual(rules, [rule] if rule else [], direction)

    def test_operations_differ_in_what_is_around_their_bodies(self):
        for old, new, expected in OPERATIONS:
            with self.subTest(old=old, new=new):
                texts = [f"openapi: 3.0.3\npaths: {{/a: {{post: {{{one.removeprefix('{}')}}}}}}}\n" for one in (old, new)]
                self.assertEqual(sorted(one.rule for one in self.rules(texts, "POST /a")), expected)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PROGRAM = sys.argv.pop(1)
    unittest.main()
