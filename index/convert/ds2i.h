/* ds2i.h: import and export of the collections of ds2i, PISA and programs that read their files. A
 * collection is a set of flat files of little-endian u32. A sequence is its length n and then n
 * numbers.
 *
 *   BASE.docs        the sequence {1, n_docs}, then one sequence for each list: its docids
 *   BASE.freqs       one sequence for each list, in the same order: its tfs
 *   BASE.sizes       one sequence: the length of every document
 *   BASE.terms       the names of the lists, one a line, in their order; optional for an import
 *   BASE.documents   the names of the documents, one a line, by docid; optional for an import
 *
 * An index keeps its terms in byte order, so an import may change the order of the lists; their
 * names identify them. Without a file of names, a list or a document is named by its number ("0",
 * "1", ...).
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
    const char *terms, *documents; /* import: files of names; NULL: BASE.terms and BASE.documents if they exist */
    const gx_analyzer *analyzer;   /* import: the analyzer of queries; NULL: "whitespace" */
    bool impacts;                  /* import: the numbers of BASE.freqs are impacts */
    bool (*cancel)(void *user);    /* called now and then; true: stop. May be NULL */
    void *user;
} gx_ds2i_options;
#define GX_DS2I_OPTIONS ((gx_ds2i_options){.size = sizeof(gx_ds2i_options)})

/* Make an index at path from the files of BASE. Lists without postings are left out. GX_ENOTFOUND,
 * GX_EIO, GX_EINPUT (with file, byte and reason), GX_ECANCELLED, and the writer's statuses. */
gx_status gx_ds2i_import(const char *base, const char *path, const gx_ds2i_options *opt, gx_error *err);

/* Write ix as BASE.docs, .freqs, .sizes, .terms and .documents, under temporary names, and rename
 * the files when all are complete. If ix has no names (tools/bench/collection.h), numbers of one
 * width stand for them, so that they are in byte order as names are. GX_EEXISTS (a file exists,
 * unless force), GX_EUSAGE (a term or an id contains a line end), GX_ENOTFOUND, GX_EIO, GX_ENOMEM,
 * GX_ECANCELLED. */
gx_status gx_ds2i_export(const gx_index *ix, const char *base, const gx_ds2i_options *opt, gx_error *err);

#endif
