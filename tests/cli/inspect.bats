# `gpuidx info`, `check` and `devices`.
load cli

setup_file() { build_tiny; }

@test "info tells people what is in an index" {
    ask info "$TINY"
    exits 0
    silent
    says 'documents    21, with titles, with texts'
    says "analyzer     Unicode words, in lower case without a final 's, stemmed (porter); 33 stop words left out"
    for section in LIST HEAD PAYL DLEN META TERM DIDS TITL TEXT; do
        says "$section "
    done
    says 'bits a posting: docids'
}

@test "info says in words what an analyzer does" {
    ask build -q "$DATA/tiny.jsonl" -o w.gx --analyzer=whitespace
    exits 0
    ask info w.gx
    exits 0
    says 'analyzer     words between white space, in upper and lower case, not stemmed; no stop words'
    ask build -q "$DATA/tiny.jsonl" -o u.gx --fold=unicode
    exits 0
    ask info u.gx
    says '33 stop words left out; folded (unicode)'
}

@test "build and info count the same bits a posting" {
    ask build "$DATA/tiny.jsonl" -o b.gx
    exits 0
    [[ $stderr =~ lists:\ ([0-9.]+)\ bits\ a\ posting ]]
    bits=${BASH_REMATCH[1]}
    ask info b.gx
    says "; together $bits"
}

@test "info tells programs the same" {
    ask info --json "$TINY"
    exits 0
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert o["schema"] == 1 and o["n_docs"] == 21 and o["version"] == 1
assert o["file_bytes"] == int(sys.argv[1])
assert o["titles"] is True and o["text"] is True
assert o["meta"]["analyzer"]["stemmer"] == "porter"
assert sum(c["postings"] for c in o["codings"]) == o["n_postings"] > 0
assert sum(c["lists"] for c in o["codings"]) == o["n_terms"] > 0
assert abs(o["avgdl"] - o["n_tokens"] / o["n_docs"]) < 1e-6
assert sum(s["bytes"] for s in o["sections"]) <= o["file_bytes"]
payload = sum(c["docid_bytes"] + c["tf_bytes"] for c in o["codings"])
bits = o["bits_per_posting"]
assert abs((bits["docids"] + bits["tfs"]) * o["n_postings"] - 8 * payload) < 1
' "$(stat -c %s "$TINY")" <<<"$output"
}

@test "check finds a good index good, at every level" {
    for level in header structure checksum full; do
        ask check --level=$level "$TINY"
        exits 0
        silent
        says "no damage found ($level)"
    done
    ask check --json "$TINY"
    exits 0
    python3 -c 'import json, sys; o = json.load(sys.stdin); assert o["ok"] is True and o["schema"] == 1' <<<"$output"
}

@test "check finds damage and exits with 1, naming the section" {
    cp "$TINY" damaged.gx
    offset=$("$GPUIDX" info --json "$TINY" | python3 -c '
import json, sys
print(next(s["offset"] for s in json.load(sys.stdin)["sections"] if s["name"] == "TITL") + 300)')
    printf '\377' | dd of=damaged.gx bs=1 seek="$offset" conv=notrunc status=none
    ask check damaged.gx
    exits 1
    complains 'section TITL'
    ask check --json --level=checksum damaged.gx
    exits 1
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert o["ok"] is False and "TITL" in o["error"] and o["level"] == "checksum"' <<<"$output"
    ask check --level=header damaged.gx
    exits 0
    ask check "$TINY" damaged.gx
    exits 1
    says 'no damage found'
}

@test "check of a truncated file is 1, of a missing one 5" {
    head -c 100 "$TINY" >short.gx
    ask check short.gx
    exits 1
    : >empty.gx
    ask check empty.gx
    exits 1
    ask check missing.gx
    exits 5
    complains missing.gx
}

@test "info refuses what is no index" {
    echo 'not an index' >text.gx
    ask info text.gx
    exits 4
    ask info missing.gx
    exits 5
}

@test "devices lists GPUs or says why there is none" {
    ask devices
    exits 0
    [[ $output == GPU\ * || $output == 'no GPU: '?* ]]
    ask devices --json
    exits 0
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert o["schema"] == 1
assert o["devices"] or o["why"]' <<<"$output"
    usable=$(python3 -c 'import json, sys; print(any(d["usable"] for d in json.load(sys.stdin)["devices"]))' \
        <<<"$output")
    ask devices --require
    if [ "$usable" = True ]; then exits 0; else exits 7; fi
}

@test "every command says the same of a GPU that is not there" {
    ask devices
    [[ $output == *'no GPU'* ]] || skip "there is a GPU"
    why=${output#*no GPU: }
    why=${why%%$'\n'*}
    [ -n "$why" ]
    for command in "query --engine=gpu $TINY x" "bench codecs --engine=gpu --index=$TINY" \
        "bench query --engine=gpu --figure=ratio" "bench bitmaps --engine=gpu"; do
        ask $command
        exits 7
        complains "$why"
    done
    ask bench codecs --index="$TINY" --codecs=raw
    complains "no GPU is measured: $why"
    ask bench schedule --engines=gpu "$TINY" "$DATA/tiny.jsonl"
    complains "$why"
}
