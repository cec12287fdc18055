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


async def run(url, chosen):
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
    parser = argparse.ArgumentParser(description="Drives a runtime through a list of checks.")
    parser.add_argument("url", help="for example http://127.0.0.1:8000")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this check (repeatable)")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="do not run this check")
    options = parser.parse_args()
    unknown = sorted(set(options.only + options.skip) - set(CHECKS))
    if unknown:
        parser.error("no such check: " + ", ".join(unknown))
    chosen = set(options.only or CHECKS) - set(options.skip)
    return asyncio.run(run(options.url.rstrip("/"), chosen))


if __name__ == "__main__":
    sys.exit(main())
