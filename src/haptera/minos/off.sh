#!/bin/sh
# What the power button of a minOS does, which a BMC presses before it cuts the power: all that runs
# ends, and has ten seconds for that; then the machine is off.
exec >/dev/console 2>&1
echo "minos: its power button was pressed: all that runs here ends"

# Whether a process is the agent, a fork of the first one.
agent() { cmp -s "$1/cmdline" /proc/1/cmdline; }

# Stopped, not ended: another one would be there at once, and start again what ends now.
for one in /proc/[0-9]*; do
    ! agent "$one" || kill -STOP "${one#/proc/}"
done
kill -TERM -1

# Whether another process is left; kernel threads have no program.
others() {
    for one in /proc/[0-9]*; do
        [ "$one" != "/proc/$$" ] && readlink "$one/exe" >/dev/null && ! agent "$one" && return 0
    done
    return 1
}
for _ in $(seq 100); do
    others || break
    sleep 0.1
done
sync
echo "minos: off"
poweroff -f
