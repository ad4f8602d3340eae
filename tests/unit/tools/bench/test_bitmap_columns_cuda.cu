/* Sets of documents from bitmap columns as index files have them, on the GPU, against the CPU's. Skipped where there
 * is no GPU. */
#include "tests/support/row_sets.cuh"
#include "tools/bench/bitmaps/bitmap_columns.cuh"

extern "C" {
#include "tools/bench/data/made_bitmaps.h"
}

/* Documents in runs, some without a value, some with several, of which the first is the greatest. */
struct documents {
    uint32_t n, n_values, run, most; /* most: values of a document */
    uint64_t seed;
    /* while they are read: */
    uint64_t state;
    uint32_t left, several[4];
    gx_bitmap_row row;
};

static gx_status rewind_documents(void *user, gx_error *)
{
    documents *const d = (documents *)user;
    d->state = d->seed;
    d->left = 0;
    return GX_OK;
}

static uint32_t draw_value(documents *d)
{
    const uint32_t bits = below(&d->state, 16);
    return below(&d->state, (d->n_values - 1 >> bits) + 1); /* small ones are frequent */
}

static gx_status next_document(void *user, gx_bitmap_row *row, gx_error *)
{
    documents *const d = (documents *)user;
    if (d->left-- == 0) {
        d->left = below(&d->state, d->run);
        d->row = gx_bitmap_row{below(&d->state, d->most + 1), 0, NULL, NULL};
        for (uint32_t i = 0; i < d->row.n; ++i) {
            d->several[i] = draw_value(d);
            for (uint32_t k = 0; k < i; ++k)
                if (d->several[k] == d->several[i])
                    d->row.n = i; /* they differ */
        }
        d->row.value = d->several[0];
        d->row.several = d->most > 1 ? d->several : NULL;
    }
    *row = d->row;
    return GX_OK;
}

/* An attribute's columns, on both sides. */
struct attribute {
    documents docs;
    made_bitmaps made;
    uint32_t *present; /* whole tiles */
    bitmap_columns gpu;
};

static void upload(attribute *a)
{
    const gx_bitmaps *const b = &a->made.bitmaps;
    a->gpu = bitmap_columns{copy_in(b->directory, b->n_columns),
                            copy_in(b->words, b->words ? a->made.n_words + GX_READ_SLACK / 4 : 0),
                            copy_in(a->present, (a->docs.n + 31) / 32),
                            a->made.n_words,
                            b->n_columns,
                            a->docs.n};
}

static void free_upload(const attribute *a)
{
    cudaFree((void *)a->gpu.directory);
    cudaFree((void *)a->gpu.words);
    cudaFree((void *)a->gpu.present);
}

static void open_attribute(attribute *a, uint64_t *seed)
{
    static const uint32_t runs[] = {1, 2, 30, 700, 30000};
    const bool range = below(seed, 2);
    *a = attribute{};
    a->docs.n = 1 + below(seed, below(seed, 2) ? 300000 : 2000);
    a->docs.n_values = 1 + below(seed, below(seed, 3) ? 40 : 2000);
    a->docs.run = runs[below(seed, 5)];
    a->docs.most = range ? 1 : 1 + below(seed, 3);
    a->docs.seed = *seed;
    const gx_bitmap_source s = {range              ? GX_ATTRIBUTE_INT
                                : a->docs.most > 1 ? GX_ATTRIBUTE_KEYWORDS
                                                   : GX_ATTRIBUTE_KEYWORD,
                                4,
                                a->docs.n,
                                range ? 0 : a->docs.n_values,
                                a->docs.n,
                                &a->docs,
                                rewind_documents,
                                next_document};
    gx_bitmap_options o = {};
    o.encoding = range ? GX_BITMAPS_RANGE : GX_BITMAPS_EQUALITY;
    o.bins = range ? 1 + below(seed, 300) : 0;
    gx_error err = {};
    if (made_bitmaps_open(&a->made, &s, &o, &err))
        fail_msg("%s", err.text);
    a->present = (uint32_t *)calloc((a->docs.n / TILE_ROWS + 1) * (size_t)TILE_WORDS, 4);
    assert_non_null(a->present);
    gx_bitmap_row row;
    rewind_documents(&a->docs, NULL);
    for (uint32_t d = 0; d < a->docs.n; ++d) {
        next_document(&a->docs, &row, NULL);
        a->present[d / 32] |= (uint32_t)(row.n != 0) << d % 32;
    }
    upload(a);
}

static void close_attribute(attribute *a)
{
    free_upload(a);
    made_bitmaps_close(&a->made);
    free(a->present);
}

static void check_attribute(const attribute *a, const row_query *q, uint64_t *seed)
{
    const gx_bitmaps *const b = &a->made.bitmaps;
    uint32_t *const want = expect_rows(q, a->docs.n, [&](uint32_t column, uint32_t *words) {
        if (column < b->n_columns)
            gx_bitmap_set(b, column, a->docs.n, (uint64_t *)words);
        else if (column == b->n_columns)
            for (uint32_t w = 0; w < (a->docs.n + 31) / 32; ++w)
                words[w] |= a->present[w];
    });
    check_query(a->gpu, q, a->docs.n, want, seed);
    free(want);
}

static void sets_of_columns_of_every_form(void **)
{
    if (!has_gpu())
        skip();
    uint64_t seed = new_seed();
    uint32_t forms[3] = {0};
    for (uint32_t turn = 0, turns = n_cases(40); turn < turns; ++turn) {
        attribute a;
        open_attribute(&a, &seed);
        for (uint32_t i = 0; i < a.gpu.n_columns; ++i)
            ++forms[gx_bitmap_form_of(a.made.bitmaps.directory[i])];
        for (uint32_t k = 0; k < 6; ++k) {
            row_query q;
            draw_query(&q, a.gpu.n_columns + 2, &seed); /* also the documents with a value, and a column there is not */
            check_attribute(&a, &q, &seed);
        }
        close_attribute(&a);
    }
    assert_true(getenv("GX_TEST_CASES") || (forms[0] && forms[1] && forms[2]));
}

/* Whatever the columns hold, nothing is read or written beyond them, and no document is one that there is not. */
static void damaged_columns_do_no_harm(void **)
{
    if (!has_gpu())
        skip();
    uint64_t seed = new_seed();
    for (uint32_t turn = 0, turns = n_cases(60); turn < turns; ++turn) {
        attribute a;
        row_query q;
        open_attribute(&a, &seed);
        free_upload(&a);
        const gx_bitmaps *const b = &a.made.bitmaps;
        for (uint32_t i = 0, n = below(&seed, 50); i < n && b->n_columns; ++i) {
            uint32_t *const e = (uint32_t *)&b->directory[below(&seed, b->n_columns)] + below(&seed, 2);
            *e = below(&seed, 2) ? (uint32_t)gx_random_next(&seed) : *e ^ 1u << below(&seed, 32);
        }
        for (uint32_t i = 0, n = below(&seed, 500); i < n && a.made.n_words; ++i)
            ((uint32_t *)b->words)[below(&seed, a.made.n_words)] = (uint32_t)gx_random_next(&seed);
        upload(&a);
        draw_query(&q, a.gpu.n_columns + 1, &seed);
        for (uint32_t k = 0; k < q.steps.n; ++k)
            q.listed[k][0] = (uint32_t)gx_random_next(&seed);
        check_damaged(a.gpu, &q, a.docs.n);
        close_attribute(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_columns_of_every_form),
        cmocka_unit_test(damaged_columns_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
