#!/bin/sh
# Cannot start.
exit 3
