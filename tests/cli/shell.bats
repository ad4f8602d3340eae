# The shell of `gpuidx query`, in a terminal of its own.
load cli

setup_file() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    build_tiny
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
}

talk() { # the steps of terminal.py on standard input
    python3 "$HERE/terminal.py" "$GPUIDX" query --engine=cpu "$@"
}

@test "queries are answered until Ctrl-D" {
    talk "$TINY" <<'END'
see 21 documents
see gpuidx>
type skipping
see d02
see match
see gpuidx>
type twins
see d05
see d07
see gpuidx>
keys C-d
exit 0
END
}

@test ".only and .not filter what is found, on the engine that is in use" {
    echo d05 >five
    echo d06 >six
    talk "$TINY" --not=six <<'END'
see gpuidx>
type .not
see six
see gpuidx>
type twins
see 2 matches
see gpuidx>
type .not off
see gpuidx>
type .only five
see gpuidx>
type .engine cpu
see gpuidx>
type twins
see d05
see 1 match
see gpuidx>
type .only off
see gpuidx>
type twins
see 3 matches
see gpuidx>
type .only missing
see cannot open missing
see gpuidx>
keys C-d
exit 0
END
}

@test ".facet counts the matches beside the answer" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2002 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    talk years.gx -k 1 <<'END'
see gpuidx>
type .facet
see off
see gpuidx>
type .facet year:1
see gpuidx>
type word
see year: 1 of 2 groups
see 2  2002
see 3 matches
see gpuidx>
type .facet
see year:1
see gpuidx>
type .facet yaer
see did you mean year?
see gpuidx>
type .facet off
see gpuidx>
type .settings
see .facet       off
see gpuidx>
keys C-d
exit 0
END
}

@test ".prior adds a number of each document to its score" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2003 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    talk years.gx -k 1 <<'END'
see gpuidx>
type .prior
see off
see gpuidx>
type .prior year:w=1,form=linear
see gpuidx>
type word
see y3
see gpuidx>
type .prior yaer
see did you mean year?
see gpuidx>
type .prior
see year:w=1,form=linear
see gpuidx>
type .prior off
see gpuidx>
type .settings
see .prior       off
see gpuidx>
keys C-d
exit 0
END
}

@test ".sums prints figures of all matches" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2002 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    talk years.gx -k 1 <<'END'
see gpuidx>
type .sums
see off
see gpuidx>
type .sums year:sum:p50
see gpuidx>
type .facet year:avg=year
see gpuidx>
type word
see year: 2 groups
see year: 2 values, avg 2002
see year: 3 values, sum 6005, p50 2002
see gpuidx>
type .sums year:mean
see none of min, max, sum, avg, distinct
see gpuidx>
type .sums
see year:sum:p50
see gpuidx>
type .sums off
see gpuidx>
type .settings
see .sums        off
see gpuidx>
keys C-d
exit 0
END
}

@test ".filter searches the documents that an expression selects" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2003 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    talk years.gx --filter=year:2001 <<'END'
see gpuidx>
type .filter
see year:2001
see gpuidx>
type word
see 1 match
see gpuidx>
type .filter year:[2002 TO 2003]
see gpuidx>
type word
see 2 matches
see gpuidx>
type .filter yaer:1
see did you mean year?
see gpuidx>
type word
see 2 matches
see gpuidx>
type .filter off
see gpuidx>
type word
see 3 matches
see gpuidx>
keys C-d
exit 0
END
}

@test "dot commands change how queries are answered" {
    talk "$TINY" <<'END'
see gpuidx>
type .k
see 10
see gpuidx>
type .k 1
see gpuidx>
type twins
see 1.  1.3923  d05
see 3 matches
see gpuidx>
type .op and
see gpuidx>
type .op
see and
see gpuidx>
type gpu twins
see 0 matches
see gpuidx>
type .op or
see gpuidx>
type .scorer bm25:lucene
see gpuidx>
type .scorer
see bm25:lucene
see gpuidx>
type .scorer bm25
see gpuidx>
type .k1 2.5
see gpuidx>
type .k1
see 2.5
see gpuidx>
type .k1 default
see gpuidx>
type .k1
see the scorer's own
see gpuidx>
type .b 0.25
see gpuidx>
type .b
see 0.25
see gpuidx>
type .prune off
see gpuidx>
type .prune
see off
see gpuidx>
type .timing off
see gpuidx>
type .snippets off
see gpuidx>
type .format jsonl
see gpuidx>
type twins
see "hits":[{"rank":1,
see gpuidx>
type .format human
see gpuidx>
type .engine
see CPU
see gpuidx>
type .engine cpu
see gpuidx>
type .stats
see documents   21
see queries
see gpuidx>
type .help
see .quit
see gpuidx>
type .quit
exit 0
END
}

@test "documents are shown and their scores explained" {
    talk "$TINY" <<'END'
see gpuidx>
type .explain d05
see there is no query yet
see gpuidx>
type twins
see 3 matches
see gpuidx>
type .explain d06
see twin: df = 3
see sum of impacts
see = 1.39
see gpuidx>
type .explain nosuch
see there is no document 'nosuch'
see gpuidx>
type .explain on
see gpuidx>
type compression
see sum of impacts
see gpuidx>
type .doc d21
see Query processing
see Document at a time
see gpuidx>
type .doc #0
see Merge find on the GPU
see gpuidx>
type .doc #21
see there is no document '#21'
see gpuidx>
keys C-d
exit 0
END
}

@test "mistakes are explained and change nothing" {
    talk "$TINY" <<'END'
see gpuidx>
type .formt jsonl
see .formt: there is no such command; did you mean .format?
see gpuidx>
type .frobnicate
see .help lists them
see gpuidx>
type .k 0
see .k: '0' is less than 1
see gpuidx>
type .k many
see 'many' is not a whole number
see gpuidx>
type .k
see 10
see gpuidx>
type .b 7
see is more than 1
see gpuidx>
type .op xor
see 'xor' is not one of or|and|and-or
see gpuidx>
type .format human jsonl
see is not one of
see gpuidx>
type .engine gpu tpu
see is not one of
see gpuidx>
type the of
see nothing is left of the query
see gpuidx>
type .5 gpu
see match
see gpuidx>
keys C-d
exit 0
END
}

@test "the history is kept, for the owner alone, and comes back" {
    ldd "$GPUIDX" | grep -q libedit || skip "the program was built without libedit"
    talk "$TINY" <<'END'
see gpuidx>
type skipping blocks
see match
see gpuidx>
keys C-d
exit 0
END
    [ "$(stat -c %a state/gpuidx/history)" = 600 ]
    talk "$TINY" <<'END'
see gpuidx>
keys UP
see skipping blocks
type 
see d02
see gpuidx>
keys C-d
exit 0
END
}

@test "Ctrl-C empties the line and does not leave" {
    talk "$TINY" <<'END'
see gpuidx>
keys half a query
see half a query
keys C-c
see gpuidx>
type twins
see 3 matches
see gpuidx>
keys C-c
see gpuidx>
keys C-d
exit 0
END
}

@test "Ctrl-C cancels the running query only" {
    # every document holds every term, so that an exhaustive search takes a while
    awk 'BEGIN {
        for (d = 0; d < 30000; d++) {
            printf "d%d\t", d
            for (t = 0; t < 200; t++)
                printf "t%d ", t
            print ""
        }
    }' >slow.tsv
    "$GPUIDX" build -q --analyzer=whitespace slow.tsv -o slow.gx
    query=$(seq -f 't%g' 0 199 | tr '\n' ' ')
    talk --prune=off -k 1 slow.gx <<END
until cancelled after 100 type $query / keys C-c
see gpuidx>
type t1
see 30,000 matches
see gpuidx>
keys C-d
exit 0
END
}

@test "without a history folder the shell works all the same" {
    chmod 500 .
    XDG_STATE_HOME=$PWD/nowhere talk "$TINY" <<'END'
see gpuidx>
type twins
see 3 matches
see gpuidx>
keys C-d
exit 0
END
    chmod 700 .
}

@test "no shell is opened when there is a query, or no terminal" {
    talk "$TINY" twins <<'END'
see 3 matches
exit 0
END
    ask query -q --engine=cpu "$TINY" </dev/null
    exits 0
    [ -z "$output" ]
}

@test ".syntax says how queries are read" {
    talk "$TINY" <<'END'
see gpuidx>
type .syntax
see plain
see gpuidx>
type .syntax boolean
see gpuidx>
type skipping AND (blocks
see column 14: this ( is not closed
see gpuidx>
type +twins -skipping
see match
see gpuidx>
type +twins +yaer:2001
see column 9: the index has no attribute 'yaer', nor any other (fields cannot
see gpuidx>
type .syntax
see boolean
see gpuidx>
keys C-d
exit 0
END
}

@test ".rm3 expands queries, shows itself, and is turned off" {
    talk "$TINY" <<'END'
see gpuidx>
type .rm3
see off
see gpuidx>
type .rm3 10,2,0.25
see gpuidx>
type .rm3
see 10,2,0.25
see gpuidx>
type .rm3 10,2
see it has the form DOCS,TERMS,WEIGHT
see gpuidx>
type twins
see d05
see gpuidx>
type .explain d05
see 0.25
see gpuidx>
type .rm3 off
see gpuidx>
type .rm3
see off
see gpuidx>
keys C-d
exit 0
END
}

@test ".quotes and .sdm say what words beside each other mean" {
    printf '{"id":"%s","text":"%s"}\n' a 'old new york' b 'york has a new name' >pairs.jsonl
    "$GPUIDX" build -q pairs.jsonl --positions -o pairs.gx
    talk pairs.gx <<'END'
see gpuidx>
type .quotes
see phrase
see gpuidx>
type "new york"
see 1 match
see gpuidx>
type .quotes words
see gpuidx>
type "new york"
see 2 matches
see gpuidx>
type .quotes some
see not one of phrase|words
see gpuidx>
type .sdm
see off
see gpuidx>
type .sdm 1,2
see it has the form WORDS,ORDERED,UNORDERED
see gpuidx>
type .sdm 0.8,0.15,0.05
see gpuidx>
type .sdm
see 0.8,0.15,0.05
see gpuidx>
type new york
see 2 matches
see gpuidx>
type .explain a
see "new york"
see NEAR/8(new york)
see gpuidx>
type .sdm off
see gpuidx>
type .sdm
see off
see gpuidx>
keys C-d
exit 0
END
}

@test "in a C locale what is not ASCII stays in the line" {
    "$GPUIDX" build -q --analyzer=simple -f jsonl -o umlaut.gx - <<<'{"id":"a","text":"über straße"}'
    LC_ALL=C talk umlaut.gx <<'END'
see gpuidx>
type über
see 1 match
see gpuidx>
type straße
see 1 match
see gpuidx>
keys C-d
exit 0
END
}

@test "with its output in a pipe the shell prompts at the terminal and knows Ctrl-D" {
    cat >piped <<END
#!/bin/sh
"$GPUIDX" query --engine=cpu "$TINY" | cat
END
    chmod +x piped
    python3 "$HERE/terminal.py" ./piped <<'END'
see 21 documents
see gpuidx>
type twins
see 3 matches
keys C-d
exit 0
END
}

@test "exit, quit, help and ? are answered with a hint" {
    talk "$TINY" <<'END'
see gpuidx>
type exit
see to leave, type .quit or Ctrl-D
see gpuidx>
type quit
see to leave, type .quit or Ctrl-D
see gpuidx>
type help
see .help lists the commands
see gpuidx>
type ?
see .help lists the commands
see gpuidx>
type exit code
see match
see gpuidx>
type .quit
exit 0
END
}

@test "Tab completes dot commands, and shows those that are possible" {
    ldd "$GPUIDX" | grep -q libedit || skip "the program was built without libedit"
    talk "$TINY" <<'END'
see gpuidx>
keys .sco
keys TAB
see .scorer
type bm25:atire
see gpuidx>
keys .scorer
type 
see bm25:atire
see gpuidx>
keys .s
keys TAB
see .syntax  .sdm  .sort  .scorer  .synonyms  .show  .sums  .snippets  .settings  .stats
see gpuidx> .s
keys C-c
see gpuidx>
keys C-d
exit 0
END
}

@test ".approximate takes a share of the terms, or what it says of terms and blocks" {
    talk "$TINY" <<'END'
see gpuidx>
type .approximate
see 0
see gpuidx>
type .approximate blocks:7,terms:0.5
see gpuidx>
type .approximate
see terms:0.5,blocks:7
see gpuidx>
type .approximate blocks:0
see .approximate: blocks: 0 does not lie between 1 and 4294967295
see gpuidx>
type .settings
see .approximate terms:0.5,blocks:7
see gpuidx>
keys C-d
exit 0
END
}

@test ".settings shows every setting" {
    talk "$TINY" <<'END'
see gpuidx>
type .k 7
see gpuidx>
type .settings
see .k           7
see .op          or
see .syntax      plain
see .only        off
see .scorer      bm25
see .k1          the scorer's own
see .prune       on
see .engine      CPU
see .format      human
see .explain     off
see .timing      on
see gpuidx>
keys C-d
exit 0
END
}

@test "an answer longer than the screen goes through the pager" {
    seq 200 | sed 's/.*/{"id":"id&","text":"same word"}/' >many.jsonl
    "$GPUIDX" build -q many.jsonl -o many.gx
    cat >pager <<'END'
#!/bin/sh
echo PAGED
sed -n 1,3p
END
    chmod +x pager
    PAGER=./pager talk -k 150 many.gx <<'END'
see gpuidx>
type word
see PAGED
see id1
see id3
see gpuidx>
type .k 5
see gpuidx>
type word
see   5.
see 200 matches
see gpuidx>
keys C-d
exit 0
END
    PAGER=./pager talk -k 150 many.gx word <<'END'
see PAGED
see id3
exit 0
END
    PAGER=cat talk -k 150 many.gx word <<'END'
see 150.
see 200 matches
exit 0
END
    PAGER=./pager ask query -q -k 150 many.gx word
    exits 0
    [ "$(wc -l <<<"$output")" -gt 150 ]
}

@test "Ctrl-C stops an answer that is being printed" {
    seq 60000 | sed 's/.*/{"id":"id&","text":"same word"}/' >long.jsonl
    "$GPUIDX" build -q long.jsonl -o long.gx
    PAGER= talk -k 60000 long.gx <<'END'
see gpuidx>
type word
see id900
keys C-c
see gpuidx>
unseen id59999
type twins
see occurs in no document
see gpuidx>
keys C-d
exit 0
END
}

@test "a window made narrower does not garble the line" {
    ldd "$GPUIDX" | grep -q libedit || skip "the program was built without libedit"
    talk "$TINY" <<'END'
see gpuidx>
keys twins skipping blocks compression of lists and blocks
see and blocks
size 40
pause 0.3
see gpuidx>
keys C-a
keys gpu 
type 
see match
see gpuidx>
keys C-d
exit 0
END
}

@test ".help and titles are wrapped between words, and no command is guessed that is far away" {
    printf '{"id":"long","title":"%s","text":"apple"}\n' "$(seq -f 'wordnumber%g' 1 30 | tr '\n' ' ')" >long.jsonl
    "$GPUIDX" build -q long.jsonl -o long.gx
    cat >steps <<'END'
see gpuidx>
size 60
type .foo
see .foo: there is no such command; .help lists them
see gpuidx>
type .hepl
see did you mean .help?
see gpuidx>
type apple
see 1 match
see gpuidx>
type .help
see cancels a
see running query.
see gpuidx>
keys C-d
exit 0
END
    TERMINAL_SAVE=$PWD/shown talk long.gx <steps
    [ "$(grep -c wordnumber shown)" -gt 3 ]
    for n in 1 9 17 30; do
        grep -Eq "(^| )wordnumber$n( |$)" shown
    done
    ! sed -n '/^\.help/,/running query/p' shown | grep -E '.{61}'
    grep -q '^ *terms:X,blocks:N$\|, or *$\|or terms:X,blocks:N$' shown
}

@test ".sort orders results by attributes, .next shows the next page, .all lists without a query" {
    for i in 1 2 3 4 5; do
        printf '{"id":"p%d","text":"shop","price":%d}\n' $i $((i * 3 % 5))
    done >shop.jsonl
    "$GPUIDX" build -q -o shop.gx shop.jsonl --attr price:int
    talk shop.gx <<'END'
see gpuidx>
type .next
see there is no page before this one
see gpuidx>
type .k 2
see gpuidx>
type .sort prise
see did you mean price
see gpuidx>
type .sort price:desc
see gpuidx>
type shop
see p3
see p1
see gpuidx>
type .next
see 3.  0
see p4
see gpuidx>
type .next
see 5.  0
see p5
see gpuidx>
type .next
see there are no more results
see gpuidx>
type .all
see p3
see gpuidx>
keys C-d
exit 0
END
}

@test ".collapse shows one result of each value" {
    for i in 1 2 3 4 5; do
        printf '{"id":"p%d","text":"shop","brand":"b%d"}\n' $i $((i % 2))
    done >shop.jsonl
    "$GPUIDX" build -q -o shop.gx shop.jsonl --attr brand:keyword
    talk shop.gx <<'END'
see gpuidx>
type .collapse
see off
see gpuidx>
type .collapse brnd
see did you mean brand
see gpuidx>
type .collapse brand:2
see gpuidx>
type shop
see p1
see brand: b1, 3 matches
see p3
see 2.  0
see p2
see brand: b0, 2 matches
see p4
see gpuidx>
type .collapse
see brand:2
see gpuidx>
type .collapse off
see gpuidx>
keys C-d
exit 0
END
}
