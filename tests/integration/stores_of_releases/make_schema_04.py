#!/usr/bin/env python3
"""Writes schema_04.sql: the rows of a store as commit c5a7707 wrote them, whose schema was version 4.

The schema itself is migrations 0001 to 0004, which have not changed since. This is a second implementation of the sealing of
that commit (src/store/seal.rs there), so that the fixture does not depend on what the program does today. Needs the Python
package `cryptography`. Keys, ids and nonces are fixed: each run writes the same bytes. They protect nothing.

    python3 tests/integration/stores_of_releases/make_schema_04.py > tests/integration/stores_of_releases/schema_04.sql
"""

import base64
import hashlib
import hmac
import json
import struct

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SEALING_KEY = bytes(range(32))
HASH_KEY = bytes(range(32, 64))
# What `key:` of the test has.
KEY_TEXT = "sbk_" + base64.urlsafe_b64encode(SEALING_KEY).decode().rstrip("=")
CLIENT_TOKEN, CONNECT_STATE, SEED, REFRESH_TOKEN, WORK = 1, 2, 3, 4, 5
# 2026-11-01, before the commit.
THEN_MS = 1793491200000
YEARS_MS = 10 * 365 * 86400 * 1000


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def rotate(value, count):
    return ((value << count) | (value >> (32 - count))) & 0xFFFFFFFF


def hchacha20(key, nonce):
    """The subkey of XChaCha20 (draft-irtf-cfrg-xchacha, section 2.2)."""
    state = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
    state += list(struct.unpack("<4I", nonce))

    def quarter(a, b, c, d):
        for x, y, z, count in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotate(state[z] ^ state[x], count)

    for _ in range(10):
        for column in range(4):
            quarter(column, 4 + column, 8 + column, 12 + column)
        quarter(0, 5, 10, 15)
        quarter(1, 6, 11, 12)
        quarter(2, 7, 8, 13)
        quarter(3, 4, 9, 14)
    return struct.pack("<8I", *(state[:4] + state[12:]))


def key_id():
    return mac(SEALING_KEY, b"switchback key id 1")[:8]


def seal(column, client, row, plain):
    """Version, key id, nonce, ciphertext and tag; bound to the place by associated data."""
    place = [column.encode(), client.encode(), row]
    aad = b"\x01" + key_id() + b"".join(struct.pack("<Q", len(part)) + part for part in place)
    nonce = hashlib.sha256(aad + plain).digest()[:24]
    key = hchacha20(mac(SEALING_KEY, b"switchback sealing 1"), nonce[:16])
    sealed = ChaCha20Poly1305(key).encrypt(b"\0\0\0\0" + nonce[16:], plain, aad)
    return b"\x01" + key_id() + nonce + sealed


def keyed(kind, data):
    return mac(HASH_KEY, bytes([kind]) + data)


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def insert(table, **columns):
    names, values = ", ".join(columns), ", ".join(literal(value) for value in columns.values())
    print(f"INSERT INTO {table} ({names}) VALUES ({values});")


def client(letter, name, revoked_ms=None, company=None):
    insert("clients", id=letter * 32, name=name, company=company, created_ms=THEN_MS, revoked_ms=revoked_ms, change=2)
    return letter * 32


def token(of, text, side="v2", origin="managed", expires_ms=None):
    hashed = keyed(CLIENT_TOKEN, text.encode())
    insert("client_tokens", hash=hashed, side=side, client=of, origin=origin, created_ms=THEN_MS, expires_ms=expires_ms)


def grant(of, state, reason=None, generation=0, seed=None, issued_ms=None, **secrets):
    own = "9" + of[1:]
    columns = {"app_id": "app_id", "app_secret": "app_secret", "access": "access", "refresh": "refresh",
               "previous_refresh": "refresh"}
    sealed = {
        column: seal(f"grants.{place}", of, own.encode(), secrets[column].encode()) if column in secrets else None
        for column, place in columns.items()
    }
    insert("grants", id=own, client=of, generation=generation, state=state, state_reason=reason, **sealed,
           issued_ms=issued_ms, lifetime_ms=issued_ms and YEARS_MS, seed_mark=seed and keyed(SEED, seed.encode()),
           lease_owner=None, lease_until_ms=None, updated_ms=THEN_MS, change=3)
    return own


print("-- Made by make_schema_04.py beside this file; the sealing key is", KEY_TEXT)
print("UPDATE change_counter SET value = 9 WHERE id = 1;")
insert("sealing_keys", id=key_id().hex(), proof=seal("sealing_keys.proof", "", key_id().hex().encode(), b"switchback"),
       created_ms=THEN_MS)
insert("hash_key", id=1, sealed=seal("hash_key.sealed", "", b"", HASH_KEY))

acme = client("a", "acme")
token(acme, "old-token-of-acme")
token(acme, "any-side-token-of-acme", side="")
grant(acme, "active", generation=3, seed="refresh-of-acme-0", issued_ms=THEN_MS, app_id="app-of-acme",
      app_secret="secret-of-acme", access="access-of-acme-3", refresh="refresh-of-acme-3",
      previous_refresh="refresh-of-acme-2")
credential = "c" * 32
insert("client_credentials", id=credential, client=acme, side="v2", origin="managed",
       token=seal("client_credentials.token", acme, credential.encode(), b"credential-of-acme-for-v2"), set_ms=THEN_MS,
       refused_ms=None)
work = keyed(WORK, b"a piece of work")
insert("resume_steps", client=acme, work=work, step="first",
       sealed=seal("resume_steps.sealed", acme, work + b"first", b'{"id":1}'), expires_ms=THEN_MS + YEARS_MS)

branch = client("b", "branch", company="42")
token(branch, "rotated-token-of-branch", expires_ms=THEN_MS + 1000)
token(branch, "new-token-of-branch")
interrupted = grant(branch, "active", generation=7, issued_ms=THEN_MS, app_id="app-of-branch", app_secret="secret-of-branch",
                    access="access-of-branch-7", refresh="refresh-of-branch-7")
insert("refresh_intents", grant_id=interrupted, generation=7, refresh_hash=keyed(REFRESH_TOKEN, b"refresh-of-branch-7"),
       owner="0011223344556677", started_ms=THEN_MS)
insert("connect_states", hash=keyed(CONNECT_STATE, b"a state"), client=branch, expires_ms=THEN_MS + YEARS_MS)

lost = client("d", "lost")
token(lost, "old-token-of-lost")
grant(lost, "needs_reconnect", reason="invalid_grant", generation=2, app_id="app-of-lost", app_secret="secret-of-lost",
      refresh="refresh-of-lost-2")

gone = client("e", "gone", revoked_ms=THEN_MS)
grant(gone, "unconnected", reason="revoked", generation=4)

insert("phases", side="v2", operation="GET /agents", phase="translated", share=None, set_by="operator", set_ms=THEN_MS, change=8)
insert("phases", side="v2", operation="GET /chats", phase="canary", share=250000, set_by="gate", set_ms=THEN_MS, change=9)
insert("phase_moves", id="1" * 32, side="v2", operation="GET /agents", moved_from="legacy", moved_to="translated",
       moved_by="operator", at_ms=THEN_MS, evidence="", change=8)
insert("phase_moves", id="2" * 32, side="v2", operation="GET /chats", moved_from="shadow", moved_to="canary 25%",
       moved_by="gate", at_ms=THEN_MS + 1, evidence="0 of 500 differed", change=9)
counts = {"equal": 500, "different": 0, "equal_so_far": 0, "dropped": 3, "by_kind": {}, "expected": 0, "declared_noise": 0,
          "learnt_noise": 0, "read_back": 0, "read_back_different": 0}
summary = {"operation": "GET /chats", "side": "v2", "phase": "canary", "since_ms": THEN_MS, "counts": counts, "tallies": []}
insert("dual_evidence", side="v2", operation="GET /chats", phase="canary", stay=9, summary=json.dumps(summary),
       updated_ms=THEN_MS)
insert("dual_noise", side="v2", operation="GET /chats", noise=json.dumps({"asked": 4.0, "patterns": []}), updated_ms=THEN_MS)
