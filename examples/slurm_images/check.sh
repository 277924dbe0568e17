#!/usr/bin/env bash
# Looks at jobs that ask for an image, from outside: with Slurm's own commands and accounts, and /proc.
#
#   examples/slurm_images/check.sh [DIRECTORY]     the directory that holds .haptera
set -euo pipefail

here=$(dirname "$(realpath "$0")")
directory=${1:-$(cd "$here/../.." && pwd)}
root=$directory/.haptera
export SLURM_CONF=$directory/slurm/slurm.conf
account=$directory/slurm/jobcomp
wait_s=300

more_picture() { squeue -h -o '%i %T'; cat "$account"; }
more_on_failure() {
  squeue -o '%i %T %R %f'
  sinfo -N -o '%N %T %b %E'
}
# shellcheck source=tools/checking.sh
source "$here/../../tools/checking.sh"

# runs NODE IMAGE: whether the node's init sees this image, and Slurm was told so
runs() {
  local init
  init=$(sed 's/.*"pid":\([0-9]*\).*/\1/' "$root/nodes/$1/run/systems/compute/started.json")
  [[ $(cat "/proc/$init/root/etc/image") == "$2" && $(sinfo -h -n "$1" -o '%T %b') == *" image:$2" ]]
}
both_idle_with_a() {
  runs compute1 a && runs compute2 a && [[ $(sinfo -h -n compute1,compute2 -o %T | sort -u) == idle ]]
}
# submit IMAGE SECONDS [OPTION...]: a job that fails where it finds another image than it asked for
submit() {
  local image=$1 seconds=$2
  shift 2
  sbatch --parsable --exclusive --no-requeue --chdir=/ --output=/dev/null --constraint="image:$image" "$@" \
    --wrap="sleep $seconds; read -r image </etc/image; [ \"\$image\" = $image ]"
}
ended() { grep -q "^JobId=$1 " "$account"; }                  # JOB
is() { [[ $(squeue -h -j "$1" -o "%T $3") == "$2" ]]; }       # JOB STATE-AND-WORD FORMAT

wait_for "both nodes run a, and Slurm knows it" both_idle_with_a
echo "two nodes run a, the image that nobody need ask for"

submit c 1 2>/dev/null && fail "Slurm took a job for an image that it knows nothing of"
sits=$(submit a 20 --nodelist=compute1)
wait_for "a job runs on compute1" is "$sits" "RUNNING compute1" %N
first=$(submit b 1)
second=$(submit b 1)
is "$first" "PENDING image:b" %f || fail "the job for b does not wait"
echo "jobs $first and $second ask for b, which no node runs, and wait"

wait_for "job $first has ended" ended "$first"
wait_for "job $second has ended" ended "$second"
echo "a free node was given b for them"
wait_for "both nodes run a again, and idle" both_idle_with_a
wait_for "job $sits has ended" ended "$sits"

# What became of the jobs, and where, Slurm itself wrote down: one line for each that ended.
told=$(sed 's/^JobId=\([0-9]*\) .* JobState=\([A-Z_]*\) .* NodeList=\([^ ]*\) .*/\1 \2 \3/' "$account" | sort -n)
[[ $told == "$sits COMPLETED compute1
$first COMPLETED compute2
$second COMPLETED compute2" ]] || fail "jobs were killed, or found another image: $told"
echo "each job ran once, found its image, and the node with a job was left alone; all run a again"
echo "all held"
