#!/bin/sh
# After installing: a service that runs gets the new version. It is not started
# by itself: a gateway needs its configuration first.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	systemctl try-restart dragoman.service || true
fi
