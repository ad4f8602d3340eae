/* collection.h: small random collections, and index files of them, for tests of the index file. */
#ifndef GX_TESTS_SUPPORT_COLLECTION_H
#define GX_TESTS_SUPPORT_COLLECTION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "index/write/writer.h"
#include "tests/support/test.h"

#define META                                                                                                           \
    "{\"analyzer\":{\"tokenizer\":\"whitespace\",\"lowercase\":false,\"possessive\":false,\"max_token_bytes\":255,"    \
    "\"stopwords\":[],\"stemmer\":\"none\"}}"

typedef struct posting_list {
    char term[32];
    size_t len;
    uint32_t df, *docids, *tfs;
} posting_list;

typedef struct collection {
    uint32_t n_docs, n_terms;
    posting_list *lists; /* by term */
    uint32_t *doc_lens;
    char (*ids)[24], (*titles)[48];
    char **texts;
    bool with_titles, with_texts, impacts; /* impacts: the tfs are such */
    double unit;                           /* of the impacts; 0: 1 */
    bool list_units;                       /* the list of term t has the unit 0.5 + t */
    bool with_positions;                   /* those of collection_position, and titles of collection_title */
} collection;

static inline char *random_text(uint64_t *seed)
{
    static const char *const words[] = {"merge", "find", "skip", "block", "posting", "of", "the", "\xc3\xa9tude"};
    const size_t n = gx_random_next(seed) % 60;
    char *text = calloc(n * 10 + 1, 1);
    for (size_t i = 0; i < n; ++i)
        strcat(strcat(text, words[gx_random_next(seed) % 8]), " ");
    return text;
}

/* Terms get shares of the documents from all of them down to one; tfs are mostly 1. */
static inline collection *collection_make(uint64_t seed, uint32_t n_docs, uint32_t n_terms)
{
    collection *c = calloc(1, sizeof *c);
    c->n_docs = n_docs;
    c->n_terms = n_docs ? n_terms : 0;
    c->lists = calloc(c->n_terms + 1, sizeof *c->lists);
    c->doc_lens = calloc(n_docs + 1, sizeof *c->doc_lens);
    c->ids = calloc(n_docs + 1, sizeof *c->ids);
    c->titles = calloc(n_docs + 1, sizeof *c->titles);
    c->texts = calloc(n_docs + 1, sizeof *c->texts);
    c->with_titles = gx_random_next(&seed) % 2;
    c->with_texts = gx_random_next(&seed) % 2;
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        posting_list *l = &c->lists[t];
        l->len =
            (size_t)snprintf(l->term, sizeof l->term, "term%06u%.*s", t, (int)(gx_random_next(&seed) % 8), "abcdefgh");
        l->docids = malloc(n_docs * sizeof *l->docids);
        l->tfs = malloc(n_docs * sizeof *l->tfs);
        const uint64_t share = t == 0 ? UINT64_MAX : UINT64_MAX >> gx_random_next(&seed) % 12;
        for (uint32_t d = 0; d < n_docs; ++d)
            if (gx_random_next(&seed) <= share) {
                l->docids[l->df] = d;
                l->tfs[l->df++] = 1 + (uint32_t)(gx_random_next(&seed) % 16 ? gx_random_next(&seed) % 3
                                                                            : gx_random_next(&seed) % 5000);
            }
        if (l->df == 0) {
            l->docids[0] = (uint32_t)(gx_random_next(&seed) % n_docs);
            l->tfs[0] = 1;
            l->df = 1;
        }
        for (uint32_t i = 0; i < l->df; ++i)
            c->doc_lens[l->docids[i]] += l->tfs[i];
    }
    for (uint32_t d = 0; d < n_docs; ++d) {
        snprintf(c->ids[d], sizeof c->ids[d], "%s-%u", d % 3 ? "doc" : "document", d);
        if (c->with_titles && d % 5)
            snprintf(c->titles[d], sizeof c->titles[d], "On the %u-th matter", d);
        c->texts[d] = random_text(&seed);
    }
    return c;
}

static inline void collection_free(collection *c)
{
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        free(c->lists[t].docids);
        free(c->lists[t].tfs);
    }
    for (uint32_t d = 0; d < c->n_docs; ++d)
        free(c->texts[d]);
    free(c->lists);
    free(c->doc_lens);
    free(c->ids);
    free(c->titles);
    free(c->texts);
    free(c);
}

/* The k-th position of list t in document d, and the positions of its title. */
static inline uint32_t collection_position(uint32_t t, uint32_t d, uint32_t k)
{
    return (d * 5 + t) % 40 + k * (1 + (d + t) % 3);
}

static inline uint32_t collection_title(uint32_t d)
{
    return d == 300 ? 300 : d % 9;
}

/* All positions of list t, which the caller frees. */
static inline uint32_t *collection_positions(const collection *c, uint32_t t)
{
    const posting_list *l = &c->lists[t];
    size_t n = 0;
    for (uint32_t i = 0; i < l->df; ++i)
        n += l->tfs[i];
    uint32_t *const positions = malloc((n + 1) * sizeof *positions), *p = positions;
    for (uint32_t i = 0; i < l->df; ++i)
        for (uint32_t k = 0; k < l->tfs[i]; ++k)
            *p++ = collection_position(t, l->docids[i], k);
    return positions;
}

/* Give the documents and the lists to an open writer. */
static inline gx_status collection_add(const collection *c, gx_writer *w, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t d = 0; d < c->n_docs && st == GX_OK; ++d)
        st = gx_writer_add_document(w,
                                    &(gx_document){.id = c->ids[d],
                                                   .id_len = strlen(c->ids[d]),
                                                   .title = c->titles[d],
                                                   .title_len = strlen(c->titles[d]),
                                                   .text = c->texts[d],
                                                   .text_len = strlen(c->texts[d])},
                                    c->doc_lens[d], err);
    for (uint32_t d = 0; d < c->n_docs && st == GX_OK && c->with_positions; ++d) {
        const uint32_t title = collection_title(d);
        st = gx_writer_add_title_positions(w, &title, 1, err);
    }
    for (uint32_t t = 0; t < c->n_terms && st == GX_OK; ++t) {
        uint32_t *const positions = c->with_positions ? collection_positions(c, t) : NULL;
        st = gx_writer_add_postings(w,
                                    &(gx_term_postings){.term = c->lists[t].term,
                                                        .len = c->lists[t].len,
                                                        .df = c->lists[t].df,
                                                        .docids = c->lists[t].docids,
                                                        .tfs = c->lists[t].tfs,
                                                        .positions = positions,
                                                        .unit = 0.5f + (float)t},
                                    err);
        free(positions);
    }
    return st;
}

static const uint8_t collection_uuid[16] = {1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16};

static inline gx_status collection_write(const collection *c, const char *path, const gx_codec *docids,
                                         const gx_codec *tfs, gx_error *err)
{
    gx_writer_options opt = GX_WRITER_OPTIONS;
    gx_writer *w;
    opt.force = true;
    opt.docids = docids;
    opt.tfs = tfs;
    opt.store_text = c->with_texts;
    opt.impacts = c->impacts;
    opt.list_units = c->list_units;
    opt.positions = c->with_positions;
    opt.uuid = collection_uuid;
    gx_status st = gx_writer_open(&w, path, &opt, err);
    if (st == GX_OK)
        st = collection_add(c, w, err);
    if (st == GX_OK && c->unit > 0)
        gx_writer_set_unit(w, c->unit);
    if (st == GX_OK)
        st = gx_writer_finish(w, META, err);
    gx_writer_close(w);
    return st;
}

#endif
