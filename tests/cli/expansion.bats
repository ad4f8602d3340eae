# `--rm3` of query and replay.
load cli

setup_file() { build_tiny; }

@test "--rm3 expands a query by the terms of its best documents" {
    ask query -q --engine=cpu "$TINY" --format=jsonl skipping
    exits 0
    says_not expanded
    ask query -q --engine=cpu "$TINY" --format=jsonl --rm3=1,2,0.5 skipping
    exits 0
    # skip is in more than a tenth of the documents; of docid, first, hold and save, once each in d02, two stay
    says '"expanded":[{"term":"skip","weight":0.5},{"term":"docid","weight":0.25},{"term":"first","weight":0.25}]'
    ask query -q --engine=cpu "$TINY" --rm3 --explain skipping
    exits 0
    says docid
}

@test "--rm3 takes only what it can expand" {
    for bad in 0,10,0.5 10,0,0.5 10,10,1.5 10,10 10,10,0.5,1 x,10,0.5 10,10,nan 10,,0.5 99999999999999999999,1,0; do
        ask query -q --engine=cpu "$TINY" --rm3=$bad twins
        exits 2
        complains "--rm3=$bad: "
    done
    ask query -q --engine=cpu "$TINY" --rm3 --syntax=boolean twins
    exits 2
    complains 'leave out --syntax=boolean'
    "$GPUIDX" build -q "$DATA/tiny.jsonl" -o no-texts.gx
    ask query -q --engine=cpu no-texts.gx --rm3 twins
    exits 5
    complains 'no-texts.gx stores no texts'
    complains '--store=text'
}

@test "a replay with --rm3 gives the answers of query" {
    printf '1\ttwins\n2\tskip blocks of the list\n3\tunheard\n' >queries
    ask query -q --engine=cpu --format=trec -k 100 --rm3=5,4,0.3 "$TINY" <queries
    exits 0
    cp .stdout expected
    ask replay --engine=cpu -k 100 --rm3=5,4,0.3 --threads=2 --verify --run=run --report=report.json "$TINY" queries
    exits 0
    says 'expanded by RM3 (5 documents, 4 terms, weight 0.3)'
    python3 - expected run <<'END'
import sys
rows = [[line.split() for line in open(f)] for f in sys.argv[1:]]
assert rows[0] and [r[:4] for r in rows[0]] == [r[:4] for r in rows[1]]
assert all(abs(float(a[4]) - float(b[4])) < 1e-7 * float(a[4]) for a, b in zip(*rows))
END
    python3 -c '
import json
o = json.load(open("report.json"))["rm3"]
assert o == {"documents": 5, "terms": 4, "weight": 0.3}, o'
    ask replay -q --engine=cpu --rm3=5,4 "$TINY" queries
    exits 2
}
