#!/bin/sh
# Is no runtime.
echo hello
cat >/dev/null
