/* Orders of documents: permutations always, the same for any number of threads, and good ones where
 * there are good ones. */
#include <sys/stat.h>
#include <unistd.h>

#include "index/check/check.h"
#include "tests/support/collection.h"
#include "tests/support/indexes.h"

static gx_index *write_and_open(const collection *c, const char *codec, const char *name)
{
    gx_error err = {0};
    if (collection_write(c, in_dir(name), gx_codec_by_name(codec), NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return open_index(name);
}

static void reorder_as(const gx_index *ix, const uint32_t *order, const char *name)
{
    gx_rewrite_options opt = GX_REWRITE_OPTIONS;
    gx_error err = {0};
    opt.force = true;
    opt.docid_codec = "gpubp128";
    opt.new_docids = order;
    if (gx_index_rewrite(ix, in_dir(name), &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static uint32_t *make_order(const gx_index *ix, gx_order_options opt)
{
    gx_error err = {0};
    uint32_t *order = malloc((ix->n_docs + 1) * sizeof *order);
    order[ix->n_docs] = 12345;
    opt.size = sizeof opt;
    if (gx_order_make(ix, &opt, order, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(order[ix->n_docs], 12345);
    return order;
}

static void assert_permutation(const uint32_t *order, uint32_t n)
{
    bool *seen = calloc(n + 1, sizeof *seen);
    for (uint32_t d = 0; d < n; ++d) {
        assert_true(order[d] < n);
        assert_false(seen[order[d]]);
        seen[order[d]] = true;
    }
    free(seen);
}

static void add_posting(collection *c, posting_list *l, uint32_t docid)
{
    l->docids[l->df] = docid;
    l->tfs[l->df++] = 1;
    ++c->doc_lens[docid];
}

/* Topics of 100 documents each, in order, and terms that are dense in one topic and rare elsewhere.
 * Every document of every tenth topic is empty. */
static collection *topics_make(uint64_t seed, uint32_t n_docs)
{
    enum { TOPIC = 100, TERMS_A_TOPIC = 20 };
    const uint32_t n_terms = n_docs / TOPIC * TERMS_A_TOPIC;
    collection *c = collection_make(seed, n_docs, 0);
    free(c->lists);
    c->n_terms = 0;
    c->lists = calloc(n_terms, sizeof *c->lists);
    for (uint32_t t = 0; t < n_terms; ++t) {
        posting_list *l = &c->lists[c->n_terms];
        l->len = (size_t)snprintf(l->term, sizeof l->term, "term%06u", t);
        l->docids = malloc(n_docs * sizeof *l->docids);
        l->tfs = malloc(n_docs * sizeof *l->tfs);
        for (uint32_t d = 0; d < n_docs; ++d) {
            const uint32_t chance = d / TOPIC == t / TERMS_A_TOPIC ? 500 : 5;
            if (d / TOPIC % 10 != 9 && gx_random_next(&seed) % 1000 < chance)
                add_posting(c, l, d);
        }
        if (l->df)
            ++c->n_terms;
    }
    return c;
}

static void every_order_is_a_permutation(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 33, 300, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        for (gx_order_kind kind = GX_ORDER_KEEP; kind <= GX_ORDER_ID; ++kind)
            for (uint32_t leaf = 0; leaf <= 7; leaf += 7) {
                collection *c = collection_make(i + 1, sizes[i], 30);
                gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
                uint32_t *order = make_order(
                    ix, (gx_order_options){.kind = kind, .seed = i, .threads = 3, .leaf = leaf, .min_df = leaf});
                assert_permutation(order, sizes[i]);
                free(order);
                gx_index_close(ix);
                collection_free(c);
            }
}

static void bisection_finds_topics_again(void **state)
{
    (void)state;
    collection *c = topics_make(3, 6000);
    gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
    uint32_t *random = make_order(ix, (gx_order_options){.kind = GX_ORDER_RANDOM, .seed = 5});
    reorder_as(ix, random, "b.gx");
    gx_index *shuffled = open_index("b.gx");
    uint32_t *found = make_order(shuffled, (gx_order_options){.kind = GX_ORDER_BP});
    assert_permutation(found, c->n_docs);
    reorder_as(shuffled, found, "c.gx");
    gx_index *again = open_index("c.gx");
    const double at_first = gx_order_gap_bits(ix), worst = gx_order_gap_bits(shuffled),
                 at_last = gx_order_gap_bits(again);
    if (worst < at_first + 1 || at_last > at_first + 0.2 * (worst - at_first))
        fail_msg("log2 of gaps: in topics %.3f, shuffled %.3f, found %.3f", at_first, worst, at_last);
    free(random);
    free(found);
    gx_index_close(ix);
    gx_index_close(shuffled);
    gx_index_close(again);
    collection_free(c);
}

static void bisection_does_no_harm_to_a_good_order(void **state)
{
    (void)state;
    collection *c = topics_make(4, 4000);
    gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
    uint32_t *order = make_order(ix, (gx_order_options){.kind = GX_ORDER_BP});
    reorder_as(ix, order, "b.gx");
    gx_index *after = open_index("b.gx");
    assert_true(gx_order_gap_bits(after) <= 1.02 * gx_order_gap_bits(ix));
    free(order);
    gx_index_close(ix);
    gx_index_close(after);
    collection_free(c);
}

static void the_mean_gap_is_what_it_says(void **state)
{
    (void)state;
    collection *c = collection_make(1, 8, 0);
    free(c->lists);
    c->n_terms = 1;
    c->lists = calloc(1, sizeof *c->lists);
    c->lists[0] = (posting_list){.term = "a", .len = 1, .docids = calloc(8, 4), .tfs = calloc(8, 4)};
    add_posting(c, &c->lists[0], 1); /* gaps of 2, 4 and 1: 1, 2 and 0 bits */
    add_posting(c, &c->lists[0], 5);
    add_posting(c, &c->lists[0], 6);
    gx_index *ix = write_and_open(c, "raw", "a.gx");
    assert_true(gx_order_gap_bits(ix) == 1.0);
    gx_index_close(ix);
    collection_free(c);
}

static void threads_change_nothing_and_seeds_do(void **state)
{
    (void)state;
    collection *c = topics_make(9, 20000);
    gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
    const size_t bytes = c->n_docs * sizeof(uint32_t);
    uint32_t *one = make_order(ix, (gx_order_options){.kind = GX_ORDER_BP, .iterations = 5});
    for (uint32_t threads = 1; threads <= 16; threads += 5) {
        uint32_t *many = make_order(ix, (gx_order_options){.kind = GX_ORDER_BP, .iterations = 5, .threads = threads});
        assert_memory_equal(one, many, bytes);
        free(many);
    }
    free(one);
    uint32_t *a = make_order(ix, (gx_order_options){.kind = GX_ORDER_RANDOM, .seed = 1});
    uint32_t *b = make_order(ix, (gx_order_options){.kind = GX_ORDER_RANDOM, .seed = 1});
    assert_memory_equal(a, b, bytes);
    free(b);
    b = make_order(ix, (gx_order_options){.kind = GX_ORDER_RANDOM, .seed = 2});
    assert_memory_not_equal(a, b, bytes);
    free(a);
    free(b);
    gx_index_close(ix);
    collection_free(c);
}

static void ids_are_sorted_as_bytes(void **state)
{
    (void)state;
    collection *c = collection_make(6, 500, 3);
    gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
    uint32_t *order = make_order(ix, (gx_order_options){.kind = GX_ORDER_ID});
    reorder_as(ix, order, "b.gx");
    gx_index *sorted = open_index("b.gx");
    for (uint32_t d = 1; d < 500; ++d) {
        size_t x_len, y_len;
        const char *x = gx_index_doc_id(sorted, d - 1, &x_len), *y = gx_index_doc_id(sorted, d, &y_len);
        const int sign = memcmp(x, y, x_len < y_len ? x_len : y_len);
        assert_true(sign < 0 || (sign == 0 && x_len < y_len));
    }
    free(order);
    gx_index_close(ix);
    gx_index_close(sorted);
    collection_free(c);
}

/* ---- the same answers ---- */

typedef struct hit {
    float score;
    char id[24];
} hit;

static int by_score_and_id(const void *a, const void *b)
{
    const hit *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : strcmp(x->id, y->id);
}

/* All n documents' hits, ties by id. */
static uint32_t search(const gx_index *ix, const char *text, gx_op op, uint32_t k, hit *hits)
{
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_query_options qo = GX_QUERY_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    uint32_t n, *docids = malloc(k * sizeof *docids);
    float *scores = malloc(k * sizeof *scores);
    eo.kind = GX_ENGINE_CPU;
    qo.k = k;
    qo.op = op;
    assert_int_equal(gx_engine_open(&en, ix, &eo, &err), GX_OK);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    const gx_results out = {sizeof out, docids, scores, &n, NULL};
    if (gx_search(s, &(gx_query)GX_TEXT_QUERY(text, strlen(text)), 1, &qo, &out, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(ix, docids[i], &len);
        hits[i] = (hit){.score = scores[i]};
        memcpy(hits[i].id, id, len);
    }
    qsort(hits, n, sizeof *hits, by_score_and_id);
    gx_session_close(s);
    gx_engine_close(en);
    free(docids);
    free(scores);
    return n;
}

static void queries_find_the_same_documents_with_the_same_scores(void **state)
{
    (void)state;
    enum { N = 2500, TERMS = 40 };
    static hit a[N], b[N];
    uint64_t seed = 77;
    collection *c = collection_make(12, N, TERMS);
    gx_index *before = write_and_open(c, "gpubp128", "a.gx");
    for (gx_order_kind kind = GX_ORDER_RANDOM; kind <= GX_ORDER_ID; ++kind) {
        uint32_t *order = make_order(before, (gx_order_options){.kind = kind, .seed = 8});
        reorder_as(before, order, "b.gx");
        assert_int_equal(gx_index_verify(in_dir("b.gx"), GX_CHECK_FULL, NULL), GX_OK);
        gx_index *after = open_index("b.gx");
        for (uint32_t q = 0; q < 60; ++q) {
            char text[200] = "";
            for (uint32_t t = 0; t <= q % 4; ++t)
                strcat(strcat(text, c->lists[gx_random_next(&seed) % TERMS].term), " ");
            const gx_op op = q % 3 == 0 ? GX_OP_AND : GX_OP_OR;
            const uint32_t k = q % 2 ? N : 10, n = search(before, text, op, k, a);
            assert_int_equal(search(after, text, op, k, b), n);
            for (uint32_t i = 0; i < n; ++i) {
                assert_memory_equal(&a[i].score, &b[i].score, sizeof a[i].score);
                if (k == N || a[i].score > a[n - 1].score) /* of the last ones' equals, others may be there */
                    assert_string_equal(a[i].id, b[i].id);
            }
        }
        free(order);
        gx_index_close(after);
    }
    gx_index_close(before);
    collection_free(c);
}

/* ---- ends before the end ---- */

typedef struct watch {
    uint32_t patience, told;
    uint64_t last;
} watch;

static bool loses_patience(void *user)
{
    watch *w = user;
    return w->patience-- == 0;
}

static void is_told(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    assert_true(done <= total && done >= w->last);
    w->last = done;
    ++w->told;
}

static void it_tells_how_far_it_is_and_stops_when_asked(void **state)
{
    (void)state;
    collection *c = topics_make(2, 5000);
    gx_index *ix = write_and_open(c, "gpubp128", "a.gx");
    gx_order_options opt = GX_ORDER_OPTIONS;
    gx_error err = {0};
    watch w = {.patience = 1000000};
    uint32_t *order = malloc(c->n_docs * sizeof *order);
    opt.kind = GX_ORDER_BP;
    opt.cancel = loses_patience;
    opt.progress = is_told;
    opt.user = &w;
    assert_int_equal(gx_order_make(ix, &opt, order, &err), GX_OK);
    assert_true(w.told > 1);
    const uint32_t asked = 1000000 - w.patience;
    for (uint32_t after = 0; after < asked; after += 3) {
        w = (watch){.patience = after};
        assert_int_equal(gx_order_make(ix, &opt, order, &err), GX_ECANCELLED);
        assert_string_equal(err.text, "cancelled");
    }
    free(order);
    gx_index_close(ix);
    collection_free(c);
}

static void damaged_lists_are_refused(void **state)
{
    (void)state;
    collection *c = collection_make(21, 700, 10);
    gx_index *ix = write_and_open(c, "raw", "a.gx");
    gx_index_sizes sizes;
    gx_index_measure(ix, &sizes);
    uint32_t payload = 0;
    while (strcmp(sizes.sections[payload].name, "PAYL") != 0)
        ++payload;
    const uint64_t offset = sizes.sections[payload].offset;
    gx_index_close(ix);
    FILE *f = fopen(in_dir("a.gx"), "r+b");
    assert_int_equal(fseek(f, (long)offset + 40, SEEK_SET), 0);
    for (int i = 0; i < 8; ++i)
        putc(0x7f, f);
    fclose(f);
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE, GX_LOAD_MAP};
    gx_error err = {0};
    uint32_t order[700];
    gx_order_options opt = GX_ORDER_OPTIONS;
    opt.kind = GX_ORDER_BP;
    assert_int_equal(gx_index_open(&ix, in_dir("a.gx"), &light, &err), GX_OK);
    assert_int_equal(gx_order_make(ix, &opt, order, &err), GX_ECORRUPT);
    assert_non_null(strstr(err.text, "list "));
    opt.kind = (gx_order_kind)77;
    assert_int_equal(gx_order_make(ix, &opt, order, &err), GX_EUSAGE);
    gx_index_close(ix);
    collection_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_is_a_permutation),
        cmocka_unit_test(bisection_finds_topics_again),
        cmocka_unit_test(bisection_does_no_harm_to_a_good_order),
        cmocka_unit_test(the_mean_gap_is_what_it_says),
        cmocka_unit_test(threads_change_nothing_and_seeds_do),
        cmocka_unit_test(ids_are_sorted_as_bytes),
        cmocka_unit_test(queries_find_the_same_documents_with_the_same_scores),
        cmocka_unit_test(it_tells_how_far_it_is_and_stops_when_asked),
        cmocka_unit_test(damaged_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
