#!/usr/bin/env python3
"""Runs `agentix-host` against a runtime that is not ours and judges what it prints and its exit status.

    rust_host.py AGENTIX_HOST -- CMD...      CMD starts the runtime and prints `listening on URL`
"""

import asyncio
import base64
import json
import sys

from client import TIMEOUT, Host, expect, new_id
from host import started

LARGE = 5_000_000  # bytes


class Program:
    def __init__(self, program, url):
        self.program, self.url = program, url

    async def run(self, *arguments):
        """Exit status and standard output; what went to standard error is shown with the failure."""
        process = await asyncio.create_subprocess_exec(
            self.program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        try:
            out, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode, out.decode(), err.decode()

    async def value(self, target, *options):
        status, out, err = await self.run("call", "--url", self.url, "conformance::" + target, *options)
        if status != 0:
            raise AssertionError("%s: status %d, %s" % (target, status, err))
        return json.loads(out)

    async def error(self, target, *options):
        """Standard error of a call that fails: exit status 1 and nothing on standard output."""
        status, out, err = await self.run("call", "--url", self.url, target, *options)
        expect((status, out, bool(err)), (1, "", True), "status, output and complaint of %s (%s)" % (target, err))
        return err


async def health(program):
    status, out, _ = await program.run("health", program.url)
    expect((status, json.loads(out)["protocol"]), (0, "1.0"), "status and protocol")


async def values(program):
    for options in ((), ("--no-http",)):
        expect(await program.value("echo", "--arg", "5", *options), 5, "echo")
        expect(await program.value("echo", "--kwargs", '{"value": [1, null, {"a": 2.5}]}', *options),
               [1, None, {"a": 2.5}], "echo")
        expect(await program.value("arguments", "--arg", "1", "--arg", '"b"', "--kwargs", '{"x": true}', *options),
               [[1, "b"], {"x": True}], "arguments")
        expect(await program.value("echo_async", "--arg", '"\u6a21"', *options), "\u6a21", "echo_async")


async def longer_than_the_wait(program):
    expect(await program.value("sleep", "--arg", "1.5"), 1.5, "outcome of a call that is answered 202")


async def runs_once(program):
    key = json.dumps(new_id())
    expect(await program.value("count_slow", "--arg", key, "--arg", "1.2"), 1, "count")
    expect(await program.value("counted", "--arg", key), 1, "number of executions")


async def large(program):
    blob = await program.value("blob", "--arg", str(LARGE))
    expect(len(base64.b64decode(blob["$bytes"])), LARGE, "size")


async def errors(program):
    for target, type_ in (("conformance::nope", "AttributeError"), ("nope::nope", "ModuleNotFoundError"),
                          ("conformance::unpicklable", "ResultEncodeError")):
        expect(type_ in await program.error(target), True, "names the type %s" % type_)
        expect(type_ in await program.error(target, "--no-http"), True, "names the type %s" % type_)
    text = await program.error("conformance::fail", "--arg", '"boom"')
    expect(("ValueError" in text, "boom" in text, "in fail" in text), (True,) * 3, "type, message and traceback")


async def refused_value(program):
    await program.error("conformance::refused")


async def time_limit_cancels(program):
    key, watcher = new_id(), Host(program.url)
    await watcher.connect()
    try:
        arguments = ("--arg", json.dumps(key), "--arg", "60")
        await program.error("conformance::count_slow", "--timeout", "1", *arguments)
        expect(await watcher.call("conformance::counted", key), 1, "number of executions")
    finally:
        await watcher.close()


async def main(program, command):
    failed = 0
    async with started(command) as url:
        checks = (health, values, longer_than_the_wait, runs_once, large, errors, refused_value, time_limit_cancels)
        for check in checks:
            try:
                await check(Program(program, url))
                print("ok " + check.__name__, flush=True)
            except Exception as cause:
                failed += 1
                print("FAIL %s: %s" % (check.__name__, " ".join(str(cause).split()) or repr(cause)), flush=True)
    print("%d passed, %d failed" % (len(checks) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[3:])))
