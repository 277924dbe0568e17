# A service that writes down each of its starts, and with whom it runs: alone, or together with
# another process of the same service.
exec 9>>"$1/$HAPTERA_NODE.lock"
flock -n 9 && with=alone || with=together
echo "{\"started\": ${HAPTERA_PORT:-9000}, \"with\": \"$with\"}" >>"$1/$HAPTERA_NODE"
exec sleep 100000
