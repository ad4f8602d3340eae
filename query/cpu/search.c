/* search.c: the exact k best documents, found list by list without accumulators.
 *
 *   for each list, those with the greatest impacts first, so that the threshold T rises early
 *     stop when no document that only this list and later ones hold can reach T
 *     for each block whose bounds reach T, and of which the mask may allow a document
 *       unpack the tfs
 *       if a tf is great enough to reach T: unpack the docids, append the candidates
 *       look them up in the mask, and test them by the filter
 *     for each batch of candidates, in columns (kernels.h)
 *       look them up in the maps of later lists (and in a broad mask or filter only now)
 *       look them up in the blocks of later lists without maps, if these blocks are few
 *       compute the exact impact of this list
 *       look them up in each later list, and add its exact impact
 *       accept the candidates that are left
 *
 * T is the k-th best score so far, or a score that at least k documents are known to reach. Each
 * step drops the candidates whose bound is below T.
 *
 * No candidate is looked up in earlier lists. If an earlier list holds the document, there are two
 * cases. Either the search scored the document in full then, and marked it as seen. Or the search
 * proved that its score is below T; then the part of the score that this list and later ones see is
 * below T too.
 *
 * AND reads the shortest list alone, and drops a candidate that a later list lacks.
 *
 * If a mask or a filter allows few documents (selection.h), the search reads only the lists before
 * the first long one. From that list on these documents are the candidates of all lists at once.
 */
#include "query/cpu/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/words/bits.h"
#include "engine/memory/huge_pages.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "query/cpu/block_max.h"
#include "query/cpu/first_threshold.h"

#define CANCEL_EVERY 256u           /* blocks that are read between two calls of cancel */
#define MIN_CANDIDATES_PER_BLOCK 3u /* filter_by_blocks decodes blocks with as many on average */
#define SELECTIVE_BATCH 64u         /* candidates that make a batch if a filter has dropped three in four */
#define SHARED_BIT 31u              /* of the list masks */
#define PROBED_BLOCKS 32u           /* blocks of which the documents are counted that a filter selects */
#define CANDIDATE_COST 2.5f         /* of making a candidate of a posting; 1 is to read a value (gx_cpu_clause) */
#define ROUNDING_SLACK (1 + 1e-6)   /* more than three roundings of 2^-24 each can add */

static size_t seen_bytes(const gx_index *ix)
{
    return ((size_t)ix->n_docs / 64 + 1) * sizeof(uint64_t);
}

static bool reserve_cursors(gx_cpu_searcher *s, uint32_t n)
{
    if (n <= s->max_cursors)
        return true;
    gx_cpu_cursor *cursors = aligned_alloc(64, n * sizeof *cursors);
    gx_cpu_cursor **order = malloc(n * sizeof *order);
    if (!cursors || !order) {
        free(cursors);
        free(order);
        return false;
    }
    free(s->cursors);
    free(s->order);
    s->cursors = cursors;
    s->order = order;
    s->max_cursors = n;
    return true;
}

gx_status gx_cpu_searcher_open(gx_cpu_searcher **out, const gx_index *ix, const gx_cpu_kernels *kernels,
                               gx_cpu_lists *lists, gx_error *err)
{
    *out = NULL;
    gx_cpu_searcher *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU session");
    memset(s, 0, sizeof *s);
    s->ix = ix;
    s->kernels = kernels;
    s->lists = lists;
    s->columns.n_docs = s->selection.n_docs = ix->n_docs;
    s->seen = gx_huge_alloc(seen_bytes(ix));
    if (!s->seen || !reserve_cursors(s, GX_CPU_FEW_LISTS)) {
        gx_cpu_searcher_close(s);
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU session on %u documents", ix->n_docs);
    }
    *out = s;
    return GX_OK;
}

void gx_cpu_searcher_close(gx_cpu_searcher *s)
{
    if (!s)
        return;
    gx_cpu_best_free(&s->best);
    free(s->cursors);
    free(s->order);
    gx_huge_free(s->seen, seen_bytes(s->ix));
    free(s->seen_docids);
    gx_huge_free(s->scores, ((size_t)s->ix->n_docs + GX_CPU_SCORES_SLACK) * sizeof *s->scores);
    free(s->match_counts);
    gx_cpu_pmf_free(&s->pmf);
    gx_cpu_daat_free(&s->daat);
    gx_cpu_selection_free(&s->selection);
    gx_cpu_block_max_free(s->block_max);
    free(s);
}

/* ---- before the search: cursors, bounds ---- */

/* Whether the kernels decode a block in less time than next_geq takes. */
static bool decodes_fast(const gx_cpu_kernels *kernels)
{
#if GX_X86
    return kernels == &gx_cpu_avx512;
#else
    (void)kernels;
    return false;
#endif
}

void gx_cpu_expect(const gx_cpu_searcher *s, const gx_plan *plan, bool known)
{
    for (uint32_t i = 0; s->params && i < plan->n_terms; ++i) {
        if (known)
            gx_cpu_lists_prefetch_made(s->lists, s->params, plan->terms[i].list);
        else
            gx_cpu_lists_prefetch(s->lists, s->params, plan->terms[i].list);
    }
}

/* Find the lists of all terms: the processor waits for the lines of all at once. */
static void find_lists(gx_cpu_searcher *s, const gx_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        gx_cpu_lists_prefetch(s->lists, s->params, plan->terms[i].list);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        gx_cpu_cursor *c = &s->cursors[i];
        c->live = gx_cpu_lists_list(s->lists, plan->terms[i].list, &s->scratch, &c->list);
        gx_cpu_lists_prefetch_list(s->lists, s->params, plan->terms[i].list, &c->list);
    }
}

uint32_t gx_cpu_greatest_impact(float w, float most)
{
    return (uint32_t)ceil((double)w * most * ROUNDING_SLACK) + 1;
}

/* The cursor has its list. */
static bool open_cursor(gx_cpu_searcher *s, gx_cpu_cursor *c, const gx_plan_term *t)
{
    c->term = t->list;
    c->w = t->w;
    c->map = gx_cpu_lists_map(s->lists, t->list, &s->scratch);
    c->bounds = gx_cpu_params_bounds(s->lists, s->params, t->list, &s->scratch);
    if (!c->map || !c->bounds)
        return false;
    c->ub = gx_cpu_greatest_impact(t->w, c->bounds->most);
    c->packed = s->kernels->scan_packed_block && c->list.block_len <= 128 && gx_cpu_is_packed(c->list.docids) &&
                gx_cpu_is_packed(c->list.tfs);
    c->block = c->n_cached = 0;
    c->tf_block = c->last_probed_block = UINT32_MAX;
    c->uses_next_geq = c->list.docids->next_geq && !decodes_fast(s->kernels);
    c->tf_shift = gx_cpu_is_packed(c->list.tfs) ? (uint8_t)__builtin_ctz(c->list.block_len) : 0;
    return true;
}

static bool open_cursors(gx_cpu_searcher *s, const gx_plan *plan, gx_op op)
{
    uint16_t order[GX_MAX_TERMS];
    if (!reserve_cursors(s, plan->n_terms))
        return false;
    find_lists(s, plan);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (!open_cursor(s, &s->cursors[i], &plan->terms[i]))
            return false;
        /* AND keeps the plan's order, which is by rising df. OR sorts by falling ub. Cursors are
         * big: their numbers are sorted, and they stay where they are. */
        uint32_t j = i;
        for (; op == GX_OP_OR && j && s->cursors[order[j - 1]].ub < s->cursors[i].ub; --j)
            order[j] = order[j - 1];
        order[j] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        s->order[i] = &s->cursors[order[i]];
    uint32_t remaining_ub = 0;
    for (uint32_t i = plan->n_terms; i--; remaining_ub += s->order[i]->ub)
        s->order[i]->remaining_ub = remaining_ub;
    return true;
}

/* ---- exact look-ups ---- */

/* The first of block j's tf words, and their number. */
static const uint32_t *tf_words(const gx_list *l, uint32_t j, uint32_t *n_words)
{
    const uint32_t begin = j ? l->tf_ends[j - 1] : l->docid_ends[l->n_blocks - 1];
    *n_words = l->tf_ends[j] - begin;
    return l->payload + begin;
}

static uint32_t tf_at(gx_cpu_cursor *c, uint32_t j, uint32_t i)
{
    const gx_list *l = &c->list;
    uint32_t n_words;
    if (l->tfs->random_access) {
        const uint32_t *words = tf_words(l, j, &n_words), n = gx_list_block_n(l, j);
        if (gx_cpu_is_packed(l->tfs)) {
            const uint32_t b = gx_packed_width(n_words, n);
            return (b ? gx_bits_at(words, i * b, b) : 0) + 1;
        }
        return l->tfs->at(words, n_words, n, l->tf_param, i) + 1;
    }
    if (c->tf_block != j) {
        gx_list_decode_tfs(l, j, c->tfs);
        c->tf_block = j;
    }
    return c->tfs[i];
}

/* The last block that begins at or before doc; block 0 if none does. */
static uint32_t find_block(const gx_cpu_cursor *c, uint32_t doc)
{
    const uint32_t *heads = c->list.heads;
    const gx_cpu_map *m = c->map;
    uint32_t lo = 0, hi = c->list.n_blocks - 1;
    if (m->directory) {
        const uint32_t t = doc >> m->directory_shift;
        lo = m->directory[t];
        hi = m->directory[t + 1];
    }
    while (hi - lo > 8) {
        const uint32_t mid = lo + (hi - lo + 1) / 2;
        if (heads[mid] <= doc)
            lo = mid;
        else
            hi = mid - 1;
    }
    while (lo < hi && heads[lo + 1] <= doc)
        ++lo;
    return lo;
}

/* Decode blocks [begin, end), unless the cursor has them. Returns the docids of block begin; those
 * of the next blocks follow. */
static const uint32_t *cache_blocks(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t begin, uint32_t end)
{
    const uint32_t block_len = c->list.block_len;
    if (begin < c->block || end > c->block + c->n_cached) {
        for (uint32_t j = begin; j < end; ++j)
            gx_cpu_decode_docids(s->kernels, &c->list, j, c->docids + (size_t)(j - begin) * block_len);
        c->block = begin;
        c->n_cached = end - begin;
        s->work.blocks_decoded += end - begin;
    }
    return c->docids + (size_t)(begin - c->block) * block_len;
}

/* The tf of doc in the cursor's list; 0 if the list lacks doc. The first look-up in a block may use
 * next_geq. The second one decodes the block. */
static uint32_t look_up(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t doc)
{
    const gx_list *l = &c->list;
    const uint32_t j = find_block(c, doc), n = gx_list_block_n(l, j);
    if (c->uses_next_geq && j - c->block >= c->n_cached && j != c->last_probed_block) {
        uint32_t n_words, found;
        const uint32_t *words = gx_cpu_docid_words(l, j, &n_words);
        const uint32_t i = l->docids->next_geq(words, n_words, n, l->docid_param, l->heads[j], doc, &found);
        c->last_probed_block = j;
        return i < n && found == doc ? tf_at(c, j, i) : 0;
    }
    const uint32_t *docids = cache_blocks(s, c, j, j + 1), i = s->kernels->count_below(docids, n, doc);
    return i < n && docids[i] == doc ? tf_at(c, j, i) : 0;
}

/* The tf of posting p of a list whose tfs are packed. The posting's block has 2^tf_shift postings
 * and is not the first. A tf's width is 32 * words / postings. */
static inline uint32_t packed_tf(const gx_cpu_cursor *c, uint32_t p)
{
    const uint32_t shift = c->tf_shift, j = p >> shift, i = p & ((1u << shift) - 1);
    const uint32_t begin = c->list.tf_ends[j - 1], b = (c->list.tf_ends[j] - begin) >> (shift - 5);
    return (b ? gx_bits_at(c->list.payload + begin, i * b, b) : 0) + 1;
}

static void look_up_dense(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t bit)
{
    const gx_cpu_dense d = {(const uint64_t *)(const void *)c->map->map, c->map->rank};
    /* packed_tf serves postings [first, last): those of all full blocks but the first */
    const uint32_t first = 1u << c->tf_shift, last = c->tf_shift ? c->list.df >> c->tf_shift << c->tf_shift : 0;
    s->work.lookups += s->kernels->dense_positions(&s->columns, d, bit, s->positions);
    for (uint32_t x = 0; x < s->columns.n; ++x) {
        const uint32_t p = s->positions[x];
        if (p >= first && p < last)
            s->found[x] = packed_tf(c, p);
        else
            s->found[x] = p < c->list.df ? tf_at(c, p / c->list.block_len, p % c->list.block_len) : 0;
    }
}

static void look_up_sparse(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t bit)
{
    for (uint32_t x = 0; x < s->columns.n; ++x) {
        s->found[x] = 0;
        if (s->columns.list_mask[x] & bit) {
            s->found[x] = look_up(s, c, s->columns.doc[x]);
            ++s->work.lookups;
        }
    }
}

/* ---- a batch of candidates of list i ---- */

static bool accept_candidates(gx_cpu_searcher *s, bool once)
{
    for (uint32_t x = 0; x < s->columns.n; ++x) {
        const uint32_t doc = s->columns.doc[x];
        if (s->columns.score[x] < s->best.threshold)
            continue;
        if (once) {
            uint64_t *word = &s->seen[doc / 64];
            const uint64_t bit = UINT64_C(1) << doc % 64;
            if (*word & bit)
                continue;
            if (s->n_seen == s->max_seen) {
                const size_t max = 2 * s->max_seen + 1024;
                uint32_t *more = realloc(s->seen_docids, max * sizeof *more);
                if (!more)
                    return false;
                s->seen_docids = more;
                s->max_seen = max;
            }
            *word |= bit;
            s->seen_docids[s->n_seen++] = doc;
        }
        gx_cpu_best_add(&s->best, s->columns.score[x], doc);
    }
    return true;
}

static inline void set_slot(uint32_t *map, uint32_t slot)
{
    map[slot / 32] |= UINT32_C(1) << slot % 32;
}

/* Do for a list without a map what a presence map does: decode its blocks from the first candidate
 * to the last one, make a map of them, and apply it. That saves time if a block has several
 * candidates. */
static void filter_by_blocks(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t bit, bool all)
{
    gx_cpu_columns *columns = &s->columns;
    const uint32_t first = columns->doc[0], last = columns->doc[columns->n - 1];
    const uint32_t begin = find_block(c, first), end = find_block(c, last) + 1, mask = GX_CPU_WINDOW * 32 - 1;
    uint32_t shift = 0;
    if (columns->unordered || first > last || begin >= end || (end - begin) * MIN_CANDIDATES_PER_BLOCK > columns->n ||
        (end - begin) * c->list.block_len > GX_CPU_CACHED_DOCIDS)
        return;
    while ((last >> shift) - (first >> shift) > mask)
        ++shift;
    memset(s->window, 0, GX_CPU_WINDOW * sizeof *s->window);
    const uint32_t *docids = cache_blocks(s, c, begin, end);
    const uint32_t n = (end - begin - 1) * c->list.block_len + gx_list_block_n(&c->list, end - 1);
    /* neighbours often share a word, and a write to it would wait for the one before */
    for (uint32_t i = 0; i < n / 4; ++i) {
        set_slot(s->window, docids[i] >> shift & mask);
        set_slot(s->window, docids[i + n / 4] >> shift & mask);
        set_slot(s->window, docids[i + n / 4 * 2] >> shift & mask);
        set_slot(s->window, docids[i + n / 4 * 3] >> shift & mask);
    }
    for (uint32_t i = n / 4 * 4; i < n; ++i)
        set_slot(s->window, docids[i] >> shift & mask);
    const gx_cpu_presence window = {s->window, shift, GX_CPU_WINDOW - 1, c->ub, bit};
    s->kernels->apply_presence_map(columns, &window, s->best.threshold, all);
}

/* The bit of list j in the list masks of candidates that are looked up from list `first` on. The
 * first 31 lists have a bit each. The others, which add least, share the last bit. It is never
 * cleared: every candidate that is left is looked up in these lists. */
static inline uint32_t bit_of(uint32_t first, uint32_t j)
{
    return UINT32_C(1) << (j - first < SHARED_BIT ? j - first : SHARED_BIT);
}

/* The lists [first, n) in which candidates are looked up; a document must be in all of them, or in any. */
typedef struct lookups {
    uint32_t first, n;
    bool all;
} lookups;

/* Drop candidates that the maps rule out of those of lists [next, n) that have a bit of their own. */
static void rule_out(gx_cpu_searcher *s, const lookups *of, uint32_t next)
{
    const gx_cpu_kernels *k = s->kernels;
    gx_cpu_columns *c = &s->columns;
    const uint32_t n = of->n - of->first < SHARED_BIT ? of->n : of->first + SHARED_BIT;
    for (uint32_t j = next; j < n && c->n; ++j) {
        const gx_cpu_cursor *later = s->order[j];
        const gx_cpu_map *m = later->map;
        const gx_cpu_presence map = {m->map, m->map_shift, UINT32_MAX, later->ub, bit_of(of->first, j)};
        if (m->map)
            k->apply_presence_map(c, &map, s->best.threshold, of->all);
    }
    for (uint32_t j = next; j < n && c->n; ++j) {
        if (!s->order[j]->map->map)
            filter_by_blocks(s, s->order[j], bit_of(of->first, j), of->all);
    }
}

/* Look the candidates up and add the impacts. */
static void look_up_lists(gx_cpu_searcher *s, const lookups *of)
{
    gx_cpu_columns *c = &s->columns;
    for (uint32_t j = of->first; j < of->n && c->n; ++j) {
        gx_cpu_cursor *later = s->order[j];
        const uint32_t bit = bit_of(of->first, j);
        if (later->map->rank)
            look_up_dense(s, later, bit);
        else
            look_up_sparse(s, later, bit);
        s->kernels->add_list_score(c, s->found, later->w, later->ub, bit, s->best.threshold, of->all);
    }
}

/* Whether to ask the masks for each candidate before all else: if they allow fewer than three documents in four. */
static bool is_selective(const gx_cpu_searcher *s)
{
    return s->selection.any && s->selection.allowed / 3 < s->ix->n_docs / 4;
}

/* Choose how many clauses of the filter are asked while a block is read, before its postings become candidates:
 * those that take less time than making candidates of what they drop, and asking about the survivors. */
static void choose_early(gx_cpu_searcher *s)
{
    const gx_cpu_selection *const selection = &s->selection;
    const gx_cpu_program *p = &selection->program;
    const bool probes = s->n_probed < PROBED_BLOCKS && s->least_share > 0;
    s->n_early = s->n_early_sieved = selection->n_masked;
    if (!selection->filter)
        return;
    if (probes)
        s->n_early = p->n_clauses;
    while (s->n_early < p->n_clauses &&
           p->clauses[s->n_early].cost * (1 - s->survivors) < CANDIDATE_COST * (1 - p->clauses[s->n_early].share))
        ++s->n_early;
    if (!selection->sieve.n_steps)
        return;
    float cost = 0, dropped = 1 - (float)selection->allowed / ((float)s->ix->n_docs * selection->sieve.share);
    for (uint32_t i = selection->n_masked; i < p->n_clauses; ++i)
        cost += p->clauses[i].cost;
    if (probes || cost * (1 - s->survivors) < CANDIDATE_COST * dropped)
        s->n_early_sieved = p->n_clauses;
}

/* How many masks tell anything of the postings of list i: none, if it has those of kept documents alone, and the plan's
 * own mask allows all of these. */
static uint32_t count_masks(const gx_cpu_searcher *s, uint32_t i)
{
    const gx_cpu_selection *const selection = &s->selection;
    const uint32_t n = selection->n_masks;
    const bool is_plans = n == 1 && selection->masks[0] != &selection->made && gx_cpu_lists_kept(s->lists);
    return is_plans && s->order[i]->live && selection->masks[0]->n == gx_cpu_lists_n_kept(s->lists) ? 0 : n;
}

/* Take the columns' candidates, which come from list i, through all steps. False: no memory. */
static bool evaluate_candidates(gx_cpu_searcher *s, const gx_plan *plan, uint32_t i, bool all)
{
    gx_cpu_columns *c = &s->columns;
    const uint32_t n = plan->n_terms;
    const lookups later = {i + 1, n, all};
    const float n_candidates = (float)c->n;
    const uint32_t n_masks = is_selective(s) ? 0 : count_masks(s, i); /* of a selective one scan_list has asked */
    const uint32_t *allowed = n_masks == 1 ? s->selection.masks[0]->words : NULL;
    rule_out(s, &later, i + 1);
    if (c->n)
        s->kernels->score_own(c, gx_cpu_params_lens(s->params), s->norm, s->order[i]->w, s->best.threshold, allowed);
    s->survivors = (s->survivors + (float)c->n / n_candidates) / 2;
    if (n_masks > 1)
        gx_cpu_selection_apply_masks(&s->selection, s->kernels, c, 0);
    const uint32_t n_asked = s->selection.sieve.used && s->n_early_sieved < s->n_early ? s->n_early_sieved : s->n_early;
    gx_cpu_selection_apply_filter(&s->selection, s->kernels, c, 0, n_asked);
    s->selection.sieve.used = false;
    choose_early(s);
    look_up_lists(s, &later);
    const bool ok = accept_candidates(s, !all && n > 1);
    c->n = 0;
    return ok;
}

/* ---- reading list i ---- */

/* Bound the impacts of block j's postings. False if none of its documents can reach T. */
static bool bound_block(const gx_cpu_cursor *c, uint32_t j, uint32_t T, gx_cpu_bound *b)
{
    const gx_cpu_block *block = &c->bounds->blocks[j];
    const uint32_t most = (uint32_t)((double)c->w * block->most * ROUNDING_SLACK) + 2;
    b->most = most < c->ub ? most : c->ub;
    if (b->most + b->remaining_ub < T)
        return false;
    b->min_K = block->min_K;
    b->min_tf = 1;
    if (T > b->remaining_ub + 4) { /* w tf / (tf + K) >= needed, with room for roundings */
        const double part = (T - b->remaining_ub - 4) / (ROUNDING_SLACK * ROUNDING_SLACK * c->w);
        if (part >= 1)
            return false;
        const double tf = part / (1 - part) * b->min_K * (1 - 1e-4);
        if (tf > UINT32_MAX)
            return false;
        b->min_tf = tf > 1 ? (uint32_t)ceil(tf) : 1;
    }
    return true;
}

/* Append the postings of block j that can reach T to the columns. */
static void scan_block(gx_cpu_searcher *s, gx_cpu_cursor *c, uint32_t j, const gx_cpu_bound *b)
{
    const gx_list *l = &c->list;
    const uint32_t n = gx_list_block_n(l, j);
    if (c->packed) {
        uint32_t n_docid_words, n_tf_words;
        gx_cpu_packed_block p = {.n = n, .first = l->heads[j]};
        p.docids = gx_cpu_docid_words(l, j, &n_docid_words);
        p.tfs = tf_words(l, j, &n_tf_words);
        p.docid_bits = gx_packed_width(n_docid_words, n);
        p.tf_bits = gx_packed_width(n_tf_words, n);
        if (p.docid_bits <= s->kernels->max_docid_bits && p.tf_bits <= s->kernels->max_tf_bits) {
            s->work.blocks_decoded += s->kernels->scan_packed_block(&s->columns, &p, b);
            return;
        }
    }
    gx_list_decode_tfs(l, j, s->scratch.tfs);
    if (b->min_tf > 1 && !s->kernels->any_tf_reaches(s->scratch.tfs, n, b->min_tf))
        return;
    gx_cpu_decode_docids(s->kernels, l, j, s->scratch.docids);
    ++s->work.blocks_decoded;
    s->kernels->append_decoded_block(&s->columns, s->scratch.docids, s->scratch.tfs, n, b);
}

/* Whether the selection may allow a document of block j. If it allows few documents, the search
 * skips most blocks of long lists. */
static bool may_allow(const gx_cpu_searcher *s, const gx_list *l, uint32_t j)
{
    const uint32_t end = j + 1 < l->n_blocks ? l->heads[j + 1] : s->ix->n_docs;
    return gx_cpu_selection_may_allow(&s->selection, l->heads[j], end);
}

/* Count n postings that have been read, and those of them that the selection allows. If these are so few that
 * less than k documents are likely to reach the first threshold, the selection is misjudged. */
static void count_allowed(gx_cpu_searcher *s, uint32_t n, uint32_t n_allowed)
{
    s->n_read += n;
    s->n_allowed += n_allowed;
    const double least = s->n_read * s->least_share;
    s->misjudged = s->n_allowed + 2 < least && s->n_allowed + 2 * sqrt(s->n_allowed + 1.0) < least;
}

static gx_status scan_list(gx_cpu_searcher *s, const gx_plan *plan, uint32_t i, bool all, gx_error *err)
{
    gx_cpu_cursor *c = s->order[i];
    gx_cpu_bound b = {.w = (float)(c->w * (1 + 2e-6)), .remaining_ub = c->remaining_ub};
    gx_cpu_selection *selection = &s->selection;
    const bool selective = is_selective(s);
    const bool masked = selective && count_masks(s, i);
    const uint32_t batch = s->selection.allowed < s->ix->n_docs / 4 ? SELECTIVE_BATCH : GX_CPU_BATCH;
    bool ok = true;
    b.program = &selection->program;
    b.clause = selection->n_masked;
    b.sieve = selection->filter && selection->sieve.n_steps ? &selection->sieve : NULL;
    selection->sieve.used = false;
    const bool counts = s->least_share > 0 && selective && !selection->n_masks && !selection->more;
    choose_early(s);
    for (uint32_t j = s->selection.first ? find_block(c, s->selection.first) : 0;
         j < c->list.n_blocks && ok && !s->misjudged; ++j) {
        if (c->list.heads[j] >= s->selection.end)
            break;
        if (plan->cancel && j % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
        if (s->selection.gaps && !may_allow(s, &c->list, j))
            continue;
        if (!bound_block(c, j, s->best.threshold, &b))
            continue;
        const uint32_t before = s->columns.n;
        b.end_clause = s->n_early;
        b.end_sieved = s->n_early_sieved;
        scan_block(s, c, j, &b);
        ++s->n_probed;
        if (masked)
            gx_cpu_selection_apply_masks(&s->selection, s->kernels, &s->columns, before);
        if (counts && b.min_tf == 1 && s->n_early == selection->program.n_clauses &&
            (!selection->sieve.used || s->n_early_sieved == selection->program.n_clauses))
            count_allowed(s, gx_list_block_n(&c->list, j), s->columns.n - before);
        if (s->columns.n >= (masked || b.sieve || s->n_early ? batch : GX_CPU_BATCH))
            ok = evaluate_candidates(s, plan, i, all);
    }
    if (ok && s->columns.n)
        ok = evaluate_candidates(s, plan, i, all);
    return ok ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the documents that a query has seen");
}

/* ---- the selection's documents ---- */

/* Append those of n documents of the selection that can reach T by list `of->first` and later ones. */
static void append_selected(gx_cpu_searcher *s, const lookups *of, const uint32_t *docids, uint32_t n)
{
    gx_cpu_columns *c = &s->columns;
    const gx_cpu_cursor *first = s->order[of->first];
    const uint32_t ub = first->ub + first->remaining_ub;
    const gx_cpu_presence map = {first->map->map, first->map->map_shift, UINT32_MAX, of->all ? ub : first->ub,
                                 bit_of(of->first, of->first)};
    if (map.map) {
        s->kernels->append_documents(c, docids, n, &map, ub, s->best.threshold);
        return;
    }
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t to = c->n++;
        c->doc[to] = docids[i];
        c->tf[to] = c->score[to] = 0;
        c->remaining_ub[to] = ub;
        c->list_mask[to] = UINT32_MAX;
    }
}

/* Compute K of the documents in the columns, as score_own does. */
static void find_K(gx_cpu_searcher *s)
{
    gx_cpu_columns *c = &s->columns;
    const uint32_t *lens = gx_cpu_params_lens(s->params);
    for (uint32_t i = 0; i < c->n; ++i) {
        const float product = s->norm.c1 * (float)lens[c->doc[i]];
        c->K[i] = s->norm.c0 + product;
    }
}

bool gx_cpu_open_lists(gx_cpu_searcher *s, const gx_plan *plan)
{
    return open_cursors(s, plan, GX_OP_OR);
}

void gx_cpu_look_up_candidates(gx_cpu_searcher *s, uint32_t n_lists)
{
    const lookups of = {0, n_lists, false};
    s->columns.unordered = true;
    rule_out(s, &of, 0);
    find_K(s);
    look_up_lists(s, &of);
    (void)accept_candidates(s, false); /* without documents that it has seen, it needs no memory */
    s->columns.n = 0;
    s->columns.unordered = false;
}

/* Score the documents in the columns, which append_selected has appended. */
static bool evaluate_selected(gx_cpu_searcher *s, const lookups *of)
{
    gx_cpu_columns *c = &s->columns;
    if (s->selection.n_spans)
        gx_cpu_selection_apply_other_masks(&s->selection, s->kernels, c);
    if (!s->selection.exact)
        gx_cpu_selection_apply_filter(&s->selection, s->kernels, c, 0, s->selection.n_met);
    rule_out(s, of, s->order[of->first]->map->map ? of->first + 1 : of->first);
    find_K(s);
    look_up_lists(s, of);
    const bool ok = accept_candidates(s, of->first > 0 || (s->selection.n_spans && s->selection.repeated));
    c->n = 0;
    return ok;
}

/* From list `first` on, the selection's documents are the candidates. Those of earlier lists have been
 * seen, or stay below T. */
static gx_status search_selected(gx_cpu_searcher *s, const gx_plan *plan, uint32_t first, bool all, gx_error *err)
{
    const lookups of = {first, plan->n_terms, all};
    bool ok = true;
    s->columns.unordered = s->selection.n_spans && s->selection.unordered;
    for (uint32_t at = 0, batch = 0; at != UINT32_MAX && ok; ++batch) {
        uint32_t n;
        if (plan->cancel && batch % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
        const uint32_t *docids = gx_cpu_selection_next(&s->selection, &at, s->scratch.docids, GX_MAX_BLOCK, &n);
        append_selected(s, &of, docids, n);
        if (s->columns.n >= GX_CPU_BATCH || at == UINT32_MAX)
            ok = evaluate_selected(s, &of);
    }
    s->columns.unordered = false;
    ++s->work.driven;
    return ok ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the documents that a query has seen");
}

static gx_status search_lists(gx_cpu_searcher *s, const gx_plan *plan, bool all, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < (all ? 1 : plan->n_terms) && st == GX_OK && !s->misjudged; ++i) {
        if (s->order[i]->ub + s->order[i]->remaining_ub < s->best.threshold)
            break;
        if (gx_cpu_selection_drives(&s->selection, s->order[i]->list.df))
            return search_selected(s, plan, i, all, err);
        st = scan_list(s, plan, i, all, err);
    }
    s->work.tested += s->selection.filter != NULL;
    s->work.masked += !s->selection.filter && s->selection.any;
    return st;
}

/* The set of bounds for the plan's scorer. Of a collection, whose average length changes with every
 * commit, bounds are made for a c1 of which only the highest bits are kept: K is not greater by it, so
 * that upper bounds stay such, and by so much less at most that lower bounds shrink by the slack. */
#define COARSE_BITS 17 /* of the 23 bits behind the first that are dropped */
#define COARSE_SLACK (1 + 0x1.1p-6)

void gx_cpu_choose_params(gx_cpu_searcher *s, const gx_plan *plan)
{
    if (s->params && memcmp(&s->norm, &plan->norm, sizeof s->norm) == 0 && s->coarse == plan->coarse_bounds)
        return;
    gx_scorer norm = plan->norm;
    if (plan->coarse_bounds) {
        uint32_t bits;
        memcpy(&bits, &norm.c1, sizeof bits);
        bits = bits >> COARSE_BITS << COARSE_BITS;
        memcpy(&norm.c1, &bits, sizeof bits);
    }
    s->params = gx_cpu_lists_params(s->lists, norm);
    s->params_slack = plan->coarse_bounds ? ROUNDING_SLACK * COARSE_SLACK : ROUNDING_SLACK;
    s->norm = plan->norm;
    s->coarse = plan->coarse_bounds;
}

static gx_status no_memory(const gx_plan *plan, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
}

/* Search from a first threshold. */
static gx_status run_search(gx_cpu_searcher *s, const gx_plan *plan, bool all, uint32_t k, uint32_t first,
                            gx_hits *hits, gx_error *err)
{
    if (!gx_cpu_best_begin(&s->best, k, first))
        return no_memory(plan, err);
    s->misjudged = false;
    s->n_read = s->n_allowed = s->n_probed = 0;
    s->survivors = 0.5f;
    const gx_status st = search_lists(s, plan, all, err);
    hits->n = st == GX_OK ? gx_cpu_best_finish(&s->best, hits->keys) : 0;
    for (size_t x = 0; x < s->n_seen; ++x)
        s->seen[s->seen_docids[x] / 64] = 0;
    s->n_seen = 0;
    return st;
}

/* The share of the documents that are kept (lists.h) that the selection allows. */
static double allowed_share(const gx_cpu_searcher *s)
{
    const uint32_t n = gx_cpu_lists_n_kept(s->lists), allowed = s->selection.allowed ? s->selection.allowed : 1;
    return allowed < n ? (double)allowed / n : 1;
}

/* Whether the selection allows fewer documents than are kept, so that a k-th greatest impact says nothing for sure. */
static bool leaves_out(const gx_cpu_searcher *s)
{
    return s->selection.filter || s->selection.n_masks > 1 ||
           (s->selection.any && s->selection.allowed < gx_cpu_lists_n_kept(s->lists));
}

/* Search from a threshold that is likely. If fewer than k documents reach it, what is known must do; if that
 * shows early, a lower one that is likely. */
static gx_status run_searches(gx_cpu_searcher *s, const gx_plan *plan, bool all, uint32_t k, gx_hits *hits,
                              gx_error *err)
{
    const uint32_t known = gx_cpu_known_threshold(plan, all);
    const double share = allowed_share(s);
    s->guesses = leaves_out(s);
    uint32_t first = all ? known : gx_cpu_first_threshold(s, plan, share);
    s->least_share = s->guesses && first > known ? plan->k / gx_cpu_likely_rank(plan->k, share) : 0;
    gx_status st = run_search(s, plan, all, k, first, hits, err);
    if (st == GX_OK && s->misjudged) {
        const uint32_t next = gx_cpu_first_threshold(s, plan, (s->n_allowed + 1.0) / s->n_read);
        first = next < first ? next : known;
        s->least_share = 0;
        st = open_cursors(s, plan, GX_OP_OR) ? run_search(s, plan, all, k, first, hits, err) : no_memory(plan, err);
    }
    if (st == GX_OK && s->guesses && hits->n < k && first > known) {
        s->least_share = 0;
        st = open_cursors(s, plan, all ? GX_OP_AND : GX_OP_OR) ? run_search(s, plan, all, k, known, hits, err)
                                                               : no_memory(plan, err);
    }
    return st;
}

gx_status gx_cpu_search(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err)
{
    /* of one list AND is OR, which has a first threshold */
    const bool all = op == GX_OP_AND && plan->n_terms > 1;
    uint64_t most_hits = 0; /* memory follows what lists hold, if that is less than k */
    for (uint32_t i = 0; i < (all ? 1 : plan->n_terms); ++i)
        most_hits += plan->terms[i].df;
    const uint32_t k = plan->k < most_hits ? plan->k : (uint32_t)most_hits;
    gx_cpu_choose_params(s, plan);
    s->columns.n = 0;
    s->columns.unordered = false;
    gx_status st = gx_cpu_selection_begin(&s->selection, plan, err);
    if (st == GX_OK)
        st = s->params && open_cursors(s, plan, op) ? run_searches(s, plan, all, k, hits, err) : no_memory(plan, err);
    gx_cpu_selection_end(&s->selection);
    return st;
}
