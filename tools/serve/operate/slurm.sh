#!/bin/bash
# A server for the jobs of a cluster, such as the training of agents that search.
#
#   sbatch tools/serve/operate/slurm.sh wiki=/data/wiki.gx
#   curl -H "Authorization: Bearer $(cat ~/.gpuidx/token)" -d '{"queries": ["a query"], "topk": 3}' \
#     "$(cat ~/.gpuidx/address)/retrieve"
#
# The job writes where it listens to ~/.gpuidx/address once it is ready, and the token that it asks for to
# ~/.gpuidx/token, which only its user reads. GPUIDX names the program. scancel ends the server: what is under way is
# answered first.
#SBATCH --job-name=gpuidx
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --gres=gpu:1
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@60
set -euo pipefail
umask 077
[ $# -gt 0 ] || { echo "usage: sbatch slurm.sh NAME=INDEX..." >&2; exit 2; }
gpuidx=${GPUIDX:-gpuidx} folder=${GPUIDX_FOLDER:-$HOME/.gpuidx} port=${GPUIDX_PORT:-7700}
mkdir -p "$folder"
rm -f "$folder/address"
token=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$token" >"$folder/token"
printf '{"tokens": [{"name": "jobs", "token": "%s"}]}\n' "$token" >"$folder/tokens.json"
"$gpuidx" serve "$@" --listen="0.0.0.0:$port" --tokens="$folder/tokens.json" --drain=30 \
  --threads="${SLURM_CPUS_PER_TASK:-0}" 2>"$folder/log" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server; exit $?' TERM INT
until grep -q 'listening at' "$folder/log"; do
  kill -0 $server 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  sleep 0.1
done
port=$(sed -n 's/.*listening at http:\/\/[^ ]*:\([0-9]*\).*/\1/p' "$folder/log" | head -1)
printf 'http://%s:%s\n' "${SLURMD_NODENAME:-$(hostname)}" "$port" >"$folder/address"
cat "$folder/log" >&2
wait $server
