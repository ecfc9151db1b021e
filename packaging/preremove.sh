#!/bin/sh
# Before removing: the service ends. dpkg says "remove" and rpm 0; on an upgrade
# it goes on and is restarted afterwards.
set -e
case "$1" in
remove | 0)
	if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now dragoman.service || true
	fi
	;;
esac
