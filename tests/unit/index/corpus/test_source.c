/* Documents out of files. A test writes a file, reads it, and compares what came as one string: a
 * document is "id|title|text@line\n" ("-" for no title), a bad one "!line: why\n". */
#include "index/corpus/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/test.h"

/* ---- the workshop ---- */

static char folder[] = "/tmp/gpuidx-source-XXXXXX";
static char seen[1 << 16], noted[2048];
static gx_source_counts counts;

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static const char *put_bytes(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

#define PUT(name, literal) put_bytes(name, literal, sizeof(literal) - 1)

static void note(const char *format, ...)
{
    const size_t n = strlen(seen);
    va_list ap;
    va_start(ap, format);
    vsnprintf(seen + n, sizeof seen - n, format, ap);
    va_end(ap);
}

static gx_status read_paths(const char *const *paths, size_t n, const gx_source_options *opt)
{
    gx_source *s;
    gx_error err = {0};
    const gx_source_document *d;
    seen[0] = 0;
    gx_status st = gx_source_open(&s, paths, n, opt, &err);
    if (st) {
        assert_null(s);
        note("%s", err.text);
        return st;
    }
    for (;;) {
        st = gx_source_next(s, &d, &err);
        if (st == GX_EINPUT) {
            const char *colon = strchr(err.text, ':');
            assert_int_equal(err.status, GX_EINPUT);
            assert_non_null(colon);
            note("!%s\n", colon + 1);
            assert_null(d);
            continue;
        }
        if (st)
            note("%s", err.text);
        if (st || !d)
            break;
        const gx_document *c = &d->doc;
        note("%.*s|%.*s|%.*s@%u\n", (int)c->id_len, c->id, c->title ? (int)c->title_len : 1, c->title ? c->title : "-",
             (int)c->text_len, c->text, (unsigned)d->line);
    }
    counts = gx_source_get_counts(s);
    gx_source_note passed;
    noted[0] = 0;
    for (size_t i = 0; gx_source_get_note(s, i, &passed); ++i)
        snprintf(noted + strlen(noted), sizeof noted - strlen(noted), "%s %s %u@%u\n", passed.name,
                 passed.detail ? passed.detail : "-", (unsigned)passed.count, (unsigned)passed.line);
    gx_source_close(s);
    return st;
}

static const char *documents_as(const char *path, gx_source_format format)
{
    const gx_source_options opt = {.size = sizeof opt, .format = format};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    return seen;
}

static const char *documents(const char *path)
{
    return documents_as(path, GX_SOURCE_GUESS);
}

static const char *with_columns(const char *path, const char *columns)
{
    const gx_source_options opt = {.size = sizeof opt, .columns = columns};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    return seen;
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int clear(void **state)
{
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- files that threads read ---- */

static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    return (h ^ n) * 0x100000001b3u;
}

static uint64_t hash_document(uint64_t h, const gx_source_document *d)
{
    const gx_document *c = &d->doc;
    h = hash_bytes(h ^ d->line, c->id, c->id_len);
    h = hash_bytes(h ^ (c->title != NULL), c->title, c->title_len);
    h = hash_bytes(h ^ (c->vector != NULL), c->text, c->text_len);
    for (uint32_t i = 0; i < c->n_values; ++i)
        h = hash_bytes(h ^ c->values[i].attribute, c->values[i].text, c->values[i].len);
    for (uint32_t i = 0; i < c->n_vector; ++i)
        h = hash_bytes(h ^ (uint64_t)(c->vector[i].weight * 1024), c->vector[i].term, c->vector[i].len);
    return h;
}

/* A number that stands for all documents and errors of the files, in their order; the counts are in
 * `counts`. It stops behind `most` documents. */
static uint64_t hash_files(const char *const *paths, size_t n, gx_source_options opt, uint32_t threads, uint64_t most)
{
    gx_source *s;
    gx_error err = {0};
    const gx_source_document *d;
    uint64_t h = 0xcbf29ce484222325u;
    opt.threads = threads;
    assert_int_equal(gx_source_open(&s, paths, n, &opt, &err), GX_OK);
    for (uint64_t i = 0; i < most; ++i) {
        const gx_status st = gx_source_next(s, &d, &err);
        assert_true(st == GX_OK || st == GX_EINPUT);
        if (st == GX_OK && !d)
            break;
        h = st == GX_OK ? hash_document(h, d) : hash_bytes(h, err.text, strlen(err.text));
    }
    counts = gx_source_get_counts(s);
    gx_source_close(s);
    return h;
}

/* A line of the format, mostly good; *kind chooses. */
static int make_line(char *to, size_t room, gx_source_format format, unsigned n, unsigned kind)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog and \xc3\xa9t\xc3\xa9 comes again, ";
    const int len = (int)(kind / 64 % 900) * (kind % 1024 == 7 ? 40 : 1);
    char text[48000];
    for (int i = 0; i < len; ++i)
        text[i] = words[(unsigned)i % (sizeof words - 1)];
    const char *end = kind % 7 == 0 ? "\r\n" : "\n";
    if (kind % 61 == 5)
        return snprintf(to, room, "%s", end); /* blank */
    if (kind % 89 == 5)
        return snprintf(to, room, "no document: %.*s%s", len / 2, text, end);
    if (kind % 97 == 5)
        return snprintf(to, room, "x %u\t%d\tT\t\xff%.*s%s", n, 2000 + (int)(n % 30), len, text, end);
    switch (format) {
    case GX_SOURCE_TSV:
        return snprintf(to, room, "d%u\t%d\ttitle %u\t%.*s%s", n, 2000 + (int)(n % 30), n, len, text, end);
    case GX_SOURCE_JSONL:
        return snprintf(to, room, "{\"id\":\"d%u\",\"year\":%d,\"text\":\"\\u00e9 %.*s\"}%s", n, 2000 + (int)(n % 30),
                        len, text, end);
    default:
        return snprintf(to, room, "{\"id\":\"d%u\",\"vector\":{\"a%u\":%u.5,\"\\u00e9\":1,\"%.*s\":2}}%s", n, n % 50,
                        n % 9 + 1, len % 50, text, end);
    }
}

static const char *write_lines(const char *name, gx_source_format format, const char *header, size_t bytes,
                               uint64_t *random)
{
    static char line[100000];
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    size_t written = fwrite(header, 1, strlen(header), f);
    for (unsigned n = 0; written < bytes; ++n) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        const int len = make_line(line, sizeof line, format, n, (unsigned)(*random >> 33));
        assert_true(len > 0 && (size_t)len < sizeof line);
        written += fwrite(line, 1, (size_t)len, f);
    }
    fputs("the last line, without an end", f);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void threads_read_the_same(void **state)
{
    (void)state;
    static const gx_attribute year = {"year", GX_ATTRIBUTE_INT};
    static const struct {
        gx_source_format format;
        const char *header, *columns;
        size_t max_record;
        bool latin1;
    } cases[] = {{GX_SOURCE_TSV, "id\tyear\ttitle\ttext\n", NULL, 0, false},
                 {GX_SOURCE_TSV, "\n\n", "id,year,title,text", 20000, false},
                 {GX_SOURCE_JSONL, "\xef\xbb\xbf", NULL, 0, false},
                 {GX_SOURCE_JSONL, "", NULL, 9000, true},
                 {GX_SOURCE_VECTORS, "", NULL, 0, false}};
    const char *seed = getenv("GX_TEST_SEED");
    uint64_t random = seed ? strtoull(seed, NULL, 10) : 20261123;
    printf("seed %llu\n", (unsigned long long)random);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const gx_source_options opt = {.size = sizeof opt,
                                       .format = cases[i].format,
                                       .columns = cases[i].columns,
                                       .max_record = cases[i].max_record,
                                       .else_latin1 = cases[i].latin1,
                                       .attributes = &year,
                                       .n_attributes = cases[i].format != GX_SOURCE_VECTORS};
        const char *first = write_lines("first", cases[i].format, cases[i].header, 11u << 20, &random);
        const char *second = write_lines("second", cases[i].format, cases[i].header, 10u << 20, &random);
        const char *const paths[] = {first, second};
        const uint64_t want = hash_files(paths, 2, opt, 0, UINT64_MAX);
        const gx_source_counts c = counts;
        assert_true(c.documents > 10000 && c.bad > 100);
        for (uint32_t threads = 1; threads <= 16; threads = 3 * threads + 1) {
            assert_true(hash_files(paths, 2, opt, threads, UINT64_MAX) == want);
            assert_memory_equal(&counts, &c, offsetof(gx_source_counts, format) + sizeof c.format);
        }
        assert_true(hash_files(paths, 2, opt, 3, 5000) == hash_files(paths, 2, opt, 0, 5000)); /* closed early */
    }
}

/* ---- JSONL ---- */

static void json_takes_the_names_that_collections_use(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.jsonl", "{\"id\":\"1\",\"title\":\"T\",\"text\":\"x y\"}\n"
                                                 "{\"_id\": \"2\", \"text\": \"z\", \"metadata\": {\"a\": [1, {}, "
                                                 "[]]}}\n"
                                                 "\n"
                                                 "{\"contents\": \"c\", \"docid\": 7}\n"
                                                 "{\"id\":\"4\",\"title\":null,\"text\":null}")),
                        "1|T|x y@1\n2|-|z@2\n7|-|c@4\n4|-|@5\n");
    assert_int_equal(counts.documents, 4);
    assert_int_equal(counts.empty, 1);
    assert_int_equal(counts.format, GX_SOURCE_JSONL);
}

static void json_decodes_every_escape(void **state)
{
    (void)state;
    assert_string_equal(
        documents(PUT("a.jsonl", "{\"id\":\"\\u0041\\/\\\\\",\"text\":\"q\\\"b\\bf\\fn\\nr\\rt\\t \\u00e9 \\u20AC "
                                 "\\ud83d\\ude00 \\u0000.\"}\n")),
        "A/\\|-|q\"b\bf\fn\nr\rt\t \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80  .@1\n");
    assert_string_equal(documents(PUT("a.jsonl", "{\"id\":\"1\",\"text\":\"\\ud83d x \\ude00 \\ud83d\\u0041\"}\n")),
                        "1|-|\xef\xbf\xbd x \xef\xbf\xbd \xef\xbf\xbd"
                        "A@1\n");
    assert_int_equal(counts.replaced, 3);
}

static void malformed_json_is_refused_with_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *line, *where;
    } bad[] = {
        {"{\"id\":\"1\",\"text\":\"x\"", "column 21: not JSON as expected: the line ends inside the object"},
        {"{\"id\":\"1\",\"text\":\"x", "column 20: not JSON as expected: the string is not closed"},
        {"{\"id\":\"1\",\"text\":\"x\\", "column 21: not JSON as expected: the string is not closed"},
        {"{\"id\":\"1\",\"text\":\"\\q\"}", "column 20: not JSON as expected: no such escape"},
        {"{\"id\":\"1\",\"text\":\"\\u12g4\"}", "column 20: not JSON as expected: \\u needs four"},
        {"{\"id\":\"1\",\"text\":\"\\u12\"}", "column 20: not JSON as expected: \\u needs four"},
        {"{\"id\":\"1\",\"text\":\"a\tb\"}", "column 20: not JSON as expected: a control character"},
        {"{\"id\":\"1\",}", "column 11: not JSON as expected: a name in double quotes"},
        {"{\"id\" \"1\"}", "column 7: not JSON as expected: a colon"},
        {"{\"id\":\"1\" \"text\":\"\"}", "column 11: not JSON as expected: a comma or }"},
        {"{\"id\":01,\"text\":\"\"}", "column 8: not JSON as expected: a comma or }"},
        {"{\"a\":1.,\"id\":1}", "column 8: not JSON as expected: a digit"},
        {"{\"a\":-}", "column 7: not JSON as expected: a digit"},
        {"{\"a\":1e+}", "column 9: not JSON as expected: a digit"},
        {"{\"a\":tru}", "column 6: not JSON as expected: a value"},
        {"{\"a\":[1,]}", "column 9: not JSON as expected: a value"},
        {"{\"a\":[1 2]}", "column 9: not JSON as expected: a comma or a closing bracket"},
        {"{\"a\":[1}}", "column 8: not JSON as expected: a comma or a closing bracket"},
        {"{\"a\":{\"b\" 1}}", "column 11: not JSON as expected: a colon"},
        {"{\"id\":[1],\"text\":\"x\"}", "column 7: not JSON as expected: the id is neither"},
        {"{\"id\":true,\"text\":\"x\"}", "column 7: not JSON as expected: the id is neither"},
        {"{\"id\":1,\"text\":[\"x\"]}", "column 16: not JSON as expected: the text is no string"},
        {"{\"id\":1,\"title\":5}", "column 17: not JSON as expected: the title is no string"},
        {"{\"id\":1,\"text\":\"x\"} {}", "column 21: not JSON as expected: more follows"},
        {"[{\"id\":1}]", "column 1: not JSON as expected: an array"},
        {"hello", "column 1: not JSON as expected: an object"},
        {"{\"text\":\"x\"}", "no id: the object has none of"},
        {"{\"id\":\"1\",\"body\":\"x\"}", "no text: the object has none of"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char file[512], expected[256];
        const int n = snprintf(file, sizeof file, "{\"id\":\"g\",\"text\":\"\"}\n%s\n{\"id\":\"h\",\"text\":\"\"}\n",
                               bad[i].line);
        documents_as(put_bytes("bad.jsonl", file, (size_t)n), GX_SOURCE_JSONL);
        snprintf(expected, sizeof expected, "g|-|@1\n!2: %s", bad[i].where);
        if (strncmp(seen, expected, strlen(expected)) != 0)
            fail_msg("%s\ngave     %s\nexpected %s", bad[i].line, seen, expected);
        assert_non_null(strstr(seen, "\nh|-|@3\n")); /* and the next line is not lost */
        assert_int_equal(counts.bad, 1);
    }
}

static void json_nests_to_a_limit(void **state)
{
    (void)state;
    enum { N = 4000 };
    static char line[2 * N + 100];
    for (int depth = 512; depth <= N; depth += depth == 512 ? 1 : N - 513) {
        size_t n = (size_t)sprintf(line, "{\"id\":\"1\",\"text\":\"\",\"x\":");
        memset(line + n, '[', (size_t)depth);
        memset(line + n + depth, ']', (size_t)depth);
        n += 2 * (size_t)depth;
        line[n++] = '}';
        documents(put_bytes("deep.jsonl", line, n));
        if (depth == 512)
            assert_string_equal(seen, "1|-|@1\n");
        else
            assert_non_null(strstr(seen, "nested too deep"));
    }
}

/* ---- TSV and CSV ---- */

static void tsv_has_two_columns_or_three_or_says_which(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.tsv", "1\tx y\n2\t\n")), "1|-|x y@1\n2|-|@2\n");
    assert_string_equal(documents(PUT("a.tsv", "1\tT\tx\n\n2\tU\ty")), "1|T|x@1\n2|U|y@3\n");
    const char *five = PUT("a.tsv", "1\td\tc\tT\tx\n2\td\tc\tU\ty\n");
    assert_string_equal(with_columns(five, "id,-,-,title,text"), "1|T|x@1\n2|U|y@2\n");
    assert_string_equal(with_columns(five, "id,text,-,text,text"), "1|-|d T x@1\n2|-|d U y@2\n");
    assert_string_equal(with_columns(five, "text,-,id,title,title"), "c|T x|1@1\nc|U y|2@2\n");
    documents(five);
    assert_non_null(strstr(seen, "!1: 5 columns; what each holds must be said"));
    assert_int_equal(counts.bad, 2);
}

static void a_header_names_the_columns(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.csv", "date,text,docid,Title\n5,x,1,T\n")), "1|T|x@2\n");
    assert_string_equal(documents(PUT("a.tsv", "id\tcontents\n1\tx\n")), "1|-|x@2\n");
    assert_string_equal(with_columns(PUT("a.csv", "id,date,text\n1,5,x\n"), "id,title,text"), "1|5|x@2\n");
}

static void wrong_columns_are_refused(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.tsv", "1\tx\n2\n3\ty\tz\n4\tw\n")),
                        "1|-|x@1\n!2: 1 column, where 2 are expected\n!3: 3 columns, where 2 are expected\n4|-|w@4\n");
    static const char *const bad[] = {"", "id", "text", "id,id,text", "id,txt", "id,text,", "id,,text"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        const char *path = PUT("a.tsv", "1\tx\n");
        const gx_source_options opt = {.size = sizeof opt, .columns = bad[i]};
        assert_int_equal(read_paths(&path, 1, &opt), GX_EUSAGE);
    }
    static char wide[2000];
    memset(wide, '\t', 300);
    wide[300] = '\n';
    documents_as(put_bytes("a.tsv", wide, 301), GX_SOURCE_TSV);
    assert_string_equal(seen, "!1: more than 256 columns\n");
}

static void csv_quotes_as_rfc_4180_has_it(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.csv", "1,\"a, \"\"b\"\"\nc\"\r\n\"2\",plain\r\n3,\"\"\r\n4,\n5,\"\"\"\"")),
                        "1|-|a, \"b\"\nc@1\n2|-|plain@3\n3|-|@4\n4|-|@5\n5|-|\"@6\n");
    assert_string_equal(documents(PUT("a.csv", "1,x,\"y\"\r")), "1|x|y@1\n");
}

static void csv_goes_on_after_a_bad_quote(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.csv", "1,x\n2,\"a\"b\n3,y\n4,\"never closed\n5,z\n")),
                        "1|-|x@1\n!2: text behind a closing quote; a quote inside a quoted field is written twice\n"
                        "3|-|y@3\n!4: a quote is opened and never closed\n5|-|z@5\n");
}

/* ---- TREC ---- */

static void trec_text_takes_titles_and_sections(void **state)
{
    (void)state;
    assert_string_equal(
        documents(PUT("a.trec", "<DOC>\n<DOCNO> FT-1 </DOCNO>\n<DATE>1992</DATE>\n<HEADLINE>\nBig  "
                                "<b>N&amp;ws</b>\n</HEADLINE>\n"
                                "<TEXT>\nOne<P>two\n</TEXT>\n<BYLINE>no</BYLINE><TEXT>three</TEXT>\n</DOC>\n"
                                "<doc><docno>2</docno>all of it <x>here</x></doc>\n")),
        "FT-1|Big   N&ws|\nOne two\n\nthree\n@1\n2|-|all of it  here @12\n");
    assert_int_equal(counts.format, GX_SOURCE_TRECTEXT);
}

static void trec_web_takes_the_words_of_pages(void **state)
{
    (void)state;
    assert_string_equal(
        documents(PUT("a", "<DOC>\n<DOCNO>GX000-00-0000000</DOCNO>\n<DOCHDR>\nhttp://x.gov/\nHTTP/1.1 200 "
                           "OK\n</DOCHDR>\n"
                           "<html><head><TITLE>\n A  page&nbsp;</TITLE><script>if (a<b) x();</script>"
                           "<style>p {}</style></head><!-- a > b --><body><p class=\"a>b\">caf&eacute; b<b>ol</b>d 1 "
                           "< 2 &#233;&#x20AC;&unknown; AT&T</p></body></html>\n</DOC>\n")),
        "GX000-00-0000000|A page|\n           caf\xc3\xa9 bold 1 < 2 \xc3\xa9\xe2\x82\xac&unknown; AT&T   \n@1\n");
    assert_int_equal(counts.format, GX_SOURCE_TRECWEB);
}

static void unclosed_trec_tags_are_refused(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.trectext", "<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>lost\n"
                                                    "<DOC>\n<DOCNO>2</DOCNO>\n<TEXT>kept</TEXT></DOC>\n"
                                                    "<DOC><DOCNO>3</DOCNO><TEXT>open</DOC>\n"
                                                    "<DOC><TEXT>no number</TEXT></DOC>\n"
                                                    "<DOC><DOCNO>5<TEXT></TEXT></DOC>\n"
                                                    "<DOC><DOCNO>6</DOCNO><TEXT>end\n")),
                        "!1: <DOC> is not closed: the next <DOC> comes before </DOC>\n2|-|kept\n@4\n"
                        "!7: <TEXT> is not closed in this document\n!8: no id: the document has no <DOCNO>\n"
                        "!9: <DOCNO> is not closed in this document\n"
                        "!10: <DOC> is not closed: the end of the file comes before </DOC>\n");
    assert_string_equal(documents_as(PUT("a", "plain words\n"), GX_SOURCE_TRECTEXT),
                        "!1: no <DOC> in the whole file; is it TREC text?\n");
    assert_string_equal(documents_as(PUT("a", " \n\n"), GX_SOURCE_TRECTEXT), "");
}

static void trec_tags_have_attributes_blanks_and_cdata(void **state)
{
    (void)state;
    assert_string_equal(
        documents(PUT("a", "<DOC id=\"a1\" type=\"x > y\">\n<TEXT>one</TEXT>\n</DOC>\n"
                           "<DOC\nlang=en ><DOCNO>2</DOCNO>\n<TEXT b='>'>two</TEXT >\n</DOC\n>\n"
                           "<doc docid=3>three</doc>\n"
                           "<DOC id=x><DOCNO><![CDATA[ 4 ]]></DOCNO>\n<TITLE><![CDATA[T & <U>]]></TITLE>"
                           "<TEXT>a<![CDATA[ </TEXT> &amp; ]]>b</TEXT></DOC>\n"
                           "<DOCS><DOC x=\"never closed><DOCNO>5</DOCNO>five</DOC>\n"
                           "<DOC id=6>open\n<DOC id='7'>seven</DOC>\n<DOC id=8>eight</DOC >")),
        "a1|-|one\n@1\n2|-|two\n@4\n3|-|three@9\n4|T & <U>|a </TEXT> &amp; b\n@10\n5|-|five@12\n"
        "!13: <DOC> is not closed: the next <DOC> comes before </DOC>\n7|-|seven@14\n8|-|eight@15\n");
    assert_int_equal(counts.format, GX_SOURCE_TRECTEXT);
}

/* The seconds of processor time that one document takes whose page repeats the bytes up to a size. */
static double read_page_of(const char *bytes)
{
    enum { MANY = 4 << 20 };
    char *page = malloc(MANY + 100);
    assert_non_null(page);
    const size_t len = strlen(bytes);
    size_t n = (size_t)sprintf(page, "<DOC><DOCNO>1</DOCNO><DOCHDR></DOCHDR>");
    for (; n + len < MANY; n += len)
        memcpy(page + n, bytes, len);
    n += (size_t)sprintf(page + n, "</DOC>\n");
    const char *path = put_bytes("hostile.trecweb", page, n);
    free(page);
    const clock_t began = clock();
    documents(path);
    assert_int_equal(counts.documents + counts.bad, 1);
    return (double)(clock() - began) / CLOCKS_PER_SEC;
}

/* They would cost thousands of times as much, were some byte read again for each of those before it. In some turn no
 * other work of the machine blurs that. */
static void hostile_pages_cost_no_more_than_others(void **state)
{
    (void)state;
    enum { MOST_TURNS = 20 };
    static const char *const repeated[] = {"<a",   "<!--",    "<!-- >",  "<a =\">", "<a ='x\" ",
                                           "&amp", "<script", "<title>", "</",      "<a b='>'"};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; ++i) {
        double times = INFINITY;
        for (int turn = 0; turn < MOST_TURNS && !(times < 50); ++turn) {
            const double plain = read_page_of("plain <b>words</b> ");
            times = fmin(times, read_page_of(repeated[i]) / plain);
        }
        if (!(times < 50))
            fail_msg("%s: %.1f times as long as a plain page", repeated[i], times);
    }
}

/* ---- plain lines and files ---- */

static void a_plain_line_is_numbered_over_all_files(void **state)
{
    (void)state;
    const char *paths[] = {PUT("a.txt", "one\n\nthree"), PUT("b.txt", "four\n")};
    const gx_source_options opt = {.size = sizeof opt, .format = GX_SOURCE_PLAIN};
    assert_int_equal(read_paths(paths, 2, &opt), GX_OK);
    assert_string_equal(seen, "1|-|one@1\n2|-|@2\n3|-|three@3\n4|-|four@1\n");
    assert_int_equal(counts.empty, 1);
}

static void a_directory_is_walked_in_the_order_of_names(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("dir"), 0700) | mkdir(in_folder("dir/b"), 0700), 0);
    PUT("dir/c%.txt", "see");
    PUT("dir/a b.html", "<title>T</title>&lt;a&gt;");
    PUT("dir/b/x", "ex");
    PUT("dir/B", "upper");
    PUT("dir/.hidden", "no");
    assert_int_equal(symlink("..", in_folder("dir/b/loop")), 0);
    assert_int_equal(symlink("nowhere", in_folder("dir/dangling")), 0);
    assert_string_equal(documents(in_folder("dir")),
                        "B|-|upper@1\na%20b.html|T|  <a>@1\nb/x|-|ex@1\nc%25.txt|-|see@1\n");
    assert_int_equal(counts.format, GX_SOURCE_FILES);
    assert_int_equal(counts.raw_bytes, counts.raw_total);

    assert_int_equal(mkdir(in_folder("shards"), 0700), 0);
    PUT("shards/1.jsonl", "{\"id\":1,\"text\":\"x\"}\n");
    PUT("shards/0.jsonl", "{\"id\":0,\"text\":\"y\"}\n");
    assert_string_equal(documents(in_folder("shards")), "0|-|y@1\n1|-|x@1\n");
}

/* ---- what any file may bring ---- */

static void line_ends_marks_and_nuls_do_no_harm(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.tsv", "\xef\xbb\xbf"
                                               "1\tx\r\n2\ty\r\n")),
                        "1|-|x@1\n2|-|y@2\n");
    assert_string_equal(documents(PUT("a.jsonl", "\xef\xbb\xbf{\"id\":1,\"text\":\"x\"}\r\n")), "1|-|x@1\n");
    assert_string_equal(documents(PUT("a.tsv", "1\ta\0b\0\n2\tc")), "1|-|a b @1\n2|-|c@2\n");
    assert_int_equal(counts.nul_bytes, 2);
    assert_string_equal(documents(PUT("a.jsonl", "")), "");
    assert_string_equal(documents(PUT("empty", "")), "");
    assert_string_equal(documents(PUT("a.tsv", "\n\n")), "");
    assert_string_equal(documents(PUT("a.csv", "\xef\xbb\xbf")), "");
}

#define MARK "\xef\xbb\xbf"

static void marks_of_joined_files_belong_to_no_record(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.tsv", MARK "1\tx\n" MARK "2\ty\n")), "1|-|x@1\n2|-|y@2\n");
    assert_string_equal(documents(PUT("a.tsv", MARK "id\ttext\n1\tx\n" MARK "id\ttext\n2\ty\n")),
                        "1|-|x@2\n2|-|y@4\n"); /* the second head line, too */
    assert_string_equal(documents(PUT("a.csv", MARK "1,x\n" MARK "\"2\",\"y\nz\"\n" MARK "id,text\n" MARK)),
                        "1|-|x@1\n2|-|y\nz@2\n");
    assert_string_equal(
        documents(PUT("a.jsonl", MARK "{\"id\":1,\"text\":\"x\"}\n" MARK "\n" MARK "{\"id\":2,\"text\":\"y\"}\n")),
        "1|-|x@1\n2|-|y@3\n");
    assert_string_equal(documents(PUT("a", MARK ".I 1\n.W\nx\n" MARK ".I 2\n" MARK ".W\ny\n")), "1|-|x@1\n2|-|y@4\n");
    assert_string_equal(documents_as(PUT("a", MARK "x\n" MARK "y\n"), GX_SOURCE_PLAIN), "1|-|x@1\n2|-|y@2\n");
    assert_string_equal(documents(PUT("a.jsonl", "{\"id\":\"\\ufeffb\",\"text\":\"x\"}\n")),
                        "!1: the id holds the character U+FEFF (a byte order mark) at byte 1\n");
}

static void a_first_line_tells_the_separator_of_csv(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.csv", "sep=,\r\nid,text\r\n1,x\r\n")), "1|-|x@3\n");
    assert_string_equal(documents(PUT("a.csv", MARK "SEP=;\nid;text\n1;\"x;y\"\n2;a,b\n")), "1|-|x;y@3\n2|-|a,b@4\n");
    assert_string_equal(documents(PUT("a.csv", "\"sep=\t\"\n1\tx\n")), "1|-|x@2\n");
    assert_string_equal(documents(PUT("a.csv", "sep=;")), "");
    assert_string_equal(documents(PUT("a.csv", "sep=ab,x\n")), "sep=ab|-|x@1\n");
    const char *paths[] = {PUT("a.csv", "sep=|\n1|x\n"), PUT("b.csv", "2,y\n")}; /* each file has its own */
    assert_int_equal(read_paths(paths, 2, NULL), GX_OK);
    assert_string_equal(seen, "1|-|x@2\n2|-|y@1\n");
}

static void text_that_is_not_utf8_is_repaired_and_counted(void **state)
{
    (void)state;
    assert_string_equal(documents(PUT("a.tsv", "1\tcaf\xe9 \xc3\xa9 \xe2\x82 \xf0\x9f\x98\x80 \xc0\xaf "
                                               "\xed\xa0\x80\xff\n")),
                        "1|-|caf\xef\xbf\xbd \xc3\xa9 \xef\xbf\xbd \xf0\x9f\x98\x80 \xef\xbf\xbd\xef\xbf\xbd "
                        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd@1\n");
    assert_int_equal(counts.replaced, 8);
    const char *path = PUT("a.tsv", "1\tcaf\xe9 \x80 x\n");
    const gx_source_options opt = {.size = sizeof opt, .latin1 = true};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    assert_string_equal(seen, "1|-|caf\xc3\xa9 \xe2\x82\xac x@1\n");
    assert_int_equal(counts.replaced, 0);
}

static void utf16_is_named_as_such(void **state)
{
    (void)state;
    documents_as(PUT("a.txt", "\xff\xfe"
                              "a\0b\0"),
                 GX_SOURCE_PLAIN);
    assert_non_null(strstr(seen, "!1: this is UTF-16"));
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } cases[] = {
        {"h\0e\0r\0o\0n\0s\0 \0a\0b\0\n\0", 20, "UTF-16LE"},
        {"\0h\0e\0r\0o\0n\0s\0 \0a\0b\0\n", 20, "UTF-16BE"},
        {"a\0b\0", 4, "UTF-16LE"},
        {"h\0\0\0e\0\0\0r\0\0\0", 12, "UTF-32LE"},
        {"\0\0\0h\0\0\0e\0\0\0r", 12, "UTF-32BE"},
        {"\x46\4\x30\4 \0\x46\4\x30\4 \0\x46\4\x30\4 \0\x46\4\x30\4\n\0", 24, "UTF-16LE"}, /* Cyrillic */
        {"a\0b\0\n\0\0cdefghijklmn\0opqrst", 24, NULL},                                    /* NUL bytes at any place */
        {"some words\0and others\n", 22, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        documents_as(put_bytes("a.txt", cases[i].bytes, cases[i].n), GX_SOURCE_PLAIN);
        if (cases[i].what) {
            assert_non_null(strstr(seen, "!1: many NUL bytes: this looks like"));
            assert_non_null(strstr(seen, cases[i].what));
        } else {
            assert_null(strstr(seen, "UTF-"));
        }
    }
}

static void ids_that_would_break_a_run_are_refused(void **state)
{
    (void)state;
    documents(PUT("a.tsv", "a b\tx\n\tx\na\x01\tx\na\x7f\tx\na\xc2\xa0\tx\na\xe3\x80\x80"
                           "b\tx\na\xff\tx\nd\xc3\xa9j\xc3\xa0\tx\na \tx\n"));
    assert_string_equal(seen, "!1: the id 'a b' holds white space, which would break TREC runs\n"
                              "!2: the id is empty\n"
                              "!3: the id holds the character U+0001 (white space or control) at byte 2\n"
                              "!4: the id holds the character U+007F (white space or control) at byte 2\n"
                              "!5: the id holds the character U+00A0 (white space or control) at byte 2\n"
                              "!6: the id holds the character U+3000 (white space or control) at byte 2\n"
                              "!7: the id is not UTF-8\n"
                              "d\xc3\xa9j\xc3\xa0|-|x@8\n"
                              "!9: the id 'a ' holds white space, which would break TREC runs\n");
    static char line[6000];
    memset(line, 'i', sizeof line);
    memcpy(line + 4096, "\tx\n", 3);
    documents(put_bytes("a.tsv", line, 4099));
    assert_int_equal(counts.documents, 1);
    memcpy(line + 4096, "i\tx\n", 4);
    documents(put_bytes("a.tsv", line, 4100));
    assert_string_equal(seen, "!1: an id of 4097 bytes; 4096 are the most\n");
}

static void a_record_beyond_the_limit_is_passed_over_in_little_memory(void **state)
{
    (void)state;
    static const gx_source_format formats[] = {GX_SOURCE_TSV,   GX_SOURCE_CSV,      GX_SOURCE_JSONL,
                                               GX_SOURCE_PLAIN, GX_SOURCE_TRECTEXT, GX_SOURCE_FILES};
    enum { HUGE = 48 << 20 };
    char *big = malloc(HUGE + 100);
    assert_non_null(big);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; ++i) {
        const bool trec = formats[i] == GX_SOURCE_TRECTEXT;
        static const char *const good[] = {
            "g\tx\n", "g,x\n", "{\"id\":\"g\",\"text\":\"x\"}\n", "x\n", "<DOC><DOCNO>g</DOCNO>x</DOC>\n", ""};
        memset(big, 'a', HUGE);
        memcpy(big, trec ? "<DOC>" : formats[i] == GX_SOURCE_CSV ? "1,\"\"" : "1\ta", trec ? 5 : 3);
        memcpy(big + HUGE, trec ? "</DOC>\n" : "\n", trec ? 7 : 1);
        const size_t n = HUGE + (trec ? 7 : 1);
        strcpy(big + n, good[i]);
        const char *path = put_bytes("huge", big, n + strlen(good[i]));
        const gx_source_options opt = {.size = sizeof opt, .format = formats[i], .max_record = 1 << 20};
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
        getrusage(RUSAGE_SELF, &after);
        assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 16 << 10); /* KiB */
        assert_memory_equal(seen, "!1: a", 5);
        assert_non_null(strstr(seen, "more than 1048576 bytes"));
        assert_int_equal(counts.documents, formats[i] != GX_SOURCE_FILES);
        assert_non_null(strstr(seen, formats[i] == GX_SOURCE_FILES ? "" : "|x@2\n"));
    }
    free(big);
}

static void the_limit_is_exact(void **state)
{
    (void)state;
    const char *path = PUT("a.txt", "0123456789\n01234567890\n012345678\n");
    const gx_source_options opt = {.size = sizeof opt, .format = GX_SOURCE_PLAIN, .max_record = 10};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    assert_string_equal(seen, "1|-|0123456789@1\n!2: a line of more than 10 bytes\n"
                              "3|-|012345678@3\n");
}

static void what_cannot_be_read_is_said_before_anything_is_done(void **state)
{
    (void)state;
    const char *paths[] = {PUT("a.tsv", "1\tx\n"), in_folder("missing.tsv")};
    assert_int_equal(read_paths(paths, 2, NULL), GX_ENOTFOUND);
    assert_non_null(strstr(seen, "missing.tsv: No such file"));
    const char *twice[] = {"-", "-"};
    assert_int_equal(read_paths(twice, 2, NULL), GX_EUSAGE);
    assert_int_equal(read_paths(paths, 0, NULL), GX_EUSAGE);
    const char *odd = PUT("what", "one\ntwo\n");
    assert_int_equal(read_paths(&odd, 1, NULL), GX_EUSAGE);
    assert_non_null(strstr(seen, "cannot tell the format of"));
}

static void members_of_json_may_be_named(void **state)
{
    (void)state;
    const char *path = PUT("j", "{\"docno\":\"a\",\"content\":\"x\",\"title\":\"t\",\"more\":\"y\"}\n"
                                "{\"docno\":7,\"more\":null,\"id\":[]}\n{\"id\":\"b\",\"content\":\"x\"}\n");
    gx_source_options opt = {
        .size = sizeof opt, .format = GX_SOURCE_JSONL, .members = "id=docno,text=content,title,text=more"};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    assert_string_equal(seen, "a|t|x y@1\n7|-|@2\n!3: no id: the object lacks the field that is the id\n");
    static const char *const bad[] = {"id=a",        "text=b", "id=a,id=b,text", "id,text,name", "id=,text",
                                      "id=a,text=a", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        opt.members = bad[i];
        assert_int_equal(read_paths(&path, 1, &opt), GX_EUSAGE);
    }
    assert_string_equal(documents_as(PUT("j", "{\"id\":\"1\",\"content\":\"pisa\"}\n"), GX_SOURCE_GUESS),
                        "1|-|pisa@1\n");
}

static void a_field_of_json_that_comes_twice_is_refused(void **state)
{
    (void)state;
    assert_string_equal(documents_as(PUT("j", "{\"id\":\"1\",\"text\":\"a\",\"text\":\"b\"}\n"
                                              "{\"id\":\"1\",\"x\":1,\"x\":2,\"text\":\"b\",\"id\":\"2\"}\n"
                                              "{\"id\":\"3\",\"x\":1,\"x\":2,\"text\":\"c\"}\n"),
                                     GX_SOURCE_JSONL),
                        "!1: column 22: not JSON as expected: a member that was there before\n"
                        "!2: column 34: not JSON as expected: a member that was there before\n3|-|c@3\n");
}

static size_t add_record(char *to, const char *type, const char *heads, const char *block, size_t n, size_t says)
{
    const size_t head =
        (size_t)sprintf(to, "WARC/1.0\r\nWARC-Type: %s\r\n%sContent-Length: %zu\r\n\r\n", type, heads, says);
    memcpy(to + head, block, n);
    memcpy(to + head + n, "\r\n\r\n", 4);
    return head + n + 4;
}

static void warc_has_pages_and_texts(void **state)
{
    (void)state;
    static char text[4096];
    static const char page[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>A page</title><p>words WARC/1.0";
    static const char image[] = "HTTP/1.1 200 OK\nContent-Type: image/png\n\n\xff\xd8\n";
    size_t n =
        add_record(text, "warcinfo", "WARC-Record-ID: <urn:uuid:0>\r\nContent-Type: text/plain\r\n", "a\nWA", 4, 4);
    n += add_record(text + n, "response", "WARC-TREC-ID: clueweb09-1\r\nWARC-Record-ID: <urn:uuid:1>\r\n", page,
                    sizeof page - 1, sizeof page - 1);
    n +=
        add_record(text + n, "response", "WARC-Record-ID: <urn:uuid:2>\r\n", image, sizeof image - 1, sizeof image - 1);
    n += add_record(text + n, "resource", "warc-record-id: <urn:uuid:3>\r\nContent-Type: text/plain\r\n", "a <b> text",
                    10, 10);
    n +=
        add_record(text + n, "resource", "WARC-Record-ID: <urn:uuid:4>\r\nContent-Type: text/plain\r\n", "cut", 3, 999);
    documents_as(put_bytes("w", text, n), GX_SOURCE_GUESS);
    assert_string_equal(seen, "clueweb09-1|A page|   words WARC/1.0@10\nurn:uuid:3|-|a <b> text@32\n"
                              "!40: the record is cut off: the file ends in it\n");
    const char *path = in_folder("w");
    gx_source_options opt = {.size = sizeof opt, .max_record = 60};
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    assert_string_equal(seen, "!10: a document of more than 60 bytes\nurn:uuid:3|-|a <b> text@32\n"
                              "!40: the record is cut off: the file ends in it\n");
    assert_int_equal(counts.too_long, 1);
    opt = (gx_source_options){.size = sizeof opt, .latin1 = true};
    assert_int_equal(read_paths(&path, 1, &opt), GX_EUSAGE);
    documents_as(PUT("x", "no WARC\n"), GX_SOURCE_WARC);
    assert_string_equal(seen, "!1: no record of WARC 1 begins here; the rest of this file is lost\n");
    documents_as(PUT("x", "WARC/1.0\r\nWARC-Type: response\r\n\r\n"), GX_SOURCE_WARC);
    assert_string_equal(seen, "!1: the record has no Content-Length; the rest of this file is lost\n");
}

/* What a response with this head and body becomes: id 1. */
static const char *response(const char *heads, const char *body, size_t n)
{
    static char record[4096], block[2048];
    const size_t head = (size_t)sprintf(block, "HTTP/1.1 200 OK\r\n%s\r\n", heads);
    memcpy(block + head, body, n);
    n = add_record(record, "response", "WARC-Record-ID: <1>\r\nContent-Type: application/http\r\n", block, head + n,
                   head + n);
    return documents_as(put_bytes("w", record, n), GX_SOURCE_WARC);
}
#define RESPONSE(heads, body) response(heads, body, sizeof(body) - 1)

static void pages_of_warc_are_decoded(void **state)
{
    (void)state;
    static const char html[] = "Content-Type: text/html\r\n";
    char heads[200];
    static const struct {
        const char *lines, *body;
        size_t n;
        const char *text, *note;
    } cases[] = {
#define CASE(lines, body, text, note) {lines, body, sizeof(body) - 1, text, note}
        CASE("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n", "abc0123456789",
             ""),
        CASE("transfer-encoding: Chunked\r\n", "1\na\n0\n\n", "a", ""),
        CASE("Transfer-Encoding: chunked\r\n", "5\r\nabc", "abc", "damaged_codings chunked 1@1\n"), /* cut off */
        CASE("Transfer-Encoding: chunked\r\n", "3\r\nabcdef", "3\r\nabcdef", ""),                   /* not chunked */
        CASE("Transfer-Encoding: chunked\r\n", "<p>abc", " abc", ""),
        CASE("Content-Encoding: gzip\r\n",
             "\x1f\x8b\b\0\0\0\0\0\2\xffKLJ\6\0\xc2"
             "A$5\3\0\0\0",
             "abc", ""),
        CASE("Content-Encoding: x-gzip\r\n", "\x1f\x8b\b\0\0\0\0\0\2\xffKLJ\6\0", "abc",
             "damaged_codings x-gzip 1@1\n"),
        CASE("Content-Encoding: deflate\r\n",
             "x\xda"
             "KLJ\6\0\2M\1'",
             "abc", ""),
        CASE("Content-Encoding: deflate\r\n", "KLJ\6\0", "abc", ""), /* without zlib's frame */
        CASE("Content-Encoding: zstd\r\n", "(\xb5/\xfd \3\31\0\0abc", "abc", ""),
        CASE("Content-Encoding: gzip\r\n", "abc", "abc", ""), /* the crawler has undone it */
        CASE("Content-Encoding: br\r\n", "abc", "abc", ""),
        CASE("Content-Encoding: identity, , gzip\r\n", "abc", "abc", ""),
        CASE("Content-Encoding: compress\r\n", "\x1f\x9d\x90\1\2", NULL, "codings compress 1@1\n"),
        CASE("Content-Encoding: gzip\r\n", "\x1f\x8b\1\2\3", NULL, "codings gzip 1@1\n"),
        CASE("Content-Encoding:\r\n\tdeflate,\r\n deflate\r\n",
             "x\xda\xab\xb8\xe5\xed\xe3\xc5\xc6\xc0\xe4\xcb\xa8\16\0\x15\xfc\2\xb1", "abc", ""),
        CASE("", "a\0b", "a b", ""),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char want[64] = "";
        snprintf(heads, sizeof heads, "%s%s", html, cases[i].lines);
        if (cases[i].text)
            snprintf(want, sizeof want, "1|-|%s@1\n", cases[i].text);
        assert_string_equal(response(heads, cases[i].body, cases[i].n), want);
        assert_string_equal(noted, cases[i].note);
    }
}

static void pages_tell_their_character_set(void **state)
{
    (void)state;
    static const char latin1[] = "<meta charset=latin1>caf\xe9 \x80", cafe[] = "1|-| caf\u00e9 \u20ac@1\n";
    assert_string_equal(RESPONSE("Content-Type: text/plain;\r\n Charset=\"koi8-r\"\r\n", "\xc3\xc1"),
                        "1|-|\u0446\u0430@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html; charset=utf-8\r\n", "<meta charset=latin1>\u00e9"),
                        "1|-| \u00e9@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html\r\n", "\xef\xbb\xbf<meta charset=latin1>\u00e9"),
                        "1|-| \u00e9@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html\r\n", "\xff\xfe"
                                                                "a\0\xe9\0"),
                        "1|-|a\u00e9@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html; charset=utf-16be\r\n", "\0a\4\x10"), "1|-|a\u0410@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html\r\n", "<meta charset=utf-16>\u00e9"), "1|-| \u00e9@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html; charset=ebcdic-x\r\n", "<meta charset=latin1>caf\xe9 \x80"),
                        cafe);
    assert_string_equal(noted, "");
    assert_string_equal(RESPONSE("Content-Type: text/html; charset=X-None\r\n", "\u00e9"), "1|-|\u00e9@1\n");
    assert_string_equal(noted, "charsets x-none 1@1\n");
    assert_string_equal(RESPONSE("Content-Type: text/html; charset=shift_jis\r\n", "\x82\xa0\x81!\x82"),
                        "1|-|\u3042\ufffd!\ufffd@1\n");
    assert_int_equal(counts.replaced, 2);
    const gx_source_options files = {.size = sizeof files, .format = GX_SOURCE_FILES, .file_id = GX_FILE_ID_STEM};
    const char *path = put_bytes("1.html", latin1, sizeof latin1 - 1);
    assert_int_equal(read_paths(&path, 1, &files), GX_OK);
    assert_string_equal(seen, cafe);
    static const char equiv[] =
        "<!-- <meta charset=koi8-r> --><META content='text/html; charset = iso-8859-1' "
        "HTTP-EQUIV=Content-Type>caf\xe9 \x80";
    path = put_bytes("1.xhtml", equiv, sizeof equiv - 1);
    assert_int_equal(read_paths(&path, 1, &files), GX_OK);
    assert_string_equal(seen, cafe);
    path = PUT("1.htm", "<?xml version='1.0' encoding='iso-8859-2'?><meta content='charset=koi8-r'><p>\xbe");
    assert_int_equal(read_paths(&path, 1, &files), GX_OK);
    assert_string_equal(seen, "1|-|  \u017e@1\n");
    assert_string_equal(
        documents_as(PUT("w",
                         "<DOC><DOCNO>1</DOCNO><DOCHDR>\nhttp://x/\nContent-type: text/html; charset=windows-1250\n"
                         "</DOCHDR>\xbe</DOC>"),
                     GX_SOURCE_TRECWEB),
        "1|-|\u013e@1\n");
    assert_string_equal(
        documents_as(PUT("w", "<DOC><DOCNO>1</DOCNO><DOCHDR>x</DOCHDR><meta charset='windows-1250'>\xbe</DOC>"),
                     GX_SOURCE_TRECWEB),
        "1|-| \u013e@1\n");
}

static void what_warc_passes_over_is_noted_by_type(void **state)
{
    (void)state;
    static char text[4096];
    static const char *const bodies[] = {
        "HTTP/1.1 200 OK\r\n\r\n \n<!doctype HTML>a",
        "HTTP/1.1 200 OK\r\nContent-Type: unknown/unknown\r\n\r\nplain",
        "<P>b",
        "HTTP/1.1 200 OK\r\n\r\n\1\2",
        "ICY 200 OK\r\nContent-Type: Text/CSS; x\r\n\r\na{}",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<b>c",
        "HTTP/1.1 200 OK\r\nContent-Type:\r\n text/css\r\n\r\na{}",
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; ++i) {
        char heads[100];
        sprintf(heads, "WARC-Record-ID:\r\n\t<%zu>\r\nContent-Type: application/http\r\n", i);
        n += add_record(text + n, "response", heads, bodies[i], strlen(bodies[i]), strlen(bodies[i]));
    }
    n += add_record(text + n, "conversion", "WARC-Record-ID: <8>\r\nContent-Type: text/plain\r\n", "d", 1, 1);
    n += add_record(text + n, "resource", "WARC-Record-ID: <9>\r\nContent-Type: text/dns\r\n", "e", 1, 1);
    n += add_record(text + n, "request", "", "f\n", 2, 2);
    n += add_record(text + n, "Request", "", "\0", 1, 1);
    documents_as(put_bytes("w", text, n), GX_SOURCE_WARC);
    assert_string_equal(seen, "0|-| \na@1\n1|-|plain@13\n2|-| b@25\n5|-|c@57\n8|-|d@84\n");
    assert_string_equal(noted, "media_types no-type 1@34\nmedia_types text/css 2@45\nmedia_types text/dns 1@92\n"
                               "record_types request 2@100\n");
    assert_int_equal(counts.nul_bytes, 0);
}

static void smart_has_titles_authors_and_words(void **state)
{
    (void)state;
    static const char text[] =
        ".I 1\n.T\nexperimental investigation\nof a wing .\n.A\nbrenckman,m.\n.B\nj. ae. scs. 25\n"
        ".W\nan experimental study\n.X\n5 1\n.I 2\r\n.W\r\nno title\r\n.I 3\n.I\n.W\nx\n.I 5\n.T\nlast";
    assert_string_equal(documents_as(PUT("cran", text), GX_SOURCE_GUESS),
                        "1|experimental investigation of a wing .|brenckman,m.\nan experimental study@1\n"
                        "2|-|no title@13\n3|-|@16\n!17: the id is empty\n5|last|@20\n");
    assert_string_equal(documents_as(PUT("cran", "x\ny\n"), GX_SOURCE_SMART),
                        "!1: no .I in the whole file; is it of SMART?\n");
}

/* ---- compression ---- */

static const int filters[] = {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD};

static size_t pack(int filter, const char *bytes, size_t n, char *out, size_t room)
{
    size_t used = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    assert_int_equal(archive_write_add_filter(a, filter), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
    archive_write_set_bytes_per_block(a, 0);
    assert_int_equal(archive_write_open_memory(a, out, room, &used), ARCHIVE_OK);
    archive_entry_set_filetype(e, AE_IFREG);
    assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes, n), n);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    archive_entry_free(e);
    return used;
}

static void every_compression_is_read_alone_and_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i) {
        static char packed[4096];
        size_t n = pack(filters[i], "1\tx\n2\tlo", 8, packed, sizeof packed);
        assert_string_equal(documents_as(put_bytes("a", packed, n), GX_SOURCE_TSV), "1|-|x@1\n2|-|lo@2\n");
        n += pack(filters[i], "ng\n3\ty\n", 7, packed + n, sizeof packed - n);
        assert_string_equal(documents_as(put_bytes("a", packed, n), GX_SOURCE_TSV), "1|-|x@1\n2|-|long@2\n3|-|y@3\n");
        assert_int_equal(counts.bytes, 15);
        assert_int_equal(counts.raw_bytes, n);
    }
}

static void a_truncated_or_damaged_stream_is_refused_and_the_next_file_read(void **state)
{
    (void)state;
    enum { ROOM = 1 << 17 };
    static char text[3 * ROOM], packed[ROOM * 3];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof text; ++i) { /* hard to compress */
        x = x * 1664525u + 1013904223u;
        text[i] = i % 64 == 63 ? '\n' : (char)('!' + (x >> 24) % 90);
    }
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i) {
        const size_t n = pack(filters[i], text, sizeof text, packed, sizeof packed);
        const bool has_checksum = filters[i] != ARCHIVE_FILTER_ZSTD; /* libarchive writes it without one */
        for (int damaged = 0; damaged < 1 + has_checksum; ++damaged) {
            if (damaged)
                memset(packed + n / 2, 0x55, 64);
            const char *paths[] = {put_bytes("broken", packed, damaged ? n : n * 2 / 3), PUT("good", "fine\n")};
            const gx_source_options opt = {.size = sizeof opt, .format = GX_SOURCE_PLAIN};
            assert_int_equal(read_paths(paths, 2, &opt), GX_OK);
            if (counts.bad != 1)
                fail_msg("filter %d, damaged %d: %u bad", filters[i], damaged, (unsigned)counts.bad);
            assert_in_range(counts.documents, 1, sizeof text / 64); /* one is the good file's */
        }
    }
}

static void gzip_is_verified_to_its_last_byte(void **state)
{
    (void)state;
    static char packed[4096];
    const size_t one = pack(ARCHIVE_FILTER_GZIP, "1\tx\n", 4, packed, sizeof packed);
    size_t n = one + pack(ARCHIVE_FILTER_GZIP, "2\ty\n", 4, packed + one, sizeof packed - one);
    for (size_t at = 0; at < n; ++at) {
        const char old = packed[at];
        const size_t in_member = at % one; /* free: time and system in the header, the last bits before the checksum */
        const bool free_to_change = (in_member > 3 && in_member < 10) || in_member == one - 9;
        packed[at] ^= 0x10;
        documents_as(put_bytes("a", packed, n), GX_SOURCE_TSV);
        if (!free_to_change && at > 2 && counts.bad == 0)
            fail_msg("a change of byte %zu was not seen: %s", at, seen);
        packed[at] = old;
    }
    for (size_t m = 3; m < n; ++m)
        if (m != one) {
            documents_as(put_bytes("a", packed, m), GX_SOURCE_TSV);
            assert_int_equal(counts.bad, 1);
        }
    memset(packed + n, 0, 512);
    assert_string_equal(documents_as(put_bytes("a", packed, n + 512), GX_SOURCE_TSV), "1|-|x@1\n2|-|y@2\n");
    strcpy(packed + n, "garbage");
    documents_as(put_bytes("a", packed, n + 7), GX_SOURCE_TSV);
    assert_non_null(strstr(seen, "1|-|x@1\n2|-|y@2\n!3: the gzip stream is damaged or truncated: what follows the "
                                 "stream is no gzip"));
}

static void what_follows_a_stream_is_not_passed_over(void **state)
{
    (void)state;
    static char packed[4096];
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i) {
        const size_t one = pack(filters[i], "1\tx\n", 4, packed, sizeof packed);
        const size_t n = one + pack(filters[i], "2\ty\n", 4, packed + one, sizeof packed - one);
        for (size_t m = one + 1; m < n; ++m) {
            documents_as(put_bytes("a", packed, m), GX_SOURCE_TSV);
            if (counts.bad != 1)
                fail_msg("filter %d cut off at %zu of %zu is not refused: %s", filters[i], m, n, seen);
        }
        memcpy(packed + n, "garbage, garbage", 16);
        documents_as(put_bytes("a", packed, n + 16), GX_SOURCE_TSV);
        assert_int_equal(counts.bad, 1);
        assert_non_null(strstr(seen, filters[i] == ARCHIVE_FILTER_XZ ? "what follows it is wrong"
                                                                     : "what follows the stream is no"));
        memset(packed + n, 0, 512);
        assert_string_equal(documents_as(put_bytes("a", packed, n + 512), GX_SOURCE_TSV), "1|-|x@1\n2|-|y@2\n");
    }
}

static void the_compression_of_nothing_is_an_empty_file(void **state)
{
    (void)state;
    static char packed[4096];
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i) {
        const size_t n = pack(filters[i], "", 0, packed, sizeof packed);
        assert_string_equal(documents_as(put_bytes("a", packed, n), GX_SOURCE_JSONL), "");
        assert_int_equal(counts.bad, 0);
    }
}

static void what_is_compressed_twice_is_refused(void **state)
{
    (void)state;
    static char once[4096], twice[4096];
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i) {
        const size_t n = pack(filters[i], "1\tx\n", 4, once, sizeof once);
        const size_t m = pack(filters[i], once, n, twice, sizeof twice);
        documents_as(put_bytes("a", twice, m), GX_SOURCE_PLAIN);
        assert_int_equal(counts.documents, 0);
        assert_non_null(strstr(seen, "!1: it is compressed twice"));
    }
}

/* pzstd writes a skippable frame before each frame;
 * `zstd --long=31` frames with a window of 2 GiB. */
static void frames_of_zstd_may_be_skippable_and_their_windows_large(void **state)
{
    (void)state;
    static char packed[4096] = "\x50\x2a\x4d\x18\4\0\0\0abcd";
    const size_t n = 12 + pack(ARCHIVE_FILTER_ZSTD, "1\tx\n", 4, packed + 12, sizeof packed - 12);
    assert_string_equal(documents_as(put_bytes("a", packed, n), GX_SOURCE_TSV), "1|-|x@1\n");
    /* magic; no checksum, no size; a window of 2^30; one raw block, the last, of 4 bytes */
    assert_string_equal(documents_as(PUT("b", "\x28\xb5\x2f\xfd\0\xa0\x21\0\0"
                                              "1\tx\n"),
                                     GX_SOURCE_TSV),
                        "1|-|x@1\n");
}

/* ---- archives ---- */

static size_t archive_of(int format, int filter, const char *const *names, size_t n_names, char *out, size_t room)
{
    size_t used = 0;
    struct archive *a = archive_write_new();
    assert_int_equal(archive_write_add_filter(a, filter), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format(a, format), ARCHIVE_OK);
    archive_write_set_bytes_per_block(a, 0);
    assert_int_equal(archive_write_open_memory(a, out, room, &used), ARCHIVE_OK);
    for (size_t i = 0; i < n_names; ++i) {
        struct archive_entry *e = archive_entry_new();
        char text[200];
        const int n = snprintf(text, sizeof text, "<title>of %s</title>\nsome text\n", names[i]);
        const bool is_folder = names[i][strlen(names[i]) - 1] == '/';
        archive_entry_set_pathname(e, names[i]);
        archive_entry_set_filetype(e, is_folder ? AE_IFDIR : AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, is_folder ? 0 : n);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        if (!is_folder)
            assert_int_equal(archive_write_data(a, text, (size_t)n), n);
        archive_entry_free(e);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    return used;
}

static void an_archive_is_read_as_a_directory_is(void **state)
{
    (void)state;
    enum { ROOM = 1 << 16 };
    static char packed[ROOM];
    static const char *const names[] = {"./", "./d/", "./d/a b.html", ".hidden", "d/.hidden/c", "e.txt", "f.html"};
    static const struct {
        int format, filter;
    } kinds[] = {{ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE},
                 {ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP},
                 {ARCHIVE_FORMAT_TAR_GNUTAR, ARCHIVE_FILTER_XZ},
                 {ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE, ARCHIVE_FILTER_ZSTD},
                 {ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const size_t n = archive_of(kinds[i].format, kinds[i].filter, names, 7, packed, ROOM);
        const char *path = put_bytes("archive", packed, n);
        const char *const all = "d/a%20b.html|of ./d/a b.html|  \nsome text\n@1\n"
                                "e.txt|-|<title>of e.txt</title>\nsome text\n@1\n"
                                "f.html|of f.html|  \nsome text\n@1\n";
        gx_source_options opt = {.size = sizeof opt, .format = GX_SOURCE_FILES};
        assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
        assert_string_equal(seen, all);
        assert_int_equal(counts.files, 3);
        opt.file_id = GX_FILE_ID_NAME;
        assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
        assert_memory_equal(seen, "a%20b.html|", 11);
        opt.file_id = GX_FILE_ID_STEM;
        assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
        assert_memory_equal(seen, "a%20b|", 6);
        opt.format = GX_SOURCE_PLAIN;
        assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
        assert_int_equal(counts.documents, 6);
        if (kinds[i].format != ARCHIVE_FORMAT_ZIP) { /* cut off in the last member, and the next file read */
            const size_t whole = kinds[i].filter == ARCHIVE_FILTER_NONE ? 2600 : n - 9;
            const char *two[] = {put_bytes("cut", packed, whole), PUT("good", "fine\n")};
            assert_int_equal(read_paths(two, 2, &opt), GX_OK);
            assert_int_equal(counts.bad, 1);
            assert_non_null(strstr(seen, "damaged or truncated"));
            assert_non_null(strstr(seen, "|fine@1"));
        }
    }
}

static void a_bomb_costs_time_not_memory(void **state)
{
    (void)state;
    enum { BOMB = 200 << 20, ROOM = 1 << 20 };
    char *zeros = calloc(1, BOMB), *packed = malloc(ROOM);
    assert_true(zeros && packed);
    const size_t n = pack(ARCHIVE_FILTER_GZIP, zeros, BOMB, packed, ROOM);
    free(zeros);
    const char *path = put_bytes("bomb", packed, n);
    free(packed);
    const gx_source_options opt = {.size = sizeof opt, .format = GX_SOURCE_PLAIN, .max_record = 1 << 20};
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(read_paths(&path, 1, &opt), GX_OK);
    getrusage(RUSAGE_SELF, &after);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 16 << 10);
    assert_int_equal(counts.bad, 1);
    assert_int_equal(counts.nul_bytes, BOMB);
}

/* ---- against slow references ---- */

static uint32_t draw_state;
static uint32_t draw(uint32_t n)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(draw_state >> 8) * n >> 24);
}

/* A random text as itself and as a CSV field and JSON string. */
static void draw_text(char *text, char *csv, char *json)
{
    static const char *const bits[] = {"a",   "bc", " ", "\n", "\"", ",", "\t", "\\", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                       "\r\n"};
    static const char *const as_json[] = {"a",       "b\\u0063",       " ",     "\\n", "\\\"", ",", "\\t", "\\\\",
                                          "\\u00e9", "\\uD83D\\uDE00", "\\r\\n"};
    *text = *json = 0;
    char *q = csv;
    *q++ = '"';
    for (uint32_t n = draw(30); n > 0; --n) {
        const uint32_t i = draw(sizeof bits / sizeof *bits);
        strcat(text, bits[i]);
        strcat(json, draw(2) || strchr("\n\"\t\\\r", bits[i][0]) ? as_json[i] : bits[i]);
        if (bits[i][0] == '"')
            *q++ = '"';
        strcpy(q, bits[i]);
        q += strlen(q);
    }
    strcpy(q, "\"");
}

static void random_csv_and_json_come_back_as_they_were(void **state)
{
    (void)state;
    const uint32_t seed = 20261121;
    draw_state = seed;
    enum { CASES = 300, RECORDS = 40 };
    static char csv[RECORDS * 1024], json[RECORDS * 1024], expected_csv[sizeof seen], expected_json[sizeof seen];
    for (int c = 0; c < CASES; ++c) {
        char *pc = csv, *pj = json, *ec = expected_csv, *ej = expected_json;
        unsigned line = 1;
        for (unsigned r = 0; r < RECORDS; ++r) {
            char text[200], title[200], text_csv[400], title_csv[400], text_json[400], title_json[400];
            draw_text(text, text_csv, text_json);
            draw_text(title, title_csv, title_json);
            pc += sprintf(pc, draw(2) ? "d%u,%s,%s\n" : "\"d%u\",%s,%s\r\n", r, title_csv, text_csv);
            pj += sprintf(pj, "{ \"title\" : \"%s\", \"x\": [ %u, {\"y\": null} ], \"id\":\"d%u\",\"text\":\"%s\"}\n",
                          title_json, draw(1000), r, text_json);
            ec += sprintf(ec, "d%u|%s|%s@%u\n", r, title, text, line);
            ej += sprintf(ej, "d%u|%s|%s@%u\n", r, title, text, r + 1);
            for (const char *p = title; *p; ++p)
                line += *p == '\n';
            for (const char *p = text; *p; ++p)
                line += *p == '\n';
            ++line;
        }
        if (strcmp(documents(put_bytes("r.csv", csv, (size_t)(pc - csv))), expected_csv) != 0)
            fail_msg("CSV differs: seed %u, case %d", seed, c);
        if (strcmp(documents(put_bytes("r.jsonl", json, (size_t)(pj - json))), expected_json) != 0)
            fail_msg("JSON differs: seed %u, case %d", seed, c);
    }
}

/* Every record at every place relative to the ends of what is read at once. */
static void records_survive_the_ends_of_blocks(void **state)
{
    (void)state;
    enum { BLOCK = 256 << 10 };
    static char file[3 * BLOCK];
    static const struct {
        gx_source_format format;
        const char *record, *expected;
    } kinds[] = {
        {GX_SOURCE_TSV, "id9\tti\ttext\n", "id9|ti|text@"},
        {GX_SOURCE_CSV, "id9,\"t\"\"i\",\"te\nxt\"\r\n", "id9|t\"i|te\nxt@"},
        {GX_SOURCE_JSONL, "{\"id\":\"id9\",\"title\":\"t\\\"i\",\"text\":\"te\\nxt\"}\n", "id9|t\"i|te\nxt@"},
        {GX_SOURCE_TRECTEXT, "<DOC>\n<DOCNO>id9</DOCNO>\n<TITLE>ti</TITLE><TEXT>text</TEXT>\n</DOC>\n",
         "id9|ti|text\n@"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        const size_t len = strlen(kinds[k].record);
        for (size_t offset = 0; offset < len + 3; ++offset) {
            /* empty lines up to just before the end of the first block, then records over it */
            const size_t start = BLOCK - 2 * len + offset;
            memset(file, '\n', start);
            for (int r = 0; r < 4; ++r)
                memcpy(file + start + (size_t)r * len, kinds[k].record, len);
            documents_as(put_bytes("blocks", file, start + 4 * len), kinds[k].format);
            assert_int_equal(counts.documents, 4);
            assert_int_equal(counts.bad, 0);
            char first[100];
            snprintf(first, sizeof first, "%s%zu\n", kinds[k].expected, start + 1);
            assert_memory_equal(seen, first, strlen(first));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_read_the_same),
        cmocka_unit_test(json_takes_the_names_that_collections_use),
        cmocka_unit_test(json_decodes_every_escape),
        cmocka_unit_test(malformed_json_is_refused_with_line_and_column),
        cmocka_unit_test(json_nests_to_a_limit),
        cmocka_unit_test(tsv_has_two_columns_or_three_or_says_which),
        cmocka_unit_test(a_header_names_the_columns),
        cmocka_unit_test(wrong_columns_are_refused),
        cmocka_unit_test(csv_quotes_as_rfc_4180_has_it),
        cmocka_unit_test(csv_goes_on_after_a_bad_quote),
        cmocka_unit_test(trec_text_takes_titles_and_sections),
        cmocka_unit_test(trec_web_takes_the_words_of_pages),
        cmocka_unit_test(unclosed_trec_tags_are_refused),
        cmocka_unit_test(trec_tags_have_attributes_blanks_and_cdata),
        cmocka_unit_test(hostile_pages_cost_no_more_than_others),
        cmocka_unit_test(a_plain_line_is_numbered_over_all_files),
        cmocka_unit_test(a_directory_is_walked_in_the_order_of_names),
        cmocka_unit_test(line_ends_marks_and_nuls_do_no_harm),
        cmocka_unit_test(text_that_is_not_utf8_is_repaired_and_counted),
        cmocka_unit_test(utf16_is_named_as_such),
        cmocka_unit_test(marks_of_joined_files_belong_to_no_record),
        cmocka_unit_test(a_first_line_tells_the_separator_of_csv),
        cmocka_unit_test(ids_that_would_break_a_run_are_refused),
        cmocka_unit_test(a_record_beyond_the_limit_is_passed_over_in_little_memory),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(what_cannot_be_read_is_said_before_anything_is_done),
        cmocka_unit_test(every_compression_is_read_alone_and_joined),
        cmocka_unit_test(a_truncated_or_damaged_stream_is_refused_and_the_next_file_read),
        cmocka_unit_test(gzip_is_verified_to_its_last_byte),
        cmocka_unit_test(members_of_json_may_be_named),
        cmocka_unit_test(a_field_of_json_that_comes_twice_is_refused),
        cmocka_unit_test(warc_has_pages_and_texts),
        cmocka_unit_test(pages_of_warc_are_decoded),
        cmocka_unit_test(pages_tell_their_character_set),
        cmocka_unit_test(what_warc_passes_over_is_noted_by_type),
        cmocka_unit_test(smart_has_titles_authors_and_words),
        cmocka_unit_test(what_follows_a_stream_is_not_passed_over),
        cmocka_unit_test(the_compression_of_nothing_is_an_empty_file),
        cmocka_unit_test(what_is_compressed_twice_is_refused),
        cmocka_unit_test(frames_of_zstd_may_be_skippable_and_their_windows_large),
        cmocka_unit_test(an_archive_is_read_as_a_directory_is),
        cmocka_unit_test(a_bomb_costs_time_not_memory),
        cmocka_unit_test(random_csv_and_json_come_back_as_they_were),
        cmocka_unit_test(records_survive_the_ends_of_blocks),
    };
    return cmocka_run_group_tests(tests, set_up, clear);
}
