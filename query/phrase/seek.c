#include "query/phrase/seek.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/fields/fields.h"
#include "index/positions.h"
#include "query/filter/mask.h"
#include "query/phrase/intersect.h"

#define NONE UINT32_MAX
#define CANCEL_EVERY 64u   /* batches between two calls of cancel */
#define SLACK (1 + 1e-6)   /* more than the roundings of an impact */
#define FEW_WORDS 16u      /* of a phrase whose words are taken one after the other */
#define DENSE 384u         /* a block is decoded whole where it has at most so many positions a candidate */
#define MAX_WHOLE 65536u   /* positions of a block that is decoded whole */
#define FEW_OF_MASK 4u     /* a mask with so many times fewer documents than the shortest list drives the search */
#define LOSSY_LENGTH 1.125 /* a length is at most this many times what gx_lossy_length keeps */

/* A list, and where its search stands. */
typedef struct cursor {
    gx_list list;
    uint32_t id;
    uint32_t shift;                 /* a block has 2^shift postings; 0: another number */
    uint64_t first_block;           /* among all of the index */
    uint32_t block;                 /* the last one that begins at or before the last candidate */
    uint32_t docid_block, tf_block; /* whose docids and tfs are decoded; NONE: of none */
    uint32_t sum_at;                /* the tfs before this place of tf_block .. */
    uint64_t sum, total;            /* .. are so many positions, all together `total`; 0: not yet known */
    gx_position_place place;        /* of tf_block: where the last positions end */
    uint32_t whole_block;           /* whose positions are all decoded; NONE: of none */
    uint32_t *whole;                /* [max_whole] their sums (gx_positions_sums), the first one 0 */
    size_t max_whole;
    uint32_t begins[GX_MAX_BLOCK + 1 + GX_BLOCK_PAD]; /* of each posting in whole[] */
    uint32_t position_doc;                            /* whose positions are decoded; NONE: of none */
    uint32_t n_positions;
    uint32_t *positions; /* [max_positions] */
    size_t max_positions;
    uint32_t docids[GX_MAX_BLOCK + GX_BLOCK_PAD], tfs[GX_MAX_BLOCK + GX_BLOCK_PAD];
} cursor;

/* What a document needs to reach the threshold, by the tf of the first list alone, or of any list where one phrase of
 * words in a row is all that is sought. */
typedef struct limits {
    bool apply, all;             /* all: of any list */
    uint32_t threshold;          /* for which they are made */
    double w;                    /* of what the tf bounds, */
    double others;               /* and the most that all else adds */
    uint32_t most[GX_LIMIT_TFS]; /* a document of that tf is no longer than this; of the last one no limit is known */
} limits;

typedef struct seeking {
    const gx_seek *s;
    gx_error *err;
    gx_status st;
    uint32_t n_cursors, batch;             /* the most candidates at a time */
    cursor *cursors;                       /* [n_cursors] by rising df */
    float *w;                              /* [n_cursors] of the lists as words; negative where they do not score */
    uint32_t *place;                       /* of all words of all phrases, one phrase after another: their cursors */
    uint32_t n;                            /* candidates */
    uint32_t *doc;                         /* [batch] */
    uint32_t *at;                          /* [n_cursors][batch] their postings */
    uint32_t *from, *begin, *scores, *tfs; /* [batch] */
    uint8_t *keep;                         /* [batch] */
    uint32_t *word_tfs;                    /* [the most words of a phrase] */
    gx_word_places *places;                /* the same */
    uint32_t *scratch;
    size_t max_scratch;
    uint32_t *own_docids; /* of a mask that drives the search */
    gx_intersect_fn *intersect;
    gx_sum_fn *sum;
    gx_keep_starts_fn *keep_starts;
    bool titles; /* documents have several stretches */
    gx_first_starts_fn *first_starts;
    gx_next_starts_fn *next_starts;
    gx_keep_fn *keep_of;
    gx_within_fn *within;
    gx_begins_fn *find_begins;
    bool exact;  /* one phrase of words in a row, which are few */
    limits limits;
} seeking;

bool gx_phrase_is_known(const gx_phrase *p)
{
    for (uint32_t i = 0; i < p->n; ++i)
        if (p->words[i].list == NONE)
            return false;
    return true;
}

static void fail(seeking *k, gx_status st, const char *what)
{
    if (k->st == GX_OK)
        k->st =
            gx_fail(k->err, st, "%s%s%s", st == GX_ECORRUPT ? k->s->ix->path : "", st == GX_ECORRUPT ? ": " : "", what);
}

/* ---- opening ---- */

static uint32_t df_of(const gx_index *ix, uint32_t list)
{
    return ix->lists[list].df;
}

typedef struct list_order {
    const gx_index *ix;
    uint32_t list;
} list_order;

static int by_df(const void *a, const void *b)
{
    const list_order *x = a, *y = b;
    const uint32_t df = df_of(x->ix, x->list), other = df_of(y->ix, y->list);
    if (df != other)
        return df < other ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

/* All different lists, by rising df. Returns their number. */
static uint32_t collect_lists(const gx_seek *s, list_order *out)
{
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < s->n_words; ++i)
        out[n++] = (list_order){s->ix, s->words[i].list};
    for (uint32_t i = 0; i < s->n_phrases; ++i)
        for (uint32_t w = 0; w < s->phrases[i].phrase.n; ++w)
            out[n++] = (list_order){s->ix, s->phrases[i].phrase.words[w].list};
    if (n > 1)
        qsort(out, n, sizeof *out, by_df);
    for (uint32_t i = 0; i < n; ++i)
        if (kept == 0 || out[kept - 1].list != out[i].list)
            out[kept++] = out[i];
    return kept;
}

static void open_cursor(cursor *c, const gx_index *ix, uint32_t list)
{
    c->list = gx_index_list(ix, list);
    c->id = list;
    c->shift = c->list.block_len & (c->list.block_len - 1) ? 0 : (uint32_t)__builtin_ctz(c->list.block_len);
    c->first_block = ix->lists[list].first_block;
    c->block = 0;
    c->docid_block = c->tf_block = c->position_doc = c->whole_block = NONE;
    c->positions = c->whole = NULL;
    c->max_positions = c->max_whole = 0;
}

static uint32_t find_cursor(const seeking *k, uint32_t list)
{
    for (uint32_t i = 0; i < k->n_cursors; ++i)
        if (k->cursors[i].id == list)
            return i;
    return NONE;
}

static void free_positions(cursor *c)
{
    free(c->positions);
    free(c->whole);
}

static void close_seeking(seeking *k)
{
    for (uint32_t i = 0; k->cursors && i < k->n_cursors; ++i)
        free_positions(&k->cursors[i]);
    free(k->cursors);
    free(k->w);
    free(k->doc);
    free(k->places);
    free(k->scratch);
    free(k->own_docids);
}

/* Arrays of 32 bits, in one piece. */
static bool alloc_arrays(seeking *k, uint32_t n_places, uint32_t most_words)
{
    const size_t n_batch = (size_t)k->batch + GX_BLOCK_PAD;
    uint32_t *p = malloc((n_batch * (k->n_cursors + 6ull) + n_places + most_words) * sizeof *p);
    k->w = malloc((k->n_cursors + 1ull) * sizeof *k->w);
    k->places = malloc((most_words + 1ull) * sizeof *k->places);
    k->doc = p;
    if (!p || !k->w || !k->places)
        return false;
    k->at = p + n_batch;
    k->from = k->at + n_batch * k->n_cursors;
    k->begin = k->from + n_batch;
    k->scores = k->begin + n_batch;
    k->tfs = k->scores + n_batch;
    k->keep = (uint8_t *)(k->tfs + n_batch);
    k->place = k->tfs + 2 * n_batch;
    k->word_tfs = k->place + n_places;
    return true;
}

static void make_places(seeking *k)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->n_cursors; ++i)
        k->w[i] = -1;
    for (uint32_t i = 0; i < k->s->n_words; ++i)
        k->w[find_cursor(k, k->s->words[i].list)] = k->s->words[i].w;
    for (uint32_t i = 0; i < k->s->n_phrases; ++i)
        for (uint32_t w = 0; w < k->s->phrases[i].phrase.n; ++w)
            k->place[at++] = find_cursor(k, k->s->phrases[i].phrase.words[w].list);
}

static bool open_seeking(seeking *k, const gx_seek *s)
{
    uint32_t n_places = 0, most = 0;
    for (uint32_t i = 0; i < s->n_phrases; ++i) {
        n_places += s->phrases[i].phrase.n;
        most = s->phrases[i].phrase.n > most ? s->phrases[i].phrase.n : most;
    }
    list_order few[16], *lists = n_places + s->n_words <= 16 ? few : malloc((n_places + s->n_words) * sizeof *lists);
    k->n_cursors = lists ? collect_lists(s, lists) : 0;
    k->cursors = lists ? malloc(k->n_cursors * sizeof *k->cursors) : NULL;
    k->batch = 0;
    for (uint32_t i = 0; k->cursors && i < k->n_cursors; ++i) {
        open_cursor(&k->cursors[i], s->ix, lists[i].list);
        k->batch = k->cursors[i].list.block_len > k->batch ? k->cursors[i].list.block_len : k->batch;
    }
    if (lists != few)
        free(lists);
    if (!k->cursors || !alloc_arrays(k, n_places, most))
        return false;
    make_places(k);
    return true;
}

/* ---- limits by the first list ---- */

static void plan_limits(seeking *k)
{
    const gx_seek *s = k->s;
    limits *l = &k->limits;
    *l = (limits){.apply = s->scores && s->threshold && !gx_scorer_is_linear(s->norm)};
    l->all = l->apply && k->exact && s->n_words == 0;
    for (uint32_t i = 0; i < s->n_words; ++i) {
        const bool first = s->words[i].list == k->cursors[0].id;
        if (s->words[i].w < 0)
            continue;
        l->others += first ? 2 : s->words[i].w + 2.0;
        l->w += first ? s->words[i].w : 0;
    }
    for (uint32_t i = 0; i < s->n_phrases; ++i) {
        const gx_phrase *p = &s->phrases[i].phrase;
        bool first = false;
        for (uint32_t w = 0; w < p->n; ++w)
            first = first || p->words[w].list == k->cursors[0].id;
        first = first && p->kind == GX_PHRASE_WORDS && p->slop == 0;
        l->others += first ? 2 : s->phrases[i].w + 2.0;
        l->w += first ? s->phrases[i].w : 0;
    }
}

static void make_limits(seeking *k)
{
    limits *l = &k->limits;
    const gx_scorer norm = k->s->norm;
    const double least = (double)*k->s->threshold - l->others;
    l->threshold = *k->s->threshold;
    for (uint32_t tf = 0; tf < GX_LIMIT_TFS; ++tf) {
        l->most[tf] = UINT32_MAX;
        if (least <= 0 || tf == 0 || tf + 1 == GX_LIMIT_TFS)
            continue;
        const double most = tf * (l->w * SLACK / least - 1) * SLACK - norm.c0; /* of c1 times the length */
        if (most < 0) { /* a document that holds a word is not of length 0 */
            l->most[tf] = most * SLACK < -1e-6 * norm.c0 ? 0 : 1;
        } else if (norm.c1 > 0) {
            const double length = most / norm.c1 * SLACK * (norm.lossy ? LOSSY_LENGTH : 1) + 1;
            l->most[tf] = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
        }
    }
}

/* ---- one list ---- */

/* Move to the last block that begins at or before doc. false: there is none. */
static bool seek_block(cursor *c, uint32_t doc)
{
    const uint32_t *heads = c->list.heads, n = c->list.n_blocks;
    uint32_t lo = c->block, step = 1;
    if (heads[lo] > doc)
        return false;
    while (n - lo > step && heads[lo + step] <= doc) {
        lo += step;
        step *= 2;
    }
    for (step /= 2; step; step /= 2)
        if (n - lo > step && heads[lo + step] <= doc)
            lo += step;
    c->block = lo;
    return true;
}

static void decode_docids(cursor *c)
{
    if (c->docid_block == c->block)
        return;
    const uint32_t n = gx_list_decode_docids(&c->list, c->block, c->docids);
    for (uint32_t i = 0; i < GX_BLOCK_PAD; ++i)
        c->docids[n + i] = UINT32_MAX;
    c->docid_block = c->block;
}

static void decode_tfs(cursor *c, uint32_t block)
{
    if (c->tf_block == block)
        return;
    gx_list_decode_tfs(&c->list, block, c->tfs);
    c->tf_block = block;
    c->sum_at = 0;
    c->sum = c->total = 0;
    c->place.n = 0;
}

static inline uint32_t block_of(const cursor *c, uint32_t posting)
{
    return c->shift ? posting >> c->shift : posting / c->list.block_len;
}

static inline uint32_t tf_at(cursor *c, uint32_t posting)
{
    const uint32_t block = block_of(c, posting);
    decode_tfs(c, block);
    return c->tfs[posting - block * c->list.block_len];
}

/* The posting's positions in c->positions, with the gaps between stretches. false: memory, or they are damaged. */
static bool decode_positions(seeking *k, cursor *c, uint32_t posting, uint32_t doc)
{
    const uint32_t block = block_of(c, posting), i = posting - block * c->list.block_len;
    const gx_block_positions b = gx_index_block_positions(k->s->ix, c->first_block + block);
    const uint32_t tf = tf_at(c, posting);
    uint64_t at = UINT64_MAX;
    if (c->position_doc == doc)
        return true;
    if (i < c->sum_at)
        c->sum = c->sum_at = 0;
    c->sum += k->sum(c->tfs + c->sum_at, i - c->sum_at);
    c->sum_at = i;
    if (c->sum < c->place.n)
        c->place.n = 0;
    if (!c->total)
        c->total = k->sum(c->tfs, gx_list_block_n(&c->list, block));
    if (c->total <= (uint64_t)b.n_words * 32) {
        if (!gx_reserve(&c->positions, &c->max_positions, tf, sizeof *c->positions)) {
            fail(k, GX_ENOMEM, "no memory for the positions of a word");
            return false;
        }
        at = gx_positions_decode_on(b, c->total, c->sum, tf, c->positions, &c->place) ? 0 : UINT64_MAX;
    }
    uint64_t begins[GX_MAX_FIELDS];
    uint32_t n_begins = 0, stretch = 0;
    if (k->titles && !k->exact)
        gx_index_stretches(k->s->ix, doc, &n_begins, begins);
    for (uint32_t j = 0; j < tf && at <= GX_MAX_POSITION; ++j) {
        at += c->positions[j];
        for (; stretch < n_begins && at >= begins[stretch]; ++stretch)
            ;
        c->positions[j] = (uint32_t)at + stretch * GX_TITLE_GAP;
        ++at;
    }
    if (at > (uint64_t)GX_MAX_POSITION + 1) {
        fail(k, GX_ECORRUPT, "positions are damaged");
        return false;
    }
    c->position_doc = doc;
    c->n_positions = tf;
    return true;
}

/* ---- candidates ---- */

/* Keep candidates from[0], from[1], ... of n; their postings in the first n_lists cursors are known. */
static void keep_candidates(seeking *k, uint32_t n, uint32_t n_lists)
{
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    if (n == k->n)
        return;
    k->keep_of(k->doc, k->from, n);
    for (uint32_t c = 0; c < n_lists; ++c)
        k->keep_of(k->at + c * batch, k->from, n);
    k->n = n;
}

static void keep_allowed(seeking *k, uint32_t n_lists)
{
    const gx_seek *s = k->s;
    uint32_t kept = 0, most = 0;
    const uint32_t *doc = k->doc, n = k->n;
    for (uint32_t i = 0; i < n; ++i)
        most = doc[i] > most ? doc[i] : most;
    if (!s->mask && !s->allowed && most < s->ix->n_docs)
        return;
    for (uint32_t i = 0; i < k->n; ++i) {
        const uint32_t d = doc[i];
        k->from[kept] = i;
        kept += d < s->ix->n_docs && (!s->mask || gx_mask_has(s->mask, d)) &&
                (!s->allowed || (s->allowed[d / 64] >> d % 64 & 1));
    }
    keep_candidates(k, kept, n_lists);
}

/* By the tfs of a list, in which all are. */
static void keep_within_limits(seeking *k, uint32_t list)
{
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    limits *l = &k->limits;
    cursor *c = &k->cursors[list];
    const uint32_t *at = k->at + list * batch;
    uint32_t kept = 0;
    if (!l->apply || *k->s->threshold <= l->others)
        return;
    if (*k->s->threshold != l->threshold)
        make_limits(k);
    for (uint32_t i = 0, end; i < k->n; i = end) {
        const uint32_t block = block_of(c, at[i]), base = block * c->list.block_len;
        const uint32_t next = base + gx_list_block_n(&c->list, block);
        end = at[k->n - 1] < next ? k->n : i + 1;
        while (end < k->n && at[end] < next)
            ++end;
        decode_tfs(c, block);
        kept += k->within(k->doc + i, at + i, end - i, base, c->tfs, k->s->ix->doc_lens, l->most, i, k->from + kept);
    }
    keep_candidates(k, kept, list + 1);
}

static void keep_held(seeking *k, uint32_t list)
{
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    cursor *c = &k->cursors[list];
    uint32_t *at = k->at + list * batch, kept = 0;
    for (uint32_t i = 0, end; i < k->n; i = end) {
        if (!seek_block(c, k->doc[i])) {
            end = i + 1;
            continue;
        }
        decode_docids(c);
        const uint32_t next = c->block + 1 < c->list.n_blocks ? c->list.heads[c->block + 1] : UINT32_MAX;
        end = k->doc[k->n - 1] < next ? k->n : i + 1;
        while (end < k->n && k->doc[end] < next)
            ++end;
        const uint32_t found = k->intersect(k->doc + i, end - i, c->docids, k->from + kept, at + kept);
        const uint32_t base = c->block * c->list.block_len;
        for (uint32_t j = kept; j < kept + found; ++j) {
            k->from[j] += i;
            at[j] += base;
        }
        kept += found;
    }
    keep_candidates(k, kept, list);
}

static void keep_filtered(seeking *k)
{
    uint32_t kept = 0;
    if (!k->s->filter || k->n == 0)
        return;
    gx_filter_test(k->s->filter, k->doc, k->n, k->keep);
    for (uint32_t i = 0; i < k->n; ++i) {
        k->from[kept] = i;
        kept += k->keep[i];
    }
    keep_candidates(k, kept, k->n_cursors);
}

/* ---- documents ---- */

/* The tf of a phrase in candidate i; places: those of the phrase's words. false: failed. */
static bool match(seeking *k, const gx_phrase *p, const uint32_t *place, uint32_t i, uint32_t *tf)
{
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    size_t most = 0;
    for (uint32_t w = 0; w < p->n; ++w) {
        cursor *c = &k->cursors[place[w]];
        if (!decode_positions(k, c, k->at[place[w] * batch + i], k->doc[i]))
            return false;
        k->places[w] = (gx_word_places){c->positions, c->n_positions, p->words[w].offset, c->id};
        most = c->n_positions > most ? c->n_positions : most;
    }
    if (!gx_reserve(&k->scratch, &k->max_scratch, 2 * most + p->n, sizeof *k->scratch)) {
        fail(k, GX_ENOMEM, "no memory for the matches of a phrase");
        return false;
    }
    *tf = gx_phrase_tf(p, k->places, k->scratch);
    return true;
}

/* The most that the phrase can add to candidate i. */
static uint32_t phrase_bound(seeking *k, const gx_sought_phrase *p, const uint32_t *place, uint32_t i, float K)
{
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    for (uint32_t w = 0; w < p->phrase.n; ++w)
        k->word_tfs[w] = tf_at(&k->cursors[place[w]], k->at[place[w] * batch + i]);
    return gx_bm25_bound(p->w, gx_phrase_most_tf(&p->phrase, k->word_tfs), K);
}

/* Whether candidate i matches and may reach the threshold; its score and the tf of the last phrase. */
static bool examine(seeking *k, uint32_t i, uint32_t *score, uint32_t *tf)
{
    const gx_seek *s = k->s;
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    const uint32_t threshold = s->threshold ? *s->threshold : 0;
    const float K = s->scores ? gx_bm25_K(s->norm, s->ix->doc_lens[k->doc[i]]) : 0;
    uint64_t sum = 0, bound = 0;
    for (uint32_t c = 0; c < k->n_cursors && s->scores; ++c)
        if (k->w[c] >= 0)
            sum += gx_bm25_impact(k->w[c], tf_at(&k->cursors[c], k->at[c * batch + i]), K);
    if (s->scores && threshold && s->n_phrases) {
        const uint32_t *place = k->place;
        for (uint32_t p = 0; p < s->n_phrases; place += s->phrases[p++].phrase.n)
            bound += phrase_bound(k, &s->phrases[p], place, i, K);
    }
    if (threshold && sum + bound < threshold)
        return false;
    const uint32_t *place = k->place;
    for (uint32_t p = 0; p < s->n_phrases; place += s->phrases[p++].phrase.n) {
        if (!match(k, &s->phrases[p].phrase, place, i, tf) || *tf == 0)
            return false;
        sum += s->scores ? gx_bm25_impact(s->phrases[p].w, *tf, K) : 0;
    }
    *score = (uint32_t)sum;
    return sum >= threshold;
}

/* ---- one phrase of words in a row: a word at a time, for all candidates ---- */

/* Decode all positions of a block, if it is a good one. false: no memory. */
static bool decode_whole(seeking *k, cursor *c, uint32_t block)
{
    const gx_block_positions b = gx_index_block_positions(k->s->ix, c->first_block + block);
    if (c->total > (uint64_t)b.n_words * 32)
        return true;
    if (!gx_reserve(&c->whole, &c->max_whole, c->total + 1 + GX_SUMS_ROOM, sizeof *c->whole)) {
        fail(k, GX_ENOMEM, "no memory for the positions of a block");
        return false;
    }
    c->whole[0] = 0;
    c->whole_block = NONE;
    if (gx_positions_sums(b, (uint32_t)c->total, c->whole + 1)) {
        k->find_begins(c->tfs, gx_list_block_n(&c->list, block), c->begins);
        c->whole_block = block;
    }
    return true;
}

/* Whether a block is to be decoded whole for so many of its postings. */
static bool pays_whole(seeking *k, cursor *c, uint32_t block, uint32_t n_wanted)
{
    if (c->whole_block == block || n_wanted < 2)
        return false;
    decode_tfs(c, block);
    if (!c->total)
        c->total = k->sum(c->tfs, gx_list_block_n(&c->list, block));
    return c->total <= MAX_WHOLE && c->total <= (uint64_t)n_wanted * DENSE;
}

/* Of candidate i: the positions of the first word become starts, of which those of the next ones leave some. */
static bool use_positions(seeking *k, const uint32_t *positions, uint32_t n, uint32_t i, uint32_t add, size_t *used)
{
    if (!used) {
        k->tfs[i] = k->keep_starts(k->scratch + k->begin[i], k->tfs[i], positions, n, add);
        return true;
    }
    if (!gx_reserve(&k->scratch, &k->max_scratch, *used + n, sizeof *k->scratch)) {
        fail(k, GX_ENOMEM, "no memory for the matches of a phrase");
        return false;
    }
    for (uint32_t j = 0; j < n; ++j)
        k->scratch[*used + j] = positions[j] + add;
    k->begin[i] = (uint32_t)*used;
    k->tfs[i] = n;
    *used += n;
    return true;
}

/* Of candidates [i, end), whose postings are in the block that is decoded whole. false: no memory. */
static bool use_whole(seeking *k, cursor *c, const uint32_t *at, uint32_t i, uint32_t end, uint32_t add, size_t *used)
{
    const uint32_t base = c->whole_block * c->list.block_len;
    const gx_block_places b = {c->whole + 1, c->begins, base};
    if (!used) {
        k->next_starts(&b, at + i, end - i, add, k->scratch, k->begin + i, k->tfs + i);
        return true;
    }
    const uint32_t most = c->begins[gx_list_block_n(&c->list, c->whole_block)];
    if (!gx_reserve(&k->scratch, &k->max_scratch, *used + most + GX_BLOCK_PAD, sizeof *k->scratch)) {
        fail(k, GX_ENOMEM, "no memory for the matches of a phrase");
        return false;
    }
    *used = k->first_starts(&b, at + i, end - i, add, k->scratch, (uint32_t)*used, k->begin + i, k->tfs + i);
    return true;
}

/* All candidates at which matches may begin still, by one more word. used: of the first one, the places of scratch that
 * are taken; else NULL. false: failed. */
static bool use_word(seeking *k, const gx_phrase *p, uint32_t w, size_t *used)
{
    cursor *c = &k->cursors[k->place[w]];
    const uint32_t *at = k->at + k->place[w] * ((size_t)k->batch + GX_BLOCK_PAD);
    const uint32_t add = p->words[p->n - 1].offset - p->words[w].offset;
    for (uint32_t i = 0, end; i < k->n; i = end) {
        const uint32_t block = block_of(c, at[i]);
        const uint64_t next = (block + (uint64_t)1) * c->list.block_len;
        uint32_t n_wanted = 0;
        for (end = i; end < k->n && at[end] < next; ++end)
            n_wanted += used || k->tfs[end];
        if (pays_whole(k, c, block, n_wanted) && !decode_whole(k, c, block))
            return false;
        if (c->whole_block == block) {
            if (!use_whole(k, c, at, i, end, add, used))
                return false;
            continue;
        }
        for (uint32_t j = i; j < end; ++j) {
            if (!used && !k->tfs[j])
                continue;
            if (!decode_positions(k, c, at[j], k->doc[j]) ||
                !use_positions(k, c->positions, c->n_positions, j, add, used))
                return false;
        }
    }
    return true;
}

/* Drop starts of matches that have words in two stretches. */
static void leave_crossing(seeking *k, uint32_t i, uint32_t greatest)
{
    uint64_t begins[GX_MAX_FIELDS];
    uint32_t *starts = k->scratch + k->begin[i], kept = 0, n_begins, stretch = 0;
    gx_index_stretches(k->s->ix, k->doc[i], &n_begins, begins);
    for (uint32_t j = 0; j < k->tfs[i]; ++j) { /* a start is the position of the last word; they rise */
        for (; stretch < n_begins && starts[j] >= begins[stretch]; ++stretch)
            ;
        starts[kept] = starts[j];
        kept += stretch == 0 || starts[j] >= begins[stretch - 1] + greatest;
    }
    k->tfs[i] = kept;
}

/* Drop candidates that cannot reach the threshold, by the tfs of all words. scores: what the words alone add. */
static void keep_within_bounds(seeking *k)
{
    const gx_seek *s = k->s;
    const gx_sought_phrase *p = &s->phrases[0];
    const size_t batch = (size_t)k->batch + GX_BLOCK_PAD;
    const uint32_t threshold = s->threshold ? *s->threshold : 0;
    uint32_t kept = 0;
    if (!s->scores)
        return;
    if (k->limits.all && !s->norm.lossy) { /* each list has left out what it bounds */
        memset(k->scores, 0, k->n * sizeof *k->scores);
        return;
    }
    for (uint32_t i = 0; i < k->n; ++i)
        k->tfs[i] = UINT32_MAX;
    for (uint32_t w = 0; w < p->phrase.n && threshold; ++w)
        for (uint32_t i = 0; i < k->n; ++i) {
            const uint32_t tf = tf_at(&k->cursors[k->place[w]], k->at[k->place[w] * batch + i]);
            k->tfs[i] = tf < k->tfs[i] ? tf : k->tfs[i];
        }
    for (uint32_t i = 0; i < k->n; ++i) {
        const float K = gx_bm25_K(s->norm, s->ix->doc_lens[k->doc[i]]);
        uint64_t sum = 0;
        for (uint32_t c = 0; c < k->n_cursors && s->n_words; ++c)
            if (k->w[c] >= 0)
                sum += gx_bm25_impact(k->w[c], tf_at(&k->cursors[c], k->at[c * batch + i]), K);
        k->from[kept] = i;
        k->scores[kept] = (uint32_t)sum;
        kept += !threshold || sum + gx_bm25_bound(p->w, k->tfs[i], K) >= threshold;
    }
    keep_candidates(k, kept, k->n_cursors);
}

/* The words by rising df. */
static void order_words(const seeking *k, const gx_phrase *p, uint32_t *order)
{
    for (uint32_t w = 0; w < p->n; ++w) {
        uint32_t j = w;
        for (; j && k->place[order[j - 1]] > k->place[w]; --j)
            order[j] = order[j - 1];
        order[j] = w;
    }
}

/* As take_candidates. */
static bool take_exact(seeking *k)
{
    const gx_seek *s = k->s;
    const gx_phrase *p = &s->phrases[0].phrase;
    const uint32_t threshold = s->threshold ? *s->threshold : 0;
    uint32_t n = 0, order[FEW_WORDS];
    size_t used = 0;
    keep_within_bounds(k);
    order_words(k, p, order);
    for (uint32_t w = 0; w < p->n && k->n; ++w)
        if (!use_word(k, p, order[w], w == 0 ? &used : NULL))
            return false;
    for (uint32_t i = 0; i < k->n; ++i) {
        if (k->tfs[i] && k->titles)
            leave_crossing(k, i, p->words[p->n - 1].offset);
        if (!k->tfs[i])
            continue;
        const float K = s->scores ? gx_bm25_K(s->norm, s->ix->doc_lens[k->doc[i]]) : 0;
        const uint32_t score = s->scores ? k->scores[i] + gx_bm25_impact(s->phrases[0].w, k->tfs[i], K) : 0;
        k->doc[n] = k->doc[i];
        k->scores[n] = score;
        k->tfs[n] = k->tfs[i];
        n += score >= threshold;
    }
    const gx_found found = {n, k->doc, s->scores ? k->scores : NULL, k->tfs};
    return n == 0 || s->take(s->user, &found);
}

/* What is left of a batch. false: stop. */
static bool take_candidates(seeking *k)
{
    const gx_seek *s = k->s;
    uint32_t n = 0;
    if (s->n_phrases == 0 && !s->scores) {
        n = k->n;
    } else {
        for (uint32_t i = 0; i < k->n && k->st == GX_OK; ++i) {
            if (examine(k, i, &k->scores[n], &k->tfs[n]))
                k->doc[n++] = k->doc[i];
        }
    }
    const gx_found found = {n, k->doc, s->scores ? k->scores : NULL, s->n_phrases == 1 ? k->tfs : NULL};
    return k->st == GX_OK && (n == 0 || s->take(s->user, &found));
}

static bool go_on(seeking *k, uint32_t batch)
{
    if (batch % CANCEL_EVERY == 0 && k->s->cancel && k->s->cancel(k->s->cancel_user))
        fail(k, GX_ECANCELLED, "the search was cancelled");
    return k->st == GX_OK;
}

static bool finish_batch(seeking *k, uint32_t first)
{
    for (uint32_t c = first; c < k->n_cursors && k->n; ++c) {
        keep_held(k, c);
        if (k->limits.all)
            keep_within_limits(k, c);
    }
    keep_filtered(k);
    return k->n == 0 || (k->exact ? take_exact(k) : take_candidates(k));
}

static void run_by_list(seeking *k)
{
    cursor *c = &k->cursors[0];
    for (c->block = 0; c->block < c->list.n_blocks && go_on(k, c->block); ++c->block) {
        decode_docids(c);
        k->n = gx_list_block_n(&c->list, c->block);
        memcpy(k->doc, c->docids, k->n * sizeof *k->doc);
        const uint32_t base = c->block * c->list.block_len, n = k->n;
        for (uint32_t i = 0; i < n; ++i)
            k->at[i] = base + i;
        keep_allowed(k, 1);
        keep_within_limits(k, 0);
        if (!finish_batch(k, 1))
            return;
    }
}

static void run_by_docids(seeking *k, const uint32_t *docids, uint32_t n)
{
    for (uint32_t i = 0, b = 0; i < n && go_on(k, b); ++b, i += k->batch) {
        k->n = n - i < k->batch ? n - i : k->batch;
        memcpy(k->doc, docids + i, k->n * sizeof *docids);
        keep_allowed(k, 0);
        if (!finish_batch(k, 0))
            return;
    }
}

/* The documents of a mask that has few. NULL: no memory. */
static uint32_t *docids_of(const gx_mask *m, uint32_t n_docs, uint32_t *n)
{
    uint32_t *docids = malloc((m->n + 1ull) * sizeof *docids);
    *n = 0;
    for (uint32_t g = 0; docids && (uint64_t)g * GX_MASK_GROUP < n_docs; ++g) {
        const size_t first = (size_t)g * (GX_MASK_GROUP / 64);
        for (size_t w = first; m->groups[g] && w < first + GX_MASK_GROUP / 64 && w * 64 < n_docs; ++w)
            for (uint64_t x = gx_mask_word(m, w); x && *n < m->n; x &= x - 1)
                docids[(*n)++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(x);
    }
    return docids;
}

bool gx_seek_mark(void *user, const gx_found *found)
{
    uint64_t *words = user;
    for (uint32_t i = 0; i < found->n; ++i)
        words[found->docids[i] / 64] |= UINT64_C(1) << found->docids[i] % 64;
    return true;
}

static bool is_exact(const gx_seek *s)
{
    const gx_phrase *p = &s->phrases->phrase;
    return s->n_phrases == 1 && p->kind == GX_PHRASE_WORDS && p->slop == 0 && p->n <= FEW_WORDS;
}

gx_status gx_seek_run_plain(const gx_seek *s, gx_error *err)
{
    seeking k = {.s = s,
                 .err = err,
                 .intersect = gx_intersect_best(),
                 .sum = gx_sum_best(),
                 .keep_starts = gx_keep_starts_best(),
                 .first_starts = gx_first_starts_best(),
                 .next_starts = gx_next_starts_best(),
                 .keep_of = gx_keep_best(),
                 .within = gx_within_best(),
                 .find_begins = gx_begins_best(),
                 .exact = is_exact(s),
                 .titles = s->ix->title_positions != NULL};
    for (uint32_t i = 0; i < s->n_phrases; ++i)
        if (!gx_phrase_is_known(&s->phrases[i].phrase))
            return GX_OK;
    if (!open_seeking(&k, s)) {
        fail(&k, GX_ENOMEM, "no memory for the lists of a query");
    } else if (s->docids) {
        run_by_docids(&k, s->docids, s->n_docids);
    } else if (s->mask && (uint64_t)s->mask->n * FEW_OF_MASK < k.cursors[0].list.df) {
        uint32_t n;
        if ((k.own_docids = docids_of(s->mask, s->ix->n_docs, &n)))
            run_by_docids(&k, k.own_docids, n);
        else
            fail(&k, GX_ENOMEM, "no memory for the documents of a mask");
    } else {
        plan_limits(&k);
        run_by_list(&k);
    }
    close_seeking(&k);
    return k.st;
}
