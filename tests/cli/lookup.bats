# `gpuidx doc`, `gpuidx term` and `gpuidx analyze`: what is in an index, and what analysis makes of a text.
load cli

setup_file() { build_tiny; }

@test "doc prints a document by its id or its docid" {
    ask doc "$TINY" d05
    exits 0
    says Twins
    says 'Identical twins have identical scores.'
    ask doc "$TINY" d05 '#4' -f json
    exits 0
    python3 -c '
import json, sys
a, b = map(json.loads, sys.stdin)
text = "Identical twins have identical scores."
assert a == b == {"schema": 1, "docid": 4, "id": "d05", "length": 6, "title": "Twins", "text": text}, a' <<<"$output"
}

@test "doc of an index without texts has no text; an absent document is exit code 5" {
    "$GPUIDX" build -q "$DATA/tiny.jsonl" -o bare.gx
    ask doc bare.gx d03 -f json
    exits 0
    says_not '"text"'
    for id in d99 '#21' '#x' '#-1' ''; do
        ask doc "$TINY" "$id"
        exits 5
        complains "has no document '$id'"
    done
    ask doc "$TINY"
    exits 2
}

@test "term prints df, cf, the list's size and postings" {
    ask term "$TINY" 'Identical' -n 2 -f json
    exits 0
    python3 -c '
import json, sys
t = json.load(sys.stdin)
assert t["schema"] == 1 and t["term"] == "ident" and t["df"] == 3 and t["cf"] == 6 and t["blocks"] == 1
assert t["postings"] == [{"docid": 4, "id": "d05", "tf": 2}, {"docid": 5, "id": "d06", "tf": 2}]
assert t["bytes"] == t["docid_bytes"] + t["tf_bytes"] + 16 + 12
assert t["codec"] == t["tf_codec"] == "gpubp128"' <<<"$output"
    ask term "$TINY" twins --as-is
    exits 5
    complains "has no term 'twins'"
    ask term "$TINY" twin --as-is -n 99
    exits 0
    says 'documents      3'
    [ "$(grep -c 'd0[567]$' .stdout)" -eq 3 ]
}

@test "term --positions prints where documents have the term" {
    printf 'a\tThe cat\tthe cat sat on the mat the cat\nb\t\ta cat and a dog\nc\tOnly cats\t\n' >c.tsv
    ask build -q c.tsv --columns=id,title,text --positions -o p.gx
    exits 0
    ask info p.gx
    says 'positions    of each word'
    says 'POSN'
    ask info --json p.gx
    says '"positions": true'
    ask term p.gx cat -n 9 --positions
    exits 0
    says ' 3  a  at 1 3 9'
    says ' 1  b  at 1'
    says ' 1  c  at 1'
    ask term p.gx cat -n 2 --positions -f json
    says '{"docid":0,"id":"a","tf":3,"positions":[1,3,9]},{"docid":1,"id":"b","tf":1,"positions":[1]}]'
    ask term "$TINY" twin --as-is -n 9 --positions
    exits 2
    complains 'build it with --positions'
}

@test "positions are left out where they have no place, and that is said" {
    printf 'a\tThe cat\tthe cat sat on the mat\nb\t\ta dog\n' >c.tsv
    ask build -q c.tsv --columns=id,title,text --positions -o p.gx
    ask export p.gx -o p.ciff
    exits 0
    complains 'positions are left out: CIFF'
    ask export p.gx -o p2 -f ds2i
    complains 'positions are left out: ds2i'
    ask recode p.gx -o i.gx --impacts=bm25
    exits 0
    complains 'positions are left out'
    ask info --json i.gx
    says '"positions": false'
    ask recode p.gx -o d.gx --drop=positions
    exits 0
    printf 'c\tThe cat\tthe cat sat\n' >o.tsv
    "$GPUIDX" build -q o.tsv --columns=id,title,text -o without.gx
    ask collect p.gx without.gx -o both
    exits 2
    complains 'without.gx has no positions, and p.gx some'
    ask collect d.gx without.gx -o both
    exits 0
    printf '{"id":"a","vector":{"x":1}}\n' >v.jsonl
    ask build v.jsonl -f vectors --positions -o v.gx
    exits 2
    complains 'vectors have no positions'
}

@test "sizes of all lists add up to what info says of them" {
    "$GPUIDX" export "$TINY" -o base -f ds2i -q
    xargs "$GPUIDX" term "$TINY" --as-is -f json <base.terms >terms
    "$GPUIDX" info "$TINY" --json >info
    python3 -c '
import json
terms, info = [json.loads(line) for line in open("terms")], json.load(open("info"))
sections = {s["name"]: s["bytes"] for s in info["sections"]}
coding, = info["codings"]
assert len(terms) == info["n_terms"] and sum(t["df"] for t in terms) == info["n_postings"]
assert sum(t["cf"] for t in terms) == info["n_tokens"]
assert sum(t["docid_bytes"] for t in terms) == coding["docid_bytes"]
assert sum(t["tf_bytes"] for t in terms) == coding["tf_bytes"]
beside = sum(sections[n] for n in ("HEAD", "DEND", "TEND", "LIST"))
assert sum(t["bytes"] for t in terms) == coding["docid_bytes"] + coding["tf_bytes"] + beside'
}

@test "term says why there is nothing to look up" {
    ask term "$TINY" the
    exits 5
    complains "nothing is left of 'the' after analysis"
    ask term "$TINY" unheard-of
    exits 5
    complains "has no term 'unheard' (of 'unheard-of')"
    ask term "$TINY" '' --as-is
    exits 5
}

@test "analyze prints terms with the bytes of their words" {
    ask analyze "The naïve indexers' indexes"
    exits 0
    [ "$output" = "$(printf '4\t10\tnaïv\n11\t19\tindex\n21\t28\tindex')" ]
    printf 'Skipping\nblocks' >text
    ask analyze -i "$TINY" -f json <text
    exits 0
    python3 -c '
import json, sys
t = json.load(sys.stdin)["terms"]
assert t == [{"begin": 0, "end": 8, "position": 0, "text": "Skipping", "term": "skip"},
             {"begin": 9, "end": 15, "position": 1, "text": "blocks", "term": "block"}], t' <<<"$output"
    ask analyze --analyzer=whitespace 'A b,c' d
    exits 0
    [ "$output" = "$(printf '0\t1\tA\n2\t5\tb,c\n6\t7\td')" ]
    ask analyze --analyzer=simple --stemmer=german 'Häuser'
    exits 0
    says 'haus'
    ask analyze </dev/null
    exits 0
    [ -z "$output" ]
}

@test "--fold=unicode: an index finds a word in each of its spellings, and shows it as it is written" {
    printf '{"id":"%s","text":"%s"}\n' a 'Un cafe\u0301, o\ufb03ce' b 'UN CAF\u00c9 \uff21\uff22 \u203f \u2040 ?' \
        c tea >forms.jsonl
    ask build -q forms.jsonl -o folded.gx --analyzer=simple --fold=unicode --store=text
    exits 0
    ask build -q forms.jsonl -o plain.gx --analyzer=simple --fold=none
    exits 0
    ask info folded.gx
    says 'folded (unicode)'
    ask info plain.gx
    [[ $output != *fold* ]]
    for query in $'caf\u00e9' $'cafe\u0301' cafe CAFE; do
        ask query -f trec folded.gx "$query"
        exits 0
        [ "$(cut -d' ' -f3 <<<"$output" | sort | tr '\n' ' ')" = 'a b ' ]
    done
    ask query -f trec plain.gx cafe
    [ -z "$output" ]
    ask query folded.gx office
    says $'o\ufb03ce'
    ask analyze -i folded.gx -f json $'x cafe\u0301s \uff3f'
    exits 0
    python3 -c '
import json, sys
t = json.load(sys.stdin)["terms"]
assert t == [{"begin": 0, "end": 1, "position": 0, "text": "x", "term": "x"},
             {"begin": 2, "end": 9, "position": 1, "text": "cafe\u0301s", "term": "cafes"}], t' <<<"$output"
    ask analyze --analyzer=simple --fold=unicode $'STRASSE stra\u00dfe'
    [ "$(cut -f3 <<<"$output" | uniq -c | wc -l)" = 1 ]
    "$GPUIDX" export -q folded.gx -o folded.ciff -f ciff
    ask import -q folded.ciff -o again.gx
    ask info again.gx
    says 'folded (unicode)'
    ask import -q folded.ciff -o named.gx --analyzer=simple --fold=unicode
    ask info named.gx
    says 'folded (unicode)'
    ask import -q folded.ciff -o other.gx --fold=unicode
    exits 2
    complains '--fold: of which --analyzer?'
    ask build -q forms.jsonl -o x.gx --fold=latin
    exits 2
    complains latin
    ask analyze -i folded.gx --fold=none text
    exits 2
    complains 'has an analyzer of its own'
    ask completion bash
    says 'none unicode'
}

@test "analyze refuses what it cannot know" {
    ask analyze -i "$TINY" --stemmer=none text
    exits 2
    complains 'has an analyzer of its own'
    ask analyze --stemmer=klingon text
    exits 2
    complains klingon
    ask analyze --stopwords=absent text
    exits 5
    ask analyze -i absent text
    exits 5
}

@test "no id begins with a byte order mark, which files of ids may begin with" {
    ask build "$DATA/cases/hostile/bom_id.jsonl" -o b.gx
    exits 3
    complains 'byte order mark'
    printf '{"id": "b", "text": "hello"}\n{"id": "c", "text": "hello"}\n' >c.jsonl
    "$GPUIDX" build -q c.jsonl -o c.gx
    printf '\xef\xbb\xbfb\n' >ids
    ask query -q c.gx hello --only=ids -f tsv
    [ "$output" = $'1\tb\t1' ]
    cp "$DATA/bom-ids.gx" . # of an earlier version: its ids are U+FEFF b, b and U+FEFF c
    ask query bom-ids.gx hello --only=ids -f tsv
    exits 3
    complains 'ids:1: documents have this id with a byte order mark and without one'
    printf '\n\xef\xbb\xbfb\n' >ids
    ask query bom-ids.gx hello --only=ids -f tsv
    [ "$output" = $'1\t\xef\xbb\xbfb\t1' ]
    printf '\xef\xbb\xbfc\n' >ids
    ask query bom-ids.gx hello --not=ids -f tsv
    [ "$(wc -l <<<"$output")" -eq 2 ]
    "$GPUIDX" collect -q bom-ids.gx -o col
    ask delete col --ids "$DATA/cases/hostile/bom_id.txt"
    exits 3
    printf '\xef\xbb\xbfc\n' >ids
    ask delete col --ids ids
    exits 0
    ask query col hello -f tsv
    [ "$(wc -l <<<"$output")" -eq 2 ]
}

@test "term --prefix lists the words that begin so, those of most documents first" {
    printf '{"id":"%s","text":"%s"}\n' a 'apple apply ape' b 'apply ape' c 'Ape bat' >w.jsonl
    "$GPUIDX" build -q w.jsonl -o w.gx --analyzer=simple
    ask term w.gx --prefix AP
    exits 0
    [ "$(awk '{print $1 $2}' <<<"$output" | tr '\n' ' ')" = '3ape 2apply 1apple ' ]
    ask term w.gx --prefix ap -n 1 -f json
    exits 0
    [ "$output" = '{"schema":1,"prefix":"ap","matched":3,"words":[{"term":"ape","df":3,"distance":0}]}' ]
    ask term w.gx --prefix zz
    exits 5
    complains "has no term that begins with 'zz'"
    ask term w.gx --prefix ''
    exits 2
    ask term w.gx --prefix ap --like ap
    exits 2
    ask term w.gx ap --prefix ap
    exits 2
    ask term w.gx --prefix ap -n 100001
    exits 2
}

@test "term --like lists the nearest words first" {
    printf '{"id":"%s","text":"%s"}\n' a 'apple apply ample' b apply c 'bat cat' >w.jsonl
    "$GPUIDX" build -q w.jsonl -o w.gx --analyzer=simple
    ask term w.gx --like appel -f json
    exits 0
    says '"words":[{"term":"apple","df":1,"distance":1}]'
    ask term w.gx --like applle
    exits 0
    [ "$(awk '{print $2}' <<<"$output" | tr '\n' ' ')" = 'apple apply ample ' ]
    ask term w.gx --like bat -n 2
    [ "$(awk '{print $2}' <<<"$output" | tr '\n' ' ')" = 'bat cat ' ]
    ask term w.gx --like zzzzzzzz
    exits 5
    ask term w.gx --like "$(printf 'a%.0s' {1..100})"
    exits 2
    complains 'at most 62 characters'
}
