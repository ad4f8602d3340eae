# Phrases and windows; tests/phrases.py compares what they find with brute force.
load cli

setup_file() {
    export NEAR=$BATS_FILE_TMPDIR/near.gx
    printf '%s\n' '{"id":"1","title":"New York","text":"the city of new york, york new and old new yorks"}' \
        '{"id":"2","title":"york","text":"new city of york and new old york"}' \
        '{"id":"3","title":"the new","text":"york bank of england, bank england"}' >"$BATS_FILE_TMPDIR/near.jsonl"
    "$GPUIDX" build -q "$BATS_FILE_TMPDIR/near.jsonl" --positions --store=text -o "$NEAR"
}

ids() { # QUERY IDS: what the query finds, in order of ids
    ask query -q --engine=cpu --format=trec --syntax=boolean "$NEAR" -- "$1"
    exits 0
    [ "$(cut -d' ' -f3 .stdout | sort | tr '\n' ' ')" = "$2" ]
}

@test "phrases, slops and windows find what stands near" {
    ids '"new york"' '1 '
    ids '"york new"' '1 '
    ids '"new york"~1' '1 2 '
    ids 'NEAR/2(york new)' '1 '
    ids 'NEAR/3(york new)' '1 2 '
    ids 'ONEAR/3(new york)' '1 2 '
    ids 'ONEAR/2(new york)' '1 2 '
    ids '"bank of england"' '3 '
    ids '"bank england"' '3 '
    ids '"of the new york"~1' '1 2 '
    ids 'city -"new york"' '2 '
    ids '+city "bank of england"' '1 2 '
    ids '"old new" OR "old york"' '1 2 '
}

@test "no match has words in the title and in the text" {
    ids '"york new"~2' '1 2 '
    ids '"new york bank"' ''
}

@test "quotes in plain queries are phrases, or words" {
    ask query -q --engine=cpu --format=trec "$NEAR" '"new york"'
    exits 0
    [ "$(wc -l <.stdout)" = 1 ]
    ask query -q --engine=cpu --format=trec --quotes=words "$NEAR" '"new york"'
    [ "$(wc -l <.stdout)" = 3 ]
    printf '1\t"new york"\n' >log
    ask replay -q --engine=cpu "$NEAR" log --run=run
    exits 0
    [ "$(wc -l <run)" = 3 ]
    ask replay -q --engine=cpu "$NEAR" log --run=run --quotes=phrase --force
    [ "$(wc -l <run)" = 1 ]
}

@test "explain tells of a phrase how many documents match, and its words' idf" {
    ask query -q --engine=cpu --explain "$NEAR" '"new york"~1'
    exits 0
    says '"new york"~1: df = 2, idf of its words = '
    ask query -q --engine=cpu --explain --format=jsonl "$NEAR" '"new york"~1'
    says '"term":"\"new york\"~1","qtf":1,"df":2,"tf":'
}

@test "a mistake in a phrase is told with its place" {
    for bad in '"new york:1' 'a "new* york":7' '"new york"~x:12' '"new york"~10001:12' 'NEAR/0(a b):6' \
        'NEAR/3(a "b"):10' 'ONEAR/3(a:8' 'x "of the":3'; do
        ask query -q --engine=cpu --syntax=boolean "$NEAR" -- "${bad%:*}"
        exits 2
        complains "column ${bad##*:}: "
    done
    ask query -q --engine=cpu --syntax=boolean "$NEAR" -- "\"$(yes a1b | head -1001 | tr '\n' ' ')\""
    exits 2
    complains 'column 1: the phrase has more than 1000 words'
    ask query -q --engine=cpu --syntax=boolean "$NEAR" -- '"new unheardof"'
    exits 0
    ask query -q --engine=cpu --syntax=boolean --scorer=impact "$NEAR" -- '"new york"'
    exits 2
    complains 'the scorer impact has no score for phrases'
    "$GPUIDX" build -q "$BATS_FILE_TMPDIR/near.jsonl" -o without.gx
    ask query -q --engine=cpu --syntax=boolean without.gx -- 'a "new york"'
    exits 2
    complains 'column 3: phrases need positions, which this index lacks; build it with --positions'
    ask query --engine=cpu without.gx -- '"new york"'
    exits 0
    complains 'is searched as plain words'
}

@test "a snippet marks a phrase, and not its words elsewhere" {
    marks() { # QUERY TEXT: the marked words of the first result
        ask query -q --engine=cpu --color=always --syntax=boolean -k 1 "$NEAR" -- "$1"
        exits 0
        [ "$(tail -n +2 .stdout | grep -o $'\e\\[1m[a-z]*' | cut -c5- | tr '\n' ' ')" = "$2 " ]
    }
    marks '+"city of new" +id:1' 'city new'
    marks '+"york new" +id:1' 'york new'
    marks '+"york new" +id:1 old' 'york new old'
    marks '+NEAR/3(old york) +id:2' 'old york'
    marks '+ONEAR/3(york old) +id:1' 'york old'
}

@test "--sdm scores pairs as the boolean syntax says, and finds what words find" {
    ask query -q --engine=cpu --format=trec --sdm "$NEAR" -- new york bank
    exits 0
    cp .stdout pairs
    ask query -q --engine=cpu --format=trec --syntax=boolean "$NEAR" -- 'new^.85 york^.85 bank^.85 "new york"^.1 \
        "york bank"^.1 NEAR/8(new york)^.05 NEAR/8(york bank)^.05'
    exits 0
    cmp pairs .stdout
    ask query -q --engine=cpu --format=trec --sdm=1,2,0 --op=and "$NEAR" -- city of york
    [ "$(cut -d' ' -f3 .stdout | sort | tr '\n' ' ')" = '1 2 ' ]
    printf '7\tnew york bank\n' >log
    ask replay -q --engine=cpu "$NEAR" log --run=run --sdm --report=report.json
    exits 0
    [ "$(cut -d' ' -f3 run)" = "$(cut -d' ' -f3 pairs)" ]
    grep -qE '"sdm": ?\[' report.json
}

@test "what --sdm cannot do is told" {
    for bad in 1,2:'it has the form WORDS,ORDERED,UNORDERED' 1,x,2:"'x' is not a number" '1,-1,0:less than 0' \
        '0,1,1:must be above 0' '1,2,3,4:' '1,nan,0:not a number' '1,1e9,0:more than 1e6'; do
        ask query -q --engine=cpu "--sdm=${bad%%:*}" "$NEAR" -- new york
        exits 2
        complains "${bad#*:}"
    done
    for flag in --op=and-or --syntax=boolean --rm3 --scorer=impact; do
        for command in 'query -q --engine=cpu' 'replay -q --engine=cpu'; do
            printf '7\tnew york\n' >log
            ask $command --sdm "$flag" "$NEAR" "$([[ $command = query* ]] && echo 'new york' || echo log)"
            exits 2
        done
    done
    "$GPUIDX" build -q "$BATS_FILE_TMPDIR/near.jsonl" -o without.gx
    ask query -q --engine=cpu --sdm without.gx -- new york
    exits 2
    complains 'build it with --positions'
}
