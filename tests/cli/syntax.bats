#!/usr/bin/env bats
# Signs that mean something: in boolean queries, in plain ones, in queries that others wrote, in what is printed.

load cli

setup_file() {
    build_tiny
    export WORDS=$BATS_FILE_TMPDIR/words.gx
    "$GPUIDX" build -q "$DATA/cases/search/reports2.words.jsonl" -o "$WORDS" --attr y:int
}

boolean() {
    ask query -q --engine=cpu --syntax=boolean -f tsv "$WORDS" -- "$1"
}

@test "a sign behind a + is refused, and deletes nothing" {
    for query in '+-apple banana' 'banana +-apple' '+banana +-apple' '+-(apple banana) cherry' '+-"apple" banana' \
        '+-(y:1) banana' '+-apple^2' '+--apple' '+-y:1' '(+-apple banana)' 'cherry -(+-banana)' '++apple' '-+apple'; do
        boolean "$query"
        exits 2
        [ -z "$output" ]
        complains 'column '
    done
    "$GPUIDX" collect -q "$WORDS" -o c
    for query in '+-apple' 'banana +-apple' '+-(y:1)' 'app?*x *' '!apple' 'y: 1'; do
        ask delete c --syntax=boolean --query "$query"
        exits 2
        [ "$("$GPUIDX" query c -q --engine=cpu -f tsv 'apple banana cherry' | wc -l)" -eq 4 ]
    done
}

@test "each negation negates what the one before it says" {
    for query in 'banana --apple' 'banana NOT NOT apple' 'banana -NOT apple' 'banana NOT -apple' 'banana -(-apple)' \
        'banana NOT (NOT apple)' 'banana AND NOT NOT apple' 'banana AND --apple' 'banana ---(-apple)'; do
        boolean "$query"
        exits 0
        [ "$output" = "$(printf '1\t2\t1')" ]
    done
    for query in 'banana -apple' 'banana ---apple' 'banana NOT NOT NOT apple' 'banana -(--apple)'; do
        boolean "$query"
        exits 0
        [ "$output" = "$(printf '1\t3\t1')" ]
    done
    boolean '--apple'
    exits 2
    complains 'the query only excludes'
}

@test "signs of other engines are refused with their column and a cure" {
    for case in '!apple@column 1' 'banana && apple@column 8' 'banana || apple@column 8' 'app* *@column 6' \
        '?*@column 1' 'apple~3@column 6' '/apple@column 1' '/app[le/@column 1' \
        '[apple TO date]@column 1' '+apple +y: 1@column 11' \
        'apple y :1@column 9' 'apple y>1@column 8' 'apple y=1@column 8'; do
        boolean "${case%%@*}"
        exits 2
        [ -z "$output" ]
        complains "gpuidx: ${case#*@}"
    done
    boolean '"apple*" "y=1" \!apple'
    exits 0
    [ "$(cut -f2 <<<"$output" | sort | tr '\n' ' ')" = '1 2 ' ]
    ask query -q --engine=cpu --filter 'y:1*' "$WORDS" apple
    exits 2
    complains 'column 4: y is of type int; * stands for letters of keywords alone'
    ask query -q --engine=cpu --filter 'y:*' "$WORDS" apple
    exits 2
    complains 'column 3: * is no value; has:y selects'
}

@test "in plain queries signs mean nothing, which is told once" {
    for query in '"apple pie"' '+apple' '-apple' 'appl*' 'apple~2' 'banana -"apple"' '(-apple)' 'see "apple".'; do
        ask query --engine=cpu -f tsv "$WORDS" -- "$query"
        exits 0
        complains 'mean nothing in the plain syntax'
        ask query -q --engine=cpu -f tsv "$WORDS" -- "$query"
        [ -z "$stderr" ]
    done
    for query in 'mail a.b-c@d-e.org' 'C++' 'C#' 'is -1 < 0?' '+49 30' 'well-known' 'A* search' '5" disk' 'a - b' \
        '~10' 'apple ~ pie' 'x * y' '**' '-' '"' '""'; do
        ask query --engine=cpu -f tsv "$WORDS" -- "$query"
        exits 0
        [ -z "$stderr" ]
    done
    printf -- '-apple\n-apple\n"apple pie"\n' >queries
    ask query --engine=cpu -f tsv "$WORDS" <queries
    [ "$(grep -c 'mean nothing' <<<"$stderr")" -eq 1 ]
    ask replay --engine=cpu "$WORDS" queries
    exits 0
    complains 'queries: 3 queries have signs that look like operators'
    ask replay --engine=cpu --syntax=boolean --on-error=skip "$WORDS" queries
    [[ $stderr != *'mean nothing'* ]]
    "$GPUIDX" collect -q "$WORDS" -o c
    ask delete c --query=-cherry
    complains '-cherry is searched as plain words'
}

@test "queries that are read name no files of ids, unless a flag allows it" {
    printf '1\n' >list
    printf '1\tapple AND id:@list\n' >queries
    ask query -q --engine=cpu --syntax=boolean "$WORDS" - <"$DATA/cases/hostile/reads_files.tsv"
    exits 3
    complains 'names a file'
    [[ $stderr$output != *:x:* ]]
    ask query -q --engine=cpu --syntax=boolean "$WORDS" <queries
    exits 3
    complains 'standard input:1: column 15: id:@list names a file'
    ask query -q --engine=cpu --syntax=boolean --allow-id-files -f tsv "$WORDS" <queries
    exits 0
    [ "$output" = "$(printf '1\t1\t1')" ]
    ask query -q --engine=cpu --syntax=boolean -f tsv "$WORDS" 'apple AND id:@list'
    exits 0
    [ "$output" = "$(printf '1\t1\t1')" ]
    ask replay -q --engine=cpu --syntax=boolean "$WORDS" queries
    exits 3
    complains 'queries:1: column 15: id:@list names a file'
    printf 'qid\tquery\tfilter\n1\tapple\tid:@list\n' >filtered
    ask replay -q --engine=cpu "$WORDS" filtered
    exits 3
    complains 'id:@list names a file'
    printf '{"id":"1","query":"apple","filter":"NOT id:@list"}\n' >filtered.jsonl
    ask replay -q --engine=cpu "$WORDS" filtered.jsonl
    exits 3
    ask replay -q --engine=cpu --allow-id-files --run=run "$WORDS" filtered.jsonl
    exits 0
    [ "$(cut -d' ' -f3 run)" = 2 ]
}

@test "printed titles and ids turn no direction, and are no formulas" {
    printf '%s\n' '{"id":"abc\u202egpj.exe","title":"\u2066safe\u2069 \u202a","text":"word"}' \
        '{"id":"=1+1","title":"@SUM(A1)","text":"word"}' '{"id":"-5","title":"+cmd|x","text":"word"}' \
        '{"id":"x","title":"\uff1d1\u001b[31m","text":"word"}' >c.jsonl
    "$GPUIDX" build -q c.jsonl -o c.gx
    for command in "query c.gx word" "doc c.gx #0" "term c.gx word -n 5"; do
        ask $command
        [[ $output != *$'\u202e'* && $output != *$'\u2066'* && $output != *$'\u202a'* && $output != *$'\e[31m'* ]]
    done
    ask query -q --engine=cpu c.gx word
    says 'abc'$'\ufffd''gpj.exe'
    ask query -q --engine=cpu -f csv c.gx word
    says "\"'=1+1\","
    says ",\"'@SUM(A1)\""
    says ",-5,"
    says "\"'+cmd|x\""
    says "\"'"$'\uff1d'"1 [31m\""
    [[ $output != *$'\e'* ]]
    ask doc c.gx $'no\e[31m\u202esuch'
    exits 5
    [[ $stderr != *$'\e[31m'* && $stderr != *$'\u202e'* ]]
    ask term c.gx --as-is $'no\e[31m\u202esuch'
    [[ $stderr != *$'\e[31m'* && $stderr != *$'\u202e'* ]]
}

@test "a document whose id looks like a docid is found by its id" {
    printf '%s\n' '{"id":"first","text":"one"}' '{"id":"#0","text":"two"}' '{"id":"#7","text":"three"}' >c.jsonl
    "$GPUIDX" build -q c.jsonl -o c.gx
    ask doc c.gx -f json '#0'
    exits 0
    says '"id":"#0"'
    complains "'#0' is an id; docid 0 is the document 'first'"
    ask doc c.gx -f json '#7'
    says '"docid":2'
    [ -z "$stderr" ]
    ask doc c.gx -f json '#1'
    says '"docid":1'
    [ -z "$stderr" ]
}
