#!/usr/bin/env python3
"""A host written from `spec/prose` alone, which drives any runtime over the network through the checks of checks.py.

Nothing here shares code with the Rust crates, so that a mistake made on both of their sides still shows. The worker
behind the runtime must offer the functions of `spec/prose/functions.md`.
"""

import argparse
import asyncio
import contextlib
import sys

import aiohttp

from checks import CHECKS, Bench
from client import TIMEOUT

CHECK_TIMEOUT = 90.0  # seconds for a whole check
START_TIMEOUT, STOP_TIMEOUT = 60.0, 20.0  # seconds; a runtime may take 9 to stop its worker (AGX-PIPE-042)


@contextlib.asynccontextmanager
async def started(command):
    """Runs a runtime for the time of the checks. Gives its URL, and ends it with SIGTERM."""
    try:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    except OSError as cause:
        raise SystemExit("host.py: cannot start the runtime: %s" % cause) from None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT)).decode().strip()
        if not line.startswith("listening on http://"):
            raise SystemExit("host.py: expected `listening on URL` from the runtime, got %r" % line)
        yield line[len("listening on "):]
        process.terminate()
        await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
        if process.returncode != 0:
            raise SystemExit("host.py: the runtime ended with status %d after SIGTERM" % process.returncode)
    except asyncio.TimeoutError:
        raise SystemExit("host.py: the runtime did not start or stop in time") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run(url, command, chosen):
    if url is not None:
        return await run_checks(url.rstrip("/"), chosen)
    async with started(command) as url:
        return await run_checks(url, chosen)


async def run_checks(url, chosen):
    passed = failed = 0
    for name, function in CHECKS.items():
        if name not in chosen:
            continue
        try:
            async with contextlib.AsyncExitStack() as stack:
                session = await stack.enter_async_context(
                    aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)))
                await asyncio.wait_for(function(Bench(url, stack, session)), CHECK_TIMEOUT)
        except Exception as cause:
            failed += 1
            print("FAIL %s: %s" % (name, " ".join(str(cause).split()) or repr(cause)), flush=True)
        else:
            passed += 1
            print("ok " + name, flush=True)
    for name in CHECKS:
        if name not in chosen:
            print("not run " + name)
    print("%d passed, %d failed" % (passed, failed))
    return 0 if passed and not failed else 1


def main():
    arguments, command = sys.argv[1:], []
    if "--" in arguments:
        split = arguments.index("--")
        arguments, command = arguments[:split], arguments[split + 1:]
    parser = argparse.ArgumentParser(description="Drives a runtime through a list of checks.",
                                     usage="%(prog)s [--only NAME]... [--skip NAME]... (URL | -- CMD...)")
    parser.add_argument("url", nargs="?", help="of a runtime that listens, for example http://127.0.0.1:8000; "
                        "else CMD is started, which prints `listening on URL`, and ended with SIGTERM")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this check (repeatable)")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="do not run this check")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.only + options.skip) - set(CHECKS))
    if unknown:
        parser.error("no such check: " + ", ".join(unknown))
    if (options.url is None) == (not command):
        parser.error("give either a URL or, after --, the command of a runtime")
    return asyncio.run(run(options.url, command, set(options.only or CHECKS) - set(options.skip)))


if __name__ == "__main__":
    sys.exit(main())
