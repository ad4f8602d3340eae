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

# The terms with their positions: "0東 0東京 1京"
placed() {
    local text=$1
    shift
    "$GPUIDX" analyze "$@" -f json "$text" |
        python3 -c '
import json, sys
print(" ".join("%d%s" % (t["position"], t["term"]) for t in json.load(sys.stdin)["terms"]))'
}

ids() { "$GPUIDX" query -q "$@" -f tsv -k 100 | cut -f2 | sort | paste -sd' '; }

@test "multilingual makes bigrams of Han, kana and Hangul, and leaves other words whole" {
    is "$(placed '東京タワーへ a漢b' --analyzer=multilingual)" \
        '0東 0東京 1京 1京タ 2タ 2タワ 3ワ 3ワー 4ー 4ーへ 5へ 6a 7漢 8b'
    is "$(placed '한국어abc 2026년' --analyzer=multilingual)" '0한 0한국 1국 1국어 2어 3abc 42026 5년'
    is "$(terms 'ｶﾞｷﾞ ＡＢＣ' --analyzer=multilingual)" 'ガ ガギ ギ abc'
    is "$(terms '東、京 東 京' --analyzer=multilingual)" '東 京 東 京'
    is "$(terms 'Größe 🇩🇪🇫🇷👍🏽x ⚽' --analyzer=multilingual)" 'grosse 🇩🇪 🇫🇷 👍🏽 x ⚽'
    is "$(terms 'Größe' --analyzer=multilingual --fold=none)" 'größe'
    is "$(terms 'علىٰ كتاب کتاب مدرسة ٢٠٢٦ צה״ל क़लम' --analyzer=multilingual)" 'علي كتاب كتاب مدرسه 2026 צה"ל कलम'
}

@test "Thai, Lao, Khmer and Burmese are words of the dictionary, or bigrams" {
    printf '{"id": "d1", "text": "ภาษาไทยเป็นภาษา"}\n' >thai.jsonl
    "$GPUIDX" build -q --analyzer=multilingual thai.jsonl -o t.gx
    if "$GPUIDX" info t.gx | grep -q 'dictionary.*ICU'; then
        is "$(terms 'ภาษาไทยเป็นภาษา' --analyzer=multilingual)" 'ภาษา ไทย เป็น ภาษา'
        [ "$(terms 'မြန်မာဘာသာ' --analyzer=multilingual | wc -w)" -lt 5 ]
    else
        is "$(terms 'ไทย' --analyzer=multilingual)" 'ไ ไท ท ทย ย'
    fi
    is "$(ids t.gx ไทย)" d1
    "$GPUIDX" export -q t.gx -o t.ciff # which names the rules
    "$GPUIDX" import -q t.ciff -o again.gx
    is "$(ids again.gx ไทย)" d1
}

@test "queries of Han, kana and Hangul find words and single characters" {
    printf '%s\n' '{"id": "d1", "text": "東京都に住む"}' '{"id": "d2", "text": "京都の東"}' '{"id": "d3", "text": "東 京"}' \
        '{"id": "d4", "text": "한국어를 배우다 2026년"}' '{"id": "d5", "text": "ภาษาไทย English 中"}' >c.jsonl
    "$GPUIDX" build -q --analyzer=multilingual --store=text c.jsonl -o c.gx
    is "$(ids c.gx 東京)" 'd1'
    is "$(ids c.gx 京都 --op=and)" 'd1 d2'
    is "$(ids c.gx 東京都 --op=and)" 'd1'
    is "$(ids c.gx 東)" 'd1 d2 d3'
    is "$(ids c.gx '東 京' --op=and)" 'd1 d2 d3'
    is "$(ids c.gx 한국 --op=and)" d4
    is "$(ids c.gx 국어 --op=and)" d4
    is "$(ids c.gx 2026)" d4
    is "$(ids c.gx '中 english' --op=and)" d5
    is "$(ids c.gx '+東京 -京都' --syntax=boolean)" ''
    is "$(ids c.gx '京都 NOT 東京' --syntax=boolean)" d2
    is "$(terms 東京都 -i c.gx --query)" '東京 京都'
    is "$(terms 東 -i c.gx --query)" '東'
    ask query -q c.gx 東京都 -f jsonl --op=and
    exits 0
    [[ $output == *'"snippet":"東京都に住む"'* ]]
    ask query c.gx 東京都 --op=and --color=always # both pairs are marked
    [[ $output == *$'\e[1m東京\e[0m\e[1m都\e[0mに住む'* ]]
    "$GPUIDX" build -q --analyzer=multilingual --positions c.jsonl -o p.gx
    printf '{"id": "d7", "text": "京都の東京"}\n' | "$GPUIDX" build -q --analyzer=multilingual --positions -f jsonl - -o q.gx
    is "$(ids p.gx '"東京都"' --syntax=boolean)" d1
    is "$(ids q.gx '東京都' --op=and)" d7
    is "$(ids q.gx '"東京都"' --syntax=boolean)" '' # side by side
    is "$(ids q.gx '"東京"' --syntax=boolean)" d7
    "$GPUIDX" collect -q c.gx -o col
    printf '{"id": "d6", "text": "東京都知事"}\n' >more.jsonl
    "$GPUIDX" add -q col more.jsonl
    is "$(ids col 東京都 --op=and)" 'd1 d6'
    "$GPUIDX" add -q --create new more.jsonl --analyzer=multilingual
    is "$(ids new 知事)" d6
    ask add -q --create new more.jsonl --analyzer=simple
    exits 2
}

@test "code finds names by their parts, and whole" {
    is "$(placed 'os.getUserId x' --analyzer=code)" '0os.getuserid 0os 1getuserid 1get 2user 3id 4x'
    is "$(terms 'HTTPServer2 x86_64 __init__ _ foo-bar a->b std::vector it'"'"'s' --analyzer=code)" \
        'httpserver2 http server 2 x86_64 x 86 64 __init__ init foo-bar foo bar a b std vector it s'
    is "$(terms 'größeMax ÄrgerÖl' --analyzer=code)" 'größemax größe max ärgeröl ärger öl'
    ask analyze --analyzer=code --fold=unicode x
    exits 2
    complains 'divides names at capitals'
    printf '%s\n' '{"id": "d1", "text": "int getUserById(int user_id);"}' '{"id": "d2", "text": "user"}' \
        '{"id": "d3", "text": "USER_NAME"}' >code.jsonl
    "$GPUIDX" build -q --analyzer=code --store=text code.jsonl -o code.gx
    is "$(ids code.gx user)" 'd1 d2 d3'
    is "$(ids code.gx getUserById --op=and)" d1
    is "$(ids code.gx by)" d1
    is "$(ids code.gx user_id --op=and)" d1
    ask info code.gx
    [[ $output == *identifiers* ]]
}

@test "n-grams find words by their beginnings, or by what stands inside" {
    printf '%s\n' '{"id": "d1", "text": "neutrino größe"}' '{"id": "d2", "text": "Neutron n"}' >w.jsonl
    "$GPUIDX" build -q --analyzer=simple --ngrams=edge:2-5 w.jsonl -o e.gx
    is "$(ids e.gx neut)" 'd1 d2'
    is "$(ids e.gx neutr)" 'd1 d2'
    is "$(ids e.gx neutri)" 'd1 d2' # the first five count
    is "$(ids e.gx grö)" d1
    is "$(ids e.gx n)" d2
    is "$(ids e.gx eut)" ''
    "$GPUIDX" build -q --analyzer=simple --ngrams=3 w.jsonl -o g.gx
    is "$(ids g.gx utri --op=and)" d1
    is "$(ids g.gx öße --op=and)" d1
    is "$(ids g.gx eut --op=and)" 'd1 d2'
    is "$(placed 'abcd ef ghi' --analyzer=simple --ngrams=3)" '0abc 1bcd 2ef 3ghi'
    is "$(placed 'abcd ef' --analyzer=simple --ngrams=edge:2-3)" '0ab 0abc 1ef'
    is "$(placed 'getUser' --analyzer=code --ngrams=edge:3-4)" '0get 0getu 0get 1use 1user'
    for bad in 0 65 3-4 edge:3 edge:3-2 edge:0-4 edge:2-65 x '' ' 3' 3x -1 99999999999999999999; do
        ask analyze --analyzer=simple "--ngrams=$bad" x
        exits 2
        complains 'no n-grams'
    done
    ask analyze --ngrams=3 x
    exits 2
    complains 'without a stemmer and stop words'
    ask analyze --analyzer=code --ngrams=3 x
    exits 2
    complains 'edge:2-15'
    ask collect e.gx g.gx -o both
    exits 2
    complains n-grams
}

@test "a language's name is an analyzer" {
    is "$(terms 'Müller Mueller Muller Straße STRASSE Quelle' --analyzer=german)" 'mull mull mull strass strass quell'
    is "$(terms 'Müller Mueller' --analyzer=german --fold=unicode)" 'mull mull'
    is "$(terms "l'avion les avions" --analyzer=french)" "$(terms "avion les avion" --analyzer=fr)"
    is "$(terms "İstanbul'da ISPARTA" --analyzer=turkish)" 'istanbul ıspar'
    is "$(terms "d'fhear fear" --analyzer=irish)" "$(terms 'fhear fear' --analyzer=irish)"
    is "$(terms 'indexing' --analyzer=english)" index
    for bad in porter latin English ''; do
        ask analyze "--analyzer=$bad" x
        exits 2
        complains 'no analyzer is called'
    done
}
