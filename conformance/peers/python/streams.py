"""The records of `/log` and `/trace` that the runtime holds for its hosts: the runtime rules of `side-channels.md`."""

import collections

import msgpack

HELD_RECORDS = 10_000  # AGX-SIDE-016

Record = collections.namedtuple("Record", "index stream seq event raw")


def number(payload, key):
    value = payload.get(key)
    return value if type(value) is int else 0


class Stream:
    """The records of one namespace, from all workers, in one order. `send(sid, event, raw)` puts one on a connection."""

    def __init__(self, send):
        self.send = send
        self.records = collections.deque()
        self.last = 0  # index of the newest record; the first has 1
        self.acked = {}  # sid -> index up to which the connection has acked
        self.sent = {}  # sid -> index up to which records were sent

    def join(self, sid):
        self.acked[sid] = self.sent[sid] = 0

    def leave(self, sid):
        self.acked.pop(sid, None)
        self.sent.pop(sid, None)
        self._free()

    def take(self, event, raw):
        """Holds a record and sends it on. Returns what to ack to the worker, or None for something else."""
        try:
            envelope = msgpack.unpackb(raw, strict_map_key=False)
            stream, seq = envelope["_sid"], envelope["_seq"]
        except Exception:
            return None
        if type(stream) is not str or type(seq) is not int:
            return None
        self.last += 1
        self.records.append(Record(self.last, stream, seq, event, raw))
        if len(self.records) > HELD_RECORDS:
            self.records.popleft()
        for sid in list(self.sent):
            self._send_after(sid, self.sent[sid])
        return {"seq": seq, "_sid": stream}

    def _send_after(self, sid, index, since=0):
        for record in self.records:
            if record.index > index and record.seq > since:
                self.send(sid, record.event, record.raw)
        self.sent[sid] = self.last

    def resume(self, sid, payload):
        since, stream = number(payload, "since_seq"), payload.get("_sid")
        if stream is None:  # AGX-SIDE-023
            self.acked[sid] = 0
            self._send_after(sid, 0, since)
            return
        beyond = [record.index for record in self.records if record.stream == stream and record.seq > since]
        known = [record.index for record in self.records if record.stream == stream]
        start = beyond[0] - 1 if beyond else known[-1] if known else 0  # AGX-SIDE-020, AGX-SIDE-022
        self.acked[sid] = start
        self._send_after(sid, start)
        self._free()

    def ack(self, sid, payload):
        seq, stream = number(payload, "seq"), payload.get("_sid")
        if stream is None:  # AGX-SIDE-028
            same = [record.stream for record in self.records if record.seq == seq and record.index <= self.sent[sid]]
            stream = same[-1] if same else None
        covered = [record.index for record in self.records if record.stream == stream and record.seq <= seq]
        if covered:
            self.acked[sid] = max(self.acked[sid], covered[-1])
            self._free()

    def _free(self):
        """Drops what every connection has acked (AGX-SIDE-018)."""
        while self.records and self.acked and self.records[0].index <= min(self.acked.values()):
            self.records.popleft()
