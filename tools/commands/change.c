/* change.c: `gpuidx add`, `delete`, `update` and `merge`: a collection changes. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/attribute_list.h"
#include "tools/cli/corpus.h"
#include "tools/cli/document_filter.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"

#define MAX_REPORTS 20 /* bad documents shown */

/* ---- what all have in common ---- */

static int open_collection(gx_collection **c, const cli_args *a, uint32_t threads, uint64_t memory)
{
    gx_error err = {0};
    gx_collection_options o = GX_COLLECTION_OPTIONS;
    o.memory = memory;
    o.threads = threads;
    o.cancel = is_stopped;
    o.wait = cli_number(a, "wait");
    return gx_collection_open(c, a->argv[0], &o, &err) ? cli_fail_error(&err) : 0;
}

/* Report what was done, and close the collection. */
static int close_collection(gx_collection *c, const cli_args *a, int code)
{
    gx_collection_counts n = {.size = sizeof n};
    if (!c)
        return code;
    gx_collection_get_counts(c, &n);
    const gx_index *ix = gx_collection_index(c);
    if (code == 0) {
        char changes[128] = "";
        if (n.added)
            snprintf(changes, sizeof changes, "%s added, ", show_count(n.added));
        if (n.deleted)
            snprintf(changes + strlen(changes), sizeof changes - strlen(changes), "%s deleted, ",
                     show_count(n.deleted));
        cli_note("%s: %s%s documents in %u part%s, commit %llu", a->argv[0], changes, show_count(gx_index_n_docs(ix)),
                 gx_index_n_parts(ix), gx_index_n_parts(ix) == 1 ? "" : "s", (unsigned long long)gx_index_commit(ix));
    }
    gx_collection_close(c);
    return code;
}

/* Commit, and merge parts where --merge asks for it. A signal ends the merge; earlier commits stay. A merge that fails
 * behind a commit is no failure of the command, which has done what it was told to: it is told of, and *merging becomes
 * false. */
static int commit_and_merge(gx_collection *c, const cli_args *a, bool *merging)
{
    gx_error err = {0}, why;
    const gx_status st = *merging ? gx_collection_merge(c, GX_MERGE_TIERS, &err) : gx_collection_commit(c, &err);
    if (st == GX_OK || st == GX_ECANCELLED)
        return 0;
    if (!*merging || gx_collection_commit(c, &why)) /* after a commit that failed, another one fails, too */
        return cli_fail_error(&err);
    *merging = false;
    cli_warn("%s: commit %llu is in place, but parts could not be merged: %s. `gpuidx merge %s` does it later",
             a->argv[0], (unsigned long long)gx_index_commit(gx_collection_index(c)), err.text, a->argv[0]);
    return 0;
}

static int end(const cli_args *a, int code)
{
    if (is_stopped(NULL)) {
        cli_warn("interrupted; %s has its last commit", a->argv[0]);
        stop_die(NULL);
    }
    return code;
}

/* ---- add and update ---- */

typedef struct adding {
    const cli_args *args;
    gx_collection *c;
    gx_source *source;
    progress bar;
    bool update, merging;
    uint64_t commit_every, n_pending, n_committed, skipped;
    gx_attribute attributes[GX_MAX_ATTRIBUTES];
    const char *fields[GX_MAX_INDEX_FIELDS];
    char *names;
} adding;

/* 0: one a processor. */
static uint32_t threads_of(const cli_args *a)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t given = (uint32_t)cli_count(a, "threads");
    return given ? given : cores > 0 ? (uint32_t)cores : 1;
}

/* How many of the threads only read a file ahead: documents are added one by one. */
static uint32_t readers_of(const cli_args *a)
{
    return threads_of(a) / 8;
}

/* The format of the corpus: a collection of impacts takes vectors, and others none. */
static int read_format(const adding *x, gx_source_options *in)
{
    const cli_args *a = x->args;
    const bool given = cli_given(a, "format");
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(gx_collection_index(x->c), &stats);
    if (given)
        gx_source_format_find(cli_text(a, "format"), &in->format);
    else if (stats.impacts)
        in->format = GX_SOURCE_VECTORS;
    const bool vectors = in->format == GX_SOURCE_VECTORS || in->format == GX_SOURCE_CSR;
    if (given && vectors && !stats.impacts)
        return cli_usage(a, "--format=%s: %s holds texts", cli_text(a, "format"), a->argv[0]);
    if (given && !vectors && stats.impacts)
        return cli_usage(a, "--format=%s: %s holds impacts, of vectors: --format=vectors or csr has them",
                         cli_text(a, "format"), a->argv[0]);
    return 0;
}

/* The collection's attributes, which the source reads. */
static int read_attributes(adding *x, gx_source_options *in)
{
    const gx_index *ix = gx_collection_index(x->c);
    const uint32_t n = gx_index_n_attributes(ix);
    gx_attribute_info info = {.size = sizeof info};
    char *p = x->names = calloc(n + GX_MAX_INDEX_FIELDS + 1, 65);
    if (!p)
        return cli_fail(GX_ENOMEM, "no memory for the names of attributes");
    for (uint32_t i = 0; i < n; ++i, p += 65) {
        if (gx_index_get_attribute(ix, i, &info) != GX_OK)
            return cli_fail(GX_ENOMEM, "no memory for the names of attributes");
        memcpy(p, info.name, info.name_len < 64 ? info.name_len : 64);
        x->attributes[i] = (gx_attribute){p, info.type};
    }
    in->attributes = x->attributes;
    in->n_attributes = n;
    in->fields = x->fields;
    const char *field; /* a commit may close the index that has it */
    for (; in->n_fields < GX_MAX_INDEX_FIELDS && (field = gx_index_field(ix, in->n_fields, NULL)); p += 65) {
        memcpy(p, field, strnlen(field, 64));
        x->fields[in->n_fields++] = p;
    }
    return 0;
}

static int open_source(adding *x)
{
    const cli_args *a = x->args;
    gx_error err = {0};
    gx_source_options in = {.size = sizeof in,
                            .threads = readers_of(a),
                            .columns = cli_text(a, "columns"),
                            .members = cli_text(a, "members"),
                            .max_record = cli_count(a, "max-record"),
                            .latin1 = cli_choice(a, "encoding") == 1,
                            .file_id = (gx_file_id)cli_choice(a, "id"),
                            .cancel = is_stopped};
    int code = read_format(x, &in);
    if (code == 0)
        code = read_attributes(x, &in);
    if (code)
        return code;
    if (gx_source_open(&x->source, (const char *const *)a->argv + 1, (size_t)a->argc - 1, &in, &err))
        return cli_fail_error(&err);
    return 0;
}

static int commit(adding *x)
{
    const int code = commit_and_merge(x->c, x->args, &x->merging);
    if (code == 0) {
        x->n_committed += x->n_pending;
        x->n_pending = 0;
    }
    return code;
}

/* Where a command that commits now and then ends early: what is there, and what is not. */
static void tell_committed(const adding *x)
{
    if (x->commit_every && x->c)
        cli_warn("%s: of the documents read, the first %s are committed, commit %llu; the %s behind them are not",
                 x->args->argv[0], show_count(x->n_committed),
                 (unsigned long long)gx_index_commit(gx_collection_index(x->c)), show_count(x->n_pending));
}

/* Handle a bad document. 0: it is left out, and the command goes on. */
static int refuse(adding *x, const gx_error *err)
{
    progress_end(&x->bar);
    if (cli_choice(x->args, "on-error") == 0)
        return cli_fail_error(err);
    if (x->skipped++ < MAX_REPORTS)
        cli_warn("%s", err->text);
    return 0;
}

static int add_documents(adding *x)
{
    gx_error err = {0};
    const gx_source_document *d;
    const uint64_t limit = cli_count(x->args, "limit");
    for (uint64_t n = 0; limit == 0 || n < limit; ++n) {
        gx_status st = is_stopped(NULL) ? GX_ECANCELLED : gx_source_next(x->source, &d, &err);
        if (st == GX_OK && !d)
            return commit(x);
        if (st == GX_OK && (st = x->update ? gx_collection_update(x->c, &d->doc, NULL, &err)
                                           : gx_collection_add(x->c, &d->doc, &err)) == GX_EINPUT) {
            const gx_error why = err;
            snprintf(err.text, sizeof err.text, "%.300s:%llu: %.600s", d->file, (unsigned long long)d->line, why.text);
        }
        int code = 0;
        if (st == GX_EINPUT)
            code = refuse(x, &err);
        else if (st == GX_ECANCELLED)
            return gx_status_exit(st);
        else if (st)
            code = cli_fail_error(&err);
        else if (++x->n_pending == x->commit_every)
            code = commit(x);
        if (code)
            return code;
        if (n % 16 == 0) {
            const gx_source_counts in = gx_source_get_counts(x->source);
            progress_show(&x->bar, in.documents, in.bytes, in.raw_bytes, 0);
        }
    }
    return commit(x);
}

/* ---- add --create ---- */

static const char *const build_flags[] = {"analyzer", "stemmer",   "stopwords", "fold",     "ngrams", "attr", "field",
                                          "store",    "positions", "codec",     "tf-codec", "bits",   "unit"};

/* A flag that says how a collection is made; NULL: none is given. */
static const char *given_build_flag(const cli_args *a)
{
    for (size_t i = 0; i < sizeof build_flags / sizeof *build_flags; ++i)
        if (cli_given(a, build_flags[i]))
            return build_flags[i];
    return NULL;
}

/* What --create is told of vectors. */
static int vectors_of(const cli_args *a, gx_builder_options *o)
{
    const char *format = cli_given(a, "format") ? cli_text(a, "format") : "";
    const bool vectors = strcmp(format, "vectors") == 0 || strcmp(format, "csr") == 0;
    if (!vectors && (cli_given(a, "bits") || cli_given(a, "unit")))
        return cli_usage(a, "--%s is of vectors: give --format=vectors or csr", cli_given(a, "bits") ? "bits" : "unit");
    if (!vectors)
        return 0;
    if (!cli_given(a, "unit"))
        return cli_usage(a, "--create of vectors: give --unit, by which all weights become whole numbers");
    o->vector_bits = (uint32_t)cli_count(a, "bits");
    o->analyzer = cli_given(a, "analyzer") ? o->analyzer : NULL;
    return cli_read_unit(a, &o->unit);
}

/* Make the collection if it is not there. One that is there must take documents as the flags say, if any is given. */
static int create(const cli_args *a)
{
    attribute_list attributes = {0};
    field_list fields = {0};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_error err = {0};
    bool made;
    const bool exists = access(a->argv[0], F_OK) == 0;
    int code = attribute_list_read(&attributes, a);
    if (code == 0)
        code = field_list_read(&fields, a);
    if (code == 0 && fields.fixed)
        code = cli_usage(a, "--field: a collection has no fixed weights of fields; leave out :w=N");
    o.analyzer = cli_text(a, "analyzer");
    o.stemmer = cli_text(a, "stemmer");
    o.stopwords = cli_text(a, "stopwords");
    o.fold = cli_text(a, "fold");
    o.ngrams = cli_text(a, "ngrams");
    o.docid_codec = cli_text(a, "codec");
    o.tf_codec = cli_text(a, "tf-codec");
    o.store_titles = cli_choice(a, "store") >= 1;
    o.store_text = cli_choice(a, "store") == 2;
    o.positions = cli_switch(a, "positions");
    if (code == 0)
        code = vectors_of(a, &o);
    o.attributes = attributes.attributes;
    o.n_attributes = attributes.n;
    o.bitmaps = attributes.bitmaps;
    o.fields = fields.fields;
    o.n_fields = fields.n;
    if (code == 0 && gx_collection_create(a->argv[0], exists && !given_build_flag(a) ? NULL : &o, &made, &err))
        code = cli_fail_error(&err);
    attribute_list_free(&attributes);
    field_list_free(&fields);
    return code;
}

/* Each commit takes and frees some megabytes, which else go back to the system each time. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

static int run_adding(const cli_args *a, bool update)
{
    adding x = {.args = a,
                .update = update,
                .merging = cli_choice(a, "merge") == 0,
                .commit_every = cli_count(a, "commit-every")};
    if (x.commit_every)
        keep_memory();
    int code = open_collection(&x.c, a, threads_of(a) - readers_of(a), cli_count(a, "memory"));
    if (code == 0)
        code = open_source(&x);
    if (code == 0) {
        x.bar = progress_begin("documents", gx_source_get_counts(x.source).raw_total);
        stop_on_signals();
        code = add_documents(&x);
        stop_no_more();
        progress_end(&x.bar);
        corpus_tell_notes(x.source);
        if (x.skipped > MAX_REPORTS)
            cli_warn("%s bad documents were skipped; the first %d are shown", show_count(x.skipped), MAX_REPORTS);
        if (code)
            tell_committed(&x);
    }
    gx_source_close(x.source);
    free(x.names);
    return end(a, close_collection(x.c, a, code));
}

static int run_add(const cli_args *a)
{
    const char *flag = given_build_flag(a);
    if (!cli_switch(a, "create") && flag)
        return cli_usage(a, "--%s is of a new collection: give --create", flag);
    const int code = cli_switch(a, "create") ? create(a) : 0;
    return code ? code : run_adding(a, false);
}

static int run_update(const cli_args *a)
{
    return run_adding(a, true);
}

/* clang-format off */
#define WAIT_FLAG \
    {"wait", 0, CLI_NUMBER, "SECONDS", "0", \
     "how long to wait while another process changes the collection; `--wait` alone: until that one is done. Without " \
     "it the command fails then", .max = 1e9, .bare = "1e9"}
#define CORPUS_FORMATS "jsonl|tsv|csv|trectext|trecweb|smart|warc|plain|files|vectors|csr"
#define CORPUS_FLAGS \
    {"format", 'f', CLI_CHOICE, CORPUS_FORMATS, NULL, \
     "the format of the corpus, see `gpuidx help build`; without it, the format is guessed, or is `vectors` where " \
     "the collection is of vectors"}, \
    {"columns", 0, CLI_TEXT, "LIST", NULL, "what each column of TSV or CSV holds, such as `id,-,-,title,text`"}, \
    {"members", 0, CLI_TEXT, "LIST", NULL, \
     "which members of JSONL hold id, title and text, such as `id=docno`, or `vector=weights`"}, \
    {"id", 0, CLI_CHOICE, "path|name|stem", "path", "of `-f files`: what of a file's path is the id"}, \
    {"encoding", 0, CLI_CHOICE, "utf-8|latin1", "utf-8", "how the corpus writes its characters"}, \
    {"max-record", 0, CLI_BYTES, "SIZE", "64M", "a line or document of more bytes than this is bad", .min = 1, \
     .max = 1 << 30}, \
    {"limit", 0, CLI_COUNT, "N", NULL, "read the first `N` documents only", .min = 1}, \
    {"on-error", 0, CLI_CHOICE, "fail|skip", "fail", \
     "what a bad document does: `fail` ends the command, which keeps its last commit; `skip` leaves the document " \
     "out"}, \
    {"commit-every", 0, CLI_COUNT, "N", NULL, \
     "commit after each `N` documents, so that readers see them; without it, once, at the end", .min = 1}, \
    {"merge", 0, CLI_CHOICE, "tiers|none", "tiers", \
     "`tiers`: with a commit, merge parts of about one size, see `gpuidx help merge`; `none`: leave them"}, \
    WAIT_FLAG, \
    {"memory", 'm', CLI_BYTES, "SIZE", "512M", "memory for the inversion", .min = 1 << 20}, \
    {"threads", 'j', CLI_COUNT, "N", "1", "use at most `N` threads; 0: one a processor", .max = 1024}
/* clang-format on */

static const cli_flag update_flags[] = {CORPUS_FLAGS, {NULL}};

static const cli_flag add_flags[] = {
    CORPUS_FLAGS,
    {"create", 0, CLI_SWITCH, NULL, NULL,
     "make the collection first if it is not there. The flags below say how it takes documents, as they do for "
     "`gpuidx build`; one that is there must take them alike"},
    {"attr", 0, CLI_LIST, "NAME:TYPE", NULL,
     "with `--create`, keep the field or column `NAME` as an attribute, see `gpuidx help build`; may be given several "
     "times"},
    {"field", 0, CLI_LIST, "NAME", NULL,
     "with `--create`, index these parts of a document as fields, see `gpuidx help build`"},
    {"store", 0, CLI_CHOICE, "none|title|text", "title", "with `--create`, what is kept besides ids"},
    {"positions", 0, CLI_SWITCH, NULL, NULL,
     "with `--create`, keep where each word stands in each document, which phrases need"},
    {"analyzer", 0, CLI_TEXT, "NAME", "english", "with `--create`, how text becomes terms, see `gpuidx help build`"},
    CLI_WORD_FLAGS,
    {"fold", 0, CLI_CHOICE, "none|unicode", NULL,
     "with `--create`, `unicode`: accents, ligatures, width and the like make no difference, see `gpuidx help build`"},
    {"ngrams", 0, CLI_TEXT, "LENGTHS", NULL,
     "with `--create`, divide words into n-grams of characters, see `gpuidx help build`"},
    CLI_CODEC_FLAGS,
    {"bits", 0, CLI_COUNT, "N", "8", "with `--create -f vectors`, the bits of most weights, 4 to 16", .min = 4,
     .max = 16},
    CLI_UNIT_FLAG("with `--create -f vectors`: ", "it must be given"),
    {NULL},
};

static const cli_section adding_sections[] = {
    {"Commits",
     "A commit appears whole: readers see all of it or none, those at work go on with the one that they have, and "
     "what a command reports as done survives a crash of the machine. A command that fails or is killed leaves the "
     "last commit. One process changes a collection at a time; another one is told so.\n"
     "\n"
     "Documents are analysed as the collection's others are, with its attributes, and stored as they are: titles, "
     "texts. Scores afterwards are those of an index that is built of the documents that are there.\n"
     "\n"
     "A collection of vectors (learned sparse weights, `gpuidx build -f vectors`) takes vectors. Their weights become "
     "multiples of the collection's unit, which stays: greater weights than the first ones take more bits, up to "
     "65,535 units. Scores are those of `gpuidx build --unit` of all vectors. Of a collection whose weights are all "
     "whole numbers, with the unit 1, fractions are bad input; `gpuidx build --unit` gives another one."},
    {NULL},
};

static const cli_section add_examples[] = {
    {"gpuidx add papers today.jsonl", "Another day's documents."},
    {"producer | gpuidx add papers -f jsonl - --commit-every=10000", "A stream, visible every 10,000 documents."},
    {"gpuidx add --create --wait --attr year:int papers today.jsonl",
     "The same command on every day, the first one included; it waits where another process adds, too."},
    {NULL},
};

const cli_command cmd_add = {
    .name = "add",
    .summary = "add documents to a collection",
    .synopsis = "[OPTIONS] COLLECTION CORPUS...",
    .description = "Reads documents and adds them to a collection (`gpuidx collect`) as a new part. An id that a "
                   "document of the collection has already makes a document bad; `gpuidx update` replaces it.",
    .sections = adding_sections,
    .examples = add_examples,
    .flags = add_flags,
    .common = "format columns members id on-error commit-every merge wait threads create attr store",
    .min_args = 2,
    .max_args = -1,
    .run = run_add,
};

static const cli_section update_examples[] = {
    {"gpuidx update papers corrections.jsonl", "Those documents anew; ids that are not there yet are added."},
    {NULL},
};

const cli_command cmd_update = {
    .name = "update",
    .summary = "replace documents of a collection, by id",
    .synopsis = "[OPTIONS] COLLECTION CORPUS...",
    .description = "Reads documents, deletes those of the same ids from a collection, and adds the new ones. Of an id "
                   "that comes several times the last document stays.",
    .sections = adding_sections,
    .examples = update_examples,
    .flags = update_flags,
    .common = "format columns members id on-error commit-every merge wait threads",
    .min_args = 2,
    .max_args = -1,
    .run = run_update,
};

/* ---- delete ---- */

/* Delete the documents whose bits are set, by their ids. */
static int delete_documents(gx_collection *c, const uint64_t *words)
{
    const gx_index *ix = gx_collection_index(c);
    const uint64_t n_docs = gx_index_n_docs(ix);
    gx_error err = {0};
    for (uint64_t w = 0; w * 64 < n_docs; ++w) {
        for (uint64_t d = w * 64, bits = words[w]; bits && d < n_docs; ++d, bits >>= 1) {
            size_t len;
            bool found;
            const char *id = bits & 1 ? gx_index_doc_id(ix, d, &len) : NULL;
            if (id && gx_collection_delete(c, id, len, &found, &err))
                return cli_fail_error(&err);
        }
    }
    return 0;
}

#define MATCHES_AT_ONCE (1u << 22)

/* Move the bits of up to `most` documents that match from words to matches. *n: how many. */
static int move_matches(gx_session *s, gx_engine *en, const gx_query *query, gx_query_options o, uint64_t *docids,
                        uint64_t *words, uint64_t *matches, uint32_t *n)
{
    const gx_results results = {.size = sizeof results, .docids64 = docids, .n_hits = n};
    gx_mask *mask = NULL;
    gx_error err = {0};
    int code = gx_mask_open(&mask, en, words, &err) ? cli_fail_error(&err) : 0;
    o.mask = mask;
    *n = 0;
    if (code == 0 && gx_search(s, query, 1, &o, &results, &err))
        code = cli_fail_error(&err);
    for (uint32_t i = 0; code == 0 && i < *n; ++i) {
        words[docids[i] / 64] &= ~(UINT64_C(1) << docids[i] % 64);
        matches[docids[i] / 64] |= UINT64_C(1) << docids[i] % 64;
    }
    gx_mask_close(mask);
    return code;
}

/* What a pattern stands for is not cut here: where some of its words were left out, as many documents would be deleted
 * too little, or, where it is negated, too much. */
static int check_patterns(const gx_index *ix, const gx_query *query, const gx_query_options *o)
{
    gx_highlighter *h;
    gx_error err = {0};
    int code = 0;
    if (gx_highlighter_open_options(&h, ix, query, o, &err))
        return cli_fail_error(&err);
    for (uint32_t i = 0; i < gx_highlighter_n_patterns(h) && code == 0; ++i) {
        gx_text pattern = {0};
        const gx_expansion *e = gx_highlighter_pattern(h, i, &pattern);
        if (e->n_matched > e->n)
            code = cli_fail(GX_EUSAGE,
                            "--query: %.*s stands for %s words, and at most %u are possible; nothing is deleted",
                            pattern.len < 80 ? (int)pattern.len : 80, pattern.len ? pattern.bytes : "",
                            show_count(e->n_matched), GX_MAX_TERMS);
        free(pattern.bytes);
    }
    gx_highlighter_close(h);
    return code;
}

/* Clear the bits of those documents that do not match the query. */
static int keep_matches(const cli_args *a, const gx_index *ix, uint64_t *words)
{
    const uint64_t n_docs = gx_index_n_docs(ix);
    const uint32_t k = n_docs < MATCHES_AT_ONCE ? (uint32_t)n_docs : MATCHES_AT_ONCE;
    const char *text = cli_text(a, "query");
    gx_engine_options cpu = GX_ENGINE_OPTIONS;
    gx_query_options o = GX_QUERY_OPTIONS;
    gx_index_stats stats = {.size = sizeof stats};
    gx_engine *en = NULL;
    gx_session *s = NULL;
    gx_error err = {0};
    uint64_t *docids = malloc((k + 1ull) * sizeof *docids), *matches = calloc(n_docs / 64 + 1, sizeof *matches);
    const gx_filter_options ids = {sizeof ids, document_filter_read_ids, (void *)&ix};
    const gx_query query = {.size = sizeof query,
                            .kind = cli_query_kind(cli_choice(a, "syntax")),
                            .text = text,
                            .len = strlen(text),
                            .filter_options = &ids};
    if (query.kind == GX_QUERY_TEXT)
        cli_note_operators(text, strlen(text), ix, &o);
    cpu.kind = GX_ENGINE_CPU;
    o.op = (gx_op)cli_choice(a, "op");
    o.op = o.op == GX_OP_AND_OR ? GX_OP_OR : o.op; /* its answer where all are asked for */
    o.k = k ? k : 1;
    o.expansion.max_words = GX_MAX_TERMS;
    gx_index_get_quick_stats(ix, &stats);
    if (stats.impacts)
        o.preset = GX_IMPACT;
    int code = docids && matches ? 0 : cli_fail(GX_ENOMEM, "no memory for the documents that match");
    if (code == 0)
        code = check_patterns(ix, &query, &o);
    if (code == 0 && (gx_engine_open(&en, ix, &cpu, &err) || gx_session_open(&s, en, &err)))
        code = cli_fail_error(&err);
    for (uint32_t n = k; code == 0 && n && n == k;)
        code = move_matches(s, en, &query, o, docids, words, matches, &n);
    if (code == 0)
        memcpy(words, matches, (n_docs / 64 + 1) * sizeof *words);
    gx_session_close(s);
    gx_engine_close(en);
    free(docids);
    free(matches);
    return code;
}

static int delete_chosen(const cli_args *a, gx_collection *c)
{
    const gx_index *ix = gx_collection_index(c);
    document_filter f = {0};
    bool merging = cli_choice(a, "merge") == 0;
    uint64_t *words = calloc(gx_index_n_docs(ix) / 64 + 1, sizeof *words);
    if (!words)
        return cli_fail(GX_ENOMEM, "no memory for %llu documents", (unsigned long long)gx_index_n_docs(ix));
    int code = document_filter_read(&f, ix, cli_text(a, "ids"), NULL, cli_text(a, "filter"));
    for (uint64_t w = 0; code == 0 && w * 64 < gx_index_n_docs(ix); ++w)
        words[w] = f.words ? f.words[w] : UINT64_MAX;
    if (code == 0 && cli_given(a, "query") && !cli_switch(a, "all"))
        code = keep_matches(a, ix, words);
    if (code == 0)
        code = delete_documents(c, words);
    if (code == 0)
        code = commit_and_merge(c, a, &merging);
    document_filter_free(&f);
    free(words);
    return code;
}

/* Whether the query has no words, or is * of the boolean syntax. */
static bool is_of_all(const cli_args *a)
{
    static const char blanks[] = " \t\r\n\v\f";
    const char *text = cli_text(a, "query");
    text += strspn(text, blanks);
    text += cli_query_kind(cli_choice(a, "syntax")) == GX_QUERY_BOOLEAN && *text == '*';
    return !text[strspn(text, blanks)];
}

static int run_delete(const cli_args *a)
{
    gx_collection *c = NULL;
    if (!cli_given(a, "ids") && !cli_given(a, "query") && !cli_given(a, "filter") && !cli_switch(a, "all"))
        return cli_usage(a, "which documents? Say it with --ids, --query or --filter, or --all");
    if (cli_given(a, "query") && is_of_all(a) && !cli_switch(a, "all"))
        return cli_usage(a, "--query='%s' matches all documents; --all deletes them", cli_text(a, "query"));
    if (cli_given(a, "query") && !is_of_all(a) && cli_switch(a, "all"))
        return cli_usage(a, "--all and --query: one of them");
    int code = open_collection(&c, a, 1, 0);
    if (code == 0) {
        stop_on_signals();
        code = delete_chosen(a, c);
        stop_no_more();
    }
    return end(a, close_collection(c, a, code));
}

static const cli_flag delete_flags[] = {
    {"ids", 0, CLI_TEXT, "FILE", NULL,
     "delete the documents whose ids `FILE` has, one on each line. Ids that the collection does not have are passed "
     "over, and a note says how many"},
    {"query", 0, CLI_TEXT, "QUERY", NULL, "delete the documents that match a query, see `gpuidx help query`"},
    {"all", 0, CLI_SWITCH, NULL, NULL,
     "delete all documents, of which `--ids` and `--filter` may leave some; without it a `--query` that is empty, or "
     "`*` of the boolean syntax, is refused"},
    {"filter", 0, CLI_FILTER, "EXPRESSION", NULL,
     "delete the documents whose attributes are so, such as `year:<1990`, see `gpuidx help query`"},
    {"op", 0, CLI_CHOICE, CLI_OPS, "and", "of `--query`: which documents match, see `gpuidx help query`"},
    {"syntax", 0, CLI_CHOICE, CLI_SYNTAXES, "plain", "of `--query`: how it is read, see `gpuidx help query`"},
    {"merge", 0, CLI_CHOICE, "tiers|none", "tiers",
     "`tiers`: write parts of which more than a third is deleted anew, see `gpuidx help merge`; `none`: leave them"},
    WAIT_FLAG,
    {NULL},
};

static const cli_section delete_examples[] = {
    {"gpuidx delete papers --ids retracted.txt", "By id."},
    {"gpuidx delete papers --filter 'year:<1990' --query draft", "Of the old ones those with a word."},
    {NULL},
};

const cli_command cmd_delete = {
    .name = "delete",
    .summary = "delete documents from a collection",
    .synopsis = "COLLECTION [--ids FILE] [--query QUERY] [--filter EXPRESSION]",
    .description = "Deletes the documents of a collection (`gpuidx collect`) that all conditions given select. Scores "
                   "afterwards are those of an index that never had them.",
    .sections = adding_sections,
    .examples = delete_examples,
    .flags = delete_flags,
    .min_args = 1,
    .max_args = 1,
    .run = run_delete,
};

/* ---- merge ---- */

static int run_merge(const cli_args *a)
{
    gx_collection *c = NULL;
    gx_error err = {0};
    int code = open_collection(&c, a, threads_of(a), 0);
    if (code == 0) {
        stop_on_signals();
        const gx_status st = gx_collection_merge(c, cli_choice(a, "policy") ? GX_MERGE_ALL : GX_MERGE_TIERS, &err);
        if (st != GX_OK && st != GX_ECANCELLED)
            code = cli_fail_error(&err);
        stop_no_more();
    }
    return end(a, close_collection(c, a, code));
}

static const cli_flag merge_flags[] = {
    {"policy", 0, CLI_CHOICE, "tiers|all", "tiers", "which parts are merged"},
    {"threads", 'j', CLI_COUNT, "N", "1",
     "use at most `N` threads for the lists; 0: one a processor. The result is the same for any number", .max = 1024},
    WAIT_FLAG,
    {NULL},
};

static const cli_section merge_sections[] = {
    {"Policies",
     "  tiers   4 neighbouring parts of about one size become one, again and again;\n"
     "          a part of which more than a third is deleted is written anew\n"
     "  all     one part, without deleted documents; the fastest to search\n"
     "\n"
     "With `tiers` there are at most 3 parts of each of the sizes 10,000, 40,000, 160,000 documents and so on, and "
     "each "
     "document is written once a size. `add`, `update` and `delete` merge so by themselves, unless told not to."},
    {NULL},
};

static const cli_section merge_examples[] = {
    {"gpuidx merge papers --policy=all", "After the last change for a while."},
    {NULL},
};

const cli_command cmd_merge = {
    .name = "merge",
    .summary = "merge parts of a collection",
    .synopsis = "[OPTIONS] COLLECTION",
    .description = "Writes several parts of a collection as one, without the deleted documents. Answers stay the same, "
                   "to the bit, and fewer parts are searched faster.",
    .sections = merge_sections,
    .examples = merge_examples,
    .flags = merge_flags,
    .min_args = 1,
    .max_args = 1,
    .run = run_merge,
};
