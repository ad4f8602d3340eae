/* gx_builder_add_source on several threads, against a loop of gx_source_next and gx_builder_add on
 * one: the same file, the same words about bad documents, the same counts. */
#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "index/format.h"
#include "tests/support/compressors.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/gx-add-source-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir); /* fails if a test left anything in it */
}

static const char *in_dir(const char *name)
{
    static char path[8][128];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* ---- corpora ---- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static void write_words(FILE *f, uint32_t n)
{
    static const char *const words[] = {"the", "Inverted", "indexes", "of",  "\xc3\xa9t\xc3\xa9", "run", "fast",
                                        "on",  "graphs",   "42,000",  "and", "\xff\xfe"};
    for (uint32_t i = 0; i < n; ++i)
        if (draw(3))
            fprintf(f, "%s ", words[draw(12)]);
        else
            fprintf(f, "w%u ", draw(1u << (4 + draw(14))));
}

/* A record of WARC: a page, a text or another record. */
static void write_warc(FILE *f, const char *bad, uint32_t id, uint32_t n, uint32_t kind)
{
    char *block;
    size_t len;
    FILE *to = open_memstream(&block, &len);
    assert_non_null(to);
    fprintf(to, "HTTP/1.1 200 OK\r\nContent-Type: text/%s\r\n\r\n<title>T %u</title>\n<p>", kind & 1 ? "html" : "plain",
            id);
    write_words(to, n);
    fclose(to);
    fprintf(f, "WARC/1.0\r\nWARC-Type: %s\r\nWARC-TREC-ID: %sd%u\r\nContent-Length: %zu\r\n\r\n",
            kind & 2 ? "response" : "request", bad, id, len);
    fwrite(block, 1, len, f);
    fputs("\r\n\r\n", f);
    free(block);
}

/* A record of csv, whose text has quotes and line ends. */
static void write_csv(FILE *f, const char *bad, uint32_t id, const char *year, uint32_t n, uint32_t kind)
{
    fprintf(f, "%sd%u,%s,\"Title \"\"%u\"\"\",\"", bad, id, year, kind);
    for (uint32_t i = 0; i < 3; ++i) {
        write_words(f, n / 3);
        fputs(draw(4) ? "\n" : draw(2) ? "\"\"" : ",", f);
    }
    fputs(kind == 7 ? "\n" : kind == 8 ? "\"x\n" : draw(9) ? "\"\n" : "\"\r\n", f);
}

/* A document's record; ids repeat now and then, and some records are bad. */
static void write_record(FILE *f, gx_source_format format, uint32_t number)
{
    const uint32_t kind = draw(400), n = draw(10) ? draw(60) : draw(600);
    const uint32_t id = draw(60) ? number : draw(number + 1);
    const char *bad = kind == 0 ? "bad id " : kind == 1 ? "\x01" : "";
    const char *year = kind == 2 ? "never" : "2014";
    if (kind == 3) {
        fputs("\n", f);
        return;
    }
    if (kind == 4) {
        fputs("what is this?\r\n", f);
        return;
    }
    switch (format) {
    case GX_SOURCE_TSV:
        fprintf(f, "%sd%u\t%s\tTitle %u\t", bad, id, year, number);
        write_words(f, n);
        fputs(draw(9) ? "\n" : "\r\n", f);
        break;
    case GX_SOURCE_JSONL:
        fprintf(f, "{\"id\": \"%sd%u\", \"year\": \"%s\", \"title\": \"On %u\", \"text\": \"", bad, id, year, number);
        write_words(f, n);
        fputs("\"}\n", f);
        break;
    case GX_SOURCE_CSV:
        write_csv(f, bad, id, year, n, kind);
        break;
    case GX_SOURCE_WARC:
        write_warc(f, bad, id, n, kind);
        break;
    case GX_SOURCE_SMART:
        fprintf(f, ".I %sd%u\n.T\nTitle %u\n.W\n", bad, id, number);
        write_words(f, n);
        fputs("\n", f);
        break;
    case GX_SOURCE_FILES:
    case GX_SOURCE_PLAIN:
        write_words(f, n);
        fputs(draw(9) ? "\n" : "\r\n", f);
        break;
    case GX_SOURCE_TRECTEXT:
    case GX_SOURCE_TRECWEB:
        fprintf(f, "%s%s\n<DOCNO> %sd%u </DOCNO>\n", kind == 7 ? "</doc> between </DOC>\n" : "",
                kind % 16 == 9    ? "<DOC id=\"x > y\"\n type=story >"
                : kind % 16 == 11 ? "<doc >"
                                  : "<DOC>",
                bad, id);
        fprintf(f,
                format == GX_SOURCE_TRECWEB ? "<DOCHDR>\nhttp://a/%u\n</DOCHDR>\n<title>T %u</title>\n<p>"
                                            : "<HEADLINE>H %u of %u</HEADLINE>\n<TEXT>\n",
                number, id);
        write_words(f, n);
        fputs(kind == 8 ? "<DOC> in text\n" : format == GX_SOURCE_TRECTEXT && kind != 9 ? "\n</TEXT>\n" : "\n", f);
        fputs(kind == 10 ? "" : kind < 50 ? "</doc>\n" : kind % 16 == 13 ? "</DOC  \n>\n" : "</DOC>\n", f);
        break;
    default:
        fprintf(f, "{\"id\": \"%sd%u\", \"vector\": {", bad, id);
        for (uint32_t i = 0, term = draw(50); i < n; ++i, term += draw(kind == 5 ? 2 : 40) + (kind != 5))
            fprintf(f, "%s\"t%u\": %u.%u", i ? ", " : "", term, draw(9), 1 + draw(8));
        fputs(kind == 6 ? ", \"u\": -1}}\n" : "}}\n", f);
    }
}

/* Compress the file to members, and damage it now and then. */
static void compress_file(const char *path)
{
    enum { MOST = 4 << 20 };
    static char bytes[MOST], to[2 * MOST];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f), member = draw(2) ? 1000 + draw(60000) : n;
    const uint32_t by = draw(N_FORMATS);
    size_t used = 0;
    fclose(f);
    for (size_t at = 0, some; at == 0 || at < n; at += some + (n == 0)) {
        some = draw(9) ? draw((uint32_t)member) + 1 : 0;
        some = some < n - at ? some : n - at;
        used += formats[by].compress(to + used, sizeof to - used, bytes + at, some, 1);
    }
    switch (draw(12)) {
    case 0:
    case 1:
        to[used / 2 + draw((uint32_t)(used / 2))] ^= 1 << draw(8);
        break;
    case 2:
        used -= draw((uint32_t)(used / 2));
        break;
    case 3:
        memcpy(to + used, "what is this?", 13);
        used += 13;
    }
    assert_non_null(f = fopen(path, "wb"));
    assert_int_equal(fwrite(to, 1, used, f), used);
    fclose(f);
}

/* Make the file an archive with parts of it as members, some compressed in it. */
static void archive_file(const char *path)
{
    static char bytes[4 << 20];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    struct archive *a = archive_write_new();
    archive_write_set_format_ustar(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (size_t at = 0, some; at < n; at += some) {
        struct archive_entry *e = archive_entry_new();
        char name[40];
        const size_t skip = (n - at) / (2 + draw(8));
        const char *end = memchr(bytes + at + skip, '\n', n - at - skip);
        some = end && end < bytes + n ? (size_t)(end + 1 - bytes) - at : n - at;
        snprintf(name, sizeof name, "part %zu%s", at, draw(2) ? ".html" : "");
        archive_entry_set_pathname(e, name);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_size(e, (la_int64_t)some);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, bytes + at, some), (la_ssize_t)some);
        archive_entry_free(e);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

static const char *write_corpus(const char *name, gx_source_format format, size_t bytes)
{
    const char *path = in_dir(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (format == GX_SOURCE_TSV && draw(2))
        fputs("id\tyear\ttitle\ttext\n", f);
    if (format == GX_SOURCE_CSV && draw(2))
        fputs("id,year,title,\"text\"\n", f);
    for (uint32_t n = 0; (size_t)ftell(f) < bytes; ++n)
        write_record(f, format, n);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* ---- what a build leaves ---- */

typedef struct built {
    gx_status st;
    gx_error err;
    char *said; /* about bad documents that were left out */
    size_t n_said, max_said;
    bool skip;
    uint64_t progress;
    gx_source_counts in;
    gx_builder_counts out;
    uint8_t *file;
    size_t n;
} built;

static bool note_bad(void *user, const gx_error *err)
{
    built *b = user;
    const size_t n = strlen(err->text);
    if (!b->skip)
        return false;
    if (b->n_said + n + 1 > b->max_said)
        b->said = realloc(b->said, b->max_said = 2 * b->max_said + n + 1);
    assert_non_null(b->said);
    memcpy(b->said + b->n_said, err->text, n);
    b->said[b->n_said + n] = '\n';
    b->n_said += n + 1;
    return true;
}

static void note_progress(void *user)
{
    ++((built *)user)->progress;
}

/* The oracle: document by document. */
static gx_status add_one_by_one(built *b, gx_builder *to, gx_source *from, uint64_t limit, gx_error *err)
{
    const gx_source_document *d;
    for (uint64_t n = 0; limit == 0 || n < limit; ++n) {
        gx_status st = gx_source_next(from, &d, err);
        if (st == GX_OK && !d)
            return GX_OK;
        if (st == GX_OK && (st = gx_builder_add(to, &d->doc, err)) != GX_OK) {
            const gx_error why = *err;
            snprintf(err->text, sizeof err->text, "%s:%" PRIu64 ": %.900s", d->file, d->line, why.text);
        }
        if (st != GX_OK && !(st == GX_EINPUT && note_bad(b, err)))
            return st;
    }
    return GX_OK;
}

static void read_file(built *out, const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    out->n = (size_t)ftell(f);
    rewind(f);
    out->file = malloc(out->n);
    assert_int_equal(fread(out->file, 1, out->n, f), out->n);
    fclose(f);
    gx_header *h = (gx_header *)out->file;
    gx_section *s = (gx_section *)(out->file + sizeof *h);
    memset(h->uuid, 0, sizeof h->uuid);
    h->checksum = 0;
    for (uint32_t i = 0; i < h->n_sections; ++i) {
        if (s[i].kind != GX_SEC_META)
            continue;
        char *created = memmem(out->file + s[i].offset, s[i].bytes, "\"created\":\"", 11);
        assert_non_null(created);
        memset(created + 11, '-', 20);
        s[i].checksum = 0;
    }
}

typedef struct setup {
    const char *paths[4];
    size_t n_paths;
    gx_source_options in;
    gx_builder_options out;
    uint64_t limit;
    bool skip;
} setup;

static built build(const setup *with, bool by_source)
{
    built b = {.skip = with->skip, .in = {0}, .out = {.size = sizeof b.out}};
    gx_feed_options opt = {sizeof opt, with->limit, note_bad, note_progress, &b};
    gx_source *s;
    gx_builder *to;
    if (gx_source_open(&s, with->paths, with->n_paths, &with->in, &b.err) || gx_builder_open(&to, &with->out, &b.err))
        fail_msg("%s", b.err.text);
    b.st = by_source ? gx_builder_add_source(to, s, &opt, &b.err) : add_one_by_one(&b, to, s, with->limit, &b.err);
    b.in = gx_source_get_counts(s);
    if (b.st == GX_OK) {
        if (gx_builder_finish(to, &b.err))
            fail_msg("%s", b.err.text);
        read_file(&b, with->out.path);
        unlink(with->out.path);
    }
    gx_builder_get_counts(to, &b.out);
    gx_builder_abort(to);
    gx_source_close(s);
    return b;
}

static void free_built(built *b)
{
    free(b->said);
    free(b->file);
}

/* Print where the words differ. */
static void show_difference(const built *a, const built *b)
{
    size_t i = 0, line = 0;
    while (i < a->n_said && i < b->n_said && a->said[i] == b->said[i])
        if (a->said[i++] == '\n')
            line = i;
    if (i < a->n_said || i < b->n_said)
        print_message("wanted: %.*s\ngot: %.*s\n", (int)(a->n_said - line < 300 ? a->n_said - line : 300),
                      a->said ? a->said + line : "", (int)(b->n_said - line < 300 ? b->n_said - line : 300),
                      b->said ? b->said + line : "");
}

static void assert_same(const built *a, const built *b, bool whole)
{
    show_difference(a, b);
    assert_int_equal(a->st, b->st);
    assert_int_equal(a->n_said, b->n_said);
    if (a->n_said)
        assert_memory_equal(a->said, b->said, a->n_said);
    if (a->st != GX_OK) {
        assert_string_equal(a->err.text, b->err.text);
        return;
    }
    assert_int_equal(a->in.documents, b->in.documents);
    assert_int_equal(a->in.bad, b->in.bad);
    if (whole) /* a limit ends within a piece */
        assert_memory_equal(&a->in, &b->in, offsetof(gx_source_counts, format));
    assert_memory_equal(&a->out.documents, &b->out.documents,
                        offsetof(gx_builder_counts, memory_bytes) - offsetof(gx_builder_counts, documents));
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->file, b->file, a->n);
}

/* ---- tests ---- */

static void compare(const setup *with, uint32_t threads)
{
    setup one = *with, several = *with;
    one.out.threads = 1;
    one.out.memory = 0;
    several.out.threads = threads;
    several.out.memory = draw(3) ? (uint64_t)threads << 20 : (uint64_t)threads << 22; /* little: short pieces */
    built want = build(&one, false), got = build(&several, true);
    if (getenv("GX_TEST_SHOW"))
        print_message("%s, %zu files, %u threads: status %d, %llu documents, %llu bad, %llu bytes\n",
                      gx_source_format_name(with->in.format), with->n_paths, threads, want.st,
                      (unsigned long long)want.in.documents, (unsigned long long)want.in.bad,
                      (unsigned long long)want.in.bytes);
    if (want.n_said) /* how much is read of a file that is left depends on the blocks */
        want.in.raw_bytes = got.in.raw_bytes;
    if (with->in.format == GX_SOURCE_WARC || with->in.format == GX_SOURCE_FILES) { /* the rest of a file may be left */
        want.in.bytes = got.in.bytes;
        want.in.raw_bytes = got.in.raw_bytes;
        want.in.nul_bytes = got.in.nul_bytes;
    }
    assert_same(&want, &got, with->limit == 0);
    assert_true(got.progress > 0);
    free_built(&want);
    free_built(&got);
}

static void any_number_of_threads_makes_the_same_of_a_source(void **state)
{
    (void)state;
    static const gx_attribute attributes[] = {{"year", GX_ATTRIBUTE_INT}};
    static const gx_source_format all[] = {GX_SOURCE_TSV,      GX_SOURCE_JSONL,   GX_SOURCE_VECTORS, GX_SOURCE_PLAIN,
                                           GX_SOURCE_TRECTEXT, GX_SOURCE_TRECWEB, GX_SOURCE_CSV,     GX_SOURCE_FILES,
                                           GX_SOURCE_WARC,     GX_SOURCE_SMART};
    const char *seed = getenv("GX_TEST_SEED"), *rounds = getenv("GX_TEST_ROUNDS");
    random_state = seed ? strtoull(seed, NULL, 10) : 20261125;
    printf("seed %llu\n", (unsigned long long)random_state);
    for (int round = 0, n = rounds ? atoi(rounds) : 60; round < n; ++round) {
        const gx_source_format format = all[round % 10];
        const uint32_t threads = 1 + draw(16), compressed = draw(3);
        setup with = {.in = GX_SOURCE_OPTIONS, .out = GX_BUILDER_OPTIONS};
        static const char *const names[] = {"a", "b", "c"};
        with.n_paths = 1 + draw(3);
        for (size_t i = 0; i < with.n_paths; ++i) {
            with.paths[i] = write_corpus(names[i], format, 1000 + draw(draw(4) ? 900000 : 100000));
            if (draw(format == GX_SOURCE_FILES ? 2 : 8) == 0)
                archive_file(with.paths[i]);
            if (compressed)
                compress_file(with.paths[i]);
        }
        with.in.latin1 = format != GX_SOURCE_WARC && draw(5) == 0; /* read as a stream, too */
        with.in.format = format;
        with.in.columns = format == GX_SOURCE_TSV || format == GX_SOURCE_CSV ? "id,year,title,text" : NULL;
        with.in.max_record = draw(3) ? 0 : 4000;
        with.out.path = in_dir("out.gx");
        with.out.duplicates = (gx_duplicates)draw(3);
        with.out.store_text = draw(2);
        with.out.store_titles = draw(4);
        with.out.vector_bits = format == GX_SOURCE_VECTORS ? 8 : 0;
        if (format == GX_SOURCE_TSV || format == GX_SOURCE_CSV || (format == GX_SOURCE_JSONL && draw(2))) {
            with.in.attributes = with.out.attributes = attributes;
            with.in.n_attributes = with.out.n_attributes = 1;
        }
        with.limit = draw(3) ? 0 : 1 + draw(3000);
        with.skip = draw(8);
        compare(&with, threads);
        for (size_t i = 0; i < with.n_paths; ++i)
            unlink(in_dir(names[i]));
    }
}

static bool stop_at_once(void *user)
{
    return ++*(int *)user > 40;
}

static void a_build_that_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    int calls = 0;
    gx_source_options in = GX_SOURCE_OPTIONS;
    gx_builder_options out = GX_BUILDER_OPTIONS;
    gx_error err = {0};
    gx_source *s;
    gx_builder *b;
    random_state = 7;
    const char *path = write_corpus("long.jsonl", GX_SOURCE_JSONL, 4000000);
    in.cancel = stop_at_once;
    in.user = &calls;
    out.path = in_dir("none.gx");
    out.threads = 4;
    out.memory = 4u << 20;
    out.duplicates = GX_DUPLICATES_FIRST;
    built notes = {.skip = true};
    gx_feed_options opt = {sizeof opt, 0, note_bad, NULL, &notes};
    assert_int_equal(gx_source_open(&s, &path, 1, &in, &err), GX_OK);
    assert_int_equal(gx_builder_open(&b, &out, &err), GX_OK);
    assert_int_equal(gx_builder_add_source(b, s, &opt, &err), GX_ECANCELLED);
    assert_int_equal(gx_builder_finish(b, &err), GX_EUSAGE);
    gx_builder_abort(b);
    gx_source_close(s);
    free_built(&notes);
    assert_int_equal(access(out.path, F_OK), -1);
    unlink(path);
}

/* A bad document without a function that says to go on, and a builder that goes on by itself. */
static void a_builder_goes_on_after_a_bad_document(void **state)
{
    (void)state;
    gx_source_options in = GX_SOURCE_OPTIONS;
    gx_builder_options out = GX_BUILDER_OPTIONS;
    gx_error err = {0};
    gx_source *s;
    gx_builder *b;
    const char *path = in_dir("a.tsv");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 20000; ++i)
        fprintf(f, "d%d\tone two three %d\n", i == 15000 ? 3 : i, i);
    assert_int_equal(fclose(f), 0);
    out.path = in_dir("a.gx");
    out.threads = 3;
    out.memory = 3u << 20;
    assert_int_equal(gx_source_open(&s, &path, 1, &in, &err), GX_OK);
    assert_int_equal(gx_builder_open(&b, &out, &err), GX_OK);
    assert_int_equal(gx_builder_add_source(b, s, NULL, &err), GX_EINPUT);
    char want[256];
    snprintf(want, sizeof want, "%s:15001: the id \"d3\" is that of document 4 already", path);
    assert_string_equal(err.text, want);
    gx_source_close(s);
    const gx_document more = {sizeof more, "new", NULL, "a last one", 3, 0, 10};
    assert_int_equal(gx_builder_add(b, &more, &err), GX_OK);
    assert_int_equal(gx_builder_finish(b, &err), GX_OK);
    gx_builder_counts counts = {.size = sizeof counts};
    gx_builder_get_counts(b, &counts);
    assert_int_equal(counts.documents, 15001);
    gx_builder_abort(b);
    gx_index *ix;
    gx_index_options check = GX_INDEX_OPTIONS;
    check.check = GX_CHECK_FULL;
    assert_int_equal(gx_index_open(&ix, out.path, &check, &err), GX_OK);
    assert_int_equal(gx_index_n_docs(ix), 15001);
    gx_index_close(ix);
    const gx_feed_options small = {.size = 8};
    assert_int_equal(gx_source_open(&s, &path, 1, &in, &err), GX_OK);
    out.force = true;
    assert_int_equal(gx_builder_open(&b, &out, &err), GX_OK);
    assert_int_equal(gx_builder_add_source(b, s, &small, &err), GX_EUSAGE);
    gx_builder_abort(b);
    gx_source_close(s);
    unlink(out.path);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_makes_the_same_of_a_source),
        cmocka_unit_test(a_build_that_is_cancelled_leaves_nothing),
        cmocka_unit_test(a_builder_goes_on_after_a_bad_document),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
