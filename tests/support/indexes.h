/* indexes.h: indexes in the scratch folder, opened and compared. */
#ifndef GX_TESTS_SUPPORT_INDEXES_H
#define GX_TESTS_SUPPORT_INDEXES_H

#include "index/index.h"
#include "tests/support/scratch.h"

static inline gx_index *open_index(const char *name)
{
    gx_index *ix;
    gx_error err = {0};
    if (gx_index_open(&ix, in_dir(name), NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static inline void assert_same_string(const gx_strings *a, const gx_strings *b, uint32_t i)
{
    size_t m, n;
    const char *x = gx_strings_get(a, i, &m), *y = gx_strings_get(b, i, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, m);
}

/* The same terms, lists, bit for bit, and documents; titles, texts and the description may differ.
 * */
static inline void assert_same_postings(const gx_index *a, const gx_index *b)
{
    assert_int_equal(a->n_terms, b->n_terms);
    assert_int_equal(a->n_docs, b->n_docs);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->payload_words, b->payload_words);
    assert_memory_equal(a->payload, b->payload, 4 * a->payload_words);
    assert_memory_equal(a->lists, b->lists, a->n_terms * sizeof *a->lists);
    assert_memory_equal(a->heads, b->heads, a->n_blocks * sizeof *a->heads);
    assert_memory_equal(a->doc_lens, b->doc_lens, a->n_docs * sizeof *a->doc_lens);
    for (uint32_t t = 0; t < a->n_terms; ++t)
        assert_same_string(&a->terms, &b->terms, t);
    for (uint32_t d = 0; d < a->n_docs; ++d)
        assert_same_string(&a->doc_ids, &b->doc_ids, d);
}

/* Remove a collection of this test, files and all. */
static inline void remove_collection(const char *path)
{
    char file[600];
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (d)
        closedir(d);
    assert_int_equal(rmdir(path), 0);
}

#endif
