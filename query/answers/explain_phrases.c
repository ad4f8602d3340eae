/* explain_phrases.c: what phrases add to the score of a document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/read/collection.h"
#include "query/answers/explain.h"

size_t gx_phrase_text_bytes(const gx_query_phrase *p)
{
    size_t n = 40; /* a word may have a sign on each side */
    for (uint32_t w = 0; w < p->n; ++w)
        n += p->words[w].len + 3;
    return n;
}

/* Words that analysis has left out, more than this, are one sign. */
#define MOST_GAPS 8u

size_t gx_phrase_text_write(const gx_query_phrase *p, char *text)
{
    char *at = text;
    if (p->kind == GX_PHRASE_WORDS)
        *at++ = '"';
    else if (gx_phrase_is_group(p->kind))
        at += sprintf(at, p->kind == GX_PHRASE_ANY ? "any(" : "constant(");
    else
        at += sprintf(at, "%s/%u(", p->kind == GX_PHRASE_NEAR ? "NEAR" : "ONEAR", p->slop);
    for (uint32_t w = 0; w < p->n; ++w) {
        if (w)
            *at++ = p->words[w].other ? '|' : ' ';
        if (w && p->words[w].offset > p->words[w - 1].offset + 1)
            at += sprintf(at, "_ ");
        memcpy(at, p->words[w].term, p->words[w].len);
        at += p->words[w].len;
    }
    *at++ = p->kind == GX_PHRASE_WORDS ? '"' : ')';
    if (p->kind == GX_PHRASE_WORDS && p->slop)
        at += sprintf(at, "~%u", p->slop);
    return (size_t)(at - text);
}

typedef struct found_count {
    const gx_deletes *deletes;
    uint64_t n;
    uint32_t tf;
} found_count;

static bool count_found(void *user, const gx_found *f)
{
    found_count *c = user;
    for (uint32_t i = 0; i < f->n; ++i)
        c->n += !c->deletes || gx_deletes_is_live(c->deletes, f->docids[i]);
    c->tf = f->n ? f->phrase_tfs[f->n - 1] : c->tf;
    return true;
}

/* Count the documents of a file that match phrase `number` of all; *docid, or NULL: of all documents. */
static gx_status seek_phrase(found_count *c, const struct gx_query_phrases *all, uint32_t number, const gx_index *ix,
                             const uint32_t *docid, gx_error *err)
{
    const gx_query_phrase *of = &all->phrases[number];
    gx_phrase_word *words = malloc(of->n * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory to explain a phrase");
    for (uint32_t w = 0; w < of->n; ++w)
        words[w] = (gx_phrase_word){gx_index_find_term(ix, of->words[w].term, of->words[w].len), of->words[w].offset,
                                    of->words[w].other};
    const uint32_t known = gx_phrase_keep_known(words, of->n, of->kind);
    const gx_sought_phrase phrase = {{of->kind, of->slop, known, words}, 0};
    const gx_seek s = {.ix = ix,
                       .phrases = &phrase,
                       .n_phrases = 1,
                       .docids = docid,
                       .n_docids = docid != NULL,
                       .take = count_found,
                       .user = c};
    const gx_status st = known ? gx_seek_run(&s, err) : GX_OK;
    free(words);
    return st;
}

/* A group's df is the greatest of its words', by which it is weighed. */
static void explain_group(gx_explain_term *x, const gx_query_phrase *p, const gx_index *ix, uint32_t docid)
{
    const gx_query_phrase_word *before = NULL;
    for (uint32_t w = 0; w < p->n; before = &p->words[w++]) {
        const gx_query_phrase_word *word = &p->words[w];
        const uint32_t list = gx_index_find_term(ix, word->term, word->len);
        x->df = word->df > x->df ? word->df : x->df;
        if (list == UINT32_MAX ||
            (before && before->len == word->len && memcmp(before->term, word->term, word->len) == 0))
            continue;
        const gx_list l = gx_index_list(ix, list);
        x->tf += gx_find_tf(&l, docid);
    }
}

gx_status gx_explain_phrase(gx_explain_term *x, const struct gx_query_phrases *all, uint32_t number, const gx_index *ix,
                            uint64_t docid, gx_error *err)
{
    found_count matches = {0}, here = {0};
    uint32_t local = (uint32_t)docid;
    const gx_part *part = ix->parts ? gx_parts_find(ix->parts, docid, &local) : NULL;
    gx_status st = GX_OK;
    x->qtf = all->phrases[number].qtf;
    x->idf = all->phrases[number].idf;
    x->unit = 1;
    if (gx_phrase_is_group(all->phrases[number].kind)) {
        explain_group(x, &all->phrases[number], part ? part->ix : ix, local);
        return GX_OK;
    }
    for (uint32_t i = 0; i < (part ? ix->parts->n : 1) && st == GX_OK; ++i) {
        matches.deletes = part ? ix->parts->parts[i].deletes : NULL;
        st = seek_phrase(&matches, all, number, part ? ix->parts->parts[i].ix : ix, NULL, err);
    }
    if (st == GX_OK)
        st = seek_phrase(&here, all, number, part ? part->ix : ix, &local, err);
    x->df = matches.n;
    x->tf = here.tf;
    return st;
}
