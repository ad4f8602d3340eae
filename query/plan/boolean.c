#include "query/plan/boolean_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_answers.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/fields/view.h"
#include "index/positions.h"
#include "query/plan/phrases.h"
#include "query/plan/sdm.h"
#include "query/plan/synonyms.h"
#include "query/syntax/signs.h"

#define NONE UINT32_MAX
#define MAX_LEAVES GX_PARSE_MAX_NODES /* terms of a query, repetitions included */

typedef struct reading {
    gx_boolean *b;
    const gx_query_tree *tree;
    gx_status st;
    gx_error *err;
    bool plain;        /* of plain text: stop words alone are no fault */
    const gx_sdm *sdm; /* of plain text, whose pairs count */
    /* of the word under way */
    const gx_node *word;
    float weight;
    bool negated;
    uint32_t group;
    char name[1024]; /* of a term in one field */
    /* of the text under way, where there are synonyms: its terms, [n_held], in held_bytes */
    gx_synonym_term *held;
    char *held_bytes;
    size_t n_held, max_held, n_held_bytes, max_held_bytes;
} reading;

static void fail_memory(reading *r)
{
    if (r->st == GX_OK)
        r->st = gx_fail(r->err, GX_ENOMEM, "no memory for a boolean query");
}

static uint32_t add_match(reading *r, gx_match_kind kind, uint32_t list)
{
    gx_boolean *b = r->b;
    if (r->st != GX_OK)
        return NONE;
    if (!gx_reserve(&b->nodes, &b->max_nodes, b->n_nodes + (size_t)1, sizeof *b->nodes)) {
        fail_memory(r);
        return NONE;
    }
    b->nodes[b->n_nodes] = (gx_match){.kind = kind, .list = list, .first = NONE, .last = NONE, .next = NONE};
    return b->n_nodes++;
}

/* A child that is a group of the same kind gives its children. */
static void add_child(reading *r, uint32_t group, uint32_t child)
{
    if (r->st != GX_OK || child == NONE)
        return;
    gx_match *g = &r->b->nodes[group], *c = &r->b->nodes[child];
    const bool same = c->kind == g->kind && g->kind != GX_MATCH_NOT;
    const uint32_t first = same ? c->first : child, last = same ? c->last : child;
    if (g->first == NONE)
        g->first = first;
    else
        r->b->nodes[g->last].next = first;
    g->last = last;
}

/* A group of nothing is none, and of one child that child. */
static uint32_t close_group(const reading *r, uint32_t group)
{
    if (r->st != GX_OK)
        return NONE;
    const gx_match *g = &r->b->nodes[group];
    return g->kind != GX_MATCH_NOT && g->first == g->last ? g->first : g->first == NONE ? NONE : group;
}

/* ---- words ---- */

static bool add_scored(gx_boolean *b, const gx_found_term *t, float weight)
{
    if (!gx_reserve(&b->bytes, &b->max_bytes, b->n_bytes + t->len, 1) ||
        !gx_reserve(&b->scored, &b->max_scored, b->n_scored + (size_t)1, sizeof *b->scored))
        return false;
    if (t->len)
        memcpy(b->bytes + b->n_bytes, t->term, t->len);
    b->scored[b->n_scored++] = (gx_scored_word){b->n_bytes, t->len, weight, t->position};
    b->n_bytes += t->len;
    return true;
}

/* The name by which a view looks a term up in one field alone. */
static bool name_in_field(reading *r, const gx_found_term *found, gx_found_term *named)
{
    if (found->len > sizeof r->name - 2)
        return false;
    r->name[0] = GX_FIELD_MARK;
    r->name[1] = (char)r->word->field;
    memcpy(r->name + 2, found->term, found->len);
    *named = *found;
    named->term = r->name;
    named->len = found->len + 2;
    return true;
}

/* A term by its name. */
static bool take_named(reading *r, const gx_found_term *found)
{
    if (r->b->n_leaves++ == MAX_LEAVES) {
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the query has more than %u terms; shorten it", r->word->column,
                        MAX_LEAVES);
        return false;
    }
    add_child(
        r, r->group,
        add_match(r, GX_MATCH_TERM, r->b->ix->parts ? NONE : gx_index_find_term(r->b->ix, found->term, found->len)));
    if (r->negated)
        r->b->negated = true;
    else if (!add_scored(r->b, found, r->weight))
        fail_memory(r);
    return r->st == GX_OK;
}

static bool take_term(void *user, const gx_found_term *found)
{
    reading *r = user;
    gx_found_term named;
    if (r->word && r->word->field) {
        if (!name_in_field(r, found, &named)) {
            r->st = gx_fail(r->err, GX_EUSAGE, "column %u: a word of %zu bytes cannot be searched for in one field",
                            r->word->column, found->len);
            return false;
        }
        found = &named;
    }
    return take_named(r, found);
}

/* Where the analysis splits the word its terms are a group of this kind. */
static uint32_t read_word(reading *r, const gx_node *n, float weight, bool negated, gx_match_kind kind)
{
    r->word = n;
    r->weight = weight;
    r->negated = negated;
    r->group = add_match(r, kind, 0);
    if (r->st != GX_OK)
        return NONE;
    const gx_status st = gx_analyze_query(r->b->ix->analyzer, r->tree->words + n->word, n->len, take_term, r);
    if (st != GX_OK && r->st == GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a word of %zu bytes: %s", n->len, gx_status_name(st));
    return close_group(r, r->group);
}

/* ---- phrases ---- */

static bool take_phrase_word(void *user, const gx_found_term *found)
{
    reading *r = user;
    gx_boolean *b = r->b;
    gx_read_phrase *p = &b->phrases[b->n_phrases];
    if (p->n == GX_MAX_PHRASE_WORDS) {
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the phrase has more than %u words; shorten it", r->word->column,
                        GX_MAX_PHRASE_WORDS);
        return false;
    }
    if (!gx_reserve(&b->words, &b->max_words, b->n_words + (size_t)1, sizeof *b->words) ||
        !gx_reserve(&b->bytes, &b->max_bytes, b->n_bytes + found->len, 1)) {
        fail_memory(r);
        return false;
    }
    gx_read_word *w = &b->words[b->n_words++];
    *w = (gx_read_word){b->n_bytes, found->len, {NONE, found->position, false}};
    if (found->len)
        memcpy(b->bytes + b->n_bytes, found->term, found->len);
    b->n_bytes += found->len;
    if (!b->ix->parts)
        w->in_index.list = gx_index_find_term(b->ix, found->term, found->len);
    ++p->n;
    return true;
}

/* As one word: of a phrase the analysis has left no more. */
static uint32_t take_only_word(reading *r)
{
    gx_boolean *b = r->b;
    const gx_read_word w = b->words[--b->n_words];
    const uint32_t node = add_match(r, GX_MATCH_TERM, w.in_index.list);
    ++b->n_leaves;
    if (r->negated)
        b->negated = true;
    else if (r->st == GX_OK && !gx_reserve(&b->scored, &b->max_scored, b->n_scored + (size_t)1, sizeof *b->scored))
        fail_memory(r);
    else if (r->st == GX_OK)
        b->scored[b->n_scored++] = (gx_scored_word){w.at, w.len, r->weight, 0};
    return node;
}

/* Offsets count from the first word that is left. */
static bool count_offsets(reading *r, const gx_read_phrase *p)
{
    gx_read_word *words = r->b->words + p->first;
    const uint32_t begin = words[0].in_index.offset;
    for (uint32_t i = 0; i < p->n; ++i)
        words[i].in_index.offset -= begin;
    if (words[p->n - 1].in_index.offset <= GX_MAX_OFFSET)
        return true;
    r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the phrase is longer than %u words; shorten it", r->word->column,
                    GX_MAX_OFFSET);
    return false;
}

static uint32_t count_places(const gx_boolean *b, const gx_read_phrase *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; ++i)
        n += !b->words[p->first + i].in_index.other;
    return n;
}

/* Windows count the order of their words, or nothing. */
static void settle_offsets(gx_boolean *b, const gx_read_phrase *p)
{
    for (uint32_t i = 0; i < p->n && p->kind != GX_PHRASE_WORDS; ++i)
        b->words[p->first + i].in_index.offset = p->kind == GX_PHRASE_ONEAR ? i : 0;
}

/* Begin a phrase or group of no words yet. false: no memory. */
static bool begin_phrase(reading *r, gx_phrase_kind kind, uint32_t slop)
{
    gx_boolean *b = r->b;
    if (r->st == GX_OK && !gx_reserve(&b->phrases, &b->max_phrases, b->n_phrases + (size_t)1, sizeof *b->phrases))
        fail_memory(r);
    if (r->st == GX_OK)
        b->phrases[b->n_phrases] = (gx_read_phrase){kind, slop, b->n_words, 0, r->weight, r->negated};
    return r->st == GX_OK;
}

static uint32_t too_many_terms(reading *r)
{
    r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the query has more than %u terms; shorten it", r->word->column,
                    MAX_LEAVES);
    return NONE;
}

/* The node of the phrase that has its words, of which n count against the limit. */
static uint32_t end_phrase(reading *r, uint32_t n)
{
    gx_boolean *b = r->b;
    b->negated = b->negated || r->negated;
    b->n_leaves += n;
    return b->n_leaves > MAX_LEAVES ? too_many_terms(r) : add_match(r, GX_MATCH_PHRASE, b->n_phrases++);
}

static const gx_expansion *expand(reading *r, const gx_node *n, const char *text, size_t len);

/* The words that the last word of a phrase stands for, which begins with text[len], in one place. */
static void add_prefix(reading *r, const gx_node *n, uint32_t place)
{
    gx_boolean *b = r->b;
    const gx_expansion *e = expand(r, n, r->tree->words + n->word + n->len - n->prefix, n->prefix);
    const uint32_t n_words = e && e->n ? e->n : 1;
    for (uint32_t i = 0; r->st == GX_OK && i < n_words; ++i) {
        const gx_found_term t = {
            .term = e->n ? e->words[i].word : "", .len = e->n ? e->words[i].len : 0, .position = place};
        b->phrases[b->n_phrases].n -= i != 0; /* the place counts once */
        if (take_phrase_word(r, &t)) {
            b->words[b->n_words - 1].in_index.other = i != 0;
            if (e->n == 0)
                b->words[b->n_words - 1].in_index.list = NONE;
        }
    }
    b->phrases[b->n_phrases].n = b->n_words - b->phrases[b->n_phrases].first;
}

typedef struct place {
    size_t begin;
    uint32_t position;
    bool found;
} place;

static bool find_place(void *user, const gx_found_term *t)
{
    place *p = user;
    if (!p->found && t->begin >= p->begin) {
        p->found = true;
        p->position = t->position;
    }
    return !p->found;
}

/* The analysed words of a phrase; where its last word is a prefix, those before it and the words that it stands for. */
static gx_status take_phrase_words(reading *r, const gx_node *n)
{
    const gx_analyzer *an = r->b->ix->analyzer;
    const char *text = r->tree->words + n->word;
    if (n->prefix == 0)
        return gx_analyze_query(an, text, n->len, take_phrase_word, r);
    const size_t before = n->len - n->prefix;
    place p = {before, 0, false};
    char *standing = malloc(before + 2); /* a word that no analysis drops stands in the place of the prefix */
    if (!standing)
        return GX_ENOMEM;
    memcpy(standing, text, before);
    memcpy(standing + before, "q7", 2);
    gx_status st = gx_analyze_query(an, standing, before + 2, find_place, &p);
    free(standing);
    if (st == GX_OK)
        st = gx_analyze_query(an, text, before, take_phrase_word, r);
    if (st == GX_OK && r->st == GX_OK)
        add_prefix(r, n, p.position);
    return st;
}

static int by_bytes(const void *a, const void *b)
{
    const gx_phrase_name_word *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    const int order = len ? memcmp(x->term, y->term, len) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* A phrase of a view of fields is a term with a name. */
static uint32_t take_field_phrase(reading *r, const gx_read_phrase *p)
{
    gx_boolean *b = r->b;
    const uint32_t group = r->group = add_match(r, GX_MATCH_OR, 0);
    gx_phrase_name_word *words = malloc(p->n * sizeof *words);
    settle_offsets(b, p);
    b->n_words = p->first;
    for (uint32_t i = 0; words && i < p->n; ++i) {
        const gx_read_word *w = &b->words[p->first + i];
        words[i] = (gx_phrase_name_word){b->bytes + w->at, w->len, w->in_index.offset};
    }
    if (words && p->n > 1 && p->kind == GX_PHRASE_NEAR) /* the order tells nothing */
        qsort(words, p->n, sizeof *words, by_bytes);
    const gx_phrase_name of = {.field = r->word->field, .kind = (uint32_t)p->kind, .slop = p->slop};
    const size_t len = words ? gx_phrase_name_bytes(words, p->n) : 0;
    char *name = words ? malloc(len) : NULL;
    if (!name) {
        fail_memory(r);
    } else if (p->n == 1) {
        const size_t at = 2 * sizeof(uint32_t) + 7; /* the word's bytes in the name */
        gx_phrase_name_write(name, &of, words, 1);
        take_term(r, &(gx_found_term){.term = name + at, .len = words[0].len});
    } else {
        gx_phrase_name_write(name, &of, words, p->n);
        take_named(r, &(gx_found_term){.term = name, .len = len});
    }
    free(words);
    free(name);
    return close_group(r, group);
}

static uint32_t read_phrase(reading *r, const gx_node *n, float weight, bool negated)
{
    gx_boolean *b = r->b;
    r->word = n;
    r->weight = weight;
    r->negated = negated;
    if (!gx_index_has_positions(b->ix)) {
        r->st =
            gx_fail(r->err, GX_EUSAGE,
                    "column %u: phrases need positions, which this index lacks; build it with --positions", n->column);
        return NONE;
    }
    if (gx_view_of(b->ix) && (n->prefix || !gx_view_takes_phrases(b->ix))) {
        r->st = gx_fail(r->err, GX_EUSAGE,
                        n->prefix ? "column %u: the last word of a phrase in fields is a whole word; leave out the *"
                                  : "column %u: phrases in fields are searched on the CPU; choose it (--engine=cpu)",
                        n->column);
        return NONE;
    }
    if (!begin_phrase(r,
                      n->window == 'N'   ? GX_PHRASE_NEAR
                      : n->window == 'O' ? GX_PHRASE_ONEAR
                                         : GX_PHRASE_WORDS,
                      n->slop))
        return NONE;
    gx_read_phrase *p = &b->phrases[b->n_phrases];
    const gx_status st = take_phrase_words(r, n);
    if (st != GX_OK && r->st == GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a phrase of %zu bytes: %s", n->len, gx_status_name(st));
    if (r->st == GX_OK && p->n == 0 && !r->plain)
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: no word of this phrase can be searched: all are stop words",
                        n->column);
    if (r->st != GX_OK || p->n == 0 || !count_offsets(r, p))
        return NONE;
    if (gx_view_of(b->ix))
        return take_field_phrase(r, p);
    if (p->n == 1)
        return take_only_word(r);
    const uint32_t n_places = count_places(b, p);
    if (n_places == 1) /* stop words stand before the prefix */
        p->kind = GX_PHRASE_ANY;
    settle_offsets(b, p);
    return end_phrase(r, n_places);
}

/* ---- words that stand for several ---- */

/* The words of a pattern: those of the whole collection, where ix is a part. NULL: failed. */
static const gx_expansion *expand(reading *r, const gx_node *n, const char *text, size_t len)
{
    gx_boolean *b = r->b;
    const uint32_t node = (uint32_t)(n - r->tree->nodes);
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    gx_error why = {0};
    for (uint32_t i = 0; b->whole && i < b->whole->n_expanded; ++i) {
        if (b->whole->expanded[i].node == node)
            return b->whole->expanded[i].words;
    }
    if (b->cancel && b->cancel(b->cancel_user)) {
        r->st = gx_fail(r->err, GX_ECANCELLED, "the search was cancelled");
        return NULL;
    }
    opt.max_words = b->options.max_words;
    opt.fixed_prefix = b->options.fixed_prefix;
    opt.distance = n->distance;
    if (!gx_reserve(&b->expanded, &b->max_expanded, b->n_expanded + (size_t)1, sizeof *b->expanded)) {
        fail_memory(r);
        return NULL;
    }
    gx_expanded_node *e = &b->expanded[b->n_expanded];
    e->node = node;
    r->st = gx_index_expand(&e->words, b->ix, n->prefix ? GX_PATTERN_PREFIX : n->pattern, text, len, &opt, &why);
    if (r->st == GX_OK) {
        ++b->n_expanded;
        return e->words;
    }
    gx_fail(r->err, r->st, r->st == GX_EUSAGE ? "column %u: %s" : "%.0u%s", n->column, why.text);
    return NULL;
}

/* The words of a group, each of which stands in one place with the others. */
static uint32_t read_group(reading *r, gx_phrase_kind kind, const gx_expansion *e)
{
    if (!begin_phrase(r, kind, 0))
        return NONE;
    for (uint32_t i = 0; i < e->n; ++i) {
        r->b->phrases[r->b->n_phrases].n = 0; /* no limit of phrases */
        if (!take_phrase_word(r, &(gx_found_term){.term = e->words[i].word, .len = e->words[i].len}))
            return NONE;
    }
    r->b->phrases[r->b->n_phrases].n = e->n;
    return end_phrase(r, 1);
}

/* A pattern is a group of the words that it stands for, and of one that no index has where there are none. */
static uint32_t read_pattern(reading *r, const gx_node *n, float weight, bool negated)
{
    const gx_expansion_scoring scoring = r->b->options.scoring;
    r->word = n;
    r->weight = weight;
    r->negated = negated;
    const gx_expansion *e = expand(r, n, r->tree->words + n->word, n->len);
    if (e && !negated && (scoring == GX_EXPANSION_CONSTANT ? e->n > 0 : scoring == GX_EXPANSION_ONE && e->n > 1))
        return read_group(r, scoring == GX_EXPANSION_ONE ? GX_PHRASE_ANY : GX_PHRASE_CONSTANT, e);
    const uint32_t group = add_match(r, GX_MATCH_OR, 0);
    r->group = group;
    r->b->n_leaves -= e && e->n > 1 ? e->n - 1 : 0; /* it counts as one word */
    for (uint32_t i = 0; e && i < e->n; ++i) {
        r->weight = scoring == GX_EXPANSION_ONE ? weight : weight * (1 / (float)(1 + e->words[i].distance));
        take_term(r, &(gx_found_term){.term = e->words[i].word, .len = e->words[i].len});
    }
    if (e && e->n == 0)
        take_term(r, &(gx_found_term){.term = ""});
    return close_group(r, group);
}

/* ---- synonyms ---- */

static bool hold_term(void *user, const gx_found_term *found)
{
    reading *r = user;
    if (!gx_reserve(&r->held, &r->max_held, r->n_held + 1, sizeof *r->held) ||
        !gx_reserve(&r->held_bytes, &r->max_held_bytes, r->n_held_bytes + found->len + 1, 1)) {
        fail_memory(r);
        return false;
    }
    memcpy(r->held_bytes + r->n_held_bytes, found->term, found->len);
    r->held[r->n_held++] = (gx_synonym_term){NULL, found->len, found->position};
    r->n_held_bytes += found->len;
    return true;
}

/* Analyse a text into r->held. */
static void hold_terms(reading *r, const char *text, size_t len)
{
    r->n_held = r->n_held_bytes = 0;
    const gx_status st = gx_analyze_query(r->b->ix->analyzer, text, len, hold_term, r);
    if (st != GX_OK && r->st == GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st));
    const char *bytes = r->held_bytes;
    for (size_t i = 0; i < r->n_held; bytes += r->held[i++].len)
        r->held[i].term = bytes;
}

/* Entries [first, first + n) of what stands for a word: words as a group, a phrase alone. */
static uint32_t read_entries(reading *r, gx_phrase_kind kind, const gx_synonym_entry *first, uint32_t n)
{
    if (!begin_phrase(r, kind, 0))
        return NONE;
    for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t k = 0; k < first[i].n; ++k) {
            const gx_synonym_term *t = &first[i].terms[k];
            r->b->phrases[r->b->n_phrases].n = 0;
            if (!take_phrase_word(r, &(gx_found_term){.term = t->term, .len = t->len, .position = t->offset}))
                return NONE;
        }
    }
    gx_read_phrase *p = &r->b->phrases[r->b->n_phrases];
    p->n = r->b->n_words - p->first;
    return p->n == 1 ? take_only_word(r) : end_phrase(r, 1);
}

/* What stands for a word, as one word. */
static uint32_t read_synonyms(reading *r, const gx_synonym_group *g)
{
    const uint32_t group = add_match(r, GX_MATCH_OR, 0);
    if (gx_view_of(r->b->ix) && r->st == GX_OK)
        r->st = gx_fail(r->err, GX_EUSAGE, "synonyms are not weighed by fields; leave out --fields or the synonyms");
    if (r->b->op == GX_OP_AND_OR && r->st == GX_OK && g->n - g->n_single + (g->n_single > 0) > 1)
        r->st =
            gx_fail(r->err, GX_EUSAGE,
                    "synonyms of several words cannot be searched with AND first and then OR; choose one of the two");
    if (g->n_single && r->st == GX_OK)
        add_child(r, group, read_entries(r, GX_PHRASE_ANY, g->to, g->n_single));
    for (uint32_t i = g->n_single; i < g->n && r->st == GX_OK; ++i)
        add_child(r, group, read_entries(r, GX_PHRASE_WORDS, &g->to[i], 1));
    return close_group(r, group);
}

/* Whether all of a word or phrase is replaced; *out: by this node. */
static bool replace_whole(reading *r, const gx_node *n, float weight, bool negated, uint32_t *out)
{
    if (!r->b->synonyms || n->field || n->prefix || (n->window && n->window != '"') || n->slop)
        return false;
    hold_terms(r, r->tree->words + n->word, n->len);
    const gx_synonym_group *g = r->st == GX_OK && r->n_held && r->n_held <= UINT32_MAX
                                    ? gx_synonyms_find(r->b->synonyms, r->held, (uint32_t)r->n_held, true)
                                    : NULL;
    r->word = n;
    r->weight = weight;
    r->negated = negated;
    if (g)
        *out = read_synonyms(r, g);
    return g != NULL;
}

static bool count_term(void *user, const gx_found_term *found)
{
    (void)found;
    return ++*(uint32_t *)user < 2;
}

/* Whether the analysis makes several terms of one quoted word: "3.5-inch", or a row of Han. They are a phrase then. */
static bool is_split(reading *r, const gx_node *n)
{
    uint32_t n_terms = 0;
    const gx_status st = gx_analyze_query(r->b->ix->analyzer, r->tree->words + n->word, n->len, count_term, &n_terms);
    if (st != GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a word of %zu bytes: %s", n->len, gx_status_name(st));
    return n_terms > 1;
}

/* ---- the tree ---- */

static uint32_t read_node(reading *r, uint32_t node, float weight, bool negated, gx_match_kind kind);

static uint32_t read_not(reading *r, uint32_t child, float weight)
{
    const uint32_t inner = read_node(r, child, weight, true, GX_MATCH_AND);
    if (inner == NONE)
        return NONE;
    const uint32_t node = add_match(r, GX_MATCH_NOT, 0);
    add_child(r, node, inner);
    return node;
}

static uint32_t read_operands(reading *r, const gx_node *n, float weight, bool negated)
{
    const gx_match_kind kind = n->kind == GX_NODE_AND ? GX_MATCH_AND : GX_MATCH_OR;
    const uint32_t group = add_match(r, kind, 0);
    for (uint32_t c = n->first; r->st == GX_OK && c != GX_NO_NODE; c = r->tree->nodes[c].next)
        add_child(r, group, read_node(r, c, weight, negated, kind));
    return close_group(r, group);
}

static bool has_terms(const gx_boolean *b, uint32_t node)
{
    const gx_match *n = &b->nodes[node];
    bool has = n->kind == GX_MATCH_TERM || n->kind == GX_MATCH_PHRASE;
    for (uint32_t c = n->first; c != NONE && !has; c = b->nodes[c].next)
        has = has_terms(b, c);
    return has;
}

static uint32_t read_clauses(reading *r, const gx_node *n, float weight, bool negated)
{
    const gx_match_kind side_by_side = r->b->op == GX_OP_AND ? GX_MATCH_AND : GX_MATCH_OR;
    const uint32_t optional = add_match(r, side_by_side, 0), needed = add_match(r, GX_MATCH_AND, 0);
    bool required = false;
    for (uint32_t c = n->first; r->st == GX_OK && c != GX_NO_NODE; c = r->tree->nodes[c].next) {
        if (r->tree->nodes[c].occur == GX_OPTIONAL) {
            add_child(r, optional, read_node(r, c, weight, negated, side_by_side));
        } else if (r->tree->nodes[c].occur == GX_EXCLUDED) {
            add_child(r, needed, read_not(r, c, weight));
        } else {
            const uint32_t child = read_node(r, c, weight, negated, GX_MATCH_AND);
            required = required || child != NONE;
            add_child(r, needed, child);
        }
    }
    const uint32_t any = close_group(r, optional);
    if (!required)
        add_child(r, needed, any);
    else if (any != NONE && has_terms(r->b, any)) /* optional conditions change nothing */
        r->b->only_scores = true;
    return close_group(r, needed);
}

static uint32_t read_node(reading *r, uint32_t node, float weight, bool negated, gx_match_kind kind)
{
    if (r->st != GX_OK)
        return NONE;
    const gx_node *n = &r->tree->nodes[node];
    weight *= n->boost;
    if (!isfinite(weight) || !(weight > 0)) {
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the weights multiply to %g; a finite number above 0 is expected",
                        n->column, weight);
        return NONE;
    }
    if (n->field && n->kind == GX_NODE_PATTERN) {
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: only whole words and phrases can be searched for in one field",
                        n->column);
        return NONE;
    }
    uint32_t replaced;
    if ((n->kind == GX_NODE_WORD || n->kind == GX_NODE_PHRASE) && replace_whole(r, n, weight, negated, &replaced))
        return replaced;
    switch (n->kind) {
    case GX_NODE_WORD:
        if (n->window == '"' && gx_index_has_positions(r->b->ix) && is_split(r, n))
            return read_phrase(r, n, weight, negated);
        return read_word(r, n, weight, negated, kind);
    case GX_NODE_PHRASE:
        return read_phrase(r, n, weight, negated);
    case GX_NODE_PATTERN:
        return read_pattern(r, n, weight, negated);
    case GX_NODE_CONDITION:
        r->b->selects = r->b->selects || !negated;
        return add_match(r, GX_MATCH_CONDITION, n->condition);
    case GX_NODE_NOT:
        return read_not(r, n->first, weight);
    case GX_NODE_CLAUSES:
        return read_clauses(r, n, weight, negated);
    default:
        return read_operands(r, n, weight, negated);
    }
}

/* ---- conditions to filters ---- */

static bool mark_pure(gx_boolean *b, uint32_t node)
{
    bool pure = b->nodes[node].kind != GX_MATCH_TERM && b->nodes[node].kind != GX_MATCH_PHRASE;
    for (uint32_t c = b->nodes[node].first; c != NONE; c = b->nodes[c].next)
        pure = mark_pure(b, c) && pure;
    return b->nodes[node].pure = pure;
}

/* Append the items of a pure node of the piece that begins at `begin`; returns the node's, which is the last. */
static uint32_t add_items(reading *r, uint32_t node, uint32_t begin)
{
    gx_boolean *b = r->b;
    const gx_match n = b->nodes[node];
    gx_filter_item item = {GX_FILTER_RANGE, NONE, NONE, n.list};
    uint32_t last = NONE;
    item.kind = n.kind == GX_MATCH_AND   ? GX_FILTER_AND
                : n.kind == GX_MATCH_OR  ? GX_FILTER_OR
                : n.kind == GX_MATCH_NOT ? GX_FILTER_NOT
                                         : GX_FILTER_RANGE;
    for (uint32_t c = n.first; c != NONE && r->st == GX_OK; c = b->nodes[c].next) {
        const uint32_t child = add_items(r, c, begin);
        if (r->st != GX_OK)
            break;
        *(last == NONE ? &item.first : &b->items[begin + last].next) = child;
        last = child;
    }
    if (r->st == GX_OK && !gx_reserve(&b->items, &b->max_items, b->n_items + (size_t)1, sizeof *b->items))
        fail_memory(r);
    if (r->st != GX_OK)
        return NONE;
    b->items[b->n_items] = item;
    return b->n_items++ - begin;
}

/* The number of the piece that is made of a pure node. */
static uint32_t add_piece(reading *r, uint32_t node)
{
    gx_boolean *b = r->b;
    const uint32_t begin = b->n_items;
    if (r->st == GX_OK && !gx_reserve(&b->pieces, &b->max_pieces, b->n_pieces + (size_t)1, sizeof *b->pieces))
        fail_memory(r);
    add_items(r, node, begin);
    if (r->st != GX_OK)
        return NONE;
    b->pieces[b->n_pieces] = (gx_piece){begin, b->n_items - begin};
    return b->n_pieces++;
}

/* Greatest pure nodes below this one become filters. */
static void replace_pure(reading *r, uint32_t node)
{
    gx_match *n = &r->b->nodes[node];
    if (n->pure) {
        const uint32_t number = add_piece(r, node);
        *n = (gx_match){
            .kind = GX_MATCH_FILTER, .list = number, .first = NONE, .last = NONE, .next = n->next, .pure = true};
        return;
    }
    for (uint32_t c = n->first; c != NONE && r->st == GX_OK; c = r->b->nodes[c].next)
        replace_pure(r, c);
}

/* Take the conditions out of the root that all results must meet. */
static void take_required(reading *r)
{
    gx_boolean *b = r->b;
    uint32_t pure = add_match(r, GX_MATCH_AND, 0), rest = add_match(r, GX_MATCH_AND, 0);
    if (r->st != GX_OK)
        return;
    const bool series = b->nodes[b->root].kind == GX_MATCH_AND && !b->nodes[b->root].pure;
    for (uint32_t c = series ? b->nodes[b->root].first : b->root, next; c != NONE; c = next) {
        next = series ? b->nodes[c].next : NONE;
        b->nodes[c].next = NONE;
        add_child(r, b->nodes[c].pure ? pure : rest, c);
    }
    pure = close_group(r, pure);
    b->root = close_group(r, rest);
    if (pure != NONE)
        b->required = add_piece(r, pure);
}

/* Whether all that match hold a term that scores. */
static bool needs_term(const gx_boolean *b, uint32_t node)
{
    const gx_match *n = &b->nodes[node];
    bool any = false, all = true;
    if (n->kind == GX_MATCH_TERM || n->kind == GX_MATCH_PHRASE)
        return true;
    for (uint32_t c = n->first; c != NONE; c = b->nodes[c].next) {
        const bool needs = needs_term(b, c);
        any = any || needs;
        all = all && needs;
    }
    return n->kind == GX_MATCH_AND ? any : n->kind == GX_MATCH_OR && all;
}

static void divide(reading *r)
{
    gx_boolean *b = r->b;
    if (b->root == NONE || r->st != GX_OK || b->tree.n_conditions == 0)
        return;
    mark_pure(b, b->root);
    take_required(r);
    if (r->st == GX_OK && b->root != NONE)
        replace_pure(r, b->root);
    if (r->st == GX_OK && (b->root != NONE || b->required != NONE))
        b->fill = b->selects && (b->root == NONE || !needs_term(b, b->root));
}

/* ---- what the engines can run as it is ---- */

static bool is_leaf(const gx_boolean *b, uint32_t node)
{
    return b->nodes[node].kind == GX_MATCH_TERM || b->nodes[node].kind == GX_MATCH_PHRASE;
}

static bool is_flat(const gx_boolean *b)
{
    if (b->root == NONE && (b->required != NONE || b->fill))
        return true;
    if (b->only_scores || b->negated)
        return false;
    if (b->root == NONE || is_leaf(b, b->root))
        return true;
    for (uint32_t c = b->nodes[b->root].first; c != NONE; c = b->nodes[c].next) {
        if (!is_leaf(b, c))
            return false;
    }
    return true;
}

/* The operator of a flat query. */
static gx_op flat_op(const gx_boolean *b)
{
    if (b->root == NONE && (b->required != NONE || b->fill))
        return GX_OP_OR;
    if (b->op == GX_OP_AND_OR || b->root == NONE || is_leaf(b, b->root))
        return b->op;
    return b->nodes[b->root].kind == GX_MATCH_AND ? GX_OP_AND : GX_OP_OR;
}

static gx_status check_and_or(const gx_query_tree *t, gx_error *err)
{
    for (uint32_t c = t->nodes[t->root].first; c != GX_NO_NODE; c = t->nodes[c].next) {
        if ((t->nodes[c].kind != GX_NODE_WORD && t->nodes[c].kind != GX_NODE_PHRASE) ||
            t->nodes[c].occur != GX_OPTIONAL)
            return gx_fail(err, GX_EUSAGE,
                           "column %u: only words side by side can be searched with AND first and then OR; choose "
                           "one of the two",
                           t->nodes[c].column);
    }
    return GX_OK;
}

static bool has_scored_phrase(const gx_boolean *b)
{
    for (uint32_t i = 0; i < b->n_phrases; ++i)
        if (!b->phrases[i].negated)
            return true;
    return false;
}

static gx_status read_tree(gx_boolean *b, gx_error *err)
{
    reading r = {.b = b, .tree = &b->tree, .err = err};
    if (b->op == GX_OP_AND_OR && (r.st = check_and_or(&b->tree, err)) != GX_OK)
        return r.st;
    b->root = read_node(&r, b->tree.root, 1, false, GX_MATCH_AND);
    b->fill = b->tree.all;
    free(r.held);
    free(r.held_bytes);
    divide(&r);
    if (r.st != GX_OK)
        return r.st;
    if (b->n_scored == 0 && !has_scored_phrase(b) && !b->selects && (b->negated || b->n_pieces))
        return gx_fail(err, GX_EUSAGE,
                       "column 1: the query only excludes; at least one word or condition to look for is expected");
    b->flat = is_flat(b);
    b->op = b->flat ? flat_op(b) : GX_OP_OR;
    return GX_OK;
}

static gx_status check_expansion(const gx_query_expansion *e, gx_error *err)
{
    if (e->max_words == 0 || e->max_words > GX_MAX_TERMS)
        return gx_fail(err, GX_EUSAGE, "a pattern is to stand for %u words at most; from 1 to %u are possible",
                       e->max_words, GX_MAX_TERMS);
    if ((unsigned)e->scoring > GX_EXPANSION_CONSTANT)
        return gx_fail(err, GX_EUSAGE, "scores of expansions of kind %d do not exist", (int)e->scoring);
    return GX_OK;
}

gx_status gx_boolean_open(gx_boolean **out, const gx_index *ix, const gx_index *attributes, const char *text,
                          size_t len, const gx_query_options *opt, const gx_boolean *whole, gx_error *err)
{
    *out = NULL;
    gx_boolean *b = calloc(1, sizeof *b);
    if (!b)
        return gx_fail(err, GX_ENOMEM, "no memory for a boolean query");
    b->ix = ix;
    b->op = opt->op;
    b->options = opt->expansion;
    b->synonyms = opt->synonyms;
    b->cancel = opt->cancel;
    b->cancel_user = opt->user;
    b->whole = whole;
    b->required = NONE;
    gx_status st = check_expansion(&opt->expansion, err);
    if (st == GX_OK && gx_query_side_is_on(opt) && len && !(len == 1 && text[0] == '*'))
        st = gx_fail(err, GX_EUSAGE, "query-side weights are of plain queries; leave out query_k1 and query_b here");
    if (st == GX_OK)
        st = gx_query_parse_fields(&b->tree, attributes, ix, text, len, err);
    if (st == GX_OK)
        st = read_tree(b, err);
    if (st != GX_OK)
        gx_boolean_close(b);
    else
        *out = b;
    return st;
}

/* Words and what stands for some of them, into the root's group. */
static void read_plain_synonyms(reading *r, size_t begin, size_t end)
{
    const uint32_t root = r->group;
    hold_terms(r, r->tree->words + begin, end - begin);
    for (size_t i = 0, used; i < r->n_held && r->st == GX_OK; i += used) {
        const size_t left = r->n_held - i;
        const gx_synonym_group *g =
            gx_synonyms_find(r->b->synonyms, r->held + i, left < UINT32_MAX ? (uint32_t)left : UINT32_MAX, false);
        used = g ? g->from.n : 1;
        if (g)
            add_child(r, root, read_synonyms(r, g));
        else
            take_term(r, &(gx_found_term){.term = r->held[i].term, .len = r->held[i].len});
        r->group = root;
    }
}

static void read_plain_words(reading *r, const gx_node *n, size_t begin, size_t end)
{
    const uint32_t first = r->b->n_scored;
    gx_node words = *n;
    words.word = begin;
    words.len = end - begin;
    r->word = &words;
    if (r->b->synonyms && begin < end && r->st == GX_OK) {
        read_plain_synonyms(r, begin, end);
        return;
    }
    const gx_status st = begin < end && r->st == GX_OK
                             ? gx_analyze_query(r->b->ix->analyzer, r->tree->words + begin, end - begin, take_term, r)
                             : GX_OK;
    if (st != GX_OK && r->st == GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a query of %zu bytes: %s", end - begin, gx_status_name(st));
    if (r->st == GX_OK && r->sdm)
        r->st = gx_sdm_add_pairs(r->b, first, r->sdm, r->err);
}

static uint32_t column_of(const char *text, size_t at)
{
    uint32_t column = 1;
    for (size_t i = 0; i < at; ++i)
        column += ((unsigned char)text[i] & 0xc0) != 0x80;
    return column;
}

/* Words and phrases into the root's group. */
static void read_plain(reading *r, const char *text, size_t len, bool quotes)
{
    gx_node n = {.window = '"'};
    size_t at = 0, begin = 0, end, behind;
    for (; quotes && r->st == GX_OK && gx_plain_quotes(text, len, &begin, &end, &behind, &n.slop);
         at = begin = behind) {
        n.column = column_of(text, begin);
        read_plain_words(r, &n, at, begin - 1);
        if (n.slop > GX_MAX_SLOP) {
            r->st = gx_fail(r->err, GX_EUSAGE, "column %u: a whole number from 0 to %u is expected after ~",
                            column_of(text, end + 2), GX_MAX_SLOP);
            return;
        }
        n.word = begin;
        n.len = end - begin;
        const uint32_t root = r->group;
        const float weight = r->sdm ? r->sdm->words : 1;
        uint32_t phrase;
        if (!replace_whole(r, &n, weight, false, &phrase))
            phrase = read_phrase(r, &n, weight, false);
        r->group = root;
        add_child(r, root, phrase);
    }
    read_plain_words(r, &n, at, len);
}

/* Whether quotes in plain text make phrases. */
static bool quotes_count(const gx_index *ix, const gx_query_options *opt)
{
    return opt->quotes == GX_QUOTES_PHRASE && !gx_query_side_is_on(opt) && gx_index_has_positions(ix) &&
           !gx_preset_get(opt->preset)->linear;
}

gx_status gx_boolean_open_text(gx_boolean **out, const gx_index *ix, const char *text, size_t len,
                               const gx_query_options *opt, gx_error *err)
{
    const bool pairs = gx_sdm_is_on(&opt->sdm);
    gx_boolean *b = calloc(1, sizeof *b);
    *out = NULL;
    if (b)
        b->tree.words = malloc(len + 1);
    if (!b || !b->tree.words) {
        gx_boolean_close(b);
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", len);
    }
    memcpy(b->tree.words, text, len);
    b->ix = ix;
    b->op = opt->op;
    b->required = NONE;
    b->synonyms = opt->synonyms;
    reading r = {.b = b, .tree = &b->tree, .err = err, .plain = true, .weight = 1};
    if (pairs) {
        r.sdm = &opt->sdm;
        r.weight = opt->sdm.words;
    }
    r.group = add_match(&r, b->op == GX_OP_AND ? GX_MATCH_AND : GX_MATCH_OR, 0);
    read_plain(&r, text, len, quotes_count(ix, opt));
    free(r.held);
    free(r.held_bytes);
    b->root = close_group(&r, r.group);
    if (r.st == GX_OK) { /* an AND would want the pairs, too */
        b->flat = is_flat(b) && (!pairs || opt->op == GX_OP_OR || b->n_phrases == 0);
        b->op = b->flat ? flat_op(b) : GX_OP_OR;
    }
    if (r.st == GX_OK)
        *out = b;
    else
        gx_boolean_close(b);
    return r.st;
}

bool gx_has_phrases(const gx_index *ix, const gx_query *q, const gx_query_options *opt)
{
    size_t begin = 0, end, behind;
    uint32_t slop;
    if (q->kind != GX_QUERY_TEXT)
        return false;
    if (gx_sdm_is_on(&opt->sdm) || (opt->synonyms && q->len))
        return true;
    return q->len && memchr(q->text, '"', q->len) && quotes_count(ix, opt) &&
           gx_plain_quotes(q->text, q->len, &begin, &end, &behind, &slop);
}

void gx_boolean_close(gx_boolean *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; b->filters && i < b->n_pieces; ++i)
        gx_filter_close(b->filters[i]);
    for (uint32_t i = 0; i < b->n_expanded; ++i)
        gx_expansion_free(b->expanded[i].words);
    free(b->expanded);
    free(b->filters);
    free(b->items);
    free(b->pieces);
    gx_query_tree_free(&b->tree);
    free(b->nodes);
    free(b->scored);
    free(b->phrases);
    free(b->words);
    free(b->bytes);
    free(b);
}

bool gx_boolean_is_flat(const gx_boolean *b)
{
    return b->flat;
}

/* ---- plans ---- */

static gx_status plan_terms(gx_plan *out, const gx_index *ix, const gx_weighted_term *terms, uint32_t n,
                            const gx_query_options *opt, gx_error *err)
{
    const gx_collection_stats stats = gx_collection_stats_of(ix);
    gx_query_plan plan;
    gx_status st = gx_query_plan_make(&plan, terms, n, &stats, opt, err);
    if (st != GX_OK)
        return st;
    st = gx_plan_bind(out, &plan, ix, err);
    gx_query_plan_free(&plan);
    return st;
}

gx_phrase_text *gx_boolean_phrases(const gx_boolean *b, uint32_t *n)
{
    gx_phrase_text *phrases = malloc(b->n_phrases * sizeof *phrases + b->n_words * sizeof(gx_phrase_text_word) + 1);
    gx_phrase_text_word *words = (gx_phrase_text_word *)(void *)(phrases + b->n_phrases);
    *n = 0;
    for (uint32_t w = 0; phrases && w < b->n_words; ++w)
        words[w] = (gx_phrase_text_word){b->bytes + b->words[w].at, b->words[w].len, b->words[w].in_index.offset,
                                         b->words[w].in_index.other};
    for (uint32_t i = 0; phrases && i < b->n_phrases; ++i) {
        const gx_read_phrase *p = &b->phrases[i];
        if (!p->negated)
            phrases[(*n)++] = (gx_phrase_text){p->kind, p->slop, p->n, words + p->first, p->weight};
    }
    return phrases;
}

/* The terms that score of a boolean query; the caller frees. NULL: no memory. */
static gx_weighted_term *terms_of(const gx_boolean *b)
{
    gx_weighted_term *terms = malloc((b->n_scored + 1ull) * sizeof *terms);
    for (uint32_t i = 0; terms && i < b->n_scored; ++i)
        terms[i] = (gx_weighted_term){b->bytes + b->scored[i].at, b->scored[i].len, b->scored[i].weight};
    return terms;
}

/* What a boolean query says of any index. */
static gx_status plan_scored(gx_query_plan *out, const gx_boolean *b, const gx_collection_stats *stats,
                             const gx_query_options *opt, gx_error *err)
{
    gx_query_options own = *opt;
    uint32_t n_phrases;
    gx_weighted_term *terms = terms_of(b);
    gx_phrase_text *phrases = gx_boolean_phrases(b, &n_phrases);
    own.op = b->op;
    const gx_status st = terms && phrases
                             ? gx_query_plan_make_phrases(out, terms, b->n_scored, phrases, n_phrases, stats, &own, err)
                             : gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", b->n_scored);
    free(terms);
    free(phrases);
    return st;
}

/* A query of kind GX_QUERY_BOOLEAN or GX_QUERY_ALL, or a text with phrases. */
static gx_status open_query(gx_boolean **out, const gx_index *ix, const gx_query *q, const gx_query_options *opt,
                            gx_error *err)
{
    const bool all = q->kind == GX_QUERY_ALL;
    const gx_status st = opt->synonyms && !all ? gx_synonyms_check(opt->synonyms, ix, err) : GX_OK;
    *out = NULL;
    if (st != GX_OK)
        return st;
    if (q->kind == GX_QUERY_TEXT)
        return gx_boolean_open_text(out, ix, q->text, q->len, opt, err);
    return gx_boolean_open(out, ix, ix, all ? "*" : q->text, all ? 1 : q->len, opt, NULL, err);
}

static gx_status check_kind(const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    if ((q->kind == GX_QUERY_TERMS || q->kind == GX_QUERY_BOOLEAN) && gx_sdm_is_on(&opt->sdm))
        return gx_fail(err, GX_EUSAGE, "sdm: pairs are of plain queries, not of %s",
                       q->kind == GX_QUERY_TERMS ? "terms with weights" : "the boolean syntax");
    return GX_OK;
}

gx_status gx_query_plan_any(gx_query_plan *out, gx_boolean **boolean, const gx_index *ix,
                            const gx_collection_stats *stats, const gx_query *q, const gx_query_options *opt,
                            gx_error *err)
{
    gx_boolean *b;
    gx_status st = check_kind(q, opt, err);
    *boolean = NULL;
    if (st != GX_OK)
        return st;
    const bool phrases = gx_has_phrases(ix, q, opt);
    if (q->kind == GX_QUERY_TEXT && !phrases)
        return gx_query_plan_text(out, ix, q->text, q->len, stats, opt, err);
    if (q->kind == GX_QUERY_TERMS)
        return gx_query_plan_make(out, q->terms, q->n_terms, stats, opt, err);
    if (q->kind != GX_QUERY_BOOLEAN && q->kind != GX_QUERY_ALL && !phrases)
        return gx_fail(err, GX_EUSAGE, "queries of kind %d do not exist", (int)q->kind);
    if ((st = open_query(&b, ix, q, opt, err)) != GX_OK)
        return st;
    st = plan_scored(out, b, stats, opt, err);
    if (st == GX_OK)
        *boolean = b;
    else
        gx_boolean_close(b);
    return st;
}

static gx_status plan_boolean(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                              const gx_query_options *opt, gx_error *err)
{
    const gx_collection_stats stats = gx_collection_stats_of(ix);
    gx_query_plan plan;
    gx_boolean *b;
    gx_status st = open_query(&b, ix, q, opt, err);
    if (st != GX_OK)
        return st;
    st = plan_scored(&plan, b, &stats, opt, err);
    if (st == GX_OK) {
        st = gx_plan_bind(out, &plan, ix, err);
        gx_query_plan_free(&plan);
    }
    if (st == GX_OK && (st = gx_boolean_make_filters(b, out, ix, q, err)) != GX_OK)
        gx_plan_free(out);
    if (st == GX_OK && !b->flat)
        *matches = b;
    else
        gx_boolean_close(b);
    return st;
}

gx_status gx_plan_query(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                        const gx_query_options *opt, gx_error *err)
{
    const gx_status st = check_kind(q, opt, err);
    *matches = NULL;
    if (st != GX_OK)
        return st;
    switch (q->kind) {
    case GX_QUERY_TEXT:
        return gx_has_phrases(ix, q, opt) ? plan_boolean(out, matches, ix, q, opt, err)
                                          : gx_plan_make(out, ix, q->text, q->len, opt, err);
    case GX_QUERY_TERMS:
        return plan_terms(out, ix, q->terms, q->n_terms, opt, err);
    case GX_QUERY_BOOLEAN:
    case GX_QUERY_ALL:
        return plan_boolean(out, matches, ix, q, opt, err);
    }
    return gx_fail(err, GX_EUSAGE, "queries of kind %d do not exist", (int)q->kind);
}

/* ---- words to show ---- */

uint32_t gx_boolean_n_words(const gx_boolean *b)
{
    return b->n_scored;
}

uint32_t gx_boolean_n_terms(const gx_boolean *b)
{
    uint32_t n = b->n_scored;
    for (uint32_t i = 0; i < b->n_phrases; ++i)
        n += b->phrases[i].negated ? 0 : b->phrases[i].n;
    return n;
}

const char *gx_boolean_term(const gx_boolean *b, uint32_t i, size_t *len)
{
    if (i < b->n_scored) {
        *len = b->scored[i].len;
        return b->bytes + b->scored[i].at;
    }
    const gx_read_phrase *p = b->phrases;
    for (i -= b->n_scored; p->negated || i >= p->n; ++p)
        i -= p->negated ? 0 : p->n;
    *len = b->words[p->first + i].len;
    return b->bytes + b->words[p->first + i].at;
}

uint32_t gx_boolean_n_expanded(const gx_boolean *b)
{
    return b->n_expanded;
}

const gx_expansion *gx_boolean_expanded(const gx_boolean *b, uint32_t i, gx_text *pattern)
{
    const gx_node *n = &b->tree.nodes[b->expanded[i].node];
    const char *text = b->tree.words + n->word;
    gx_text_add_string(pattern, n->pattern == GX_PATTERN_REGEX ? "/" : "");
    if (n->prefix)
        gx_text_add(pattern, text + n->len - n->prefix, n->prefix);
    else
        gx_text_add(pattern, text, n->len);
    gx_text_add_string(pattern, n->pattern == GX_PATTERN_REGEX ? "/" : n->pattern == GX_PATTERN_FUZZY ? "~" : "");
    gx_text_add_string(pattern, n->prefix ? "*" : "");
    if (n->pattern == GX_PATTERN_FUZZY && n->distance <= GX_MAX_DISTANCE)
        gx_text_add_format(pattern, "%u", n->distance);
    return b->expanded[i].words;
}
