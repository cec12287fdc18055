"""The table of calls of the independent runtime: `spec/prose/calls.md` and the repeats of `http.md`."""

import asyncio
import collections
import hashlib
import sys

from execute import error_outcome

HELD_CALLS, HELD_BYTES = 4096, 1_073_741_824  # AGX-CALL-060, AGX-CALL-061
CLOSED_IDS = 1_000_000  # AGX-CALL-005
HTTP_HOLD = 60.0  # seconds, AGX-CALL-064
UNAVAILABLE = "result is no longer held by the runtime (evicted or unknown call_id); retry as a new call"


class Call:
    def __init__(self, call_id, owner, on_rpc):
        self.id = call_id
        self.owner = owner  # sid on /rpc, or None
        self.on_rpc = on_rpc  # whether the outcome is to be sent on /rpc
        self.outcome = None
        self.waiting = set()  # futures of the POSTs that wait
        self.receivers = set()  # connections that an outcome for everybody went to, without those that acked or left
        self.to_all = self.acked = False  # whether it went to everybody, and whether one of them acked
        self.expiry = None

    def size(self):
        if "value" in self.outcome:
            return len(self.outcome["value"])
        return sum(len((self.outcome["error"][key] or "").encode()) for key in ("type", "message", "traceback"))


def bad_request(message):
    return error_outcome("BadRequest", message)


def valid_id(call_id):
    return isinstance(call_id, str) and 1 <= len(call_id.encode()) <= 128  # AGX-RPC-014


class CallTable:
    """`send(sid, call_id, outcome)` puts an outcome on one connection; `connections` is the set of sids on /rpc."""

    def __init__(self, send, connections):
        self.send, self.connections = send, connections
        self.executor = None
        self.running = {}
        self.held = collections.OrderedDict()  # oldest outcome first
        self.held_bytes = 0
        self.closed = collections.OrderedDict()  # fingerprints of ids

    def _fingerprint(self, call_id):
        return hashlib.blake2b(call_id.encode(), digest_size=16).digest()

    def check(self, body):
        """None for a call that may be accepted or is a repeat; else the `BadRequest` to answer with."""
        if not valid_id(body.get("call_id")):
            return bad_request("call_id is not a str of 1 to 128 bytes")
        if self._fingerprint(body["call_id"]) in self.closed:
            return None  # a repeat whatever its other fields hold, AGX-RPC-018
        if not isinstance(body.get("callable"), str):
            return bad_request("callable is not a str")
        if not isinstance(body.get("arguments"), bytes):
            return bad_request("arguments is not a bin")
        if not isinstance(body.get("context"), (bytes, type(None))):
            return bad_request("context is neither bin nor nil")
        return None

    def is_repeat(self, call_id):
        return self._fingerprint(call_id) in self.closed

    def accept(self, body, owner, on_rpc):
        """Closes the id and starts the one execution (AGX-CALL-003, AGX-CALL-004)."""
        call = Call(body["call_id"], owner, on_rpc)
        self.closed[self._fingerprint(call.id)] = None
        if len(self.closed) > CLOSED_IDS:
            self.closed.popitem(last=False)
        self.running[call.id] = call
        self.executor.start(call.id, body["callable"], body["arguments"], body.get("context"))
        return call

    def finish(self, call_id, outcome, canceller=None):
        """The first outcome of a running call is stored, then sent; later ones are dropped (AGX-CALL-022)."""
        call = self.running.pop(call_id, None)
        if call is None:
            print("dropped an outcome of %r, which does not run" % call_id, file=sys.stderr)
            return
        call.outcome = outcome
        self.held[call_id] = call
        self.held_bytes += call.size()
        while len(self.held) > HELD_CALLS or self.held_bytes > HELD_BYTES:
            self._free(next(iter(self.held)))
        sent_to = set()
        if call.on_rpc or not call.waiting:
            sent_to = self.deliver(call)
        if canceller is not None and canceller not in sent_to:  # AGX-CALL-053
            self.send(canceller, call_id, outcome)
        for future in call.waiting:
            future.set_result(None)

    def deliver(self, call):
        """Sends an outcome to its owner, or to everybody where there is none. Returns the receivers."""
        if call.owner is not None:
            receivers = {call.owner} & self.connections  # AGX-CALL-031, AGX-CALL-032
        else:
            receivers, call.to_all = set(self.connections), True  # AGX-CALL-034
            call.receivers = set(receivers)
        for sid in receivers:
            self.send(sid, call.id, call.outcome)
        return receivers

    def answered_http(self, call):
        """An outcome that went out with HTTP 200 only is held for 60 seconds (AGX-CALL-064)."""
        if not call.on_rpc and call.expiry is None and call.id in self.held:
            call.expiry = asyncio.get_running_loop().call_later(HTTP_HOLD, self._free, call.id)

    def resume(self, sid, call_id):
        if call_id in self.running:
            call = self.running[call_id]
            call.owner, call.on_rpc = sid, True  # AGX-CALL-041, AGX-CALL-067
        elif call_id in self.held:
            call = self.held[call_id]
            call.owner, call.on_rpc, call.to_all = sid, True, False
            if call.expiry is not None:  # /rpc has asked for it: held like any other now, AGX-CALL-064
                call.expiry.cancel()
            self.send(sid, call_id, call.outcome)
        else:
            self.send(sid, call_id, error_outcome("ResultUnavailable", UNAVAILABLE))

    def cancel(self, sid, call_id):
        if call_id in self.running:  # else AGX-CALL-055
            self.finish(call_id, error_outcome("Cancelled", "remote call cancelled", cancelled=True), canceller=sid)
            self.executor.cancel(call_id)

    def ack(self, sid, call_id):
        call = self.held.get(call_id)
        if call is None:
            return
        received = sid in call.receivers
        call.receivers.discard(sid)
        if call.to_all:
            call.acked = call.acked or received
            self._free_if_all_have_it(call)
        elif not received or call.owner == sid:
            self._free(call_id)

    def left(self, sid):
        for call in list(self.held.values()):
            if sid in call.receivers:
                call.receivers.discard(sid)
                self._free_if_all_have_it(call)

    def _free_if_all_have_it(self, call):
        if call.to_all and call.acked and not call.receivers:  # AGX-CALL-035
            self._free(call.id)

    def _free(self, call_id):
        call = self.held.pop(call_id, None)
        if call is not None:
            self.held_bytes -= call.size()
            if call.expiry is not None:
                call.expiry.cancel()
