#!/bin/sh
# Never becomes ready.
cat >/dev/null
