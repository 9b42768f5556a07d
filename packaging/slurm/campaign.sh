#!/bin/sh
# A campaign as a Slurm job array: one shard a task, one GPU a task. On a node with this program installed:
#
#   ki verify plan --by-doubt --gpu nvidia-h200 >jobs.jsonl
#   sbatch --array=1-8 --gpus-per-task=1 --time=02:00:00 packaging/slurm/campaign.sh jobs.jsonl OUT KEY [options of ki-verify campaign]
#   for dir in OUT/shard-*; do ki verify import "$dir"; done          # also while it runs
#
# A task that is cancelled or runs out of time goes on where it stopped when the same line is submitted again. KI_VERIFY names the
# program when it is not in PATH.
#SBATCH --job-name=ki-verify
#SBATCH --ntasks=1
#SBATCH --output=ki-verify-%A_%a.log
set -eu
[ $# -ge 3 ] || { echo 'usage: sbatch --array=1-N campaign.sh JOBS OUT KEY [option…]' >&2; exit 64; }
jobs=$1 out=$2 key=$3
shift 3
exec "${KI_VERIFY:-ki-verify}" campaign "$jobs" --out "$out/shard-$SLURM_ARRAY_TASK_ID" --key "$key" \
	--shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@"
