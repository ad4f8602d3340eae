/* index.h: an open index: the mapped file's sections as arrays, verified when it was opened.
 *
 * What the door checked (open.c, check.c) the rooms rely on: every pointer below spans its stated
 * length; blocks and payload ranges of every list lie inside their arrays; ends rise; heads rise
 * and are < n_docs. What only GX_CHECK_FULL establishes is that decoded docids rise and are <
 * n_docs; engines therefore drop a decoded docid >= n_docs. The file stays mapped: replacing it by
 * rename is harmless, as the writer does; writing into it or truncating it while it is open is not.
 */
#ifndef GX_INDEX_INDEX_H
#define GX_INDEX_INDEX_H

#include "codecs/codec.h"
#include "index/format.h"

typedef struct gx_strings {
    const char *bytes;
    const void *offsets; /* [n + 1] of width bytes */
    uint32_t n, width;   /* width 4 or 8 */
} gx_strings;

static inline const char *gx_strings_get(const gx_strings *s, uint32_t i, size_t *len)
{
    uint64_t a, b;
    if (s->width == 4) {
        a = ((const uint32_t *)s->offsets)[i];
        b = ((const uint32_t *)s->offsets)[i + 1];
    } else {
        a = ((const uint64_t *)s->offsets)[i];
        b = ((const uint64_t *)s->offsets)[i + 1];
    }
    *len = (size_t)(b - a);
    return s->bytes + a;
}

struct gx_analyzer;
struct gx_id_table; /* documents.c */
struct gx_max_tfs;  /* max_tf.c */

struct gx_index {
    char *path;          /* for messages */
    const uint8_t *file; /* the mapping, header first */
    uint64_t file_bytes;
    const gx_header *header;
    const gx_section *sections; /* [header->n_sections] */

    uint32_t n_docs, n_terms, block_len;
    uint64_t n_blocks, n_postings, n_tokens;
    uint64_t sum_tfs;
    bool impacts; /* the tfs are impacts */
    double avgdl; /* n_tokens / n_docs; 1 when there are no documents or tokens */
    uint32_t min_doc_len, max_doc_len;

    const gx_list_entry *lists; /* [n_terms] */
    const uint32_t *heads;      /* [n_blocks] */
    const uint32_t *docid_ends; /* [n_blocks] */
    const uint32_t *tf_ends;    /* [n_blocks] */
    const uint32_t *payload;    /* [payload_words], and GX_READ_SLACK bytes more */
    uint64_t payload_words;
    const uint32_t *doc_lens; /* [n_docs] */

    gx_strings terms, doc_ids, titles; /* titles.n == 0: none are stored */
    struct gx_id_table *id_table;      /* of doc_ids, if there are any; thread-safe to use */
    struct gx_max_tfs *max_tfs;        /* those known so far; thread-safe to use. NULL: none are kept */
    const uint32_t *term_hash;
    uint32_t term_hash_bits;
    struct gx_analyzer *analyzer; /* as recorded in META; thread-safe to use */

    const char *meta; /* [meta_len] META: a JSON object, not NUL-terminated */
    size_t meta_len;

    const gx_text_frame *text_frames; /* [n_text_frames + 1], or NULL: no texts are stored */
    uint32_t n_text_frames;
    const uint8_t *text; /* the frames' bytes */
};

/* One list, ready to decode. */
typedef struct gx_list {
    uint32_t df, n_blocks, block_len;
    const gx_codec *docids, *tfs;
    uint8_t docid_param, tf_param;
    const uint32_t *heads, *docid_ends, *tf_ends; /* [n_blocks] */
    const uint32_t *payload;                      /* the list's first word */
} gx_list;

gx_list gx_index_list(const gx_index *ix, uint32_t term); /* term < n_terms */

static inline uint32_t gx_list_block_n(const gx_list *l, uint32_t j) /* postings in block j */
{
    return j + 1 < l->n_blocks ? l->block_len : l->df - j * l->block_len;
}

/* Decode block j: docids[n] and, unless NULL, tfs[n], arrays of at least GX_MAX_BLOCK; returns n.
 * */
uint32_t gx_list_decode_docids(const gx_list *l, uint32_t j, uint32_t *docids);
uint32_t gx_list_decode_tfs(const gx_list *l, uint32_t j, uint32_t *tfs);

/* The greatest tf of a term's list, at least 1; term < n_terms. The file does not have it: the
 * first call for a term decodes the list's tfs, and later ones find it in ix->max_tfs. Thread-safe.
 * */
uint32_t gx_index_max_tf(const gx_index *ix, uint32_t term);
bool gx_max_tfs_open(struct gx_max_tfs **out, uint32_t n_terms); /* false: no memory */
void gx_max_tfs_close(struct gx_max_tfs *m);                     /* accepts NULL */

/* Empty, for gx_index_find_doc to fill when it pays; false: no memory. close accepts NULL. */
bool gx_id_table_open(struct gx_id_table **out);
void gx_id_table_close(struct gx_id_table *t);

/* The term's id, or UINT32_MAX. */
uint32_t gx_index_find_term(const gx_index *ix, const char *term, size_t len);

#endif
