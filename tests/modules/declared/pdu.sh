#!/bin/sh
# The outlets of a PDU, for the `pass` of snmpd.conf(5): a file for each, with 1 (on) or 2 (off).
# pdu.sh FOLDER -g OID | -n OID | -s OID TYPE VALUE
folder=$1
state=.1.3.6.1.4.1.318.1.1.12.3.5.1.1.4
command=.1.3.6.1.4.1.318.1.1.12.3.3.1.1.4
number=${3##*.}
file=$folder/$number
case $2 in
-g) [ "$3" = "$state.$number" ] && [ -e "$file" ] && printf '%s\ninteger\n%s\n' "$3" "$(cat "$file")" ;;
-s)
    [ "$3" = "$command.$number" ] && [ -e "$file" ] || { echo not-writable; exit; }
    [ "$4" = integer ] || { echo wrong-type; exit; }
    echo "$5" >"$file"
    ;;
esac
