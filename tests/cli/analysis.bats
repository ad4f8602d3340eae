# How text becomes terms: emoji, stop word files, languages, and what an index remembers of it.
load cli

setup_file() { export CASES=$DATA/cases/text; }

# The terms of a text under flags, on one line: terms 'TEXT' FLAGS...
terms() {
    local text=$1
    shift
    "$GPUIDX" analyze "$@" "$text" | cut -f3 | paste -sd' '
}

is() { [ "$1" = "$2" ] || { printf 'got: %s\nnot: %s\n' "$1" "$2" >&2; return 1; }; }

# Both words of each line of a file have one term, of which there is one a word.
pairs_agree() {
    local file=$1 a b n=0 all
    shift
    while read -r a b; do
        all=$(terms "$a $b" "$@")
        [ "$(wc -w <<<"$all")" -eq 2 ] && [ "${all% *}" = "${all#* }" ] || { echo "$a $b: $all" >&2; return 1; }
        n=$((n + 1))
    done <"$file"
    [ $n -gt 0 ]
}

@test "every emoji is a word of its own, but with the analyzer english" {
    is "$(terms "$(cat "$CASES/emoji-ball.txt")" --analyzer=simple)" 'goal ⚽ now'
    is "$(terms "$(cat "$CASES/emoji-heart.txt")" --analyzer=simple)" 'i ❤️ herons'
    is "$(terms "$(cat "$CASES/emoji-check.txt")" --analyzer=simple)" 'done ✅ ⭐ end'
    is "$(terms "$(cat "$CASES/emoji-watch.txt")" --analyzer=simple)" 'late ⌚ ⏰ end'
    is "$(terms 'I❤️NY⚽🎉go ☀️ ☀ ©️ © 1️⃣2️⃣ #️⃣ a*️⃣b ☝🏽 ㊗️ 🫩' --analyzer=simple)" \
        'i ❤️ ny ⚽ 🎉 go ☀️ ©️ 1️⃣ 2️⃣ #️⃣ a *️⃣ b ☝🏽 ㊗️ 🫩'
    for flags in --stemmer=german --stemmer=french --stemmer=turkish --fold=unicode; do
        is "$(terms '⚽ ⭐ ❤️ 🎉 #️⃣' --analyzer=simple $flags)" '⚽ ⭐ ❤️ 🎉 #️⃣'
    done
    is "$(terms '⚽️ ⚽ ❤️ ❤ 1⃣ 1️⃣' --analyzer=simple --fold=unicode)" '⚽ ⚽ ❤️ 1️⃣ 1️⃣'
    is "$(terms 'I ❤️ NY ⚽ 🎉 #️⃣ ☝🏽')" 'i ny 🎉'
    is "$(terms '❤️ ⚽ a' --analyzer=whitespace)" '❤️ ⚽ a'
}

@test "stop word files have marks, comments, line ends of any kind and gzip" {
    is "$(terms 'the cat and the dog' --analyzer=simple --stopwords="$CASES/stop-bom.txt")" 'cat dog'
    is "$(terms 'the cat and the dog' --analyzer=simple --stopwords="$CASES/stop-snowball.txt")" 'cat dog'
    is "$(terms 'the cat and the dog' --analyzer=simple --stopwords="$CASES/stop-cr.txt")" 'cat dog'
    printf '# words\n  THE  \r\n\xef\xbb\xbfand\xc2\xa0\n\n | more\ndog|s\n' >stop
    is "$(terms 'the cat and the dog' --analyzer=simple --stopwords=stop)" 'cat'
    gzip -c stop >stop.gz
    is "$(terms 'the cat and the dog' --analyzer=simple --stopwords=stop.gz)" 'cat'
    printf '#tag\n# no\n|\n| no\nthe | no\n' >stop
    is "$(terms '#tag no | # the' --analyzer=whitespace --stopwords=stop)" 'no #'
    printf "it's\nit\n" >stop
    is "$(terms "it's a cat" --stopwords=stop)" 'a cat'
    is "$(terms "it's a cat" --stopwords=stop --analyzer=simple)" 'a cat'
    printf "c'est\nest\n" >stop
    is "$(terms "c'est l'avion" --stopwords=stop --stemmer=french --analyzer=simple)" avion
    printf 'I\n' >stop
    is "$(terms 'ı I i' --stopwords=stop --stemmer=turkish --analyzer=simple)" i
}

@test "lines of a stop word file that no term can equal are refused" {
    ask analyze --analyzer=simple --stopwords="$CASES/stop-comma.txt" x
    exits 3
    complains 'stop-comma.txt:1: no term can equal "the, and, of", which is not one word'
    for line in 'the and' 'e.g.' '(the)' 'the,' "'tis" '__' 'a—b' '-' \
        "$(printf 'the\xc2\xa0and')" "$(printf '%0300d' 0)"; do
        printf 'cat\n%s\n' "$line" >stop
        ask analyze --analyzer=simple --stopwords=stop x
        exits 3
        complains 'stop:2: no term can equal'
    done
    printf "it's\nthe and\n" >stop
    ask analyze --stopwords=stop x
    exits 3
    complains 'stop:1: no term can equal "it'"'"'s": analysis makes "it" of it (and 1 line more)'
    printf 'the and\n' >stop
    ask analyze --analyzer=whitespace --stopwords=stop x
    exits 3
    iconv -t UTF-16 "$CASES/stop-snowball.txt" >stop
    ask analyze --stopwords=stop x
    exits 3
    complains 'iconv'
    gzip -c "$CASES/stop-comma.txt" | head -c 25 >stop
    ask analyze --stopwords=stop x
    exits 3
    complains 'damaged'
}

@test "words of Turkish, French, Italian and Catalan meet themselves" {
    for fold in none unicode; do
        for analyzer in simple english; do
            pairs_agree "$CASES/turkish-capital.txt" --analyzer=$analyzer --stemmer=turkish --fold=$fold
            pairs_agree "$CASES/turkish-apostrophe.txt" --analyzer=$analyzer --stemmer=turkish --fold=$fold
            pairs_agree "$CASES/french-elision.txt" --analyzer=$analyzer --stemmer=french --fold=$fold
            pairs_agree "$CASES/italian-elision.txt" --analyzer=$analyzer --stemmer=italian --fold=$fold
        done
        printf '%s\n' "l'aigua aigua" "d’Olot Olot" "n'ha ha" "S'ESTIMA estima" >catalan
        pairs_agree catalan --analyzer=simple --stemmer=catalan --fold=$fold
        printf '%s\n' 'İZMİR izmir' 'İZMİR izmir' 'i̇zmir izmir' 'DİYARBAKIR’DAN diyarbakır' 'ISPARTA ısparta' \
            'AĞRI ağrı' >turkish
        pairs_agree turkish --analyzer=simple --stemmer=tr --fold=$fold
        printf '%s\n' 'jusqu’ici ici' "LORSQU'IL il" 'qu＇elle elle' 'lʼarbre arbre' >french
        pairs_agree french --analyzer=simple --stemmer=fr --fold=$fold
    done
    is "$(terms "aujourd'hui prud'homme o'clock" --analyzer=simple --stemmer=french)" "aujourd'hui prud'homm o'clock"
    is "$(terms "l'avion IŞIK" --analyzer=simple)" "l'avion işik"
    is "$(terms "l'avion" --analyzer=whitespace --stemmer=french)" "l'avion"
}

@test "an index of an earlier version is asked with the analysis that it was built with" {
    ask query "$DATA/before-rules.gx" avion -f tsv # of: l'avion ⚽ goal; avion IRAK; it's the goal
    exits 0
    is "$output" $'1\td2\t1'
    ask query "$DATA/before-rules.gx" "l'avion" -f tsv
    is "$output" $'1\td1\t1'
    ask query -q "$DATA/before-rules.gx" ⚽ -f tsv
    [ -z "$output" ]
    [ -z "$stderr" ]
    "$GPUIDX" collect -q "$DATA/before-rules.gx" -o c
    printf '{"id": "d9", "text": "l'"'"'avion ⚽"}\n' >more.jsonl
    "$GPUIDX" add -q c more.jsonl
    ask query c "l'avion" -f tsv
    is "$(wc -l <<<"$output")" 2
    ask query -q c ⚽ -f tsv
    [ -z "$output" ]
    "$GPUIDX" build -q --analyzer=simple --stemmer=french more.jsonl -o new.gx
    ask collect "$DATA/before-rules.gx" new.gx -o d
    exits 2
    complains 'makes terms of text in another way'
    "$GPUIDX" export -q new.gx -o new.ciff # which names the rules
    "$GPUIDX" import -q new.ciff -o again.gx
    ask query again.gx 'avion ⚽' --op=and -f tsv
    is "$output" $'1\td9\t1'
}

@test "another version of the stemmer or of Unicode is told" {
    printf '{"id": "d1", "text": "das System läuft"}\n' >corpus.jsonl
    "$GPUIDX" build -q --stemmer=german corpus.jsonl -o g.gx
    "$GPUIDX" build -q --analyzer=simple corpus.jsonl -o s.gx
    "$GPUIDX" build -q corpus.jsonl -o e.gx
    "$GPUIDX" collect -q g.gx -o c
    for index in g.gx c; do
        ask query $index system
        exits 0
        [[ $stderr != *version* ]]
        for command in 'query -q' check info 'term -q' 'doc -q'; do
            export LD_PRELOAD=$GX_TEST_STEMMER
            ask $command $index $([ "$command" != 'term -q' ] || echo system) $([ "$command" != 'doc -q' ] || echo d1) \
                $([ "$command" != 'query -q' ] || echo system)
            unset LD_PRELOAD
            complains "$index: its terms were made by another version of the stemmer german"
        done
    done
    printf '{"id": "d2", "text": "system"}\n' >more.jsonl
    export LD_PRELOAD=$GX_TEST_STEMMER
    ask add c more.jsonl
    exits 2
    complains 'another version of the stemmer'
    ask query -q e.gx system
    [ -z "$stderr" ] # Porter's is our own
    "$GPUIDX" build -q --stemmer=german corpus.jsonl -o other.gx
    ask collect g.gx other.gx -o d
    exits 2
    complains 'the terms of other.gx were made by another version of the stemmer than those of g.gx'
    export GX_TEST_UNICODE=99.0.0
    ask query s.gx system
    exits 0
    complains 's.gx: its terms were made with Unicode'
    complains '99.0.0'
    ask query e.gx system
    [[ $stderr != *Unicode* ]]
    unset LD_PRELOAD GX_TEST_UNICODE
}
