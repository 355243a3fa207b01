#!/usr/bin/env python3
"""Decodes messages of OTLP with the official protobuf package (PyPI: opentelemetry-proto).

In: one ExportTraceServiceRequest a line, in base64. Out: JSON, `[{"resource": {…}, "scope": "…", "spans": [{…}]}]`, with ids in
hexadecimal and attributes as maps. Fails on bytes that are no such message, and on fields that the schema does not know.
"""
import base64
import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def value(any_value):
    kind = any_value.WhichOneof("value")
    assert kind in ("string_value", "int_value", "double_value", "bool_value"), kind
    return getattr(any_value, kind)


def attributes(pairs):
    found = {pair.key: value(pair.value) for pair in pairs}
    assert len(found) == len(pairs), "an attribute stands twice"
    return found


def span(one):
    assert len(one.trace_id) == 16 and len(one.span_id) == 8 and len(one.parent_span_id) in (0, 8)
    assert one.start_time_unix_nano <= one.end_time_unix_nano
    return {
        "trace": one.trace_id.hex(),
        "id": one.span_id.hex(),
        "parent": one.parent_span_id.hex(),
        "name": one.name,
        "kind": Span.SpanKind.Name(one.kind),
        "status": Status.StatusCode.Name(one.status.code),
        "start": one.start_time_unix_nano,
        "end": one.end_time_unix_nano,
        "attributes": attributes(one.attributes),
    }


found = []
for line in sys.stdin:
    message = ExportTraceServiceRequest()
    raw = base64.b64decode(line.strip(), validate=True)
    assert message.ParseFromString(raw) == len(raw)
    message.DiscardUnknownFields()
    assert len(message.SerializeToString()) == len(raw), "there are fields that the schema does not know"
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            found.append({
                "resource": attributes(resource.resource.attributes),
                "scope": scope.scope.name,
                "spans": [span(one) for one in scope.spans],
            })
json.dump(found, sys.stdout)
