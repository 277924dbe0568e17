#!/usr/bin/env bash
# Looks at four nodes of a Slurm, with full queues, from outside while they are rolled.
#
#   examples/slurm/check.sh [DIRECTORY]     the directory that holds .haptera
#
# It looks with Slurm's own commands and accounts, and /proc; haptera it only tells what should be.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
directory=${1:-$(cd "$here/../.." && pwd)}
root=$directory/.haptera
export SLURM_CONF=$directory/slurm/slurm.conf
account=$directory/slurm/jobcomp
wait_s=300
job_s=3
nodes=(compute{1..4})

more_picture() { wc -l "$account"; }
more_on_failure() { haptera roll status; sinfo -N -o '%N %T %E'; }
# shellcheck source=tools/checking.sh
source "$here/../../tools/checking.sh"

# The image that a node runs, as its init sees it.
image_of() {
  local init
  init=$(sed 's/.*"pid":\([0-9]*\).*/\1/' "$root/nodes/$1/run/systems/compute/started.json")
  cat "/proc/$init/root/etc/image"
}
runs() { [[ $(image_of "$1") == "$2" ]]; } # NODE IMAGE
all_run() { local node; for node in "${nodes[@]}"; do runs "$node" "$1" || return 1; done; }
all_idle() { [[ $(sinfo -h -o %T | sort -u) == idle ]]; }

wait_for "all nodes run a" all_run a
wait_for "Slurm has all nodes" all_idle
echo "four nodes run a, and the slurmd in it"

# feed: has jobs wait on each node, each for all of it, for as long as the file says so.
feed() {
  local node
  while [[ -e $directory/feeding ]]; do
    for node in "${nodes[@]}"; do
      (($(squeue -h --name="$node" -o %i | wc -l) > 2)) ||
        sbatch --parsable --chdir=/ --output=/dev/null --exclusive --nodelist="$node" \
          --job-name="$node" --wrap="sleep $job_s"
    done
    sleep 0.5
  done >"$directory/submitted"
}
trap 'rm -f "$directory/feeding"' EXIT
touch "$directory/feeding"
feed &
all_begun() { [[ $(squeue -h -t running -o %N | sort -u | wc -l) == "${#nodes[@]}" ]]; }
wait_for "a job runs on each node" all_begun
busy_seen() { haptera get node:compute1 -o json | grep -q '"value": "busy"'; }
wait_for "the prolog holds the gate: compute1 is busy" busy_seen
echo "each node has a job and more that wait, and is busy"

haptera roll 'system:compute@compute[1-4]' --image b --max-unavailable 2 --take --no-wait
wait_for "compute1 runs b" runs compute1 b
echo "compute1 was rolled between two jobs"
is_done() { haptera roll status b | grep -q ' done '; }
wait_for "the roll is done" is_done
all_run b || fail "the roll is done, and not all nodes run b"
rm "$directory/feeding"
wait

# What became of the jobs, Slurm itself wrote down: one line for each that ended, whatever way.
submitted=$(sort -n "$directory/submitted")
all_ended() { [[ -z $(squeue -h) ]] && (($(wc -l <"$account") >= $(wc -l <<<"$submitted"))); }
wait_for "all jobs have ended" all_ended
ended=$(sed 's/^JobId=\([0-9]*\) .* JobState=\([A-Z_]*\) .*/\1 \2/' "$account" | sort -n)
[[ $ended == "${submitted//$'\n'/ COMPLETED$'\n'} COMPLETED" ]] ||
  fail "jobs were killed or requeued: $ended"
wait_for "all nodes are idle again" all_idle
[[ $(srun --chdir=/ -w compute1 sh -c 'read -r image </etc/image; echo "$image"') == b ]] ||
  fail "a job on compute1 does not find image b"
echo "all $(wc -l <<<"$submitted") jobs ran once, to their end; all nodes run b, and are idle"
echo "all held"
