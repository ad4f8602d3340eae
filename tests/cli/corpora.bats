# Files as the world writes them: archives, crawls, pages, collections of TREC. tests/data/cases/text/cases.tsv tells of
# each small file what becomes of it:
#
#   FILE  FORMAT  terms    ID  the terms of the document's title and text, in order
#   FILE  FORMAT  ids      -   the ids of all documents
#   FILE  FORMAT  refused  -

load cli

setup_file() {
    export CASES=$DATA/cases
}

# The terms of a document's title and text.
terms_of() {
    ask doc x.gx "$1" -f json
    exits 0
    python3 -c 'import json, sys; d = json.loads(sys.argv[1]); print(d.get("title", ""), d.get("text", ""))' \
        "$output" >.text
    "$GPUIDX" analyze --analyzer=simple <.text | cut -f3 | xargs
}

# The ids of all documents, sorted by bytes.
ids_of() {
    local n i
    n=$("$GPUIDX" info --json x.gx | python3 -c 'import json, sys; print(json.load(sys.stdin)["n_docs"])')
    for ((i = 0; i < n; i++)); do
        "$GPUIDX" doc x.gx "#$i" -f json
    done | python3 -c 'import json, sys; print(*sorted(json.loads(line)["id"] for line in sys.stdin.buffer))'
}

# Run each case whose file has a name of this pattern, on one thread and on three.
try() {
    local file format kind id want got threads n=0
    while IFS=$'\t' read -r file format kind id want; do
        [[ $file == $1 ]] || continue
        n=$((n + 1))
        for threads in 1 3; do
            ask build -f "$format" --id=$([ "$kind" = terms ] && echo name || echo path) \
                --analyzer=simple --store=text \
                -j $threads "$CASES/text/$file" -o x.gx --force
            if [ "$kind" = refused ]; then
                exits 3
                continue
            fi
            exits 0
            got=$([ "$kind" = terms ] && terms_of "$id" || ids_of)
            [ "$got" = "$want" ] || { echo "$file: '$got', and not '$want'" && show; }
        done
    done <"$CASES/text/cases.tsv"
    [ "$n" -ge "$2" ]
}

@test "an archive ends with anything, and a hard link in it is a document" {
    try 'archive-*' 6
}

@test "names in zips are UTF-8 in every locale" {
    try 'zip-*' 5
    ask build -f jsonl "$CASES/hostile/utf8_names.zip" -o x.gx --force
    exits 0
    [ "$(ids_of)" = 'a e j' ]
    for locale in C C.UTF-8; do
        LC_ALL=$locale ask build -f jsonl - -o x.gx --force <"$CASES/hostile/utf8_names.zip"
        exits 0
        [ "$(ids_of)" = 'a e j' ]
    done
}

@test "entries of archives that are passed over are counted and told" {
    local name
    for name in folder hidden macosx; do
        ask build -f jsonl "$CASES/hostile/ends_$name".* -o x.gx --force
        exits 0
        complains ': 1 document, '
        [[ $name = folder ]] || complains '1 hidden entry of an archive was passed over: '
    done
    ask build -q -f jsonl "$CASES/hostile/dotdot.tar" -o x.gx --force --json
    exits 0
    complains "2 entries of archives with '..' in their names were passed over; the first is "
    says '"notes":[{"name":"parent_entries","detail":null,"count":2,"file":"'
    says '"documents":2,'
    [ ! -e ../up.jsonl ]
    mkdir d
    echo heron >d/a.txt
    ln -s a.txt d/b.txt
    mkfifo d/c
    tar cf x.tar d
    ask build -f files x.tar -o x.gx --force
    exits 0
    complains '1 symbolic link in an archive was passed over: x.tar/d/b.txt'
    complains '1 entry of an archive that is no file was passed over: x.tar/d/c'
    ask build -q -f files x.tar -o v.gx
    "$GPUIDX" collect -q v.gx -o c
    ask add c x.tar -f plain
    exits 0
    complains '1 symbolic link in an archive was passed over: x.tar/d/b.txt'
}

@test "hard links in a tar are documents wherever the file can be read again" {
    mkdir d
    echo heron >d/.a
    for name in b c d e; do
        ln d/.a d/$name.txt
    done
    ln d/c.txt d/f.txt
    tar cf x.tar d/.a d/c.txt d/b.txt d/d.txt d/e.txt d/f.txt
    gzip -k x.tar
    for file in x.tar x.tar.gz; do
        for threads in 1 3; do
            ask build -f files -j $threads $file -o x.gx --force
            exits 0
            [ "$(ids_of)" = 'd/b.txt d/c.txt d/d.txt d/e.txt d/f.txt' ]
            [[ $stderr != *link* ]]
        done
    done
    cat x.tar | "$GPUIDX" build -q -f files - -o x.gx --force 2>.stderr
    grep -q '5 hard links in archives were passed over, as their files cannot be read again; the first is stdin/d/c' \
        .stderr
    tar --delete -f x.tar d/.a
    ask build -f files x.tar -o x.gx --force # the file is not there
    complains '5 hard links in archives were passed over'
}

@test "archives that were put together or cut are told" {
    ask build -f jsonl "$CASES/hostile/concatenated.tar" -o x.gx
    exits 0
    [ "$(ids_of)" = '1 2' ]
    for i in 1 2; do
        echo heron >$i.txt
        tar cf $i.tar $i.txt
        gzip -k $i.tar
        python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1], "w").write(sys.argv[2])' $i.zip $i.txt
    done
    cat 1.tar.gz 2.tar.gz >both.tar.gz
    ask build -f files both.tar.gz -o x.gx --force
    [ "$(ids_of)" = '1.txt 2.txt' ]
    (cat 1.tar && echo rest) >rest.tar
    ask build -f files rest.tar -o x.gx --force
    exits 0
    complains '1 archive has bytes behind its end, which were passed over: rest.tar'
    head -c 1024 1.tar >cut.tar
    ask build -f files cut.tar -o x.gx --force
    exits 0
    complains '1 tar archive has no end mark, and may have been cut off: cut.tar'
    cat 1.zip 2.zip >both.zip
    ask build -f files both.zip -o x.gx --force
    complains '1 zip archive follows another one in its file, which was passed over: both.zip'
    ask build -f files - -o x.gx --force <both.zip
    complains '1 zip archive follows another one in its file'
    cat both.zip | "$GPUIDX" build -f files - -o x.gx --force 2>.stderr
    grep -q '1 archive has bytes behind its end, which were passed over: stdin' .stderr
    mkdir d
    head -c 200000 /dev/zero >d/.hidden
    tar cf cut.tar 1.txt d/.hidden
    head -c 100000 cut.tar >cut2.tar
    ask build -f files cut2.tar -o x.gx --force # cut in a member that is passed over
    exits 3
    complains 'cut2.tar:1: the archive is damaged or truncated'
}

@test "hidden names of a directory are counted, and links out of it told" {
    mkdir -p in/e out
    echo heron >out/a.txt
    echo heron >in/b.txt
    echo heron >in/e/.hidden
    ln -s b.txt in/c.txt
    ln -s ../b.txt in/e/d.txt
    ask build -f files in -o x.gx
    exits 0
    complains '1 hidden name in a directory was passed over: in/e/.hidden'
    [[ $stderr != *link* ]]
    ln -s ../out in/far
    ln -s "$PWD/out/a.txt" in/g.txt
    for threads in 1 3; do
        ask build -f files ./in/../in -o x.gx --force -j $threads
        exits 0
        complains '2 symbolic links that lead out of their directories were followed; the first is ./in/../in/far'
        [ "$(ids_of)" = 'b.txt c.txt e/d.txt far/a.txt g.txt' ]
    done
}

@test "pages are read by the rules of HTML's tokenizer" {
    try 'html-*' 12
    try 'ref-*' 7
}

@test "TREC text has attributes, blanks and CDATA sections" {
    try 'trec-*' 6
}

@test "byte order marks, Excel's separator and UTF-16 are known" {
    try 'bom-joined*' 3
    try 'excel-*' 1
    try 'utf16*' 1
    ask build -f jsonl "$CASES/hostile/bom_id.jsonl" -o x.gx --force
    exits 3
    complains 'the id holds the character U+FEFF (a byte order mark) at byte 1'
}

@test "records of WARC are pages without encodings, in UTF-8" {
    try 'warc-*' 13
}
