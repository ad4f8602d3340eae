# gpuidx build: corpora of every format become indexes; bad input, exit codes, nothing half-written.
load cli

# The ids of an index's documents, in docid order, as far as the terms of a query find them.
ids() {
    "$GPUIDX" query -q --engine=cpu "$1" -k 1000 --format=jsonl "$2" | grep -o '"id":"[^"]*"' | cut -d'"' -f4 | sort |
        tr '\n' ' '
}

nothing_here() { # but what the test made
    [ -z "$(find . -name 'x.gx*' -o -name '*.tmp*')" ] || { ls -la >&2; return 1; }
}

@test "a corpus becomes an index, and the summary says what it holds" {
    ask build "$DATA/tiny.jsonl" -o x.gx
    exits 0
    [ -z "$output" ]
    complains 'x.gx: '
    complains ' documents, '
    complains ' bits a posting'
    complains 'of jsonl from 1 file in'
    complains 'seconds: read '
    ask check x.gx
    exits 0
}

@test "attributes come from JSON fields and from columns, and info shows them" {
    printf '%s\n' '{"id":"a","text":"one","year":2015,"tags":["x","y"],"open":true,"cat":"cs.IR","p":-1.5}' \
        '{"id":"b","text":"two","year":null,"tags":"y,z","open":false,"when":"2019-05-31T01:00:00+02:00"}' \
        '{"id":"c","text":"three","year":"2019"}' >c.jsonl
    ask build -q c.jsonl -o x.gx --attr year:int --attr tags:keywords,open:bool \
        --attr=cat:keyword --attr p:float --attr when:date
    exits 0
    silent
    ask check x.gx
    exits 0
    ask info x.gx
    says 'year                 int                2'
    says '2015 to 2019'
    says '3, 3 different'
    says 'false and true'
    says '2019-05-30T23:00:00Z to 2019-05-30T23:00:00Z'
    ask info --json x.gx
    [ "$(python3 -c '
import json, sys
for a in json.load(sys.stdin)["attributes"]:
    print(a["name"], a["type"], a["documents"], end="; ")' <<<"$output")" = \
        'year int 2; tags keywords 2; open bool 2; cat keyword 1; p float 1; when date 1; ' ]
    printf 'a\t2015\tone\tx, y\nb\t\ttwo\t\n' >c.tsv
    ask build -q c.tsv -o y.gx --columns=id,year,text,tags --attr=year:int,tags:keywords
    exits 0
    ask info y.gx
    says '2, 2 different'
    printf 'id,year,text\na,2015,one\nb,2019,two\n' >c.csv
    ask build -q c.csv -o z.gx --attr=year:int,venue:keyword
    exits 0
    complains 'no document has a value of the attribute venue'
    ask info z.gx
    says '2015 to 2019'
}

@test "attributes stay when an index is recoded and reordered, in any order of documents" {
    for i in $(seq 1 300); do
        printf '{"id":"d%d","text":"word%d some text","n":%d,"k":"k%d"}\n' $i $((i % 9)) $i $((i % 7))
    done >c.jsonl
    for order in input bp random; do
        ask build -q c.jsonl -o $order.gx --order=$order --attr n:int --attr k:keyword
        exits 0
        ask recode -q $order.gx -o $order.2.gx --codec=simple8b
        exits 0
        ask check $order.gx $order.2.gx
        exits 0
        ask info $order.2.gx
        says '1 to 300'
        says '300, 7 different'
    done
}

@test "bitmap columns are made as told, kept by recode and reorder, and change no answer" {
    for ((i = 0; i < 300; ++i)); do
        echo "{\"id\":\"d$i\",\"text\":\"word\",\"n\":$((i / 3)),\"p\":$((i * 7 % 50)).5,\"k\":\"k$((i % 4))\"}"
    done >c.jsonl
    ask build -q c.jsonl -o x.gx --attr n:int:bitmaps=range --attr p:float:bins=5:by=lloyd,k:keyword:bitmaps=equality
    ask build -q c.jsonl -o plain.gx --attr n:int:bitmaps=none,p:float,k:keyword
    ask recode x.gx -o y.gx --codec=simple8b
    ask reorder x.gx -o z.gx --order=random
    for x in x y z; do
        ask check $x.gx
        exits 0
        ask info $x.gx
        grep -Eq '^n +range +100 ' <<<"$output"
        grep -Eq '^p +range +5 ' <<<"$output"
        grep -Eq '^k +equality +4 ' <<<"$output"
        for filter in 'n:[7 TO 30]' 'p:<13' 'p:[3 TO 31.5] AND NOT k:k2' 'k:[k1 TO k2]' 'n:>98'; do
            want=$("$GPUIDX" query plain.gx -k 300 --engine=cpu --filter "$filter" word 2>&1 | grep -o '^[0-9]* match')
            got=$("$GPUIDX" query $x.gx -k 300 --engine=cpu --filter "$filter" word 2>&1 | grep -o '^[0-9]* match')
            [ -n "$want" ]
            [ "$want" = "$got" ]
        done
    done
    ask info --json x.gx
    python3 -c 'import json, sys
n, p, k = json.load(sys.stdin)["attributes"]
assert p["bitmaps"]["encoding"] == "range" and p["bitmaps"]["bins"] == 5 and p["bitmaps"]["bytes"] > 40' <<<"$output"
    ask info --json plain.gx
    grep -q bitmaps <<<"$output" && return 1
    ask build -q c.jsonl -o w.gx --attr n:int:bins=none
    exits 2
    complains '--attr=n:int: bins=none is no number from 1 to 4096'
    ask build -q c.jsonl -o w.gx --attr k:keyword:bins=3
    exits 2
    complains 'the attribute k has keywords'
    [ ! -e w.gx ]
}

@test "a value of the wrong type is a bad document, and a bad --attr is told" {
    printf '%s\n' '{"id":"a","text":"one","year":2015}' '{"id":"b","text":"two","year":"then"}' \
        '{"id":"c","text":"x","year":[1,2]}' \
        '{"id":"d","text":"x","year":{"a":1}}' '{"id":"e","text":"x","year":[' >c.jsonl
    ask build c.jsonl -o x.gx --attr year:int
    exits 3
    complains "c.jsonl:2: the attribute year: 'then' is no whole number"
    nothing_here
    ask build c.jsonl -o x.gx --attr year:int --on-error=skip
    exits 0
    complains "c.jsonl:4: column 29: not JSON as expected: an attribute's value is"
    complains 'c.jsonl:5: '
    ask info x.gx
    says '3, 1 to 2015'
    ask build c.jsonl -o y.gx --attr year:keyword --on-error=skip
    exits 0
    complains 'c.jsonl:3: the attribute year has several values, which its type keyword does not take'
    ask build c.jsonl -o y.gx --attr year
    exits 2
    complains '--attr=year: no type: write NAME:TYPE'
    ask build c.jsonl -o y.gx --attr year:integer
    exits 2
    complains 'there is no such type; it is one of int, float'
    ask build c.jsonl -o y.gx --attr id:int
    exits 2
    complains "the attribute's name 'id' has another meaning"
    printf 'a\t1\tone\n' >c.tsv
    ask build c.tsv -o y.gx --columns=id,-,text --attr year:int
    exits 2
    complains "does not have the attribute year"
}

@test "NaN, infinities, numbers out of range and dates that are none are bad documents, each with its line" {
    printf '{"id":"d%d","text":"word",%s}\n' 1 '"p":"NaN"' 2 '"p":NaN' 3 '"p":1e999' 4 '"p":"-inf"' 5 '"p":{"a":1}' \
        6 '"n":9223372036854775808' 7 '"n":1.5' 8 '"when":"2019-02-29"' 9 '"when":"10000-01-01"' \
        10 '"when":"0000-01-01T00:00:00+01:00"' 11 '"when":"2019-01-01T24:00:00Z"' 12 '"open":"yes"' \
        13 '"p":null,"n":[],"when":"","open":false' 14 '"p":-1.5,"n":-9223372036854775808,"when":"9999-12-31"' >c.jsonl
    ask build c.jsonl -o x.gx --attr=p:float,n:int,when:date,open:bool
    exits 3
    complains "c.jsonl:1: the attribute p: 'NaN' is no number"
    [ ! -e x.gx ]
    ask build c.jsonl -o x.gx --attr=p:float,n:int,when:date,open:bool --on-error=skip
    exits 0
    for line in "1: the attribute p: 'NaN' is no number" '2: column ' "3: the attribute p: '1e999' is outside" \
        "4: the attribute p: '-inf' is no number" '5: column ' "6: the attribute n: '9223372036854775808' is outside" \
        "7: the attribute n: '1.5' is no whole number" "8: the attribute when: '2019-02-29' is no date" \
        "9: the attribute when: '10000-01-01' is no date" \
        "10: the attribute when: '0000-01-01T00:00:00+01:00' is no date" \
        "11: the attribute when: '2019-01-01T24:00:00Z' is no date" "12: the attribute open: 'yes' is neither"; do
        complains "c.jsonl:$line"
    done
    complains '12 bad documents skipped'
    "$GPUIDX" export x.gx --attributes=x.tsv
    [ "$(tail -n +2 x.tsv | tr '\t\n' ' ;')" = \
        'd13    false;d14 -1.5 -9223372036854775808 9999-12-31 ;' ]
}

@test "a column that some files of a corpus lack is missing there" {
    printf 'id\ttext\tyear\na\tword\t2001\n' >1.tsv
    printf 'id\ttext\nb\tword\n' >2.tsv
    printf 'year\tid\ttext\n2003\tc\tword\n' >3.tsv
    ask build -q 1.tsv 2.tsv 3.tsv -o x.gx --attr=year:int
    exits 0
    silent
    [ "$("$GPUIDX" export x.gx --attributes=- | tr '\t\n' ' ;')" = 'id year:int;a 2001;b ;c 2003;' ]
    [ "$("$GPUIDX" query -q --engine=cpu --format=tsv --filter='NOT has:year' x.gx word | cut -f 2)" = b ]
    ask build 2.tsv -o y.gx --attr=year:int
    exits 0
    complains 'no document has a value of the attribute year'
}

@test "-q is silent, --json is for programs" {
    ask build -q "$DATA/tiny.jsonl" -o x.gx
    exits 0
    silent
    ask build -q --json "$DATA/tiny.jsonl" -o y.gx
    exits 0
    silent
    says '{"schema":1,"index":"y.gx","documents":'
    python3 -c 'import json,sys; json.load(sys.stdin)' <<<"$output"
}

@test "every format gives the same documents" {
    printf '{"id":"a","title":"red","text":"apple"}\n{"id":"b","text":"red pear"}\n' >c.jsonl
    printf 'a\tred\tapple\nb\t\tred pear\n' >c.tsv
    printf 'id,title,text\na,red,apple\nb,,"red\npear"\n' >c.csv
    printf '<DOC>%s</DOC>\n' '<DOCNO>a</DOCNO><TITLE>red</TITLE><TEXT>apple</TEXT>' \
        '<DOCNO>b</DOCNO><TEXT>red pear</TEXT>' >c.trectext
    printf '<DOC>%s</DOC>\n' '<DOCNO>a</DOCNO><DOCHDR>u</DOCHDR><title>red</title>apple' \
        '<DOCNO>b</DOCNO><DOCHDR>u</DOCHDR><p>red<p>pear' >c.trecweb
    mkdir c.dir && printf '<title>red</title>apple' >c.dir/a.html && printf 'red pear' >c.dir/b
    printf 'red apple\nred pear\n' >c.txt
    for c in c.*; do
        case $c in c.txt) f=(-f plain) ;; *) f=() ;; esac
        ask build -q "$c" "${f[@]}" -o "$c.gx"
        exits 0
        silent
        case $c in c.txt) a=1 b=2 ;; c.dir) a=a.html b=b ;; *) a=a b=b ;; esac
        [ "$(ids "$c.gx" red)" = "$a $b " ]
        [ "$(ids "$c.gx" pears)" = "$b " ]
    done
}

@test "compressed corpora, several of them, and standard input" {
    printf 'a\tapple\n' | gzip >1.tsv.gz
    printf 'b\tapple\n' | xz >2.tsv.xz
    { printf 'c\tapple\n' | bzip2; printf 'd\tapple\n' | bzip2; } >3.bz2
    printf 'e\tapple\n' >4
    ask build -q 1.tsv.gz 2.tsv.xz 3.bz2 - -o x.gx <4
    exits 0
    [ "$(ids x.gx apple)" = "a b c d e " ]
}

@test "columns may be chosen" {
    printf 'a\t2020\tcs\tred\tapple\n' >c.tsv
    ask build -q c.tsv -o x.gx
    exits 3
    complains 'c.tsv:1: 5 columns'
    complains '; --columns says it'
    ask build -q c.tsv --columns=id,-,-,title,text -o x.gx
    exits 0
    [ "$(ids x.gx red)$(ids x.gx apple)$(ids x.gx cs)" = "a a " ]
    ask build c.tsv --columns=id,txt -o y.gx
    exits 2
    complains "'txt' is none of id, title, text and -"
}

@test "a bad document ends the build with its place, and nothing is written" {
    printf '{"id":"a","text":"x"}\n{"id":"b","text":oops}\n' >c.jsonl
    ask build c.jsonl -o x.gx
    exits 3
    complains 'c.jsonl:2: column 18: not JSON as expected: a value is expected'
    complains '--on-error=skip goes on'
    nothing_here
}

@test "--on-error=skip leaves bad documents out, shows twenty, counts all" {
    {
        printf '{"id":"a","text":"apple"}\n'
        for i in $(seq 25); do printf '{"id":"bad %d","text":"apple"}\n' "$i"; done
        printf '{"id":"z","text":"apple"}\n'
    } >c.jsonl
    ask build --on-error=skip c.jsonl -o x.gx
    exits 0
    complains "c.jsonl:2: the id 'bad 1' holds white space"
    complains 'c.jsonl:21: '
    [[ $stderr != *c.jsonl:22:* ]]
    complains '25 bad documents skipped'
    complains 'the first 20 are shown'
    [ "$(ids x.gx apple)" = "a z " ]
}

@test "a truncated stream is bad input" {
    seq 100000 | awk '{print $1 "\tword" $1}' | gzip | head -c 50000 >c.tsv.gz
    ask build c.tsv.gz -o x.gx
    exits 3
    complains 'the gzip stream is damaged or truncated'
    nothing_here
    ask build --on-error=skip c.tsv.gz -o x.gx
    exits 0
    complains 'the rest of this file is lost; skipped'
    complains '1 bad documents skipped'
}

@test "an id that comes again is refused, or the first or last document stays" {
    printf 'a\tapple\na\tpear\n' >c.tsv
    ask build c.tsv -o x.gx
    exits 3
    complains 'c.tsv:2: '
    nothing_here
    ask build -q c.tsv --duplicates=first -o x.gx
    exits 0
    [ "$(ids x.gx apple)|$(ids x.gx pear)" = "a |" ]
    ask build c.tsv --duplicates=last -o y.gx
    exits 0
    complains '1 documents replaced by later ones'
    [ "$(ids y.gx apple)|$(ids y.gx pear)" = "|a " ]
}

@test "an index is not overwritten without --force" {
    printf 'a\tapple\n' >c.tsv
    ask build -q c.tsv -o x.gx
    exits 0
    cp x.gx before
    printf 'b\tapple\n' >c.tsv
    ask build c.tsv -o x.gx
    exits 5
    complains 'force'
    cmp x.gx before
    printf 'b\n' >bad.tsv
    ask build --force bad.tsv -o x.gx
    exits 3
    cmp x.gx before
    ask build -q --force c.tsv -o x.gx
    exits 0
    [ "$(ids x.gx apple)" = "b " ]
}

@test "what cannot be opened is exit code 5 and named" {
    ask build missing.tsv -o x.gx
    exits 5
    complains 'missing.tsv: No such file'
    printf 'a\tapple\n' >c.tsv
    ask build c.tsv -o no/such/x.gx
    exits 5
    complains 'no/such'
    nothing_here
}

@test "usage: an output, a corpus, known choices" {
    printf 'a\tapple\n' >c.tsv
    ask build c.tsv
    exits 2
    complains '-o FILE'
    ask build -o x.gx
    exits 2
    ask build c.tsv -o -
    exits 2
    ask build c.tsv -o x.gx -f xml
    exits 2
    ask build c.tsv -o x.gx --codec=zip
    exits 2
    complains zip
    ask build c.tsv -o x.gx --stemmer=klingon
    exits 2
    complains klingon
    ask build c.tsv -o x.gx --stopwords=nowhere.txt
    exits 5
    complains nowhere.txt
    printf 'the\na\0b\n' >stops
    ask build c.tsv -o x.gx --stopwords=stops
    exits 3
    complains 'stops:2: the line holds a NUL byte'
    printf 'one\ntwo\n' >words
    ask build words -o x.gx
    exits 2
    complains 'say it with -f'
    nothing_here
}

@test "odd but harmless input is indexed and counted" {
    printf '\xef\xbb\xbfa\tred\0apple\r\nb\tcaf\xe9 apple\r\nc\t\r\nd\tthe\n' >c.tsv
    ask build c.tsv -o x.gx
    exits 0
    [ "$(ids x.gx apple)$(ids x.gx red)" = "a b a " ]
    complains '2 documents without a term'
    complains '1 byte sequences that are not UTF-8'
    complains '1 NUL bytes'
    ask build --force --encoding=latin1 c.tsv -o x.gx
    exits 0
    [ "$(ids x.gx café)" = "b " ]
}

@test "a token of 10 MB is dropped and counted; a line beyond the limit is refused" {
    { printf 'a\tapple '; head -c 10000000 /dev/zero | tr '\0' y; printf ' pear\n'; } >c.tsv
    ask build c.tsv -o x.gx
    exits 0
    complains '1 tokens too long, dropped'
    [ "$(ids x.gx 'apple pear')" = "a " ]
    ask build --max-record=1M c.tsv -o y.gx
    exits 3
    complains 'c.tsv:1: a line of more than 1048576 bytes'
}

@test "an empty corpus is an empty index" {
    : >c.jsonl
    ask build c.jsonl -o x.gx
    exits 0
    complains 'no documents'
    ask query -q --engine=cpu x.gx apple
    exits 0
}

@test "--limit reads the first documents only" {
    seq 10 | awk '{print $1 "\tapple"}' >c.tsv
    ask build -q --limit 3 c.tsv -o x.gx
    exits 0
    [ "$(ids x.gx apple)" = "1 2 3 " ]
}

@test "every codec answers the same" {
    xz -dc "$DATA/scifact/corpus.jsonl.xz" | head -500 >c.jsonl
    "$GPUIDX" bench codecs --list --format=csv | awk -F, '$3 + 0 > 0 { print $1 }' >codecs # baselines have no id
    grep -qx gpubp128 codecs && grep -qx varint-gb codecs
    for codec in gpubp128 $(cat codecs); do
        ask build -q c.jsonl --force --codec=$codec -o $codec.gx
        exits 0
        "$GPUIDX" query -q --engine=cpu $codec.gx -k 50 --format=trec <"$DATA/scifact/queries.tsv" >$codec.run
        cmp gpubp128.run $codec.run
    done
}

@test "SciFact is ranked as published" {
    ask build -q "$DATA/scifact/corpus.jsonl.xz" -o x.gx
    exits 0
    "$GPUIDX" query -q --engine=cpu x.gx -k 100 --format=trec <"$DATA/scifact/queries.tsv" >run
    ask eval "$DATA/scifact/qrels.txt" run -m ndcg@10,recall@100
    exits 0
    awk '$1 == "ndcg_cut_10" { n = $3 } $1 == "recall_100" { r = $3 }
        END { exit !(n >= 0.6759 && n <= 0.6819 && r >= 0.922) }' <<<"$output"
}

@test "an index never replaces its own corpus" {
    printf 'a\tapple\n' >c.tsv
    cp c.tsv copy
    ln -s c.tsv link
    for out in c.tsv link ./c.tsv; do
        ask build --force c.tsv -o $out
        exits 2
        complains 'the corpus c.tsv, which the index would replace'
        cmp c.tsv copy
    done
}

@test "every codec that is listed can be built with" {
    printf 'a\tapple\n' >c.tsv
    for codec in $("$GPUIDX" bench codecs --list --format=csv | awk -F, 'NR > 1 && $3 != "" { print $1 }'); do
        ask build -q --force c.tsv --codec=$codec -o x.gx
        exits 0
        [ "$(ids x.gx apple)" = "a " ]
    done
}

@test "Ctrl-C leaves nothing behind" {
    mkfifo pipe
    { : >reads; exec sleep 600; } >pipe 3>&- & # it opens the pipe, and then the file, once the build reads
    sleeper=$!
    "$GPUIDX" build -f plain pipe -o x.gx 2>said 3>&- &
    builder=$!
    wait_until test -e reads
    rm reads
    kill -INT $builder || true # which a shell without job control lets its children ignore
    kill -TERM $builder
    status=0
    wait $builder || status=$?
    kill $sleeper
    [ $status -ge 128 ]
    grep -q 'interrupted; nothing was written' said
    nothing_here
}

@test "Ctrl-C while a named pipe has no writer" {
    mkfifo pipe
    interrupt TERM build -f plain pipe -o x.gx
    exits 143
    complains 'interrupted; nothing was written'
    nothing_here
}

@test "--columns with a format that has none is warned of" {
    printf '{"id":"a","text":"x"}\n' >c.jsonl
    ask build c.jsonl --columns=id,text -o x.gx
    exits 0
    complains '--columns means nothing to jsonl'
}

@test "progress is drawn on a terminal, after a second, and nowhere else" {
    mkfifo pipe
    feed() { for i in $(seq 20); do echo "apple $i"; sleep 0.1; done; }
    # the input ends once the progress is seen
    { until [ -e seen ]; do echo apple; sleep 0.1; done; } >pipe 3>&- &
    python3 "$HERE/terminal.py" "$GPUIDX" build -f plain pipe -o x.gx <<'END'
see documents,
see MB/s
make seen
see 1 term,
exit 0
END
    feed | "$GPUIDX" build -f plain - -o y.gx 2>said
    ! grep -q $'\r' said
    ! grep -q 'memory,' said
}

@test "documents may be put in another order, and queries find the same ones with the same scores" {
    hits() {
        "$GPUIDX" query -q "$1" 'merge posting lists' --engine=cpu --format=jsonl -k 100 |
            grep -o '"id":"[^"]*","score":[^,}]*' | sort
    }
    ask build -q "$DATA/tiny.jsonl" -o plain.gx --store=text
    for order in input random bp; do
        ask build "$DATA/tiny.jsonl" -o x.gx --order=$order --store=text --codec=gpuvbyte128 --force -j 2
        exits 0
        complains 'order '
        ask check -q --level=full x.gx
        exits 0
        ask info x.gx
        says 'gpuvbyte128    gpuvbyte128'
        diff <(hits plain.gx) <(hits x.gx)
        [ "$(ls -A | grep -c 'unordered')" -eq 0 ]
    done
    [ "$(hits plain.gx | wc -l)" -gt 5 ]
    for i in 1 2; do
        ask build -q "$DATA/tiny.jsonl" -o $i.gx --order=random --seed=$i
        ask export -q $i.gx -o $i
    done
    diff <(sort 1.documents) <(sort 2.documents)
    [ "$(cat 1.documents)" != "$(cat 2.documents)" ]
}

@test "a build in another order replaces nothing unasked, and leaves nothing when it fails" {
    echo precious >x.gx
    ask build "$DATA/tiny.jsonl" -o x.gx --order=bp
    exits 5
    complains 'x.gx exists'
    [ "$(cat x.gx)" = precious ]
    rm x.gx
    printf 'a\tapple\nb c\tpear\n' >c.tsv
    ask build c.tsv -o x.gx --order=bp
    exits 3
    nothing_here
    ask build "$DATA/tiny.jsonl" -o none/x.gx --order=bp
    exits 5
    ask build c.tsv -o x.gx --order=random --codec=zip
    exits 2
    nothing_here
}

@test "several threads find the same faults in the same places, and build the same" {
    for i in $(seq 3000); do
        case $((i % 97)) in
        5) echo "{\"id\":\"d$((i / 2))\",\"text\":\"again $i\"}" ;;
        9) echo 'no object' ;;
        11) echo "{\"id\":\"d $i\",\"text\":\"a bad id\"}" ;;
        *) echo "{\"id\":\"d$i\",\"text\":\"word$((i % 400)) pear apple$((i % 7))\"}" ;;
        esac
    done >c.jsonl
    for duplicates in fail first last; do
        for j in 1 2 5; do
            ask build c.jsonl -o $j.gx --on-error=skip --duplicates=$duplicates -j $j -m 5M
            exits 0
            grep -v -e '^gpuidx: [0-9]*\.gx:' -e ' seconds' -e '^gpuidx: seconds' -e '^gpuidx: read' \
                <<<"$stderr" >$j.told
            cmp 1.told $j.told
        done
        grep -q 'c.jsonl:' 1.told
        "$GPUIDX" query -q --engine=cpu 1.gx -k 100 --format=trec 'pear apple3 word17' >1.answer
        "$GPUIDX" query -q --engine=cpu 5.gx -k 100 --format=trec 'pear apple3 word17' >5.answer
        cmp 1.answer 5.answer
        rm ./*.gx
    done
    for j in 1 4; do
        ask build c.jsonl -o x.gx -j $j
        exits 3
        grep c.jsonl: <<<"$stderr" >$j.told
        nothing_here
    done
    cmp 1.told 4.told
}

@test "damage behind a first line without an end is told of once, by any number of threads" {
    printf 'd1\tt\tx' | gzip >cut.tsv.gz
    printf garbage >>cut.tsv.gz
    for threads in 1 2 4; do
        ask build -q -j "$threads" -f tsv --on-error=skip --force cut.tsv.gz -o x.gx
        exits 0
        [ "$(grep -c 'the rest of this file is lost' <<<"$stderr")" = 1 ]
    done
}

@test "an archive with a damaged header is refused, and none of its members passed over" {
    command -v tar >/dev/null || skip "tar is not installed"
    mkdir d
    for i in 1 2 3; do echo "document $i" >d/$i.txt; done
    tar cf whole.tar d
    python3 - <<'PYTHON'
data = bytearray(open("whole.tar", "rb").read())
data[data.index(b"d/2.txt") + 3] ^= 1  # the header's checksum is wrong then
open("damaged.tar", "wb").write(data)
open("cut.tar", "wb").write(data[:1500])
PYTHON
    for name in damaged cut; do
        ask build -q -f files $name.tar -o x.gx
        exits 3
        complains "$name.tar"
        complains 'the archive is damaged or truncated'
        [ ! -e x.gx ]
    done
    ask build -q -f files --on-error=skip damaged.tar -o x.gx
    exits 0
    complains 'damaged.tar'
}

@test "the members of an archive are documents, named by path, name or stem" {
    mkdir -p html/deep
    printf '<title>One</title><p>alpha beta' >html/one.html
    printf 'gamma' >html/deep/two.txt
    tar -czf x.tar.gz html
    (cd html && tar -cJf ../x.tar.xz .)
    for form in path:html/deep/two.txt,html/one.html name:one.html,two.txt stem:one,two; do
        ask build --id="${form%%:*}" -f files x.tar.gz -o "${form%%:*}.gx"
        exits 0
        complains '2 documents, 4 terms'
        "$GPUIDX" query "${form%%:*}.gx" -f tsv 'alpha gamma' | cut -f2 | sort >ids
        [ "$(paste -sd, ids)" = "${form#*:}" ]
    done
    ask build x.tar.xz -o guessed.gx
    exits 0
    "$GPUIDX" query guessed.gx -f tsv gamma | grep -q '	deep/two.txt	'
    head -c 150 x.tar.gz >cut.tgz
    ask build cut.tgz -o y.gx
    exits 3
    complains 'damaged or truncated'
}

@test "SIGTERM ends the reading of a record without end, and of a stream that unpacks to one" {
    status=0
    timeout -s TERM -k 60 1 "$GPUIDX" build -q -f plain /dev/zero -o x.gx 2>.stderr || status=$?
    [ "$status" -eq 124 ]
    head -c 100000000 /dev/zero | gzip -1 >one.gz
    for ((i = 0; i < 400; ++i)); do cat one.gz; done >z.gz # 40 GB take minutes
    status=0
    timeout -s INT -k 60 1 "$GPUIDX" build -q -f plain --on-error=skip z.gz -o x.gx 2>.stderr || status=$?
    [ "$status" -eq 124 ] # 137: it was killed
    [ ! -e x.gx ]
}

@test "the stages of one thread add up to no more than the time that passed" {
    seq 20000 | sed 's/.*/&\talpha beta &/' >c.tsv
    for i in 1 2 3; do
        ask build -q --json c.tsv -o x.gx --force
        exits 0
        python3 -c '
import json, sys
s = json.load(sys.stdin)["seconds"]
total = s.pop("total")
assert sum(s.values()) <= total + 0.005, (s, total) # which is rounded to 1 ms each' <.stdout
    done
}

@test "a record too long names the flag that takes it" {
    printf '{"id":"1","text":"%02000d"}\n' 0 >c.jsonl
    ask build --max-record=1000 c.jsonl -o x.gx
    exits 3
    complains 'c.jsonl:1: a line of more than 1000 bytes'
    complains '--max-record takes longer ones'
    ask build --max-record=1000 --on-error=skip c.jsonl -o x.gx
    exits 0
    complains '--max-record takes longer ones'
}

@test "members of JSONL are named, and a closed standard input is refused" {
    printf '{"docno":"a","content":"alpha"}\n' >c.jsonl
    ask build --members=id=docno,text=content c.jsonl -o x.gx
    exits 0
    complains '1 document, 1 term, 1 posting,'
    ask build --members=id=docno,text=content,url c.jsonl -o y.gx
    exits 2
    complains "'url' is none of"
    status=0
    "$GPUIDX" build -q -f plain - -o y.gx <&- 2>.stderr || status=$?
    [ "$status" -eq 5 ]
    [ ! -e y.gx ]
}

@test "symbolic links that lead nowhere are told of and counted, and those between folders end" {
    mkdir -p d/e
    echo apple >d/b.txt
    ln -s ../../d d/e/up
    ask build -f files d -o x.gx
    exits 0
    [[ $stderr != *link* ]]
    ln -s nowhere d/a.txt
    for threads in 1 3; do
        ask build -f files d -o x.gx --force -j $threads
        exits 0
        complains '1 document, 1 term'
        complains 'a symbolic link in the corpus leads nowhere, and was passed over: d/a.txt'
    done
    ln -s nowhere d/e/c.txt
    ask build -q -f files d -o x.gx --force --json
    exits 0
    complains '2 symbolic links in the corpus lead nowhere, and were passed over; the first is d/a.txt'
    says '"broken_links":2'
    ask build -q -f files d/a.txt -o x.gx --force # one that is named is an error
    exits 5
    complains 'd/a.txt'
}

@test "fields: what is wrong is refused with words" {
    printf '{"id":"a","title":"red fox","text":"a fox"}\n{"id":"b","text":"the red hen"}\n' > f.jsonl
    for bad in title,title 9lives 'a b' title:w=0 title:w=1001 title:w=x title:w=2,text title:b=1 ''; do
        ask build -q f.jsonl -o f.gx --field="$bad"
        exits 2
    done
    ask build -q f.jsonl -o f.gx --field=year --attr year:int
    exits 2
    complains "'year' is a field and an attribute"
    ask build -q f.jsonl -o f.gx --field=title,text --positions
    exits 0
    for how in bm25f best sum; do
        ask query -q f.gx --fields=title^3,text --field-scoring=$how --explain 'the "red fox"'
        exits 0
        says '"red fox"'
    done
    ask query -q f.gx --fields=title,text --syntax=boolean 'title:"red fox"'
    exits 0
    says 'a'
    ask query -q f.gx --fields=title,text --syntax=boolean 'text:"red fox" OR "fox fox"~5'
    exits 0
    says '0 matches'
    ask query -q f.gx --fields=title,text --syntax=boolean '"red fo*"'
    exits 2
    complains 'is a whole word'
    ask build -q f.jsonl -o v.gx --field=title:w=3,text:w=1 --positions
    exits 2
    ask build -q --force f.jsonl -o f.gx --field=title,text
    exits 0
    for bad in tilte title^-1 title^nan title^1e7 title^ title:b=2 title:b=-0 title:k=1 title,title title, ,title; do
        ask query -q f.gx --fields="$bad" fox
        exits 2
    done
    ask query -q f.gx --fields=tilte fox
    complains 'the nearest is title'
    ask query -q f.gx --fields=title^3,text --scorer=impact fox
    exits 2
    ask query -q f.gx --fields=text fox
    exits 0
    says 'a'
    ask query -q f.gx --fields=text --field-scoring=most fox
    exits 2
    ask query -q f.gx --field-scoring=best fox
    exits 2
    complains 'needs --fields'
    ask query -q f.gx --fields=all --field-scoring=best --scorer=impact fox
    exits 2
    ask term f.gx fox --format=json
    says '"fields":{"title":1,"text":1}'
    ask term f.gx hen
    says 'title 0, text 1'
    for how in bm25f best sum; do
        ask query -q f.gx --fields=title^3,text --field-scoring=$how --explain 'red fox'
        exits 0
        says "by fields ($how)"
    done
    ask recode -q f.gx -o i.gx --impacts=bm25
    exits 2
    ask build -q f.jsonl -o w.gx --field=title:w=3,text:w=1
    exits 0
    ask query -q w.gx --fields=title fox
    exits 2
    complains 'has no fields'
    ask query -q w.gx 'red fox' --format=jsonl
    exits 0
}

@test "fields of TREC text are its elements; one that no document has is told" {
    printf '<DOC>\n<DOCNO>a</DOCNO>\n<HEADLINE>red fox</HEADLINE>\n<SUMMARY>a hen &amp; cow</SUMMARY>\n' > t.trec
    printf '<TEXT>\nthe snow\n</TEXT>\n</DOC>\n' >> t.trec
    ask build -q t.trec -f trectext -o t.gx --field=headline,SUMMARY,text
    exits 0
    ask term t.gx fox cow snow
    exits 0
    says 'headline 1, SUMMARY 0, text 0'
    says 'headline 0, SUMMARY 1, text 0'
    says 'headline 0, SUMMARY 0, text 1'
    ask build t.trec -f trectext -o u.gx --field=text,hedline
    exits 0
    complains 'no document has a word in the field hedline'
    printf '<DOC>\n<DOCNO>a</DOCNO>\n<SUMMARY>a hen\n<TEXT>snow</TEXT>\n</DOC>\n' > bad.trec
    ask build -q bad.trec -f trectext -o v.gx --field=SUMMARY,text
    exits 3
    complains 'not closed'
}

@test "sweep: fields, their weights, b and scorings in every combination" {
    printf '{"id":"a","title":"red fox","text":"a fox"}\n{"id":"b","text":"the red hen"}\n' > f.jsonl
    ask build -q f.jsonl -o f.gx --field=title,text
    printf '1\tred\n2\tfox\n' > q.tsv
    printf '1 0 a 1\n2 0 a 1\n' > q.rel
    ask sweep -q f.gx q.tsv q.rel --k1=0.9 --b=0.4 --fields='title^1|3,text:b=0.4|1' --field-scoring=bm25f,sum --json
    exits 0
    grep -c field_scoring <<< "$output" | grep -q 9
    says 'title^3,text:b=1'
    ask sweep -q f.gx q.tsv q.rel --fields='title^1|x,text'
    exits 2
    ask sweep -q f.gx q.tsv q.rel --field-scoring=sum
    exits 2
    ask sweep -q f.gx q.tsv q.rel --fields=title --field-scoring=mean
    exits 2
}
