#include "query/cpu/filter_program.h"

#include <string.h>

#include "index/attributes/attribute_codes.h"
#include "index/attributes/attribute_order.h"
#include "index/attributes/attribute_rows.h"
#include "index/attributes/attribute_sets.h"

#define NOT_TESTED (GX_CPU_TESTS + 1) /* more tests than there can be */

/* ---- a condition ---- */

/* What a condition selects. */
typedef enum outcome { ALL, NONE, SOME } outcome;

/* A number for each number of `width` bytes in a word. */
static uint32_t repeat(uint32_t number, uint32_t width)
{
    return width == 1 ? number * 0x01010101u : width == 2 ? number * 0x00010001u : number;
}

/* The share of n documents, of which some may be counted several times. */
static float share_of(uint64_t n, uint32_t n_docs)
{
    return n < n_docs ? (float)n / (float)n_docs : 1;
}

static void set_codes(gx_cpu_test *t, const gx_column *c, uint32_t n_docs, const gx_column_codes *codes,
                      gx_code_range r)
{
    const uint32_t width = codes->width, times = c->starts ? width : 4;
    t->form = c->starts ? GX_CPU_TEST_CODES : GX_CPU_TEST_VALUE;
    t->values = codes->codes;
    t->width = width;
    t->words_shift = codes->words_shift;
    t->more = gx_code_more(codes);
    t->column = c;
    t->low = repeat(r.first, times);
    t->span = repeat(r.last - r.first, times);
    t->inner_low = repeat(r.inner_first, times);
    t->inner_span = repeat(r.inner_last - r.inner_first, times);
    t->share = share_of(r.n, n_docs);
    t->inexact = r.first != r.inner_first || r.last != r.inner_last;
}

/* Whether kernels can read the values themselves. */
static bool is_plain(const gx_filter *f, const gx_column *c)
{
    return !c->starts && !c->present && c->width <= 4 && (uint64_t)f->ix->n_docs * c->width <= INT32_MAX;
}

/* The sets of values that a range selects, in a column of several values. NULL: the sets are too many. *sets: all. */
static const gx_set_table *find_sets(const gx_filter *f, const gx_filter_node *n, const gx_column_sets **sets)
{
    gx_column *c = &f->ix->columns[n->column];
    uint64_t low, high;
    *sets = c->starts && n->kind == GX_FILTER_RANGE ? gx_column_get_sets(f->ix, c) : NULL;
    return *sets && gx_filter_range(c, n, &low, &high) ? gx_column_get_set_table(c, *sets, low, high) : NULL;
}

/* Whether the codes are there where they are needed. */
static bool has_codes(const gx_filter *f, const gx_filter_node *n)
{
    const gx_column_sets *sets;
    return is_plain(f, &f->ix->columns[n->column]) || find_sets(f, n, &sets) ||
           gx_column_get_codes(f->ix, &f->ix->columns[n->column]);
}

/* The test of a range by the number of the document's set of values, if sets have numbers. */
static bool test_set(const gx_filter *f, const gx_filter_node *n, gx_cpu_test *t)
{
    const gx_column_sets *sets;
    const gx_set_table *const table = find_sets(f, n, &sets);
    if (!table)
        return false;
    t->form = GX_CPU_TEST_VALUE;
    t->column = &f->ix->columns[n->column];
    t->column_low = table->low;
    t->column_high = table->high;
    t->values = sets->numbers;
    t->width = sizeof *sets->numbers;
    t->table = table->bits;
    t->inexact = sets->others;
    t->more = GX_SET_OTHER;
    t->share = share_of(table->n_docs, f->ix->n_docs);
    return true;
}

/* The test of a range by the document's number; has_codes() is true. */
static outcome test_number(const gx_filter *f, const gx_filter_node *n, gx_cpu_test *t)
{
    gx_column *c = &f->ix->columns[n->column];
    gx_code_range range;
    if (!gx_filter_range(c, n, &t->column_low, &t->column_high))
        return NONE;
    if (test_set(f, n, t))
        return SOME;
    if (is_plain(f, c)) {
        gx_place_bounds b = {.end_most = f->ix->n_docs};
        const gx_column_order *order = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
        if (order)
            b = gx_column_order_bracket(c, order, t->column_low, t->column_high);
        t->share = share_of(b.end_most - b.begin_least, f->ix->n_docs);
        t->form = GX_CPU_TEST_VALUE;
        t->column = c;
        t->ranged = true;
        t->values = c->values;
        t->width = c->width;
        t->low = (uint32_t)t->column_low;
        t->span = (uint32_t)(t->column_high - t->column_low);
        return SOME;
    }
    const gx_column_codes *codes = gx_column_get_codes(f->ix, c);
    if (!gx_column_code_range(c, codes, t->column_low, t->column_high, &range))
        return NONE;
    set_codes(t, c, f->ix->n_docs, codes, range);
    t->ranged = !c->starts;
    return SOME;
}

/* The same, or by the documents of a common value, where a document has several: their bits are fewer than the
 * codes. One value a document takes a byte or two that all filters share, and the cache has them more often. */
static outcome test_range(const gx_filter *f, const gx_filter_node *n, gx_cpu_test *t)
{
    gx_column *c = &f->ix->columns[n->column];
    uint64_t low, high;
    if (c->starts && gx_filter_range(c, n, &low, &high) && low == high &&
        (t->table = gx_column_get_documents(f->ix, c, low))) {
        t->form = GX_CPU_TEST_DOCID;
        t->share = share_of(c->order->starts[low + 1] - c->order->starts[low], f->ix->n_docs);
        return SOME;
    }
    return test_number(f, n, t);
}

/* The test whether there is a value. */
static outcome test_presence(const gx_filter *f, const gx_filter_node *n, gx_cpu_test *t)
{
    gx_column *c = &f->ix->columns[n->column];
    if (!c->starts && !c->present)
        return ALL;
    const gx_column_codes *codes = gx_column_get_codes(f->ix, c);
    const uint32_t last = gx_code_unused(codes);
    set_codes(t, c, f->ix->n_docs, codes, (gx_code_range){0, last, 0, last, c->order->n});
    return SOME;
}

/* ---- several conditions on one number ---- */

#define LEAST_SET 3u /* conditions that a table of their numbers replaces */

/* Whether a test by a table is exact: of values of 1 or 2 bytes, of codes that are values, of numbers of all sets. */
static bool has_small_numbers(const gx_filter *f, gx_column *c)
{
    if (is_plain(f, c))
        return c->width <= 2;
    const gx_column_sets *sets = c->starts ? gx_column_get_sets(f->ix, c) : NULL;
    const gx_column_codes *codes = c->starts ? NULL : gx_column_get_codes(f->ix, c);
    return c->starts ? sets && !sets->others : codes && codes->of_values;
}

/* Whether a table has the node: a range of that column. */
static bool is_in_set(const gx_filter *f, uint32_t node, uint32_t column)
{
    const gx_filter_node *n = &f->nodes[node];
    const gx_column_sets *sets;
    return n->kind == GX_FILTER_RANGE && n->column == column &&
           (!f->ix->columns[column].starts || find_sets(f, n, &sets));
}

/* The column of the first condition of an OR, if LEAST_SET or more are ranges of it that a table can have;
 * UINT32_MAX: none. */
static uint32_t column_of_set(const gx_filter *f, const gx_filter_node *n)
{
    uint32_t column = UINT32_MAX, n_ranges = 0;
    for (uint32_t c = n->kind == GX_FILTER_OR ? n->first : UINT32_MAX; c != UINT32_MAX; c = f->nodes[c].next) {
        const gx_filter_node *child = &f->nodes[c];
        column = column == UINT32_MAX && child->kind == GX_FILTER_RANGE ? child->column : column;
        n_ranges += column != UINT32_MAX && is_in_set(f, c, column);
    }
    return n_ranges >= LEAST_SET && has_small_numbers(f, &f->ix->columns[column]) ? column : UINT32_MAX;
}

/* ---- the tree ---- */

typedef struct maker {
    const gx_filter *f;
    gx_cpu_program *p;
    uint32_t free; /* tests [free, GX_CPU_TESTS) are made: the last first, since each knows what follows it */
    bool sets;     /* the clause's sets have tables: there is one for each */
    bool failed;   /* there was less room than was counted: memory came free in between, and a set got its table */
} maker;

/* The column of the set that an OR has, as column_of_set, if sets have tables. */
static uint32_t set_of(const maker *m, const gx_filter_node *n)
{
    return m->sets ? column_of_set(m->f, n) : UINT32_MAX;
}

/* How many tests a node takes at most, at least 1; *n_sets of them are tables. */
static uint32_t count_tests(const maker *m, uint32_t i, uint32_t *n_sets)
{
    const gx_filter_node *n = &m->f->nodes[i];
    if (n->kind == GX_FILTER_IDS)
        return n->ids || n->n_ids > GX_CPU_TESTS ? NOT_TESTED : n->n_ids ? n->n_ids : 1;
    if (n->kind == GX_FILTER_RANGE || n->kind == GX_FILTER_HAS)
        return has_codes(m->f, n) ? 1 : NOT_TESTED;
    const uint32_t set = set_of(m, n);
    uint32_t sum = set != UINT32_MAX;
    *n_sets += sum;
    for (uint32_t c = n->first; c != UINT32_MAX && sum < NOT_TESTED; c = m->f->nodes[c].next)
        sum += is_in_set(m->f, c, set) ? 0 : count_tests(m, c, n_sets);
    return sum;
}

/* Whether there is room for a node's tests; m->sets becomes whether its sets have tables. */
static bool has_room(maker *m, uint32_t node)
{
    uint32_t n_sets = 0;
    m->sets = true;
    const uint32_t n = count_tests(m, node, &n_sets);
    if (n_sets <= GX_CPU_TABLES - m->p->n_tables)
        return n <= m->free;
    m->sets = false;
    return count_tests(m, node, &n_sets) <= m->free;
}

static uint32_t add(maker *m, gx_cpu_test t, uint32_t met, uint32_t unmet)
{
    if (!m->free) {
        m->failed = true;
        return unmet;
    }
    t.met = met;
    t.unmet = unmet;
    m->p->tests[--m->free] = t;
    return m->free;
}

static uint32_t add_ids(maker *m, const gx_filter_node *n, uint32_t met, uint32_t unmet)
{
    for (uint32_t i = 0; i < n->n_ids; ++i)
        unmet = add(m, (gx_cpu_test){.form = GX_CPU_TEST_DOCID, .low = n->docids[i], .share = 0}, met, unmet);
    return unmet;
}

static uint32_t make(maker *m, uint32_t i, uint32_t met, uint32_t unmet);

/* Add the numbers of a test to a table. */
static void set_bits(uint32_t *table, const gx_cpu_test *t)
{
    const uint32_t first = t->low, last = t->low + t->span;
    if (t->table) {
        for (uint32_t w = 0; w < (UINT16_MAX + 1) / 32; ++w)
            table[w] |= t->table[w];
        return;
    }
    for (uint32_t w = first / 32; w <= last / 32; ++w) {
        const uint32_t low = w == first / 32 ? first % 32 : 0, high = w == last / 32 ? last % 32 : 31;
        table[w] |= UINT32_MAX << low & UINT32_MAX >> (31 - high);
    }
}

/* The test of all conditions of an OR that are ranges of that column. */
static uint32_t add_set(maker *m, const gx_filter_node *n, uint32_t column, uint32_t met, uint32_t unmet)
{
    gx_cpu_test set = {0};
    if (m->p->n_tables == GX_CPU_TABLES) {
        m->failed = true;
        return unmet;
    }
    uint32_t *const table = m->p->tables[m->p->n_tables++];
    for (uint32_t c = n->first; c != UINT32_MAX; c = m->f->nodes[c].next) {
        gx_cpu_test t = {0};
        if (!is_in_set(m->f, c, column) || test_number(m->f, &m->f->nodes[c], &t) == NONE)
            continue;
        if (!set.values)
            memset(table, 0, (t.width == 1 ? UINT8_MAX + 1 : UINT16_MAX + 1) / 8);
        set_bits(table, &t);
        t.share += set.share;
        set = t;
    }
    if (!set.values) {
        --m->p->n_tables;
        return unmet;
    }
    set.share = set.share < 1 ? set.share : 1;
    set.table = table;
    return add(m, set, met, unmet);
}

/* AND and OR: from the last child to the first. Those that are not of the set take a test each at least, so they are
 * not many. */
static uint32_t make_series(maker *m, const gx_filter_node *n, uint32_t met, uint32_t unmet)
{
    const bool conjunction = n->kind == GX_FILTER_AND;
    const uint32_t set = set_of(m, n);
    uint32_t next = conjunction ? met : unmet, others[GX_CPU_TESTS], n_others = 0;
    if (set != UINT32_MAX)
        next = add_set(m, n, set, met, next);
    for (uint32_t c = n->first; c != UINT32_MAX; c = m->f->nodes[c].next) {
        if (is_in_set(m->f, c, set))
            continue;
        if (n_others == GX_CPU_TESTS) {
            m->failed = true;
            return unmet;
        }
        others[n_others++] = c;
    }
    while (n_others--)
        next = conjunction ? make(m, others[n_others], next, unmet) : make(m, others[n_others], met, next);
    return next;
}

/* Make the tests of a node; returns the first, or met or unmet if none decides. The tree is not deep. */
static uint32_t make(maker *m, uint32_t i, uint32_t met, uint32_t unmet)
{
    const gx_filter_node *n = &m->f->nodes[i];
    gx_cpu_test t = {0};
    switch (n->kind) {
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        return make_series(m, n, met, unmet);
    case GX_FILTER_NOT:
        return make(m, n->first, unmet, met);
    case GX_FILTER_IDS:
        return add_ids(m, n, met, unmet);
    default:
        break;
    }
    const outcome o = n->kind == GX_FILTER_RANGE ? test_range(m->f, n, &t) : test_presence(m->f, n, &t);
    return o == ALL ? met : o == NONE ? unmet : add(m, t, met, unmet);
}

/* ---- what a clause costs, and what it selects ---- */

#define COST_OF_WORD 2.5f    /* several codes */
#define COST_OF_ANOTHER 0.3f /* test of what the test before has read */

static float cost_of(const gx_cpu_program *p, uint32_t first, uint32_t end)
{
    float sum = 0;
    for (uint32_t i = first; i < end; ++i) {
        const gx_cpu_test *t = &p->tests[i];
        const bool another = (t->form == GX_CPU_TEST_DOCID && !t->table) ||
                             (i > first && t->form != GX_CPU_TEST_DOCID && t->values == t[-1].values);
        sum += another ? COST_OF_ANOTHER : t->form == GX_CPU_TEST_CODES ? COST_OF_WORD * (1u << t->words_shift) : 1;
    }
    return sum;
}

/* As if tests were not correlated. */
static float share_of_tests(const gx_cpu_program *p, uint32_t first, uint32_t end)
{
    float at[GX_CPU_NO + 1] = {0};
    at[first] = 1;
    for (uint32_t i = first; i < end; ++i) {
        at[p->tests[i].met] += at[i] * p->tests[i].share;
        at[p->tests[i].unmet] += at[i] * (1 - p->tests[i].share);
    }
    return at[GX_CPU_YES];
}

/* ---- several columns in a row ---- */

#define LEAST_ROW 3u /* columns: two are read as fast where they are */

/* The columns of a clause's tests that rows can replace, LEAST_ROW or more; else returns 0. */
static uint32_t columns_of_rows(const gx_filter *f, const gx_cpu_program *p, uint32_t first, uint32_t end,
                                uint32_t columns[GX_ROW_COLUMNS])
{
    uint32_t n = 0;
    for (uint32_t i = first; i < end; ++i) {
        if (!p->tests[i].ranged || p->tests[i].table)
            continue;
        const uint32_t column = (uint32_t)(p->tests[i].column - f->ix->columns);
        uint32_t at = 0;
        while (at < n && columns[at] != column)
            ++at;
        if (at == GX_ROW_COLUMNS)
            return 0;
        columns[at] = column;
        n = at < n ? n : n + 1;
    }
    return n >= LEAST_ROW && f->ix->n_docs <= INT32_MAX / sizeof(uint32_t) ? n : 0;
}

static void test_row(const gx_attribute_rows *rows, uint32_t byte, gx_cpu_test *t)
{
    const gx_place_bounds b = gx_column_order_bracket(t->column, t->column->order, t->column_low, t->column_high);
    if (b.begin_least >= b.end_most) /* no value; the test finds none either */
        return;
    const gx_row_range r = gx_row_range_of(t->column->order, &b);
    t->form = GX_CPU_TEST_VALUE;
    t->width = sizeof(uint32_t);
    t->values = rows->words;
    t->in_row = true;
    t->row_shift = 8 * byte;
    t->low = r.first;
    t->span = r.last - r.first;
    t->inner_low = r.inner_first;
    t->inner_span = r.inner_last - r.inner_first;
    t->inexact = r.first != r.inner_first || r.last != r.inner_last;
}

/* Let tests [first, end) read rows, if they are of several columns. */
static void use_rows(const gx_filter *f, gx_cpu_program *p, uint32_t first, uint32_t end)
{
    uint32_t columns[GX_ROW_COLUMNS];
    const uint32_t n = columns_of_rows(f, p, first, end, columns);
    const gx_attribute_rows *rows = n ? gx_attribute_get_rows(f->ix, columns, n) : NULL;
    for (uint32_t i = first; rows && i < end; ++i) {
        if (!p->tests[i].ranged || p->tests[i].table)
            continue;
        uint32_t byte = 0;
        while (&f->ix->columns[rows->columns[byte]] != p->tests[i].column)
            ++byte;
        test_row(rows, byte, &p->tests[i]);
    }
}

/* ---- clauses ---- */

#define COST_OF_SURE 0.1f /* clause where all documents are selected by it */

/* Where one test of a range selects all documents, as the zones of its column tell. What the clause costs becomes that
 * of the documents between the first and the last that it can select. */
static void find_sure(const gx_filter *f, const gx_cpu_program *p, gx_cpu_clause *clause)
{
    const gx_cpu_test *const t = &p->tests[clause->first % GX_CPU_TESTS];
    uint32_t first, end;
    if (clause->first + 1 != clause->end || !t->ranged || t->table || t->column->present || t->met != GX_CPU_YES ||
        t->unmet != GX_CPU_NO)
        return;
    const gx_column_order *const o = __atomic_load_n(&t->column->order, __ATOMIC_ACQUIRE);
    if (!o || !o->zones)
        return;
    gx_column_order_inside(o, f->ix->n_docs, t->column_low, t->column_high, &clause->sure_first, &clause->sure_end);
    gx_column_order_bound(o, f->ix->n_docs, t->column_low, t->column_high, &first, &end);
    const uint32_t n_sure = clause->sure_end - clause->sure_first;
    const float unsure = n_sure < end - first ? 1 - (float)n_sure / (float)(end - first) : 0;
    clause->cost *= unsure > COST_OF_SURE ? unsure : COST_OF_SURE;
}

/* Add the clause of a node, if there is room for its tests. */
static bool add_clause(maker *m, uint32_t node)
{
    const uint32_t end = m->free, n_tables = m->p->n_tables;
    if (m->p->n_clauses == GX_CPU_TESTS || !has_room(m, node))
        return false;
    m->failed = false;
    const uint32_t first = make(m, node, GX_CPU_YES, GX_CPU_NO);
    if (m->failed) {
        m->free = end;
        m->p->n_tables = n_tables;
        return false;
    }
    use_rows(m->f, m->p, m->free, end);
    gx_cpu_clause *const clause = &m->p->clauses[m->p->n_clauses++];
    *clause = (gx_cpu_clause){first, end, cost_of(m->p, m->free, end), share_of_tests(m->p, first, end), 0, 0};
    find_sure(m->f, m->p, clause);
    return true;
}

/* The cheaper a clause drops documents, the sooner it is asked. The first clauses stay where they are. */
static void sort_clauses(gx_cpu_program *p, uint32_t n_first)
{
    for (uint32_t i = n_first + 1; i < p->n_clauses; ++i) {
        const gx_cpu_clause clause = p->clauses[i];
        uint32_t j = i;
        for (; j > n_first && p->clauses[j - 1].cost * (1 - clause.share) > clause.cost * (1 - p->clauses[j - 1].share);
             --j)
            p->clauses[j] = p->clauses[j - 1];
        p->clauses[j] = clause;
    }
}

bool gx_cpu_program_make(gx_cpu_program *out, const gx_filter *f, uint32_t first, uint32_t *n_first)
{
    const gx_filter_node *root = &f->nodes[f->root];
    const uint32_t child = root->kind == GX_FILTER_AND ? root->first : f->root;
    maker m = {f, out, GX_CPU_TESTS, true, false};
    bool whole = true;
    out->n_clauses = out->n_tables = 0;
    for (uint32_t i = child; i != UINT32_MAX; i = f->nodes[i].next) {
        if (i == first)
            whole = add_clause(&m, i) && whole;
    }
    *n_first = out->n_clauses;
    for (uint32_t i = child; i != UINT32_MAX; i = f->nodes[i].next) {
        if (i != first)
            whole = add_clause(&m, i) && whole;
    }
    sort_clauses(out, *n_first);
    return whole;
}
