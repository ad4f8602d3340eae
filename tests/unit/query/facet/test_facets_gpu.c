/* Facets that a GPU counts: batches of random queries under operators, filters and masks against a look at one
 * document after another, and against the CPU's answer; large dictionaries; too little memory.
 *
 * GX_TEST_SEED is the seed of all that is random, 29 without it. GX_TEST_CASES=N makes N times as many batches,
 * GX_TEST_DOCS=N documents of the random collection. */
#include "engine/random.h"
#include "query/engine/session.h"
#include "tests/support/facets.h"
#include "tests/support/scratch.h"

enum { MOST_DOCS = 1000000, N_WORDS = 16, N_CATS = 40, N_TAGS = 300, MOST_TAGS = 4, MOST_QUERIES = 48 };
enum { CAT, BIG, TAGS, YEAR, WHEN, PRICE, R, YEARS, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {{"cat", GX_ATTRIBUTE_KEYWORD},   {"big", GX_ATTRIBUTE_KEYWORD},
                                                      {"tags", GX_ATTRIBUTE_KEYWORDS}, {"year", GX_ATTRIBUTE_INT},
                                                      {"when", GX_ATTRIBUTE_DATE},     {"price", GX_ATTRIBUTE_FLOAT},
                                                      {"r", GX_ATTRIBUTE_INT},         {"years", GX_ATTRIBUTE_INT}};

typedef struct doc {
    uint32_t words; /* bits: "w%u" */
    uint16_t cat, tags[MOST_TAGS], r;
    uint8_t n_tags, year; /* year 0: it has none */
    uint32_t big;
} doc;
static doc docs[MOST_DOCS];
static uint32_t n_docs = 140000;
static uint64_t seed = 29;
static gx_index *ix;
static gx_engine *cpu_engine, *gpu_engine;
static gx_session *cpu, *gpu;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

/* ---- the collection ---- */

static void draw_document(uint32_t d)
{
    static const uint32_t one_in[N_WORDS] = {1, 2, 3, 5, 9, 14, 20, 33, 60, 110, 300, 1000, 4000, 20000, 4, 12};
    doc *x = &docs[d];
    *x = (doc){.cat = (uint16_t)below(1 + below(N_CATS)), .big = below(n_docs), .r = (uint16_t)below(1000)};
    x->year = below(10) ? (uint8_t)(1 + below(60)) : 0;
    for (uint32_t w = 0; w < N_WORDS; ++w)
        x->words |= (uint32_t)(below(one_in[w]) == 0) << w;
    if (d / 20000 % 3)
        x->words &= ~(3u << 14); /* the last two words are in some ranges of documents alone */
    const uint32_t n = below(4) ? below(MOST_TAGS + 1) : 0;
    for (uint32_t i = 0; i < n; ++i) { /* they differ */
        const uint16_t tag = (uint16_t)below(1 + below(N_TAGS));
        bool there = false;
        for (uint32_t j = 0; j < x->n_tags; ++j)
            there |= x->tags[j] == tag;
        if (!there)
            x->tags[x->n_tags++] = tag;
    }
}

static void add_document(gx_builder *b, uint32_t d)
{
    char id[16];
    doc_values v = {0};
    const doc *x = &docs[d];
    sprintf(next_text(&v), "c%02u", x->cat);
    add_value(&v, CAT);
    sprintf(next_text(&v), "b%06u", x->big);
    add_value(&v, BIG);
    for (uint32_t i = 0; i < x->n_tags; ++i) {
        sprintf(next_text(&v), "t%03u", x->tags[i]);
        add_value(&v, TAGS);
    }
    if (x->year) {
        sprintf(next_text(&v), "%u", 1960 + x->year);
        add_value(&v, YEAR);
        sprintf(next_text(&v), "%g", (x->big % 300) / 4.0 - 10);
        add_value(&v, PRICE);
    }
    print_date(next_text(&v), 946684800 + (int64_t)x->big * 4000);
    add_value(&v, WHEN);
    sprintf(next_text(&v), "%u", x->r);
    add_value(&v, R);
    for (uint32_t i = 0; i < x->big % 3; ++i) {
        sprintf(next_text(&v), "%u", 1990 + (x->r + 7 * i) % 20);
        add_value(&v, YEARS);
    }
    sprintf(id, "d%u", d);
    add_of_words(b, id, x->words, &v);
}

static void open_session(const gx_index *of, gx_engine_kind kind, uint64_t memory, gx_engine **en, gx_session **s)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    o.kind = kind;
    o.device_memory = memory;
    if (gx_engine_open(en, of, &o, &err) || gx_session_open(s, *en, &err))
        fail_msg("%s", err.text);
    gx_session_set_facet_engine(*s, kind == GX_ENGINE_GPU ? GX_FACETS_BY_GPU : GX_FACETS_BY_CPU);
}

static bool there_is_a_gpu(void)
{
    gx_device *all;
    uint32_t n, usable = 0;
    gx_error err = {0};
    if (gx_devices(&all, &n, &err) != GX_OK)
        return false;
    for (uint32_t i = 0; i < n; ++i)
        usable += all[i].usable;
    free(all);
    return usable > 0;
}

static int open_all(void **state)
{
    static gx_bitmap_options bitmaps[N_ATTRIBUTES];
    gx_error err = {0};
    assert_int_equal(gx_bitmap_options_read(&bitmaps[R], "bins=25", NULL), GX_OK);
    if (make_dir(state) != 0)
        return -1;
    if (!there_is_a_gpu())
        return 0;
    for (uint32_t d = 0; d < n_docs; ++d)
        draw_document(d);
    build(in_dir("random.gx"), (attributes_of){attributes, bitmaps, N_ATTRIBUTES}, add_document, 0, n_docs);
    if (gx_index_open(&ix, in_dir("random.gx"), NULL, &err))
        fail_msg("%s", err.text);
    open_session(ix, GX_ENGINE_CPU, 0, &cpu_engine, &cpu);
    open_session(ix, GX_ENGINE_GPU, 0, &gpu_engine, &gpu);
    return 0;
}

static int close_all(void **state)
{
    gx_session_close(cpu);
    gx_session_close(gpu);
    gx_engine_close(cpu_engine);
    gx_engine_close(gpu_engine);
    gx_index_close(ix);
    return remove_dir(state);
}

/* ---- what matches ---- */

typedef enum filter_form { NO_FILTER, OF_R, NOT_OF_R, OF_R_AND_CAT, OF_TAG, N_FORMS } filter_form;

typedef struct question {
    uint32_t words; /* bits; 0: a word that no document has */
    gx_op op;
    uint32_t k;
    bool boolean; /* (the first word or r:<low) and not cat c00 */
    filter_form form;
    uint32_t low, high, tag;
    char text[120], filter_text[120];
    gx_filter *filter;
} question;

/* All queries of a call have one operator, k and mask. */
static void draw_question(question *q, gx_op op, uint32_t k)
{
    *q = (question){
        .op = op, .k = k, .boolean = op != GX_OP_AND_OR && below(6) == 0, .form = (filter_form)below(N_FORMS)};
    for (uint32_t n = below(20) ? 1 + below(4) : 0; n; --n)
        q->words |= 1u << below(N_WORDS);
    q->low = below(1000);
    q->high = q->low + below(below(2) ? 20 : 1000);
    q->tag = below(N_TAGS);
    for (uint32_t w = 0; w < N_WORDS && !q->boolean; ++w)
        if (q->words >> w & 1)
            sprintf(q->text + strlen(q->text), "w%u ", w);
    if (q->boolean)
        sprintf(q->text, "(w%u OR r:<%u) AND NOT cat:c00", q->tag % N_WORDS, q->low);
    else if (!q->words)
        strcpy(q->text, "nowhere");
    const char *const forms[N_FORMS] = {"", "r:[%u TO %u]", "NOT r:[%u TO %u]", "r:[%u TO %u] AND cat:c01",
                                        "tags:t%03u"};
    if (q->form == OF_TAG)
        snprintf(q->filter_text, sizeof q->filter_text, forms[OF_TAG], q->tag);
    else
        snprintf(q->filter_text, sizeof q->filter_text, forms[q->form], q->low, q->high);
}

static bool is_selected(const question *q, const doc *x)
{
    const bool in_r = x->r >= q->low && x->r <= q->high;
    bool tagged = false;
    for (uint32_t i = 0; i < x->n_tags; ++i)
        tagged |= x->tags[i] == q->tag;
    return q->form == OF_R           ? in_r
           : q->form == NOT_OF_R     ? !in_r
           : q->form == OF_R_AND_CAT ? in_r && x->cat == 1
           : q->form == OF_TAG       ? tagged
                                     : true;
}

static bool is_of_query(const question *q, const doc *x, bool all)
{
    if (q->boolean)
        return ((x->words >> q->tag % N_WORDS & 1) || x->r < q->low) && x->cat != 0;
    return q->words && (all ? (x->words & q->words) == q->words : (x->words & q->words) != 0);
}

/* in[d]: it matches. Returns how many do. */
static uint32_t judge(const question *q, const uint64_t *mask, bool *in)
{
    uint32_t n[2] = {0, 0};
    for (int all = 1; all >= 0; --all) {
        if (q->op == GX_OP_OR && all)
            continue;
        for (uint32_t d = 0; d < n_docs; ++d) {
            in[d] = is_of_query(q, &docs[d], all) && is_selected(q, &docs[d]) && (!mask || mask[d / 64] >> d % 64 & 1);
            n[all] += in[d];
        }
        if (q->op == GX_OP_AND || (all && n[1] >= q->k))
            return n[1];
    }
    return n[0];
}

/* ---- counts ---- */

static const char *const asked[] = {"cat:all",       "big:20",          "tags:all",          "year:all",
                                    "when:all",      "when:5:by=month", "price:all",         "year:bins=7",
                                    "price:bins=9",  "price:width=2.5", "r:all:order=value", "years:all",
                                    "big:all",       "year:width=8",    "years:width=6",     "when:all:by=day",
                                    "r:bins=stored", "tags:3",          "cat:2:order=value"};
enum { N_ASKED = sizeof asked / sizeof *asked };

static const uint32_t *number_of(const char *text, uint32_t n)
{
    static uint32_t number;
    number = (uint32_t)strtoul(text + 1, NULL, 10);
    assert_in_range(number, 0, n - 1);
    return &number;
}

/* The groups of a keyword, or of years, against the documents. */
static void compare_documents(const char *text, const gx_facet_answer *a, const bool *in)
{
    static uint32_t counts[MOST_DOCS];
    const bool cat = strncmp(text, "cat", 3) == 0, big = strncmp(text, "big", 3) == 0,
               tags = strncmp(text, "tags", 4) == 0;
    uint64_t n_groups = 0, n_present = 0, least = UINT64_MAX;
    if (!cat && !big && !tags && strcmp(text, "year:all") != 0)
        return;
    memset(counts, 0, sizeof counts);
    for (uint32_t d = 0; d < n_docs; ++d) {
        const doc *x = &docs[d];
        if (!in[d])
            continue;
        n_present += cat || big || (tags ? x->n_tags > 0 : x->year > 0);
        for (uint32_t i = 0; tags && i < x->n_tags; ++i)
            ++counts[x->tags[i]];
        if (cat || big)
            ++counts[cat ? x->cat : x->big];
        else if (!tags && x->year)
            ++counts[1960 + x->year];
    }
    for (uint32_t i = 0; i < MOST_DOCS; ++i)
        n_groups += counts[i] != 0;
    assert_int_equal(a->n_present, n_present);
    assert_int_equal(a->n_groups, n_groups);
    for (uint32_t g = 0; g < a->n; ++g) {
        uint32_t *own =
            &counts[cat || big || tags ? *number_of(a->groups[g].text, MOST_DOCS) : (uint32_t)a->groups[g].first];
        if (a->groups[g].count != *own)
            fail_msg("%s, %s: %llu, not %u", text, a->groups[g].text, (unsigned long long)a->groups[g].count, *own);
        least = *own < least ? *own : least;
        *own = 0;
    }
    for (uint32_t i = 0; i < MOST_DOCS && !strstr(text, "order"); ++i) /* the others have no more */
        assert_true(counts[i] <= least);
}

static void compare_answers(const char *text, const gx_facet_answer *a, const gx_facet_answer *b)
{
    if (a->n_present != b->n_present || a->n_missing != b->n_missing || a->n_groups != b->n_groups || a->n != b->n)
        fail_msg("%s: %llu present, %llu groups, %u shown; the CPU: %llu, %llu, %u", text,
                 (unsigned long long)a->n_present, (unsigned long long)a->n_groups, a->n,
                 (unsigned long long)b->n_present, (unsigned long long)b->n_groups, b->n);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    for (uint32_t i = 0; i < a->n; ++i) {
        const gx_facet_group *x = &a->groups[i], *y = &b->groups[i];
        if (x->count != y->count || strcmp(x->text, y->text) != 0)
            fail_msg("%s, group %u: %s: %llu; the CPU: %s: %llu", text, i, x->text, (unsigned long long)x->count,
                     y->text, (unsigned long long)y->count);
        assert_true(x->first == y->first && x->last == y->last && x->low == y->low && x->high == y->high);
    }
}

/* A batch on a GPU's session against the judge and the CPU. counts: whether the GPU can count these facets. */
static void ask(gx_session *on, gx_engine *en, const question *questions, uint32_t n, bool masked,
                const gx_facet *facets, const uint32_t *numbers, uint32_t n_facets, bool counts)
{
    static uint64_t mask_words[MOST_DOCS / 64 + 1];
    static bool in[MOST_DOCS];
    static gx_facets *got[MOST_QUERIES];
    gx_query queries[MOST_QUERIES];
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_mask *mask = NULL, *cpu_mask = NULL;
    gx_error err = {0};
    opt.op = questions[0].op;
    opt.k = questions[0].k;
    for (uint32_t i = 0; i < n; ++i) {
        queries[i] = (gx_query)GX_TEXT_QUERY(questions[i].text, strlen(questions[i].text));
        queries[i].filter = questions[i].filter;
        queries[i].kind = questions[i].boolean ? GX_QUERY_BOOLEAN : GX_QUERY_TEXT;
    }
    if (masked) {
        for (uint32_t w = 0; w <= n_docs / 64; ++w)
            mask_words[w] = gx_random_next(&seed) | gx_random_next(&seed);
        assert_int_equal(gx_mask_open(&mask, en, mask_words, NULL), GX_OK);
        assert_int_equal(gx_mask_open(&cpu_mask, cpu_engine, mask_words, NULL), GX_OK);
    }
    opt.mask = mask;
    const uint64_t before = gx_session_n_counted(on);
    if (gx_count_facets_batch(got, on, queries, n, &opt, facets, n_facets, &err))
        fail_msg("%s", err.text);
    assert_int_equal(gx_session_n_counted(on) - before, counts ? n : 0);
    opt.mask = cpu_mask;
    for (uint32_t i = 0; i < n; ++i) {
        gx_facets *expected;
        const uint32_t n_matches = judge(&questions[i], masked ? mask_words : NULL, in);
        if (gx_facets_n_matches(got[i]) != n_matches)
            fail_msg("'%s', filter '%s', operator %d: %llu matches, not %u", questions[i].text,
                     questions[i].filter_text, (int)opt.op, (unsigned long long)gx_facets_n_matches(got[i]), n_matches);
        if (gx_count_facets(&expected, cpu, &queries[i], &opt, facets, n_facets, &err))
            fail_msg("%s", err.text);
        for (uint32_t f = 0; f < n_facets; ++f) {
            compare_documents(asked[numbers[f]], gx_facets_get(got[i], f), in);
            compare_answers(asked[numbers[f]], gx_facets_get(got[i], f), gx_facets_get(expected, f));
        }
        gx_facets_close(expected);
        gx_facets_close(got[i]);
    }
    gx_mask_close(mask);
    gx_mask_close(cpu_mask);
}

/* Draws a batch and asks it. */
static void ask_batch(gx_session *on, gx_engine *en, uint32_t n, const uint32_t *numbers, uint32_t n_facets,
                      bool counts)
{
    static question questions[MOST_QUERIES];
    gx_facet facets[24];
    const gx_op op = (gx_op)below(3);
    const uint32_t k = 1 + below(3000);
    for (uint32_t f = 0; f < n_facets; ++f)
        assert_int_equal(gx_facet_read(&facets[f], asked[numbers[f]], NULL), GX_OK);
    for (uint32_t i = 0; i < n; ++i) {
        question *q = &questions[i];
        draw_question(q, op, k);
        if (q->form != NO_FILTER &&
            gx_filter_open(&q->filter, ix, q->filter_text, strlen(q->filter_text), NULL, NULL) != GX_OK)
            fail_msg("%s", q->filter_text);
    }
    ask(on, en, questions, n, below(4) == 0, facets, numbers, n_facets, counts);
    for (uint32_t i = 0; i < n; ++i)
        gx_filter_close(questions[i].filter);
}

static uint32_t n_cases(uint32_t n)
{
    const char *given = getenv("GX_TEST_CASES");
    return n * (given ? (uint32_t)strtoul(given, NULL, 10) : 1);
}

static void counts_are_those_of_each_document(void **state)
{
    static const uint32_t sizes[] = {1, 2, 7, 20, MOST_QUERIES};
    (void)state;
    if (!gpu)
        skip();
    for (uint32_t i = 0; i < n_cases(10); ++i) {
        uint32_t numbers[4], n = 1 + below(4);
        for (uint32_t f = 0; f < n; ++f)
            numbers[f] = i < N_ASKED && f == 0 ? i : below(N_ASKED);
        ask_batch(gpu, gpu_engine, sizes[i % 5], numbers, n, true);
    }
}

static void many_facets_are_counted_at_once(void **state)
{
    uint32_t numbers[N_ASKED];
    (void)state;
    if (!gpu)
        skip();
    for (uint32_t f = 0; f < N_ASKED; ++f)
        numbers[f] = f;
    ask_batch(gpu, gpu_engine, 3, numbers, N_ASKED, true);
}

static void all_documents_match_or_none(void **state)
{
    static question questions[3] = {{.words = 1, .op = GX_OP_OR, .k = 1, .text = "w0"},
                                    {.words = 0, .op = GX_OP_OR, .k = 1, .text = "nowhere"},
                                    {.words = 1, .op = GX_OP_OR, .k = 1, .text = "w0 nowhere"}};
    const uint32_t numbers[] = {0, 1, 2, 3};
    gx_facet facets[4];
    (void)state;
    if (!gpu)
        skip();
    for (uint32_t f = 0; f < 4; ++f)
        assert_int_equal(gx_facet_read(&facets[f], asked[f], NULL), GX_OK);
    ask(gpu, gpu_engine, questions, 3, false, facets, numbers, 4, true);
}

enum { MOST_MASKS = 4000 };

static void what_a_gpu_cannot_count_the_cpu_counts(void **state)
{
    static const question q = {.words = 6, .op = GX_OP_OR, .k = 1, .text = "w1 w2"};
    const uint32_t numbers[] = {0};
    gx_facet facets[2];
    gx_facets *got, *expected;
    gx_query query = GX_TEXT_QUERY(q.text, 5);
    static uint64_t words[MOST_DOCS / 64 + 1];
    static gx_mask *masks[MOST_MASKS];
    uint32_t n = 0;
    gx_engine *en;
    gx_session *s;
    (void)state;
    if (!gpu)
        skip();
    assert_int_equal(gx_facet_read(&facets[0], "cat:all", NULL), GX_OK);
    assert_int_equal(gx_facet_read(&facets[1], "years:bins=5", NULL), GX_OK);
    const uint64_t before = gx_session_n_counted(gpu);
    assert_int_equal(gx_count_facets(&got, gpu, &query, NULL, facets, 2, NULL), GX_OK);
    assert_int_equal(gx_session_n_counted(gpu), before);
    assert_int_equal(gx_count_facets(&expected, cpu, &query, NULL, facets, 2, NULL), GX_OK);
    compare_answers("years:bins=5", gx_facets_get(got, 1), gx_facets_get(expected, 1));
    gx_facets_close(got);
    gx_facets_close(expected);
    open_session(ix, GX_ENGINE_GPU, 24u << 20, &en, &s);
    memset(words, 0xff, sizeof words);
    while (n < MOST_MASKS && gx_mask_open(&masks[n], en, words, NULL) == GX_OK) /* until there is no memory */
        ++n;
    assert_in_range(n, 1, MOST_MASKS - 1);
    ask(s, en, &q, 1, false, facets, numbers, 1, false);
    while (n)
        gx_mask_close(masks[--n]);
    gx_session_close(s);
    gx_engine_close(en);
}

static void a_session_on_several_gpus_counts(void **state)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_device *all;
    uint32_t n;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    (void)state;
    if (!gpu || gx_devices(&all, &n, &err) != GX_OK)
        skip();
    for (uint32_t i = 0; i < n && o.n_devices < 2; ++i)
        if (all[i].usable)
            o.devices[o.n_devices++] = all[i].number;
    free(all);
    if (o.n_devices < 2)
        skip();
    o.kind = GX_ENGINE_GPU;
    if (gx_engine_open(&en, ix, &o, &err) || gx_session_open(&s, en, &err))
        fail_msg("%s", err.text);
    gx_session_set_facet_engine(s, GX_FACETS_BY_GPU);
    for (uint32_t i = 0; i < n_cases(4); ++i) {
        const uint32_t numbers[2] = {below(N_ASKED), below(N_ASKED)};
        ask_batch(s, en, 5, numbers, 2, true);
    }
    gx_session_close(s);
    gx_engine_close(en);
}

/* ---- large dictionaries ---- */

enum { N_LARGE = 1060000, N_STRINGS = 1000000 };

static void add_large(gx_builder *b, uint32_t d)
{
    char unique[16], shared[16], id[16];
    const gx_attribute_value values[] = {{0, unique, (size_t)sprintf(unique, "u%07u", d)},
                                         {1, shared, (size_t)sprintf(shared, "s%06u", d * 7 % N_STRINGS)}};
    const gx_document document = {
        sizeof document, id,     NULL, d % 3 ? "all third" : "all", (size_t)sprintf(id, "%u", d), 0,
        d % 3 ? 9 : 3,   values, 2};
    if (gx_builder_add(b, &document, NULL) != GX_OK)
        fail_msg("document %u", d);
}

static void a_million_strings_are_counted(void **state)
{
    static const gx_attribute large[] = {{"unique", GX_ATTRIBUTE_KEYWORD}, {"shared", GX_ATTRIBUTE_KEYWORD}};
    static uint32_t counts[N_STRINGS];
    gx_query queries[2] = {GX_TEXT_QUERY("all", 3), GX_TEXT_QUERY("third", 5)};
    gx_index *file;
    gx_engine *en;
    gx_session *s;
    gx_facet facets[2];
    gx_facets *got[2];
    gx_error err = {0};
    (void)state;
    if (!gpu)
        skip();
    build(in_dir("large.gx"), (attributes_of){large, NULL, 2}, add_large, 0, N_LARGE);
    if (gx_index_open(&file, in_dir("large.gx"), NULL, &err))
        fail_msg("%s", err.text);
    open_session(file, GX_ENGINE_GPU, 0, &en, &s);
    assert_int_equal(gx_facet_read(&facets[0], "shared:all:order=value", NULL), GX_OK);
    assert_int_equal(gx_facet_read(&facets[1], "unique:5", NULL), GX_OK);
    assert_int_equal(gx_count_facets_batch(got, s, queries, 2, NULL, facets, 1, &err), GX_OK);
    assert_int_equal(gx_session_n_counted(s), 2);
    for (uint32_t i = 0; i < 2; ++i) {
        const gx_facet_answer *a = gx_facets_get(got[i], 0);
        uint64_t sum = 0, n = 0;
        memset(counts, 0, sizeof counts);
        for (uint32_t d = 0; d < N_LARGE; ++d)
            if (i == 0 || d % 3) {
                ++counts[d * 7 % N_STRINGS];
                ++n;
            }
        assert_int_equal(gx_facets_n_matches(got[i]), n);
        for (uint32_t g = 0; g < a->n; ++g) {
            assert_int_equal(a->groups[g].count, counts[*number_of(a->groups[g].text, N_STRINGS)]);
            sum += a->groups[g].count;
        }
        assert_int_equal(sum, n);
        gx_facets_close(got[i]);
    }
    assert_int_equal(gx_count_facets_batch(got, s, queries, 2, NULL, facets, 2, &err), GX_OK);
    assert_int_equal(gx_session_n_counted(s), 2); /* `unique` has too many strings */
    assert_int_equal(gx_facets_get(got[0], 1)->n_groups, N_LARGE);
    for (uint32_t i = 0; i < 2; ++i)
        gx_facets_close(got[i]);
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(file);
}

static void counting_is_cancelled(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    assert_counting_is_cancelled(gpu);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    if (getenv("GX_TEST_DOCS"))
        n_docs = (uint32_t)strtoul(getenv("GX_TEST_DOCS"), NULL, 0);
    n_docs = n_docs < MOST_DOCS ? n_docs : MOST_DOCS;
    print_message("seed %llu, %u documents\n", (unsigned long long)seed, n_docs);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_each_document),
        cmocka_unit_test(many_facets_are_counted_at_once),
        cmocka_unit_test(all_documents_match_or_none),
        cmocka_unit_test(what_a_gpu_cannot_count_the_cpu_counts),
        cmocka_unit_test(a_session_on_several_gpus_counts),
        cmocka_unit_test(a_million_strings_are_counted),
        cmocka_unit_test(counting_is_cancelled),
    };
    const char *filter = getenv("GX_TEST_FILTER");
    if (filter)
        cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
