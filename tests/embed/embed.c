/* embed.c: a program that uses the installed library: three documents become an index, a query is
 * answered, and the lists of its terms are printed. tests/embed/run.sh compiles it against the
 * shared and the static library.
 */
#include <gpuidx_advanced.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const gx_error *err)
{
    fprintf(stderr, "embed: %s\n", err->text);
    return gx_status_exit(err->status);
}

static gx_status build(const char *path, gx_error *err)
{
    static const char *const texts[][2] = {
        {"a", "Graphics processors have many threads."},
        {"b", "An inverted index holds a list for every term."},
        {"c", "Threads of a graphics processor intersect the lists of an index."},
    };
    gx_builder_options options;
    gx_builder *builder;
    gx_status st;
    gx_builder_options_init(&options, sizeof options);
    options.path = path;
    options.force = true;
    st = gx_builder_open(&builder, &options, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && st == GX_OK; ++i) {
        gx_document doc = GX_SIZED(gx_document);
        doc.id = texts[i][0];
        doc.id_len = strlen(texts[i][0]);
        doc.text = texts[i][1];
        doc.text_len = strlen(texts[i][1]);
        st = gx_builder_add(builder, &doc, err);
    }
    if (st == GX_OK)
        st = gx_builder_finish(builder, err);
    gx_builder_abort(builder);
    return st;
}

/* The postings of a term: "thread: in 2 documents, 2 times: a 1, c 1". */
static gx_status print_list(const gx_index *index, uint32_t term, gx_error *err)
{
    gx_postings *walk;
    const uint32_t *docids, *tfs;
    uint32_t n;
    size_t len;
    const char *bytes = gx_index_term(index, term, &len), *between = ":";
    printf("%.*s: in %llu documents, %llu times", (int)len, bytes, (unsigned long long)gx_index_df(index, term),
           (unsigned long long)gx_index_cf(index, term));
    gx_status st = gx_postings_open(&walk, index, term, err);
    while (st == GX_OK && (st = gx_postings_next(walk, &docids, &tfs, &n, err)) == GX_OK && n > 0)
        for (uint32_t i = 0; i < n; ++i, between = ",") {
            const char *id = gx_index_doc_id(index, docids[i], &len);
            printf("%s %.*s %u", between, (int)len, id, tfs[i]);
        }
    putchar('\n');
    gx_postings_close(walk);
    return st;
}

/* The lists of a text's terms, those that the index has. */
static gx_status print_lists(const gx_index *index, const char *text, gx_error *err)
{
    gx_text_term *terms;
    size_t n = 0;
    gx_status st = gx_index_analyze(index, text, strlen(text), &terms, &n, err);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        const uint32_t term = gx_index_find_term(index, terms[i].term, terms[i].len);
        if (term == UINT32_MAX)
            printf("%s: in no document\n", terms[i].term);
        else
            st = print_list(index, term, err);
    }
    free(terms);
    return st;
}

/* The index written anew with another codec, in place: whoever has it open keeps the old file. */
static gx_status recode(const gx_index *index, const char *path, const char *codec, gx_error *err)
{
    static gx_index_sizes sizes;
    gx_rewrite_options options;
    gx_index *again;
    gx_rewrite_options_init(&options, sizeof options);
    options.force = true;
    options.docid_codec = codec;
    gx_status st = gx_index_rewrite(index, path, &options, err);
    if (st == GX_OK)
        st = gx_index_open(&again, path, NULL, err);
    if (st == GX_OK) {
        gx_index_measure(again, &sizes);
        printf("docids by %s\n", sizes.codings[0].docid_codec);
        gx_index_close(again);
    }
    return st;
}

int main(int argc, char **argv)
{
    enum { K = 10 };
    const char *text = "index of threads";
    gx_index *index = NULL;
    gx_engine *engine = NULL;
    gx_session *session = NULL;
    gx_error err = {0};
    uint32_t docids[K], n_hits = 0;
    float scores[K];
    gx_query query;
    gx_query_options options;
    gx_results results = GX_RESULTS(docids, scores, &n_hits);

    if (argc != 2) {
        fputs("usage: embed INDEX\n", stderr);
        return 2;
    }
    gx_query_init(&query, sizeof query, text, strlen(text));
    gx_query_options_init(&options, sizeof options);
    options.k = K;
    if (build(argv[1], &err) != GX_OK || gx_index_open(&index, argv[1], NULL, &err) != GX_OK ||
        gx_engine_open(&engine, index, NULL, &err) != GX_OK || gx_session_open(&session, engine, &err) != GX_OK ||
        gx_search(session, &query, 1, &options, &results, &err) != GX_OK)
        return fail(&err);
    for (uint32_t i = 0; i < n_hits; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(index, docids[i], &len);
        printf("%u %.*s %.4f\n", i + 1, (int)len, id, scores[i]);
    }
    for (uint32_t i = 0; gx_codec_name(i); ++i)
        if (strcmp(gx_codec_name(i), "gpupfd128") == 0 && recode(index, argv[1], gx_codec_name(i), &err) != GX_OK)
            return fail(&err);
    if (print_lists(index, "Three threads of an index", &err) != GX_OK)
        return fail(&err);
    gx_session_close(session);
    gx_engine_close(engine);
    gx_index_close(index);
    return 0;
}
