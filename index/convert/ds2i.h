/* ds2i.h: exchange with ds2i, PISA and what reads their files: a collection as flat arrays of
 * little-endian u32.
 *
 *   BASE.docs    sequences, each its length n and then n numbers. The first is {1, n_docs}; then
 *                one a list: its docids
 *   BASE.freqs   one sequence a list, in the same order: the tfs
 *   BASE.sizes   one sequence: every document's length
 *   BASE.terms, BASE.documents    names, one a line, in the order of lists and of docids (optional
 *                                 when importing)
 *
 * An index keeps its terms in byte order, so an import may change the order of lists; the names
 * tell which is which. Without a file of names a list is called by its number ("0", "1", ...), and
 * so is a document.
 */
#ifndef GX_INDEX_CONVERT_DS2I_H
#define GX_INDEX_CONVERT_DS2I_H

#include "codecs/codec.h"
#include "index/analysis/analyzer.h"
#include "index/index.h"

typedef struct gx_ds2i_options {
    size_t size;
    bool force;
    const gx_codec *docids, *tfs;  /* import; tfs NULL: as docids */
    const char *terms, *documents; /* files of names; NULL: BASE.terms and BASE.documents where they exist */
    const gx_analyzer *analyzer;   /* import: what queries will be analysed with; NULL: "whitespace" */
    bool impacts;                  /* import: the numbers of BASE.freqs are impacts */
    bool (*cancel)(void *user);
    void *user;
} gx_ds2i_options;
#define GX_DS2I_OPTIONS ((gx_ds2i_options){.size = sizeof(gx_ds2i_options)})

/* Make an index at path from BASE's files. Lists without postings are left out.
 * GX_ENOTFOUND, GX_EIO, GX_EINPUT (with file, byte and reason), GX_ECANCELLED, and the writer's
 * failures. */
gx_status gx_ds2i_import(const char *base, const char *path, const gx_ds2i_options *opt, gx_error *err);

/* Write ix as BASE.docs, .freqs, .sizes, .terms and .documents: each aside, and renamed when all
 * are whole. Without force none may exist (GX_EEXISTS). GX_EUSAGE: a term or id holds a line end.
 * Where ix has no names (tools/bench/collection.h), numbers of one width stand for them, so that
 * they rise as names do. */
gx_status gx_ds2i_export(const gx_index *ix, const char *base, const gx_ds2i_options *opt, gx_error *err);

#endif
