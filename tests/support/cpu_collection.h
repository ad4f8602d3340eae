/* cpu_collection.h: documents with attributes, built by the library in the scratch folder and opened for the CPU. */
#ifndef GX_TESTS_SUPPORT_CPU_COLLECTION_H
#define GX_TESTS_SUPPORT_CPU_COLLECTION_H

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

typedef struct cpu_collection {
    const gx_attribute *attributes; /* [n_attributes] */
    uint32_t n_attributes, n_docs;
    void (*add)(gx_builder *b, uint32_t d); /* adds document d */
    gx_index *ix;
    gx_engine *en;
} cpu_collection;

/* A set-up of tests: make the folder, and in it index.gx of all documents; set ix and en. 0, or -1 after a failure. */
static inline int open_cpu_collection(void **state, cpu_collection *c)
{
    gx_builder *b = NULL;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_engine_options cpu = GX_ENGINE_OPTIONS;
    if (make_dir(state) != 0)
        return -1;
    o.n_attributes = c->n_attributes;
    o.attributes = c->attributes;
    o.analyzer = "whitespace";
    o.path = in_dir("index.gx");
    cpu.kind = GX_ENGINE_CPU;
    gx_status st = gx_builder_open(&b, &o, NULL);
    for (uint32_t d = 0; d < c->n_docs && st == GX_OK; ++d)
        c->add(b, d);
    st = st == GX_OK ? gx_builder_finish(b, NULL) : st;
    gx_builder_abort(b);
    return st || gx_index_open(&c->ix, in_dir("index.gx"), NULL, NULL) || gx_engine_open(&c->en, c->ix, &cpu, NULL) ? -1
                                                                                                                    : 0;
}

/* The tear-down. */
static inline int close_cpu_collection(void **state, cpu_collection *c)
{
    gx_engine_close(c->en);
    gx_index_close(c->ix);
    return remove_dir(state);
}

#endif
