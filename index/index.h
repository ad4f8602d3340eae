/* index.h: an open index: the sections of the file in memory as arrays.
 *
 * gx_index_open has verified the following (open.c, check.c), and other code relies on it:
 *   - every pointer below spans its stated length;
 *   - the blocks and the payload words of every list lie inside their arrays;
 *   - ends never fall within a list; heads rise within a list and are < n_docs.
 *
 * Only GX_CHECK_FULL verifies that decoded docids rise and are < n_docs. The engines therefore drop
 * a decoded docid >= n_docs.
 *
 * The file stays mapped while the index is open, unless it was read whole (GX_LOAD_READ). Another
 * file may be renamed to its path meanwhile, which is what the writer does. Nobody may write into a
 * mapped file or truncate it.
 */
#ifndef GX_INDEX_INDEX_H
#define GX_INDEX_INDEX_H

#include "codecs/codec.h"
#include "index/format.h"

typedef struct gx_strings {
    const char *bytes;
    const void *offsets; /* [n + 1], each of width bytes */
    uint32_t n, width;   /* width is 4 or 8 */
} gx_strings;

/* String i < n: *len bytes, not NUL-terminated. */
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
struct gx_parts;    /* collection.h */
struct gx_id_table; /* documents.c */
struct gx_max_tfs;  /* max_tf.c */
struct gx_fields;   /* fields/fields.h */
struct gx_view;     /* fields/view.h */

struct gx_index {
    char *path;      /* for messages */
    uint32_t n_more; /* holders but one, atomic; gx_index_share */
    /* Of a collection: what its files have. It has the counts below, the analyzer, META and the
     * columns' names, which are those of its first part, and no lists, lengths, terms, ids, titles
     * and texts: titles.n and text say whether there are any. NULL: the index is one file. */
    struct gx_parts *parts;
    const uint8_t *file; /* the file [file_bytes], header first */
    uint64_t file_bytes;
    const gx_header *header;
    const gx_section *sections; /* [header->n_sections] */

    /* n_docs: of a collection of more documents, which is called wide, UINT32_MAX; gx_index_n_docs tells all. Their
     * docids take 64 bits. A file is never wide. */
    uint32_t n_docs, n_terms, block_len;
    uint64_t n_docs_beyond; /* of a wide collection: documents beyond the first UINT32_MAX; else 0 */
    uint64_t n_blocks, n_postings, n_tokens;
    uint64_t sum_tfs;
    bool impacts;       /* the tf streams hold impacts */
    double impact_unit; /* what an impact of 1 adds to a score, where units is NULL */
    const float *units; /* [n_terms] the same for each list, or NULL */
    double avgdl;       /* n_tokens / n_docs; 1 when there are no documents or tokens */
    uint32_t min_doc_len, max_doc_len;

    const gx_list_entry *lists; /* [n_terms] */
    const uint32_t *heads;      /* [n_blocks] */
    const uint32_t *docid_ends; /* [n_blocks] */
    const uint32_t *tf_ends;    /* [n_blocks] */
    const uint32_t *payload;    /* [payload_words], and GX_READ_SLACK bytes more */
    uint64_t payload_words;
    const uint32_t *doc_lens; /* [n_docs] */

    /* With GX_HEADER_POSITIONS, else NULL: */
    const uint32_t *positions;      /* [position_words], and GX_READ_SLACK bytes more */
    const uint32_t *position_ends;  /* [n_blocks], modulo 2^32 */
    const uint32_t *position_wraps; /* [n_position_wraps] blocks at whose end the count passes a multiple of 2^32 */
    uint64_t position_words;
    uint32_t n_position_wraps;
    const uint8_t *title_positions; /* [n_docs] of title_position_width bytes, or NULL: no title has any */
    uint32_t title_position_width;

    gx_strings terms, doc_ids, titles; /* titles.n == 0: none are stored */
    struct gx_id_table *id_table;      /* for gx_index_find_doc; thread-safe */
    struct gx_max_tfs *max_tfs;        /* for gx_index_max_tf; thread-safe. NULL: results are not kept */
    const uint32_t *term_hash;         /* [2^term_hash_bits] */
    uint32_t term_hash_bits;
    struct gx_term_tree *term_tree; /* atomic; NULL until needed (index/read/term_tree.h) */
    struct gx_df_maxima *df_maxima; /* atomic; likewise */
    struct gx_analyzer *analyzer; /* the analyzer that META describes; thread-safe */
    char *analyzer_text;          /* that description */
    bool without_titles;          /* META says that none are to be stored */

    const char *meta; /* [meta_len] META: a JSON object, not NUL-terminated */
    size_t meta_len;

    uint32_t n_columns;
    struct gx_column *columns; /* [n_columns], of the attributes; attributes.h */
    gx_strings column_strings;

    struct gx_fields *fields; /* NULL: documents have no fields */
    struct gx_view *view;     /* NULL: the lists are the file's */
    /* Lists of which some are joined of several (read/joined_lists.h), for one search; NULL: the file's */
    const struct gx_joined_lists *joined;

    const gx_text_frame *text_frames; /* [n_text_frames + 1], or NULL: no texts are stored */
    uint32_t n_text_frames;
    const uint8_t *text; /* the bytes of all frames */
};

/* Whether docids of the collection take 64 bits. */
static inline bool gx_index_is_wide(const gx_index *ix)
{
    return ix->n_docs == UINT32_MAX;
}

/* Words of 64 bits that have a bit for each document. */
static inline size_t gx_index_n_words(const gx_index *ix)
{
    return (size_t)(((uint64_t)ix->n_docs + ix->n_docs_beyond + 63) / 64);
}

/* One list, ready to decode. */
typedef struct gx_list {
    uint32_t df, n_blocks, block_len;
    const gx_codec *docids, *tfs;
    uint8_t docid_param, tf_param;
    const uint32_t *heads, *docid_ends, *tf_ends; /* [n_blocks] */
    const uint32_t *payload;                      /* the list's first word */
} gx_list;

/* Open and verify a file at exactly this level, or a collection's folder. */
gx_status gx_index_open_at(gx_index **out, const char *path, gx_check level, gx_load load, gx_error *err);

/* The same of a file in the folder dir_fd, whose last name path has (AT_FDCWD: by its path), and of a folder, a
 * collection, that is open. */
gx_status gx_index_open_in(gx_index **out, int dir_fd, const char *path, gx_check level, gx_load load, gx_error *err);
gx_status gx_index_open_folder(gx_index **out, int dir_fd, const char *path, gx_check level, gx_error *err);

/* One holder more, who closes it too. */
gx_index *gx_index_share(gx_index *ix);

/* Documents that hold a term, 0: none. Of a collection, without the numbers of terms. */
uint64_t gx_index_df_of(const gx_index *ix, const char *term, size_t len);

/* gx_index_find_term of one file, with the term's gx_hash. */
uint32_t gx_index_find_hashed(const gx_index *ix, uint64_t hash, const char *term, size_t len);

/* The length of document docid, which is below gx_index_n_docs. */
uint32_t gx_index_length(const gx_index *ix, uint64_t docid);

gx_list gx_index_list(const gx_index *ix, uint32_t term); /* term < n_terms */

/* What an impact of 1 in the list adds to a score; 1 where the index holds tfs. */
static inline double gx_index_unit(const gx_index *ix, uint32_t term)
{
    return ix->units ? ix->units[term] : ix->impact_unit;
}

/* The number of postings in block j. */
static inline uint32_t gx_list_block_n(const gx_list *l, uint32_t j)
{
    return j + 1 < l->n_blocks ? l->block_len : l->df - j * l->block_len;
}

/* Decode the docids, or the tfs, of block j < n_blocks into an array of at least GX_MAX_BLOCK
 * integers. Return the number of postings in the block. */
uint32_t gx_list_decode_docids(const gx_list *l, uint32_t j, uint32_t *docids);
uint32_t gx_list_decode_tfs(const gx_list *l, uint32_t j, uint32_t *tfs);

/* The greatest tf of a term's list, at least 1; term < n_terms. The file does not store it. The
 * first call for a term decodes the tfs of its list, and later calls find the result in
 * ix->max_tfs. Thread-safe. */
uint32_t gx_index_max_tf(const gx_index *ix, uint32_t term);
bool gx_max_tfs_open(struct gx_max_tfs **out, uint32_t n_terms); /* false: no memory */
void gx_max_tfs_close(struct gx_max_tfs *m);                     /* accepts NULL */

/* Make an empty table. gx_index_find_doc fills it after many look-ups. false: no memory. close
 * accepts NULL. */
bool gx_id_table_open(struct gx_id_table **out);
void gx_id_table_close(struct gx_id_table *t);

#endif
