#!/usr/bin/env python3
"""A runtime written from `spec/prose` alone: Socket.IO and HTTP on one port. Functions run in this process, or in a
worker behind the pipe where `--worker` names one.

Nothing here shares code with the Rust crates, so that a mistake made on both of their sides still shows.
"""

import argparse
import asyncio
import decimal
import os
import re
import shlex
import signal
import sys

import engineio.payload
import msgpack
import socketio
from aiohttp import web

from calls import UNAVAILABLE, CallTable, bad_request
from execute import MESSAGE_LIMIT, InProcess, error_outcome
from pipe import PipeWorker, log, valid_namespace, well_formed
from streams import Stream

VERSION = "1.0.0"
WAIT = re.compile(r'(?:^|[,; \t])wait[ \t]*=[ \t]*"?(\d+(?:\.\d+)?)', re.IGNORECASE | re.ASCII)  # AGX-HTTP-013
STOP_TIMEOUT = 5.0  # seconds for connections to close at the end

# python-engineio drops a polling body of more than 16 packets; the protocol has no such bound (AGX-CON-020).
engineio.payload.Payload.max_decode_packets = 1_000_000


class WholeBody:
    """python-engineio asks once for the body of a polling POST; aiohttp's own reader gives what has come so far."""

    def __init__(self, content):
        self.content = content

    async def read(self, length):
        return await self.content.readexactly(length)


class Runtime:
    def __init__(self, worker=None):
        self.sio = socketio.AsyncServer(
            async_mode="aiohttp", async_handlers=False, namespaces="*", cors_allowed_origins=[],
            ping_interval=25, ping_timeout=300, max_http_buffer_size=MESSAGE_LIMIT)
        self.connections = set()  # sids on /rpc
        self.sends = set()  # tasks, in the order of their creation
        self.calls = CallTable(self.send_outcome, self.connections)
        self.streams = {name: Stream(self.record_sender(name)) for name in ("/log", "/trace")}
        self.executor = PipeWorker(worker, self.calls.finish, self.emitted) if worker else InProcess(self.calls.finish)
        self.calls.executor = self.executor
        for event, handle in (("call", self.on_call), ("cancel", self.on_cancel), ("ack", self.on_ack),
                              ("resume", self.on_resume)):
            self.sio.on(event, self.with_payload(handle), namespace="/rpc")
        self.sio.on("*", self.on_unknown, namespace="/rpc")
        self.sio.on("connect", self.on_connect, namespace="/rpc")
        self.sio.on("disconnect", self.on_disconnect, namespace="/rpc")
        self.sio.on("connect", self.on_connect_elsewhere, namespace="*")
        self.sio.on("disconnect", self.on_disconnect_elsewhere, namespace="*")
        self.sio.on("*", self.on_side_channel, namespace="*")

    # Socket.IO: a handler that returns None has its event acked with [], one that returns not_handled has not.

    async def on_connect(self, sid, _environ, _auth=None):
        self.connections.add(sid)

    async def on_disconnect(self, sid, *_):
        self.connections.discard(sid)
        self.calls.left(sid)

    async def on_connect_elsewhere(self, namespace, sid, _environ, _auth=None):
        if namespace in self.streams:
            self.streams[namespace].join(sid)
        return valid_namespace(namespace)

    async def on_disconnect_elsewhere(self, namespace, sid, *_):
        if namespace in self.streams:
            self.streams[namespace].leave(sid)

    async def on_unknown(self, _event, _sid, *_):
        return self.sio.not_handled  # AGX-RPC-002

    async def on_side_channel(self, event, namespace, sid, argument=None, *_):
        """Acked with or without a worker (AGX-SIDE-039)."""
        raw = argument if isinstance(argument, bytes) else msgpack.packb(argument)
        if namespace in self.streams:
            payload = msgpack.unpackb(raw, strict_map_key=False) if well_formed(raw) else None
            take = {"_ack": self.streams[namespace].ack, "_resume": self.streams[namespace].resume}.get(event)
            if take is not None and isinstance(payload, dict):
                take(sid, payload)
        elif namespace == "/":
            pass
        elif well_formed(raw):
            self.executor.inbound(namespace, event, raw)
        else:
            log("dropped an event on %r whose payload is not one msgpack value" % namespace)

    def emitted(self, namespace, event, raw):
        """Takes an event of the worker: a record is held and acked, anything else goes to all on the namespace."""
        stream = self.streams.get(namespace)
        if stream is None:
            self.spawn(self.sio.emit(event, raw, namespace=namespace))
            return
        ack = stream.take(event, raw)
        if ack is not None:
            self.executor.inbound(namespace, "_ack", msgpack.packb(ack))

    def record_sender(self, namespace):
        return lambda sid, event, raw: self.spawn(self.sio.emit(event, raw, to=sid, namespace=namespace))

    def spawn(self, send):
        """Starts to send. Tasks run in the order of their creation, and `emit` waits for nothing between the header
        and the attachment of an event."""
        task = asyncio.get_running_loop().create_task(send)
        self.sends.add(task)
        task.add_done_callback(self.sends.discard)

    def with_payload(self, handle):
        async def on_event(sid, raw=None, *_):
            if not isinstance(raw, bytes):
                return self.sio.not_handled  # AGX-RPC-008
            try:
                payload = msgpack.unpackb(raw)
            except Exception as cause:
                payload = cause
            if not isinstance(payload, dict):
                log("unreadable attachment on /rpc: %r" % (payload,))
                return self.sio.not_handled  # AGX-RPC-005, AGX-RPC-006
            handle(sid, payload)
            return None
        return on_event

    def send_outcome(self, sid, call_id, outcome):
        event = "call:result" if "value" in outcome else "call:error"
        payload = msgpack.packb({"call_id": call_id, **outcome})
        self.spawn(self.sio.emit(event, payload, to=sid, namespace="/rpc"))

    def on_call(self, sid, body):
        error = self.calls.check(body)
        if error is not None:
            call_id = body.get("call_id")
            self.send_outcome(sid, call_id if "call_id" not in error["error"]["message"] else "", error)
        elif self.calls.is_repeat(body["call_id"]):
            self.calls.resume(sid, body["call_id"])  # AGX-CALL-014; silent while it runs
        else:
            self.calls.accept(body, owner=sid, on_rpc=True)

    def on_cancel(self, sid, payload):
        if isinstance(payload.get("call_id"), str):
            self.calls.cancel(sid, payload["call_id"])

    def on_ack(self, sid, payload):
        if isinstance(payload.get("call_id"), str):
            self.calls.ack(sid, payload["call_id"])

    def on_resume(self, sid, payload):
        ids = payload.get("call_ids")
        for call_id in ids if isinstance(ids, list) else ():
            if isinstance(call_id, str):
                self.calls.resume(sid, call_id)

    # HTTP

    async def health(self, _request):
        return web.json_response({"status": "ok", "version": VERSION, "protocol": "1.0"})

    async def call(self, request):
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            message = "the body is over %d bytes" % MESSAGE_LIMIT
            return self.answer(413, {"ok": False, **error_outcome("PayloadTooLarge", message)})
        try:
            body = msgpack.unpackb(body)
        except Exception as cause:
            return self.answer(400, {"ok": False, **bad_request("the body is not msgpack: %r" % cause)})
        error = self.calls.check(body) if isinstance(body, dict) else bad_request("the body is not a map")
        if error is not None:
            return self.answer(400, {"ok": False, **error})
        found = WAIT.search(", ".join(request.headers.getall("prefer", [])))
        wait = min(decimal.Decimal(found.group(1) if found else "1"), decimal.Decimal(60))  # AGX-HTTP-016
        applied = {"preference-applied": "wait=" + format(wait.normalize(), "f")}
        sid = request.headers.get("agentix-sid")
        sid = sid if sid in self.connections else None
        if self.calls.is_repeat(body["call_id"]):
            return self.answer(*self.repeat(body["call_id"], sid), applied)
        call = self.calls.accept(body, owner=sid, on_rpc=False)
        future = asyncio.get_running_loop().create_future()
        call.waiting.add(future)
        try:
            await asyncio.wait({future}, timeout=float(wait))
            response = self.answer(*self.outcome_or_202(call, future), applied)
            await response.prepare(request)
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):  # the caller is gone, AGX-HTTP-031
            self.answer_on_rpc(call, future)
            raise
        if call.outcome is not None:
            self.calls.answered_http(call)
        return response

    def outcome_or_202(self, call, future):
        if call.outcome is not None:
            return 200, {"ok": "value" in call.outcome, **call.outcome}
        self.answer_on_rpc(call, future)
        return 202, {"call_id": call.id}

    def answer_on_rpc(self, call, future):
        call.waiting.discard(future)
        if not call.on_rpc:
            call.on_rpc = True
            if call.outcome is not None:
                self.calls.deliver(call)

    def repeat(self, call_id, sid):
        call = self.calls.running.get(call_id) or self.calls.held.get(call_id)
        if call is None:
            return 200, {"ok": False, **error_outcome("ResultUnavailable", UNAVAILABLE)}  # AGX-HTTP-042
        call.owner = sid or call.owner  # AGX-HTTP-043
        if call.outcome is None:
            call.on_rpc = True  # AGX-HTTP-044
            return 202, {"call_id": call_id}
        return 200, {"ok": "value" in call.outcome, **call.outcome}  # AGX-HTTP-041

    def answer(self, status, body, headers=None):
        return web.Response(status=status, body=msgpack.packb(body), headers=headers,
                            content_type="application/msgpack")

    def application(self):
        app = web.Application(client_max_size=MESSAGE_LIMIT + 1)
        app.router.add_get("/health", self.health, allow_head=False)
        app.router.add_post("/call", self.call)
        self.sio.attach(app)
        app.router.add_route("*", "/socket.io", self.sio.handle_request)  # AGX-CON-002
        translate = self.sio.eio._async["translate_request"]

        def with_whole_body(request):
            environ = translate(request)
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"])
            return environ

        self.sio.eio._async = dict(self.sio.eio._async, translate_request=with_whole_body)
        return app


async def serve(port, worker):
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runtime = Runtime(worker)
    runner = web.AppRunner(runtime.application(), handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print("listening on http://127.0.0.1:%d" % runner.addresses[0][1], flush=True)
    os.dup2(2, 1)  # what functions print goes to standard error; standard output has that one line
    await stop.wait()
    await runtime.executor.stop()
    for step in (runtime.sio.shutdown(), runner.cleanup()):
        try:
            await asyncio.wait_for(step, STOP_TIMEOUT)
        except asyncio.TimeoutError:
            log("connections did not close within %g s" % STOP_TIMEOUT)


def main():
    parser = argparse.ArgumentParser(description="A runtime on the loopback interface.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--path", action="append", default=[], metavar="DIR", help="import from here first (repeatable)")
    parser.add_argument("--worker", metavar="CMD", help="run functions in this worker, behind the pipe")
    options = parser.parse_args()
    sys.path[:0] = options.path
    try:
        asyncio.run(serve(options.port, shlex.split(options.worker or "")))
    except OSError as cause:
        sys.exit("runtime.py: cannot listen on port %d: %s" % (options.port, cause))
    sys.stderr.flush()
    os._exit(0)  # sync functions that still run hold daemon threads, which must not delay the end


if __name__ == "__main__":
    main()
