"""The checks of the independent host. Each one drives a runtime over the network and judges what came back.

No check waits by the clock for something not to happen: `Host.quiet` uses the order of events on a connection instead.
"""

import asyncio
import pickle

import msgpack

from client import TIMEOUT, Host, Refused, call_body, check_version, expect, expect_error, new_id, unwrap

LARGE = 5_000_000  # bytes, above the default limits of aiohttp and python-engineio
LONG = 60  # seconds; a call of this length ends in a check only by being cancelled
CHECKS = {}


class Bench:
    """What a check works with: hosts and HTTP requests against one runtime, all closed at its end."""

    def __init__(self, url, stack, session):
        self.url, self.stack, self.session = url, stack, session

    async def host(self, **options):
        host = Host(self.url, **options)
        self.stack.push_async_callback(host.close)
        await asyncio.wait_for(host.connect(), TIMEOUT)
        return host

    async def request(self, method, path, **options):
        """Status, headers and body of one request."""
        async with self.session.request(method, self.url + path, **options) as response:
            return response.status, response.headers, await response.read()

    async def post(self, body, wait="20", host=None):
        """Status and decoded body of one `POST /call`."""
        headers = {"content-type": "application/msgpack", "prefer": "respond-async, wait=" + wait}
        if host is not None:
            headers["agentix-sid"] = host.sid
        raw = body if isinstance(body, bytes) else msgpack.packb(body)
        status, headers, raw = await self.request("POST", "/call", data=raw, headers=headers)
        expect(headers.get("content-type"), "application/msgpack", "content type of a %d" % status)
        if status in (200, 202):
            expect(headers.get("preference-applied"), "wait=" + wait, "preference-applied")
        return status, msgpack.unpackb(raw)


def check(function):
    CHECKS[function.__name__] = function
    return function


@check
async def health(bench):
    status, headers, _ = await bench.request("GET", "/health")
    expect((status, headers["content-type"].split(";")[0]), (200, "application/json"), "status and content type")
    async with bench.session.get(bench.url + "/health") as response:
        answer = await response.json()
    check_version(answer)
    expect(answer.get("status"), "ok", "status")
    expect(answer.get("protocol"), "1.0", "protocol")
    expect(type(answer.get("version")), str, "type of version")


@check
async def routes(bench):
    for method, path, expected in (
            ("HEAD", "/health", 405), ("POST", "/health", 405), ("GET", "/call", 405), ("GET", "/none", 404),
            ("GET", "/socket.io/?transport=polling&EIO=3", 400), ("GET", "/socket.io/?transport=other&EIO=4", 400),
            ("GET", "/socket.io/?transport=polling&EIO=4&sid=unknown", 400),
            ("GET", "/socket.io?transport=polling&EIO=4&t=x", 200)):
        status, _, _ = await bench.request(method, path)
        expect(status, expected, "status of %s %s" % (method, path))


async def connect_and_call(bench, transports, ends_as):
    host = await bench.host(transports=transports)
    expect(host.client.transport(), ends_as, "transport")
    expect(len({host.client.get_sid(name) for name in host.namespaces} | {host.client.eio.sid}), 4, "number of sids")
    expect(await host.call("conformance::total", [1, 2, 3]), 6, "result")
    blob = bytes(range(256)) * (LARGE // 256)
    expect(await host.call("conformance::echo", blob) == blob, True, "5 MB come back unchanged")


@check
async def polling_then_upgrade(bench):
    await connect_and_call(bench, None, "websocket")


@check
async def websocket_only(bench):
    await connect_and_call(bench, ["websocket"], "websocket")


@check
async def polling_only(bench):
    await connect_and_call(bench, ["polling"], "polling")


@check
async def values(bench):
    host = await bench.host()
    for value in (None, True, 0, -1, 2**70, 1.5, "", "A\0\u00e9\u6a21\U0001f600", b"\x1e\x00", (), [1, (2, [3])],
                  {"k": None, "a": {"b": b""}}, "x" * 70_000, list(range(300))):
        expect(await host.call("conformance::echo", value), value, "echo")
        expect(await host.call("conformance::echo_async", value), value, "echo_async")
    expect(await host.call("conformance::unicode"),
           "A\0\u00e9e\u0301\u03c0\u6a21\u2028\ufeff\U0001f600\U0001d54f\U0010ffff", "unicode")


@check
async def positional_and_keyword_arguments(bench):
    host = await bench.host()
    expect(await host.call("conformance::arguments", 1, "b", x=2, y=[3]), [[1, "b"], {"x": 2, "y": [3]}], "arguments")
    expect(await host.call("conformance::arguments"), [[], {}], "arguments")
    expect(await host.call("conformance::echo", value="named"), "named", "echo")


@check
async def concurrent_calls(bench):
    host = await bench.host()
    long = await host.submit("conformance::sleep", LONG)
    ids = [await host.submit("conformance::echo", number) for number in range(100)]
    expect([await host.finish(call_id) for call_id in ids], list(range(100)), "results")
    await host.emit("cancel", {"call_id": long})
    expect_error(await host.outcome(long), "Cancelled", cancelled=True)


@check
async def errors(bench):
    host = await bench.host()
    for target in ("conformance::fail", "conformance::fail_async"):
        error = expect_error(await host.outcome(await host.submit(target, "boom \u00e9")), "ValueError")
        expect(error["message"], "boom \u00e9", "message")
    expect_error(await host.outcome(await host.submit("conformance::unpicklable")), "ResultEncodeError")
    body = dict(call_body(new_id(), "conformance::echo"), arguments=b"\x80\x04\x95")
    await host.send_call(body)
    expect_error(await host.outcome(body["call_id"]), "ArgumentsDecodeError")


@check
async def traceback(bench):
    host = await bench.host()
    error = expect_error(await host.outcome(await host.submit("conformance::fail", "boom")), "ValueError")
    expect("fail" in (error["traceback"] or ""), True, "traceback names the function")


@check
async def unresolvable_targets(bench):
    host = await bench.host()
    for target, type_ in (("conformance::no_such_name", "AttributeError"), ("no_such_module::f", "ModuleNotFoundError"),
                          ("conformance:echo", "ValueError"), ("a::b::c", "ValueError"), ("", "ValueError"),
                          ("conformance::echo.", "ValueError"), ("conformance::<lambda>", "ValueError")):
        try:
            expect_error(await host.outcome(await host.submit(target)), type_)
        except AssertionError as cause:
            raise AssertionError("%r: %s" % (target, cause)) from None


@check
async def refused_value(bench):
    host = await bench.host()
    call_id = await host.submit("conformance::refused")
    try:
        await host.finish(call_id)
    except Refused:
        expect_error(await host.resume_answer(call_id), "ResultUnavailable")  # it was acked
    else:
        raise AssertionError("a pickle of builtins.print was decoded")


@check
async def cancel(bench):
    owner, other = await bench.host(), await bench.host()
    for target in ("conformance::sleep", "conformance::stubborn"):
        for canceller in (owner, other):
            call_id = await owner.submit(target, LONG)
            await canceller.emit("cancel", {"call_id": call_id})
            for host in {owner, canceller}:
                expect_error(await host.outcome(call_id), "Cancelled", cancelled=True)
            await canceller.emit("cancel", {"call_id": call_id})  # changes nothing, AGX-CALL-055
            await owner.quiet(call_id)
            await canceller.quiet(call_id)
            expect_error(await owner.resume_answer(call_id), "Cancelled", cancelled=True)
            await owner.emit("ack", {"call_id": call_id})
            expect_error(await owner.resume_answer(call_id), "ResultUnavailable")


@check
async def duplicate_id_runs_once(bench):
    host, key = await bench.host(), new_id()
    body = call_body(new_id(), "conformance::count_slow", key, 0.3)
    await host.send_call(body)
    await host.emit("call", body)
    expect(unwrap(await host.outcome(body["call_id"])), 1, "the one execution")
    await host.quiet(body["call_id"])
    await host.emit("call", dict(body, callable=None))  # a repeat whatever its fields hold, AGX-RPC-018
    expect(unwrap(await host.outcome(body["call_id"])), 1, "outcome of a repeat while it is held")
    expect(await host.call("conformance::counted", key), 1, "number of executions")


@check
async def call_after_ack(bench):
    host, key = await bench.host(), new_id()
    body = call_body(new_id(), "conformance::count", key)
    await host.send_call(body)
    expect(await host.finish(body["call_id"]), 1, "first outcome")
    await host.emit("call", body)
    expect_error(await host.outcome(body["call_id"]), "ResultUnavailable")
    expect(await host.call("conformance::counted", key), 1, "number of executions")


@check
async def resume_after_cut(bench):
    host, key = await bench.host(), new_id()
    running = await host.submit("conformance::count_slow", key, 0.5)
    held = await host.submit("conformance::echo", "held")
    first = await host.outcome(held)
    await host.cut()
    await host.connect()
    expect(await host.resume_answer(held), first, "held outcome on the new connection")
    expect(await host.finish(running), 1, "outcome of the running call")
    expect(await host.call("conformance::counted", key), 1, "number of executions")


@check
async def outcome_waits_for_its_owner(bench):
    owner, other, key = await bench.host(), await bench.host(), new_id()
    body = call_body(new_id(), "conformance::count_slow", key, 0.2)
    await owner.send_call(body)
    await owner.cut()
    status, answer = await bench.post(body, wait="0")
    while status == 202:  # over HTTP and without a sid, a repeat does not change the owner, AGX-HTTP-043
        expect(await other.call("conformance::sleep", 0.05), 0.05, "pause")
        status, answer = await bench.post(body, wait="0")
    expect((status, unwrap(answer)), (200, 1), "outcome over HTTP")
    await other.quiet(body["call_id"])
    await owner.connect()
    expect(await owner.finish(body["call_id"]), 1, "outcome after the owner came back")


@check
async def unacked_call_is_sent_again(bench):
    host, key = await bench.host(), new_id()
    body = call_body(new_id(), "conformance::count", key)
    host.unacked[body["call_id"]] = body
    await host.emit_raw("call", msgpack.packb(body))
    await host.cut()  # whether or not the runtime got the call
    await host.connect()
    expect(unwrap(await host.outcome(body["call_id"])), 1, "outcome")
    expect(await host.call("conformance::counted", key), 1, "number of executions")


@check
async def resume_order_and_bad_entries(bench):
    host = await bench.host()
    held = await host.submit("conformance::echo", 1)
    await host.outcome(held)
    unknown = new_id()
    await host.emit("resume", {"call_ids": [5, held, unknown, None, held]})
    expect(unwrap(await host.outcome(held)), 1, "first answer")
    expect_error(await host.outcome(unknown), "ResultUnavailable")
    expect(unwrap(await host.outcome(held)), 1, "second answer")
    for event, payload in (("resume", {}), ("resume", {"call_ids": "x"}), ("ack", {}), ("cancel", {"call_id": 5})):
        await host.emit(event, payload)
    await host.emit("ack", {"call_id": held})
    expect_error(await host.resume_answer(held), "ResultUnavailable")


@check
async def bystander_gets_nothing(bench):
    owner, bystander = await bench.host(), await bench.host()
    ids = [await owner.submit("conformance::echo", number) for number in range(5)]
    outcomes = [unwrap(await owner.outcome(call_id)) for call_id in ids]
    expect(outcomes, list(range(5)), "outcomes")
    await bystander.quiet(*ids)
    expect(unwrap(await bystander.resume_answer(ids[0])), 0, "whoever knows the id may resume")


@check
async def bad_requests(bench):
    host = await bench.host()
    good = call_body(new_id(), "conformance::echo", 7)
    for bad in ({}, dict(good, call_id=""), dict(good, call_id=5), dict(good, call_id="x" * 129)):
        await host.emit("call", bad)
        expect_error(await host.outcome(""), "BadRequest")
    for bad in (dict(good, callable=5), dict(good, arguments="text"), dict(good, context=1),
                {"call_id": good["call_id"], "callable": "conformance::echo"}):
        await host.emit("call", bad)
        expect_error(await host.outcome(good["call_id"]), "BadRequest")
        status, answer = await bench.post(bad)
        expect(status, 400, "status")
        expect_error(answer, "BadRequest")
    await host.send_call(dict(good, context=None, unknown_key=1))
    expect(await host.finish(good["call_id"]), 7, "the corrected call with the same id")


@check
async def unreadable_events(bench):
    host = await bench.host()
    good = call_body(new_id(), "conformance::echo", 7)
    for event, data in (("call", b"\xc1"), ("call", b"\x93\x01\x02\x03"), ("call", msgpack.packb(good) + b"\xc0"),
                        ("call", b"\x81\xa1"), ("call", {"call_id": "json"}), ("other", msgpack.packb(good))):
        acks = await host.emit_raw(event, data)
        await host.quiet("", "json", good["call_id"])
        expect(acks, [], "Socket.IO acks of %s %r" % (event, data))
    expect(await host.call("conformance::echo", 1), 1, "the connection lives on")


@check
async def http_200(bench):
    host = await bench.host()
    body = call_body(new_id(), "conformance::echo", [1])
    status, answer = await bench.post(body, host=host)
    expect((status, list(answer), answer["ok"], unwrap(answer)), (200, ["ok", "value"], True, [1]), "answer")
    await host.quiet(body["call_id"])  # AGX-CALL-065
    expect(unwrap(await host.resume_answer(body["call_id"])), [1], "held after the answer")
    status, answer = await bench.post(body, host=host)
    expect((status, unwrap(answer)), (200, [1]), "repeat while held")
    status, answer = await bench.post(dict(body, callable=None), host=host)
    expect((status, unwrap(answer)), (200, [1]), "repeat whatever its other fields hold, AGX-RPC-018")
    await host.emit("ack", {"call_id": body["call_id"]})
    status, answer = await bench.post(body, host=host)
    expect(status, 200, "status of a repeat after the ack")
    expect_error(answer, "ResultUnavailable")
    status, answer = await bench.post(call_body(new_id(), "conformance::fail", "boom"), host=host)
    expect((status, list(answer), answer["ok"]), (200, ["ok", "error"], False), "answer")
    expect_error(answer, "ValueError")


@check
async def http_200_without_sid(bench):
    host = await bench.host()
    body = call_body(new_id(), "conformance::echo", 1)
    status, answer = await bench.post(body)
    expect((status, unwrap(answer)), (200, 1), "answer")
    await host.emit("ack", {"call_id": body["call_id"]})  # any connection that knows the id may, AGX-CALL-036
    expect_error(await host.resume_answer(body["call_id"]), "ResultUnavailable")


@check
async def http_202_with_sid(bench):
    owner, bystander = await bench.host(), await bench.host()
    body = call_body(new_id(), "conformance::sleep", 0.3)
    expect(await bench.post(body, wait="0", host=owner), (202, {"call_id": body["call_id"]}), "answer")
    expect(await bench.post(body, host=owner), (202, {"call_id": body["call_id"]}), "repeat while it runs")
    expect(unwrap(await owner.outcome(body["call_id"])), 0.3, "outcome")
    await bystander.quiet(body["call_id"])


@check
async def http_202_without_sid(bench):
    first, second = await bench.host(), await bench.host()
    body = call_body(new_id(), "conformance::sleep", 0.3)
    expect(await bench.post(body, wait="0.05"), (202, {"call_id": body["call_id"]}), "answer")
    expect(await first.finish(body["call_id"]), 0.3, "outcome at the first host, which acks")
    expect(unwrap(await second.outcome(body["call_id"])), 0.3, "outcome at the second host")
    expect(unwrap(await second.resume_answer(body["call_id"])), 0.3, "held until the second host acks too")
    await second.emit("ack", {"call_id": body["call_id"]})
    expect_error(await second.resume_answer(body["call_id"]), "ResultUnavailable")


@check
async def http_202_and_nobody_there(bench):
    body = call_body(new_id(), "conformance::sleep", 0.2)
    status, answer = await bench.post(body, wait="0")
    expect(status, 202, "status")
    while status == 202:  # the runtime answers each repeat at once, until the outcome is held
        status, answer = await bench.post(body, wait="0")
    expect((status, unwrap(answer)), (200, 0.2), "outcome")
    host = await bench.host()
    await host.quiet(body["call_id"])
    expect(unwrap(await host.resume_answer(body["call_id"])), 0.2, "held until somebody asks on /rpc")
    await host.emit("ack", {"call_id": body["call_id"]})
    expect_error(await host.resume_answer(body["call_id"]), "ResultUnavailable")


@check
async def http_202_and_a_lost_receiver(bench):
    host = await bench.host()
    body = call_body(new_id(), "conformance::sleep", 0.2)
    expect((await bench.post(body, wait="0"))[0], 202, "status")
    expect(unwrap(await host.outcome(body["call_id"])), 0.2, "outcome")
    await host.cut()  # it left without an ack, AGX-CALL-035
    await host.connect()
    expect(unwrap(await host.resume_answer(body["call_id"])), 0.2, "held for the resume")
    await host.emit("ack", {"call_id": body["call_id"]})
    expect_error(await host.resume_answer(body["call_id"]), "ResultUnavailable")


@check
async def http_cancel(bench):
    owner, canceller = await bench.host(), await bench.host()
    body = call_body(new_id(), "conformance::count_slow", new_id(), LONG)
    waiting = asyncio.ensure_future(bench.post(body, host=owner))
    while await canceller.call("conformance::counted", pickle.loads(body["arguments"])[0][0]) == 0:
        pass  # each turn is one call, so it ends when the runtime has started the function
    await canceller.emit("cancel", {"call_id": body["call_id"]})
    status, answer = await waiting
    expect(status, 200, "status")
    expect_error(answer, "Cancelled", cancelled=True)
    expect_error(await canceller.outcome(body["call_id"]), "Cancelled", cancelled=True)
    await owner.quiet(body["call_id"])


@check
async def http_resume_while_it_waits(bench):
    host, key = await bench.host(), new_id()
    body = call_body(new_id(), "conformance::count_slow", key, 0.5)
    waiting = asyncio.ensure_future(bench.post(body, host=host))
    while await host.call("conformance::counted", key) == 0:
        pass
    await host.emit("resume", {"call_ids": [body["call_id"]]})
    expect(unwrap(await host.outcome(body["call_id"])), 1, "outcome on /rpc, AGX-CALL-067")
    status, answer = await waiting
    expect((status, unwrap(answer)), (200, 1), "answer")


@check
async def http_prefer(bench):
    for text, applied in (("respond-async", "1"), ("wait=abc", "1"), ("await=5", "1"), ("WAIT = 4", "4"),
                          ("wait=2.0", "2"), ('wait="3"', "3"), ("respond-async;wait=1.50", "1.5"),
                          ("foo, wait=7, wait=8", "7"), ("wait=x, wait=3", "3"), ("wait=00.25", "0.25"),
                          ("wait=1e3", "1"), ("wait=0", "0")):
        body = msgpack.packb(call_body(new_id(), "conformance::echo", 1))
        status, headers, _ = await bench.request("POST", "/call", data=body, headers={"prefer": text})
        expect(status in (200, 202), True, "status %d is one of 200, 202" % status)
        expect(headers.get("preference-applied"), "wait=" + applied, "preference-applied for %r" % text)


@check
async def http_bad_bodies(bench):
    for body in (b"", b"\xc1", b"\x90", b"\x80", msgpack.packb({"call_id": "x"}) + b"\x00"):
        status, answer = await bench.post(body)
        expect((status, list(answer), answer["ok"]), (400, ["ok", "error"], False), "answer to %r" % body)
        expect_error(answer, "BadRequest")


@check
async def http_large(bench):
    host, blob = await bench.host(), bytes(range(256)) * (LARGE // 256)
    status, answer = await bench.post(call_body(new_id(), "conformance::echo", blob), host=host)
    expect((status, unwrap(answer) == blob), (200, True), "5 MB come back unchanged")


@check
async def side_channel_acks(bench):
    host = await bench.host(namespaces=["/rpc", "/log", "/trace", "/conformance-plugin"])
    for namespace, event in (("/log", "_ack"), ("/trace", "_resume"), ("/conformance-plugin", "hello")):
        data = msgpack.packb({"seq": 0, "since_seq": 0})
        expect(await host.client.call(event, data, namespace=namespace, timeout=TIMEOUT), None, "ack")
    expect(await host.client.call("hello", {"json": 1}, namespace="/conformance-plugin", timeout=TIMEOUT), None, "ack")


@check
async def worker_dies(bench):
    host, bystander = await bench.host(), await bench.host()
    first = await host.call("conformance::pid")
    running = await host.submit("conformance::sleep", LONG)
    expect_error(await host.outcome(await host.submit("conformance::exit", 3)), "WorkerDied", returncode=3)
    expect_error(await host.outcome(running), "WorkerDied", returncode=3)
    second = await host.call("conformance::pid")
    expect(first != second, True, "the next call has a new worker")
    expect_error(await host.outcome(await host.submit("conformance::signal", 9)), "WorkerDied", returncode=-9)
    expect(await bystander.call("conformance::echo", 1), 1, "call of another host")
