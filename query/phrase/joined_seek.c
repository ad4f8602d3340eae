/* joined_seek.c: searches of phrases with places of several words, and of groups. The lists of such a place are joined
 * (index/joined_lists.h), and what is left is a search of plain phrases and words:
 *
 *   "new yor*"      a phrase of two lists, the second of which is joined, with positions
 *   group           a word whose list is joined
 *   constant group  the same; it does not score, and its weight is added to all that is found
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/joined_lists.h"
#include "query/phrase/seek.h"

#define NONE UINT32_MAX
#define FEW 8u /* a list of a phrase with so many times fewer postings leaves out those of a joined one */

typedef struct joining {
    const gx_seek *s;
    gx_list_join *joins; /* [n] lists of the index that is made */
    uint32_t *lists;     /* of the joins, one behind another */
    uint32_t *plain;     /* [n_plain] numbers of lists of one word each */
    uint32_t n, n_lists, n_plain;
    gx_sought_word *words;
    gx_sought_phrase *phrases;
    gx_phrase_word *phrase_words;
    uint32_t n_words, n_phrases, n_phrase_words;
    uint64_t *keep; /* the documents of a rare word of the only phrase, or NULL */
    gx_index *ix;
    uint32_t constant, threshold; /* added to all scores; what is left of the threshold */
} joining;

bool gx_phrase_has_others(const gx_phrase *p)
{
    bool any = gx_phrase_is_group(p->kind);
    for (uint32_t w = 0; w < p->n && !any; ++w)
        any = p->words[w].other;
    return any;
}

static int by_list(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The number of a list that is made of words[n], each of which counts once. */
static uint32_t add_join(joining *j, const gx_phrase_word *words, uint32_t n, bool positions)
{
    uint32_t *lists = j->lists + j->n_lists, kept = 0;
    for (uint32_t i = 0; i < n; ++i)
        lists[i] = words[i].list;
    if (n > 1)
        qsort(lists, n, sizeof *lists, by_list);
    for (uint32_t i = 0; i < n; ++i)
        if (kept == 0 || lists[kept - 1] != lists[i])
            lists[kept++] = lists[i];
    j->n_lists += kept;
    j->joins[j->n] = (gx_list_join){lists, kept, positions, NULL};
    return j->n++;
}

/* The number of one word's list; the same word is the same list. */
static uint32_t add_word(joining *j, uint32_t list)
{
    for (uint32_t i = 0; i < j->n_plain; ++i)
        if (j->joins[j->plain[i]].lists[0] == list)
            return j->plain[i];
    j->plain[j->n_plain] = add_join(j, &(gx_phrase_word){.list = list}, 1, false);
    return j->plain[j->n_plain++];
}

/* A group's list is its own, though another word may be the same: each has its weight. */
static void add_group(joining *j, const gx_sought_phrase *p)
{
    const bool scores = p->phrase.kind == GX_PHRASE_ANY;
    const uint32_t list = add_join(j, p->phrase.words, p->phrase.n, false);
    j->words[j->n_words++] = (gx_sought_word){list, scores ? p->w : -1};
    if (!scores)
        j->constant += (uint32_t)lrintf(p->w);
}

static void add_phrase(joining *j, const gx_sought_phrase *p)
{
    gx_phrase_word *words = j->phrase_words + j->n_phrase_words;
    uint32_t n = 0;
    for (uint32_t w = 0, end; w < p->phrase.n; w = end) {
        for (end = w + 1; end < p->phrase.n && p->phrase.words[end].other; ++end)
            ;
        const gx_phrase_word *first = &p->phrase.words[w];
        const uint32_t list = end == w + 1 ? add_word(j, first->list) : add_join(j, first, end - w, true);
        words[n++] = (gx_phrase_word){list, first->offset, false};
    }
    j->n_phrase_words += n;
    j->phrases[j->n_phrases++] = (gx_sought_phrase){{p->phrase.kind, p->phrase.slop, n, words}, p->w};
}

/* ---- which documents a joined list needs ---- */

static uint64_t df_of(const joining *j, const gx_list_join *join)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < join->n; ++i)
        n += j->s->ix->lists[join->lists[i]].df;
    return n;
}

static bool mark_list(uint64_t *words, const gx_index *ix, uint32_t list)
{
    uint32_t docids[GX_MAX_BLOCK + 32];
    const gx_list l = gx_index_list(ix, list);
    for (uint32_t b = 0; b < l.n_blocks; ++b) {
        const uint32_t n = gx_list_decode_docids(&l, b, docids);
        for (uint32_t i = 0; i < n; ++i)
            if (docids[i] < ix->n_docs)
                words[docids[i] / 64] |= UINT64_C(1) << docids[i] % 64;
    }
    return true;
}

/* All that is sought must be held: postings of a joined list count in the documents of the rarest list alone. */
static bool find_kept(joining *j)
{
    const gx_index *ix = j->s->ix;
    const size_t n_words = ((size_t)ix->n_docs + 63) / 64;
    uint32_t rarest = NONE;
    uint64_t most = 0, least = UINT64_MAX;
    for (uint32_t i = 0; i < j->n; ++i) {
        const uint64_t df = df_of(j, &j->joins[i]);
        if (j->joins[i].n == 1 && df < least) {
            least = df;
            rarest = i;
        }
        most = j->joins[i].n > 1 && df > most ? df : most;
    }
    const bool given = j->s->docids && j->s->n_docids * (uint64_t)FEW < most;
    if (!given && (rarest == NONE || least * FEW >= most))
        return true;
    if (!(j->keep = calloc(n_words + 1, sizeof *j->keep)))
        return false;
    if (given)
        for (uint32_t i = 0; i < j->s->n_docids; ++i)
            j->keep[j->s->docids[i] / 64] |= UINT64_C(1) << j->s->docids[i] % 64;
    else
        mark_list(j->keep, ix, j->joins[rarest].lists[0]);
    for (uint32_t i = 0; i < j->n; ++i)
        j->joins[i].keep = j->keep;
    return true;
}

/* ---- what is found ---- */

static void settle_threshold(joining *j)
{
    if (j->s->threshold)
        j->threshold = *j->s->threshold > j->constant ? *j->s->threshold - j->constant : 0;
}

static bool take(void *user, const gx_found *found)
{
    joining *j = user;
    uint32_t *scores = (uint32_t *)found->scores; /* it has no other use for them */
    for (uint32_t i = 0; i < found->n && scores && j->constant; ++i)
        scores[i] += j->constant;
    const bool go_on = j->s->take(j->s->user, found);
    settle_threshold(j);
    return go_on;
}

/* ---- run ---- */

static bool alloc_joining(joining *j, const gx_seek *s)
{
    size_t n = s->n_words;
    for (uint32_t i = 0; i < s->n_phrases; ++i)
        n += s->phrases[i].phrase.n;
    j->joins = malloc((n + 1) * sizeof *j->joins);
    j->lists = malloc((n + 1) * sizeof *j->lists);
    j->plain = malloc((n + 1) * sizeof *j->plain);
    j->words = malloc(((size_t)s->n_words + s->n_phrases + 1) * sizeof *j->words);
    j->phrases = malloc((s->n_phrases + 1ull) * sizeof *j->phrases);
    j->phrase_words = malloc((n + 1) * sizeof *j->phrase_words);
    return j->joins && j->lists && j->plain && j->words && j->phrases && j->phrase_words;
}

static bool has_lists(const joining *j)
{
    for (uint32_t i = 0; i < j->n; ++i)
        if (j->ix->lists[i].df == 0)
            return false;
    return true;
}

static gx_status run_joined(joining *j, gx_error *err)
{
    const gx_seek *s = j->s;
    gx_seek plain = *s;
    for (uint32_t i = 0; i < s->n_words; ++i)
        j->words[j->n_words++] = (gx_sought_word){add_word(j, s->words[i].list), s->words[i].w};
    for (uint32_t i = 0; i < s->n_phrases; ++i) {
        if (gx_phrase_is_group(s->phrases[i].phrase.kind))
            add_group(j, &s->phrases[i]);
        else
            add_phrase(j, &s->phrases[i]);
    }
    if (!find_kept(j))
        return gx_fail(err, GX_ENOMEM, "no memory for the documents of a phrase");
    const gx_status st = gx_joined_open(&j->ix, s->ix, j->joins, j->n, err);
    if (st != GX_OK || !has_lists(j))
        return st;
    settle_threshold(j);
    plain.ix = j->ix;
    plain.words = j->words;
    plain.n_words = j->n_words;
    plain.phrases = j->phrases;
    plain.n_phrases = j->n_phrases;
    plain.threshold = s->threshold ? &j->threshold : NULL;
    plain.take = take;
    plain.user = j;
    return gx_seek_run_plain(&plain, err);
}

gx_status gx_seek_run(const gx_seek *s, gx_error *err)
{
    joining j = {.s = s};
    gx_status st = GX_OK;
    bool others = false;
    for (uint32_t i = 0; i < s->n_phrases; ++i) {
        others = others || gx_phrase_has_others(&s->phrases[i].phrase);
        if (!gx_phrase_is_known(&s->phrases[i].phrase))
            return GX_OK;
    }
    if (!others)
        return gx_seek_run_plain(s, err);
    st = alloc_joining(&j, s) ? run_joined(&j, err) : gx_fail(err, GX_ENOMEM, "no memory for the lists of a query");
    gx_joined_close(j.ix);
    free(j.joins);
    free(j.lists);
    free(j.plain);
    free(j.words);
    free(j.phrases);
    free(j.phrase_words);
    free(j.keep);
    return st;
}
