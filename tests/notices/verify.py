#!/usr/bin/env python3
"""Verifies notices with the reference implementation of Standard Webhooks (PyPI: standardwebhooks).

Argument: the secret. In: a JSON list of `{"headers": {…}, "body": "…"}`. Out: the verified payloads as a JSON list. Fails on a
signature that does not match and on a timestamp that is more than five minutes away.
"""
import json
import sys

from standardwebhooks import Webhook

webhook = Webhook(sys.argv[1])
payloads = [webhook.verify(one["body"], one["headers"]) for one in json.load(sys.stdin)]
json.dump(payloads, sys.stdout)
