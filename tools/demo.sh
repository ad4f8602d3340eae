#!/usr/bin/env bash
# demo.sh: sets up what the program needs (tools/setup.sh --minimal) and shows the main job on real text: SciFact's
# 5,183 abstracts indexed,
# queries answered, a log of 300 queries replayed and verified, its effectiveness evaluated. Ends with an error when the
# figures are not those that BM25 must reach on this collection.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh --minimal

gpuidx=build/tools/gpuidx
data=tests/data/scifact
out=build/demo
mkdir -p "$out"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
  bold=$'\033[1m' plain=$'\033[0m'
fi
show() { # a command, and what it says
  printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"
  "$@"
}

show $gpuidx build $data/corpus.jsonl.xz -o $out/scifact.gx --store=text --force
show $gpuidx query $out/scifact.gx -k 3 'vitamin D deficiency and bone loss'
show $gpuidx query -q $out/scifact.gx -k 3 --op=and 'stem cell transplantation'
show $gpuidx query -q $out/scifact.gx -k 1 --explain 'prion diseases'
show $gpuidx replay $out/scifact.gx $data/queries.tsv -k 1000 --run $out/bm25.run --report $out/report.json --force \
  --verify
show $gpuidx eval -m ndcg@10,recall@100,map $data/qrels.txt $out/bm25.run | tee $out/eval.txt

awk '
  $1 == "ndcg_cut_10" { ndcg = $3 }
  $1 == "recall_100" { recall = $3 }
  END {
    good = ndcg >= 0.6759 && ndcg <= 0.6819 && recall >= 0.922
    printf "\n%s: nDCG@10 %s (expected 0.6759 to 0.6819), recall@100 %s (expected at least 0.922)\n",
      good ? "As it should be" : "NOT AS IT SHOULD BE", ndcg, recall
    exit !good
  }' $out/eval.txt
printf '\nThe index is %s; try: %s query %s\n' $out/scifact.gx $gpuidx $out/scifact.gx
