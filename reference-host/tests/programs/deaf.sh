#!/bin/sh
# Does not care about its stdin, and ends on SIGTERM.
echo "listening on http://127.0.0.1:1"
exec sleep 600
