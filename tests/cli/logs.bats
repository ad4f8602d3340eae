# Query logs and topics in all their forms: what is read, and what is refused instead of being read as something else.
load cli

setup_file() {
    export CASES=$DATA/cases/text TOPICS=$BATS_FILE_TMPDIR/topics.gx
    "$GPUIDX" build -q --analyzer=simple "$CASES/topics-corpus.jsonl" -o "$TOPICS"
}

# The run of a log, which may have flags behind it, is that of these queries: id, tab, text.
answers_as() {
    local queries=$1
    shift
    printf '%b\n' "$queries" >expected.tsv
    "$GPUIDX" replay -q -f tsv "$TOPICS" expected.tsv --run expected --force >/dev/null
    [ -s expected ]
    ask replay -q "$TOPICS" "$@" --run run --force
    exits 0
    diff expected run
}

# A log of these bytes, as stdin.
refuses() {
    local bytes=$1 why=$2
    shift 2
    printf '%b' "$bytes" >log
    ask replay -q "$TOPICS" "$@" log --run -
    [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
    silent_or_empty
    complains "$why"
}

silent_or_empty() { [ -z "$output" ]; }

@test "logs of CSV are read by their columns" {
    answers_as '1\traspberry pi\n2\tbudget' "$CASES/log-head.csv"
    answers_as '1\traspberry pi\n2\tbudget' "$CASES/log-columns.csv" --columns=id,text
    answers_as '101\traspberry, pi\n102\tbudget' "$CASES/log-quoted.csv"
    gzip -c "$CASES/log-head.csv" >log.csv.gz
    answers_as '1\traspberry pi\n2\tbudget' log.csv.gz
    cp "$CASES/log-head.csv" names # the first line tells
    answers_as '1\traspberry pi\n2\tbudget' names
    cp "$CASES/log-quoted.csv" quotes
    answers_as '101\traspberry, pi\n102\tbudget' quotes
    printf '\xef\xbb\xbfquery;qid\r\n"raspberry ""pi"";\nboard";7\r\n\r\nbudget;8\r\n' >semicolons
    answers_as '7\traspberry pi board\n8\tbudget' semicolons
    printf 'sep=|\n7|raspberry, pi\n8|budget\n' >excel.csv
    answers_as '7\traspberry, pi\n8\tbudget' excel.csv
    printf '"sep=;"\r\nqid;query\r\n7;raspberry, pi\r\n8;budget\r\n' >excel.CSV
    answers_as '7\traspberry, pi\n8\tbudget' excel.CSV
    printf 'a;7;raspberry;pi\na;8;budget;\n' >more
    answers_as '7\traspberry pi\n8\tbudget' more -f csv --columns=-,id,text,text
    printf '7\traspberry\n8\tbudget\n' >tabs.csv
    answers_as '7\traspberry\n8\tbudget' tabs.csv
    printf 'query\nraspberry pi\nbudget\n' >one.csv
    answers_as '1\traspberry pi\n2\tbudget' one.csv
    printf 'raspberry, pi\nbudget\n' >plain # plain lines stay plain
    answers_as '1\traspberry pi\n2\tbudget' plain
    printf '2,4-dichlorophenol, raspberry\nbudget\n10,000 boards\n' >plain
    answers_as '1\traspberry\n2\tbudget\n3\tboards' plain
}

@test "what may be CSV or not, and what is bad CSV, is refused" {
    refuses '101,raspberry pi\n102,budget\n' 'the form of the log cannot be told'
    refuses '101;raspberry pi\n102;budget\n' 'the form of the log cannot be told'
    refuses '101|raspberry pi\n102|budget\n' 'the form of the log cannot be told'
    refuses 'q1,raspberry pi\nq2,budget\nq3\n' 'the form of the log cannot be told'
    ask replay "$TOPICS" log
    complains '-f says'
    printf '101,raspberry pi\n102,budget\n' >log
    answers_as '101\traspberry pi\n102\tbudget' -f csv log
    ask replay -q -f lines "$TOPICS" log --run -
    exits 0
    says '2 Q0 d1 '
    refuses '1,raspberry, pi\n' 'the columns must be given' -f csv
    refuses 'qid,query\n1,raspberry, pi\n' ':2: 3 columns, where 2 are expected' -f csv
    refuses '1,a\n2,"raspberry\n3,pi\n' ':2: a quote is opened and never closed' -f csv
    refuses '1,a\n2,"raspberry" pi\n' ':2: text behind a closing quote' -f csv
    refuses 'query,url\na,b\n' 'names a column of texts, but none of ids' -f csv
    printf '1,a\n2,"raspberry\n3,pi\n' >log
    ask replay -q -f csv "$TOPICS" log --run - --on-error=skip
    exits 0
    says '3 Q0 d3 1'
}

@test "columns are refused where a log has none" {
    refuses 'raspberry pi\nbudget\n' 'columns mean nothing to a log of the form lines' --columns=id,text
    refuses '1:raspberry pi\n2:budget\n' 'of the form efficiency' --columns=id,text
    refuses '{"id": "1", "query": "budget"}\n' 'of the form jsonl' --columns=id,text
    refuses '<top><num>1<title>budget</top>\n' 'of the form topics' --columns=id,text
    refuses '{"id": "1", "vector": {"budget": 1}}\n' 'of the form vectors' --columns=id,text
    refuses '1\tbudget\n' 'of the form lines' --columns=id,text -f lines
    printf '1\tbudget\n' >log
    printf '1 0 d1 1\n' >qrels
    ask sweep -q "$TOPICS" log qrels -f lines --columns=id,text
    exits 2
    complains 'columns mean nothing'
}

@test "logs without ids number their queries, and --ids=number numbers any" {
    printf '%s\tx\n' 'raspberry pi' budget >log
    answers_as '1\traspberry pi\n2\tbudget' log --columns=text,-
    printf 'more\tquery\nx\traspberry pi\nx\tbudget\n' >log
    answers_as '1\traspberry pi\n2\tbudget' log --columns=-,text
    printf '.I 001\n.W\nraspberry pi\n.I 004\n.W\nbudget\n' >cran.qry
    answers_as '001\traspberry pi\n004\tbudget' cran.qry
    answers_as '1\traspberry pi\n2\tbudget' cran.qry --ids=number
    printf '<top><num> 9 <title> raspberry pi </top>\n<top><num> 9 <title> budget </top>\n' >topics
    answers_as '1\traspberry pi\n2\tbudget' topics --ids=number
    printf 'raspberry pi\n\nbudget\n' >lines # a line's number, and its position
    answers_as '1\traspberry pi\n3\tbudget' lines
    answers_as '1\traspberry pi\n2\tbudget' lines --ids=number
    printf '{"query": 1}\n{"query": "raspberry pi"}\n{"query": "budget", "id": "x"}\n' >skipped
    answers_as '2\traspberry pi\n3\tbudget' skipped --ids=number --on-error=skip # a bad query has a number too
}

@test "JSON vectors in TSV and CSV are vectors" {
    printf '{"id": "%s", "vector": {"tok1": %s, "tok2": 0.5}}\n' d1 1.5 d2 0.25 >corpus.jsonl
    "$GPUIDX" build -q -f vectors corpus.jsonl -o lsr.gx
    printf '%s\t%s\n' q0 '{"tok1": 1.2}' q1 '{"tok1": 2, "tok2": 1e-1}' q2 '{}' >log.tsv
    printf '{"id": "q%s", "vector": %s}\n' 0 '{"tok1": 1.2}' 1 '{"tok1": 2, "tok2": 1e-1}' 2 '{}' >log.jsonl
    printf 'qid,query\nq0,"{""tok1"": 1.2}"\nq1,"{""tok1"": 2, ""tok2"": 1e-1}"\nq2,{}\n' >log.csv
    "$GPUIDX" replay -q lsr.gx log.jsonl --run expected >/dev/null
    [ "$(wc -l <expected)" -eq 4 ]
    for log in log.tsv log.csv; do
        ask replay -q lsr.gx $log --run run --force
        exits 0
        diff expected run
    done
    printf 'q0\t%s\n' '{"tok1": 1.2' >log
    ask replay -q lsr.gx log --run -
    exits 3
    complains 'log:1: no JSON vector'
    printf 'q0\t%s\n' '{"tok1": "x"}' >log
    ask replay -q lsr.gx log --run -
    exits 3
    complains 'log:1: a JSON vector with a weight that is no number'
    printf 'q%s\t%s\n' 0 '{"tok1": 1}' 1 'a text' >log
    ask replay -q lsr.gx log --run -
    exits 3
    complains 'log:2: a text, and earlier queries are JSON vectors'
    printf 'q%s\t%s\n' 0 'a text' 1 '{"tok1": 1}' >log
    ask replay -q lsr.gx log --run -
    exits 3
    complains 'log:2: a JSON vector, and earlier queries are texts'
}

@test "references and tags in topics mean what they mean in documents" {
    answers_as '301\tR&D budget' "$CASES/topics-amp.txt"
    answers_as '302\t"raspberry" board' "$CASES/topics-quot.txt"
    answers_as '304\traspberry pi' "$CASES/topics-numeric.txt"
    answers_as '305\traspberry pi board' "$CASES/topics-inline.txt"
    printf '%s\n' '<top lang="en">' '<num> Number: 1</num>' '<title lang="en"> <i>raspberry</i>' \
        '<a href="x">pi</a><br/> 1 < 2 </title>' '<desc> Description:' 'budget &lt;b&gt;' '<con> Concept(s):' \
        'board' '</top>' >old
    answers_as '1\traspberry pi 1 2' old
    answers_as '1\tbudget <b> raspberry pi 1 2' old --topic-fields=desc,title
    printf '%s\n' '<top>' '<num> 1' '<title> budget' '<dom> Domain: board' '<smry> Summary: pi' '<narr> raspberry' \
        '<fac> Factors: jam' '<def> jam' '</top>' >old # fields of TREC 1 and 2 that no query is made of
    answers_as '1\tbudget' old
    answers_as '1\traspberry' old --topic-fields=narr
}

@test "eval tells how many queries of a run no judgement knows" {
    printf '%s 0 d1 1\n' 1 2 3 >qrels
    printf '%s Q0 d1 1 1.5 x\n' 001 002 3 >run
    printf '%s Q0 d1 1 1.5 x\n' 1 2 3 >good
    ask eval qrels run -m map
    exits 0
    complains '2 of 3 queries of run have no judgement in qrels and are left out, such as 001'
    complains 'replay --ids=number'
    ask eval qrels good -m map
    exits 0
    [[ $stderr != *'no judgement'* ]]
    ask eval qrels good run -m map
    exits 0
    complains '2 of 3 queries of run have no judgement'
}
