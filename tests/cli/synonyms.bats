# `--synonyms`, `--expansion-scoring`, `--query-k1` of query and replay, and prefixes in phrases.
load cli

setup_file() {
    cd "$BATS_FILE_TMPDIR" || exit
    printf '%s\n' \
        '{"id":"a","text":"a new york taxi","brand":"sony"}' \
        '{"id":"b","text":"new yorker magazine taxi taxi","brand":"sonos"}' \
        '{"id":"c","text":"a yellow cab in york","brand":"bose"}' \
        '{"id":"d","text":"the television set","brand":"s o*n"}' \
        '{"id":"e","text":"tv and telly","brand":"Sony"}' >docs.jsonl
    "$GPUIDX" build -q docs.jsonl -o words.gx --analyzer=simple --positions --attr=brand:keyword
    "$GPUIDX" build -q docs.jsonl -o bare.gx --analyzer=simple
    export WHERE=$BATS_FILE_TMPDIR
}

# found ARGUMENT... = the ids of all results, in order.
found() {
    "$GPUIDX" query -q --engine=cpu --format=trec "$WHERE/words.gx" "$@" | cut -d' ' -f3 | sort | tr -d '\n'
}

@test "synonyms replace words and phrases of plain and boolean queries" {
    printf '\xef\xbb\xbf# words\ntv, telly => tv, television\ncab,taxi\nnew york, nyc\n' >rules
    [ "$(found --synonyms=rules --op=and tv)" = de ]
    [ "$(found --synonyms=rules --op=and telly)" = de ]
    [ "$(found --synonyms=rules --op=and television)" = d ]
    [ "$(found --synonyms=rules nyc)" = a ]
    [ "$(found --synonyms=rules --op=and nyc cab)" = a ]
    [ "$(found --synonyms=rules --op=and taxi york)" = ac ]
    [ "$(found --synonyms=rules --syntax=boolean '+nyc -magazine cab')" = a ]
    [ "$(found --synonyms=rules --syntax=boolean '"new york" OR telly')" = ade ]
    "$GPUIDX" replay -q --engine=cpu --synonyms=rules --run=run --op=and "$WHERE/words.gx" - <<<'nyc cab'
    [ "$(cut -d' ' -f3 run)" = a ]
}

@test "rules that are wrong are told with line and column" {
    for case in 'a\nb => c => d@line 2, column 8: a second => in one rule' \
        'x,y\n a ,, b@line 2, column 5: a word is expected here' \
        'a, b,@line 1, column 6: a word is expected here' \
        '=> b@line 1, column 1: a word is expected here' \
        'a =>@line 1, column 5: a word is expected here' \
        'alone@line 1, column 6: one entry alone has no synonym' \
        'a => b\nb => c\nc => a@: a circle' \
        'a, \xff@line 1, column 4: this is not UTF-8' \
        'a, ...@line 1, column 4: analysis leaves nothing of this entry'; do
        printf "${case%@*}" >rules
        [ "${case%@*}" != 'a\nb => c => d' ] || printf 'a,b\nb => c => d' >rules
        ask query -q --engine=cpu --synonyms=rules "$WHERE/words.gx" a
        exits 3
        [ -z "$output" ]
        complains "${case#*@}"
    done
    printf 'a => b, a\nb => a\n' >rules # a keeps itself
    [ "$(found --synonyms=rules b)" = ac ]
    ask query -q --engine=cpu --synonyms=missing "$WHERE/words.gx" a
    exits 5
    printf 'nyc, new york\n' >rules
    ask query -q --engine=cpu --synonyms=rules "$WHERE/bare.gx" nyc
    exits 3
    complains 'line 1, column 6: several words are a phrase, which needs positions'
    printf 'new york => nyc, york\n' >rules
    ask query -q --engine=cpu --synonyms=rules "$WHERE/bare.gx" new york
    exits 0
}

@test "words that stand for several score by themselves, as one, or by a constant" {
    score() { "$GPUIDX" query -q --engine=cpu --format=trec --syntax=boolean "$WHERE/words.gx" "$@" | cut -d' ' -f3,5 |
        tr '\n' ' '; }
    [ "$(score --expansion-scoring=constant 'york*^2.5')" = 'a 2.5 b 2.5 c 2.5 ' ]
    ask query -q --engine=cpu --syntax=boolean --expansion-scoring=one --explain -f jsonl "$WHERE/words.gx" 'york*'
    exits 0
    says '"term":"any(york yorker)","qtf":1,"df":2,'
    ask query -q --engine=cpu --syntax=boolean --expansion-scoring=some "$WHERE/words.gx" 'york*'
    exits 2
    [ "$(score --expansion-scoring=one "york*")" != "$(score "york*")" ]
}

@test "the last word of a phrase may be a prefix" {
    [ "$(found --syntax=boolean '"new yor*"')" = ab ]
    [ "$(found --syntax=boolean '"new york*" -magazine')" = a ]
    [ "$(found --syntax=boolean '"a tel*" OR "the tel*"')" = d ]
    [ "$(found --syntax=boolean '"tel*"')" = '' ]
    [ "$(found --syntax=boolean '"new zz*"')" = '' ]
    ask query -q --engine=cpu --syntax=boolean --explain --format=jsonl "$WHERE/words.gx" '"new yor*"'
    says '"term":"\"new york|yorker\""'
}

@test "a keyword may end with *" {
    [ "$(found --filter 'brand:son*' --syntax=boolean '*')" = ab ]
    [ "$(found --syntax=boolean 'brand:son* OR brand:B*')" = ab ]
    [ "$(found --syntax=boolean 'brand:s*')" = abd ]
    [ "$(found --syntax=boolean 'brand:s\ o\**')" = d ]
    [ "$(found --syntax=boolean 'brand:"son*"')" = '' ]
    [ "$(found --syntax=boolean 'NOT brand:s* AND taxi')" = '' ]
}

@test "long queries are weighed by BM25, too" {
    ask query -q --engine=cpu --query-k1=0.9 --explain --format=jsonl "$WHERE/words.gx" taxi taxi york
    exits 0
    for bad in '--query-k1=-1' '--query-b=1.5' '--query-k1=x'; do
        ask query -q --engine=cpu "$bad" "$WHERE/words.gx" taxi
        exits 2
    done
    ask query -q --engine=cpu --query-b=0.5 --syntax=boolean "$WHERE/words.gx" taxi
    exits 2
    complains 'query-side weights are of plain queries'
    printf 'cab, taxi\n' >rules
    ask query -q --engine=cpu --query-b=0.5 --synonyms=rules "$WHERE/words.gx" taxi
    exits 2
    complains 'leave out the synonyms'
}
