#include "query/boolean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grow.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "query/parse.h"

typedef enum match_kind { MATCH_TERM, MATCH_AND, MATCH_OR, MATCH_NOT } match_kind;

#define NONE UINT32_MAX
#define MAX_LEAVES GX_PARSE_MAX_NODES /* terms of a query, repetitions included */

typedef struct match {
    match_kind kind;
    uint32_t list;        /* of a term; UINT32_MAX: the index lacks it */
    uint32_t first, last; /* children */
    uint32_t next;
} match;

typedef struct scored {
    size_t at, len; /* bytes[at, at + len) */
    float weight;
} scored;

struct gx_boolean {
    const gx_index *ix;
    gx_op op; /* asked for; of a query that is flat, its own */
    match *nodes;
    size_t max_nodes, max_scored, max_bytes; /* capacities of nodes, scored and bytes */
    uint32_t n_nodes, n_leaves, root;
    bool flat;
    bool only_scores; /* some terms add to scores and are not needed to match */
    bool negated;     /* there are terms that do not score */
    scored *scored;
    uint32_t n_scored;
    char *bytes;
    size_t n_bytes;
};

typedef struct reading {
    gx_boolean *b;
    const gx_query_tree *tree;
    gx_status st;
    gx_error *err;
    /* of the word under way */
    const gx_node *word;
    float weight;
    bool negated;
    uint32_t group;
} reading;

static void fail_memory(reading *r)
{
    if (r->st == GX_OK)
        r->st = gx_fail(r->err, GX_ENOMEM, "no memory for a boolean query");
}

static uint32_t add_match(reading *r, match_kind kind, uint32_t list)
{
    gx_boolean *b = r->b;
    if (r->st != GX_OK)
        return NONE;
    if (!gx_reserve(&b->nodes, &b->max_nodes, b->n_nodes + (size_t)1, sizeof *b->nodes)) {
        fail_memory(r);
        return NONE;
    }
    b->nodes[b->n_nodes] = (match){kind, list, NONE, NONE, NONE};
    return b->n_nodes++;
}

/* A child that is a group of the same kind gives its children. */
static void add_child(reading *r, uint32_t group, uint32_t child)
{
    if (r->st != GX_OK || child == NONE)
        return;
    match *g = &r->b->nodes[group], *c = &r->b->nodes[child];
    const bool same = c->kind == g->kind && g->kind != MATCH_NOT;
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
    const match *g = &r->b->nodes[group];
    return g->kind != MATCH_NOT && g->first == g->last ? g->first : g->first == NONE ? NONE : group;
}

/* ---- words ---- */

static bool add_scored(gx_boolean *b, const char *term, size_t len, float weight)
{
    if (!gx_reserve(&b->bytes, &b->max_bytes, b->n_bytes + len, 1) ||
        !gx_reserve(&b->scored, &b->max_scored, b->n_scored + (size_t)1, sizeof *b->scored))
        return false;
    memcpy(b->bytes + b->n_bytes, term, len);
    b->scored[b->n_scored++] = (scored){b->n_bytes, len, weight};
    b->n_bytes += len;
    return true;
}

static bool take_term(void *user, const char *term, size_t len, size_t begin, size_t end)
{
    reading *r = user;
    (void)begin, (void)end;
    if (r->b->n_leaves++ == MAX_LEAVES) {
        r->st = gx_fail(r->err, GX_EUSAGE, "column %u: the query has more than %u terms; shorten it", r->word->column,
                        MAX_LEAVES);
        return false;
    }
    add_child(r, r->group, add_match(r, MATCH_TERM, r->b->ix->parts ? NONE : gx_index_find_term(r->b->ix, term, len)));
    if (r->negated)
        r->b->negated = true;
    else if (!add_scored(r->b, term, len, r->weight))
        fail_memory(r);
    return r->st == GX_OK;
}

/* Where the analysis splits the word its terms are a group of this kind. */
static uint32_t read_word(reading *r, const gx_node *n, float weight, bool negated, match_kind kind)
{
    r->word = n;
    r->weight = weight;
    r->negated = negated;
    r->group = add_match(r, kind, 0);
    if (r->st != GX_OK)
        return NONE;
    const gx_status st = gx_analyze(r->b->ix->analyzer, r->tree->words + n->word, n->len, take_term, r);
    if (st != GX_OK && r->st == GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse a word of %zu bytes: %s", n->len, gx_status_name(st));
    return close_group(r, r->group);
}

/* ---- the tree ---- */

static uint32_t read_node(reading *r, uint32_t node, float weight, bool negated, match_kind kind);

static uint32_t read_not(reading *r, uint32_t child, float weight)
{
    const uint32_t inner = read_node(r, child, weight, true, MATCH_AND);
    if (inner == NONE)
        return NONE;
    const uint32_t node = add_match(r, MATCH_NOT, 0);
    add_child(r, node, inner);
    return node;
}

static uint32_t read_operands(reading *r, const gx_node *n, float weight, bool negated)
{
    const match_kind kind = n->kind == GX_NODE_AND ? MATCH_AND : MATCH_OR;
    const uint32_t group = add_match(r, kind, 0);
    for (uint32_t c = n->first; r->st == GX_OK && c != GX_NO_NODE; c = r->tree->nodes[c].next)
        add_child(r, group, read_node(r, c, weight, negated, kind));
    return close_group(r, group);
}

static uint32_t read_clauses(reading *r, const gx_node *n, float weight, bool negated)
{
    const match_kind side_by_side = r->b->op == GX_OP_AND ? MATCH_AND : MATCH_OR;
    const uint32_t optional = add_match(r, side_by_side, 0), needed = add_match(r, MATCH_AND, 0);
    bool required = false;
    for (uint32_t c = n->first; r->st == GX_OK && c != GX_NO_NODE; c = r->tree->nodes[c].next) {
        if (r->tree->nodes[c].occur == GX_OPTIONAL) {
            add_child(r, optional, read_node(r, c, weight, negated, side_by_side));
        } else if (r->tree->nodes[c].occur == GX_EXCLUDED) {
            add_child(r, needed, read_not(r, c, weight));
        } else {
            const uint32_t child = read_node(r, c, weight, negated, MATCH_AND);
            required = required || child != NONE;
            add_child(r, needed, child);
        }
    }
    const uint32_t any = close_group(r, optional);
    if (!required)
        add_child(r, needed, any);
    else if (any != NONE)
        r->b->only_scores = true;
    return close_group(r, needed);
}

static uint32_t read_node(reading *r, uint32_t node, float weight, bool negated, match_kind kind)
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
    switch (n->kind) {
    case GX_NODE_WORD:
        return read_word(r, n, weight, negated, kind);
    case GX_NODE_NOT:
        return read_not(r, n->first, weight);
    case GX_NODE_CLAUSES:
        return read_clauses(r, n, weight, negated);
    default:
        return read_operands(r, n, weight, negated);
    }
}

/* ---- what the engines can run as it is ---- */

static bool is_flat(const gx_boolean *b)
{
    if (b->only_scores || b->negated)
        return false;
    if (b->root == NONE || b->nodes[b->root].kind == MATCH_TERM)
        return true;
    for (uint32_t c = b->nodes[b->root].first; c != NONE; c = b->nodes[c].next) {
        if (b->nodes[c].kind != MATCH_TERM)
            return false;
    }
    return true;
}

/* The operator of a flat query. */
static gx_op flat_op(const gx_boolean *b)
{
    if (b->op == GX_OP_AND_OR || b->root == NONE || b->nodes[b->root].kind == MATCH_TERM)
        return b->op;
    return b->nodes[b->root].kind == MATCH_AND ? GX_OP_AND : GX_OP_OR;
}

static gx_status check_and_or(const gx_query_tree *t, gx_error *err)
{
    for (uint32_t c = t->nodes[t->root].first; c != GX_NO_NODE; c = t->nodes[c].next) {
        if (t->nodes[c].kind != GX_NODE_WORD || t->nodes[c].occur != GX_OPTIONAL)
            return gx_fail(err, GX_EUSAGE,
                           "column %u: only words side by side can be searched with AND first and then OR; choose "
                           "one of the two",
                           t->nodes[c].column);
    }
    return GX_OK;
}

static gx_status read_tree(gx_boolean *b, const gx_query_tree *tree, gx_error *err)
{
    reading r = {.b = b, .tree = tree, .err = err};
    if (b->op == GX_OP_AND_OR && (r.st = check_and_or(tree, err)) != GX_OK)
        return r.st;
    b->root = read_node(&r, tree->root, 1, false, MATCH_AND);
    if (r.st != GX_OK)
        return r.st;
    if (b->n_scored == 0 && b->negated)
        return gx_fail(err, GX_EUSAGE, "column 1: the query only excludes; at least one word to look for is expected");
    b->flat = is_flat(b);
    b->op = b->flat ? flat_op(b) : GX_OP_OR;
    return GX_OK;
}

gx_status gx_boolean_open(gx_boolean **out, const gx_index *ix, const char *text, size_t len, gx_op op, gx_error *err)
{
    gx_query_tree tree;
    *out = NULL;
    gx_boolean *b = calloc(1, sizeof *b);
    if (!b)
        return gx_fail(err, GX_ENOMEM, "no memory for a boolean query");
    b->ix = ix;
    b->op = op;
    gx_status st = gx_query_parse(&tree, text, len, err);
    if (st == GX_OK) {
        st = read_tree(b, &tree, err);
        gx_query_tree_free(&tree);
    }
    if (st != GX_OK)
        gx_boolean_close(b);
    else
        *out = b;
    return st;
}

void gx_boolean_close(gx_boolean *b)
{
    if (!b)
        return;
    free(b->nodes);
    free(b->scored);
    free(b->bytes);
    free(b);
}

/* ---- the documents that match ---- */

typedef struct matching {
    const gx_boolean *b;
    const gx_plan *plan;
    size_t n_words;
    gx_error *err;
} matching;

static void mark_list(const matching *m, uint32_t list, uint64_t *words)
{
    uint32_t docids[GX_MAX_BLOCK];
    const uint32_t n_docs = m->b->ix->n_docs;
    memset(words, 0, m->n_words * sizeof *words);
    if (list == UINT32_MAX)
        return;
    const gx_list l = gx_index_list(m->b->ix, list);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        for (uint32_t i = 0; i < n; ++i) {
            if (docids[i] < n_docs)
                words[docids[i] / 64] |= UINT64_C(1) << docids[i] % 64;
        }
    }
}

static void invert(const matching *m, uint64_t *words)
{
    const uint32_t tail = m->b->ix->n_docs % 64;
    for (size_t w = 0; w < m->n_words; ++w)
        words[w] = ~words[w];
    if (tail)
        words[m->n_words - 1] &= (UINT64_C(1) << tail) - 1;
}

/* The recursion is as deep as the tree, which the parser bounds. */
static gx_status match_node(const matching *m, uint32_t node, uint64_t *words)
{
    const match *n = &m->b->nodes[node];
    if (m->plan->cancel && m->plan->cancel(m->plan->user))
        return gx_fail(m->err, GX_ECANCELLED, "the search was cancelled");
    if (n->kind == MATCH_TERM) {
        mark_list(m, n->list, words);
        return GX_OK;
    }
    gx_status st = match_node(m, n->first, words);
    if (n->kind == MATCH_NOT) {
        invert(m, words);
        return st;
    }
    uint64_t *other = st == GX_OK ? malloc((m->n_words + 1) * sizeof *other) : NULL;
    if (st == GX_OK && !other)
        st = gx_fail(m->err, GX_ENOMEM, "no memory for the documents of a boolean query");
    for (uint32_t c = m->b->nodes[n->first].next; st == GX_OK && c != NONE; c = m->b->nodes[c].next) {
        st = match_node(m, c, other);
        for (size_t w = 0; st == GX_OK && w < m->n_words; ++w)
            words[w] = n->kind == MATCH_AND ? words[w] & other[w] : words[w] | other[w];
    }
    free(other);
    return st;
}

gx_status gx_boolean_match(const gx_boolean *b, const gx_plan *plan, uint64_t *words, gx_error *err)
{
    const matching m = {b, plan, ((size_t)b->ix->n_docs + 63) / 64, err};
    memset(words, 0, m.n_words * sizeof *words);
    return b->root == NONE ? GX_OK : match_node(&m, b->root, words);
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

/* The terms that score of a boolean query; the caller frees. NULL: no memory. */
static gx_weighted_term *terms_of(const gx_boolean *b)
{
    gx_weighted_term *terms = malloc((b->n_scored + 1ull) * sizeof *terms);
    for (uint32_t i = 0; terms && i < b->n_scored; ++i)
        terms[i] = (gx_weighted_term){b->bytes + b->scored[i].at, b->scored[i].len, b->scored[i].weight};
    return terms;
}

gx_status gx_query_plan_any(gx_query_plan *out, bool *flat, const gx_index *ix, const gx_collection_stats *stats,
                            const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    gx_query_options own = *opt;
    gx_boolean *b;
    *flat = true;
    if (q->kind == GX_QUERY_TEXT)
        return gx_query_plan_text(out, ix, q->text, q->len, stats, opt, err);
    if (q->kind == GX_QUERY_TERMS)
        return gx_query_plan_make(out, q->terms, q->n_terms, stats, opt, err);
    if (q->kind != GX_QUERY_BOOLEAN)
        return gx_fail(err, GX_EUSAGE, "queries of kind %d do not exist", (int)q->kind);
    gx_status st = gx_boolean_open(&b, ix, q->text, q->len, opt->op, err);
    if (st != GX_OK)
        return st;
    gx_weighted_term *terms = terms_of(b);
    own.op = b->op;
    *flat = b->flat;
    st = terms ? gx_query_plan_make(out, terms, b->n_scored, stats, &own, err)
               : gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", b->n_scored);
    free(terms);
    gx_boolean_close(b);
    return st;
}

static gx_status plan_boolean(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                              const gx_query_options *opt, gx_error *err)
{
    gx_query_options own = *opt;
    gx_boolean *b;
    gx_status st = gx_boolean_open(&b, ix, q->text, q->len, opt->op, err);
    if (st != GX_OK)
        return st;
    gx_weighted_term *terms = terms_of(b);
    if (!terms)
        st = gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", b->n_scored);
    own.op = b->op;
    if (st == GX_OK)
        st = plan_terms(out, ix, terms, b->n_scored, &own, err);
    free(terms);
    if (st == GX_OK && !b->flat)
        *matches = b;
    else
        gx_boolean_close(b);
    return st;
}

gx_status gx_plan_query(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                        const gx_query_options *opt, gx_error *err)
{
    *matches = NULL;
    switch (q->kind) {
    case GX_QUERY_TEXT:
        return gx_plan_make(out, ix, q->text, q->len, opt, err);
    case GX_QUERY_TERMS:
        return plan_terms(out, ix, q->terms, q->n_terms, opt, err);
    case GX_QUERY_BOOLEAN:
        return plan_boolean(out, matches, ix, q, opt, err);
    }
    return gx_fail(err, GX_EUSAGE, "queries of kind %d do not exist", (int)q->kind);
}

/* ---- words to show ---- */

static void put_words(const gx_query_tree *t, uint32_t node, char *words, size_t *n)
{
    const gx_node *x = &t->nodes[node];
    if (x->kind == GX_NODE_WORD) {
        if (*n)
            words[(*n)++] = ' ';
        memcpy(words + *n, t->words + x->word, x->len);
        *n += x->len;
    }
    for (uint32_t c = x->kind == GX_NODE_NOT ? GX_NO_NODE : x->first; c != GX_NO_NODE; c = t->nodes[c].next) {
        if (t->nodes[c].occur != GX_EXCLUDED)
            put_words(t, c, words, n);
    }
}

gx_status gx_boolean_words(char **out, size_t *out_len, const char *text, size_t len, gx_error *err)
{
    gx_query_tree tree;
    const gx_status st = gx_query_parse(&tree, text, len, err);
    *out = NULL;
    *out_len = 0;
    if (st != GX_OK)
        return st;
    *out = malloc(len + tree.n_nodes + 1); /* a blank a word */
    if (*out)
        put_words(&tree, tree.root, *out, out_len);
    gx_query_tree_free(&tree);
    return *out ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the words of a query");
}
