#!/usr/bin/env bash
# Has Slurm switch nodes off and on, and reboot one, and looks at both from outside.
#
#   examples/slurm_power/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It looks with Slurm's own commands and the BMCs' records; haptera only makes the token.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
directory=${1:-$(cd "$here/../.." && pwd)}
root=$directory/.haptera
slurm=$directory/slurm
export SLURM_CONF=$slurm/slurm.conf
wait_s=180

more_picture() { squeue -h -o '%i %T'; sinfo -N -o '%N %T'; }
more_on_failure() {
  sinfo -N -o '%N %T %E'
  tail -n 20 "$slurm/haptera.log"
}
# shellcheck source=tools/checking.sh
source "$here/../../tools/checking.sh"

# What its BMC has done since the check began, in this order: on, off, …
switched() { # NODE
  tail -n "+$((begun[$1] + 1))" "$root/nodes/$1/bmc/commands.jsonl" |
    grep -o '"effect":"[a-z]*"' | cut -d '"' -f 4 | xargs
}
was_switched() { [[ $(switched "$1") == "$2" ]]; }    # NODE ORDER
slurm_has() { [[ $(sinfo -h -n "$1" -o %T) == "$2" ]]; } # NODE STATE
wrote() { grep -q "$1" "$slurm/haptera.log"; }

(umask 077 && haptera token make slurm --scope write --client-file >"$slurm/token.json")
"$slurm/programs/suspend" 'compute[1-2]'
haptera wait 'node:*' --for power=off --within "${wait_s}s" || fail "the nodes are not off"
declare -A begun
for node in n1 n2; do begun[$node]=$(wc -l <"$root/nodes/$node/bmc/commands.jsonl"); done
"$slurm/programs/resume" 'compute[1-2]'
wait_for "Slurm has both nodes" slurm_has 'compute[1-2]' idle
echo "resumed by hand: both nodes are on"

scontrol update nodename=compute1 state=power_down
wait_for "n1 is off" was_switched n1 "on off"
wait_for "Slurm knows that it is" slurm_has compute1 'idle~'
echo "suspended by Slurm: n1 is off"

job=$(sbatch --parsable --nodelist=compute1 --chdir=/ --output=/dev/null --wrap=true)
wait_for "n1 is on again" was_switched n1 "on off on"
completed() { grep -q "^JobId=$job .* JobState=COMPLETED " "$slurm/jobcomp"; }
wait_for "the job for which it was resumed has run" completed
echo "resumed by Slurm for a job: n1 is on, and has run it"

job=$(sbatch --parsable --nodelist=compute2 --chdir=/ --output=/dev/null --wrap="until [ -e $slurm/go ]; do sleep 0.1; done")
wait_for "the job runs" slurm_has compute2 mixed
scontrol reboot ASAP nextstate=resume reason=kernel compute2
was_switched n2 on || fail "n2 was rebooted under its job"
touch "$slurm/go"
wait_for "the job ended by itself" completed
wait_for "n2 was switched off and on" was_switched n2 "on off on"
wait_for "Slurm has it back" slurm_has compute2 idle
wait_for "so it is in the log" wrote "reboot compute2: done"
was_switched n1 "on off on" || fail "n1 was rebooted"
echo "rebooted by Slurm, once its job had ended: n2 was off and on"

# Desired by a person: drained once its job has ended, and opened.
go=$slurm/go-on
job=$(sbatch --parsable --nodelist=compute2 --chdir=/ --output=/dev/null --wrap="until [ -e $go ]; do sleep 0.1; done")
wait_for "the job runs" slurm_has compute2 mixed
haptera drain n2 -m "new fans" >/dev/null
wait_for "n2 is being drained" slurm_has compute2 draining
names_the_job() { haptera why node:n2 | grep -q "Slurm's job $job runs"; }
wait_for "why names the job" names_the_job
touch "$go"
haptera wait node:n2 --for work=drained --within "${wait_s}s" || fail "n2 is not drained"
slurm_has compute2 drained || fail "Slurm does not say that compute2 is drained"
completed || fail "the job did not end by itself"
haptera undrain n2 >/dev/null
wait_for "n2 is open again" slurm_has compute2 idle
was_switched n2 "on off on" || fail "n2 was switched"
echo "drained as desired, once its job had ended; and opened"

# What somebody else has switched off, Slurm does not switch on.
haptera set node:n1 power=off --unset agent --take -m "new fans" >/dev/null
! "$slurm/programs/resume" 'compute[1,9]' || fail "resume was not refused"
for name in 1 9; do
  wrote "resume compute$name: FAILED. Next: haptera why node:n$name; then .*/resume compute$name" || fail "what to do about compute$name is not in the log"
done
echo "what somebody else keeps off stays off, and the log says so"
haptera unset node:n1 power >/dev/null
"$slurm/programs/resume" compute1 || fail "resume was refused, though nobody keeps n1 off"
echo "all held"
