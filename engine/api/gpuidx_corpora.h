/* gpuidx_corpora.h: documents from files, for a builder. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_CORPORA_H
#define GPUIDX_CORPORA_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- corpora: documents from files ---- */

/* What a file of documents is. The manual page gpuidx-build(1) says what a document of each format
 * is, and where its id, title and text come from. */
typedef enum gx_source_format {
    GX_SOURCE_GUESS, /* by the file's name and first bytes; for a directory, by those of its first file */
    GX_SOURCE_JSONL,
    GX_SOURCE_TSV,
    GX_SOURCE_CSV,
    GX_SOURCE_TRECTEXT,
    GX_SOURCE_TRECWEB,
    GX_SOURCE_PLAIN,
    GX_SOURCE_FILES,
    GX_SOURCE_SMART,
    GX_SOURCE_WARC,
    GX_SOURCE_VECTORS, /* JSON objects with the member "vector": {term: weight}; gx_document.vector */
    GX_SOURCE_CSR      /* a sparse matrix in Big-ANN's form: a row a document, columns are terms */
} gx_source_format;

/* Find a format by its name, "jsonl" and so on. false: there is no such format. */
GX_API bool gx_source_format_find(const char *name, gx_source_format *out);
GX_API const char *gx_source_format_name(gx_source_format f); /* "guess" for GX_SOURCE_GUESS */

/* What names a document of the format files: a/b.html, b.html or b. */
typedef enum gx_file_id { GX_FILE_ID_PATH, GX_FILE_ID_NAME, GX_FILE_ID_STEM } gx_file_id;

typedef struct gx_source_options {
    size_t size;
    gx_source_format format;
    /* The columns of tsv and csv, such as "id,-,-,title,text". id occurs once. If title or text
     * occurs several times, the columns are joined with a space. The name of an attribute makes a
     * column its value. A column "-" is ignored. NULL: the file's header line names the columns;
     * without one, they are id,text or id,title,text. */
    const char *columns;
    size_t max_record; /* most bytes of a record, after decompression; 0: 64 MiB */
    bool latin1;       /* the bytes are Latin-1 (Windows-1252), not UTF-8 */
    bool else_latin1;  /* a title or text that is not UTF-8 is Latin-1; false: it is repaired */
    gx_file_id file_id;
    bool (*cancel)(void *user); /* called at every read; true: stop. May be NULL */
    void *user;
    /* The members of jsonl and vectors, such as "id=docno,text=content,title" ("title" is
     * "title=title"). id occurs once. Several members of title or text are joined with a space.
     * NULL: id, _id or docid; title; text, contents or content. Of vectors also "vector=NAME", the
     * object of terms and weights; without it, its name is vector. */
    const char *members;
    /* [n_attributes] The source reads the members of JSON objects, and the columns of tsv and
     * csv, of these names as values of attributes, and uses them for nothing else. An array has
     * several values; a column has them with commas between, unless its type is
     * GX_ATTRIBUTE_KEYWORD. The names must outlive the source. */
    const gx_attribute *attributes;
    uint32_t n_attributes;
    /* Threads, at most 16, that read a large file of jsonl, tsv, vectors, plain, trectext or trecweb
     * ahead of the caller of gx_source_next, if it is not compressed; 0: none. Documents, errors and
     * counts are the same. */
    uint32_t threads;
    /* [n_fields] of gx_builder_options.fields: a document's text becomes the fields' texts, with GX_FIELD_SEPARATOR
     * between. title and text are the document's own; any other name is that of a member of JSON objects (a string, a
     * number, or an array of them) or of a column of tsv and csv. A document needs neither title nor text then. The
     * array and the names must outlive the source. */
    const char *const *fields;
    uint32_t n_fields;
} gx_source_options;
#define GX_SOURCE_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_source_options), GX_SOURCE_GUESS, NULL, 0, false, false, GX_FILE_ID_PATH, NULL, NULL, NULL, NULL, 0, \
            0, NULL, 0                                                                                                 \
    }
GX_API void gx_source_options_init(gx_source_options *o, size_t size);

typedef struct gx_source gx_source;

/* Check that the n paths can be read, and begin. A path is a file, a directory (all files below it,
 * except hidden ones) or "-" (stdin). The strings of paths and opt must outlive the source. opt may
 * be NULL. GX_EUSAGE (opt's size, bad columns or members, no path, "-" twice), GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. */
GX_API gx_status gx_source_open(gx_source **out, const char *const *paths, size_t n, const gx_source_options *opt,
                                gx_error *err);
GX_API void gx_source_close(gx_source *s);

/* A document and where it begins. */
typedef struct gx_source_document {
    gx_document doc; /* title NULL: none. The bytes belong to the source until the next call */
    const char *file;
    uint64_t line; /* from 1 */
} gx_source_document;

/* Point *out to the next document, or to NULL after the last.
 * GX_EINPUT: a document is bad; err begins with "file:line: ". The next call continues behind the
 * document, or behind its file if the rest of the file cannot be read. After GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM or GX_ECANCELLED the only valid call is gx_source_close. */
GX_API gx_status gx_source_next(gx_source *s, const gx_source_document **out, gx_error *err);

typedef struct gx_source_counts {
    uint64_t documents;      /* good documents */
    uint64_t bad;            /* documents refused with GX_EINPUT */
    uint64_t too_long;       /* of these, those longer than max_record */
    uint64_t empty;          /* good documents with nothing but white space in title and text */
    uint64_t files;          /* files opened, each member of an archive being one */
    uint64_t bytes;          /* bytes read, after decompression */
    uint64_t nul_bytes;      /* NUL bytes, read as spaces */
    uint64_t latin1;         /* titles and texts read as Latin-1, by else_latin1 */
    uint64_t replaced;       /* sequences that are not UTF-8, read as U+FFFD */
    uint64_t raw_bytes;      /* bytes read, before decompression */
    uint64_t raw_total;      /* bytes of all files, before decompression; 0: unknown (a pipe) */
    gx_source_format format; /* of the file being read */
    uint64_t broken_links;   /* symbolic links in directories that lead nowhere, passed over */
    const char *broken_link; /* the first of them, until the source is closed; NULL: none */
} gx_source_counts;
GX_API gx_source_counts gx_source_get_counts(const gx_source *s);

/* What has been passed over so far, or read in another way than it is written, by kind: hidden entries of archives,
 * say, or records of WARC that are images. */
typedef struct gx_source_note {
    const char *name;   /* of the kind, for programs: "hidden_entries", "media_types", ... */
    const char *detail; /* what it is about, such as "image/png"; NULL: the kind has none */
    const char *file;   /* the first one's file or name */
    uint64_t line;      /* the line there; 0: none */
    uint64_t count;
    bool is_loss;   /* a program should warn */
    char text[160]; /* for people, to be read behind the count: "records of image/png were passed over" */
} gx_source_note;

/* Set *out to the i-th note, whose strings stay until the source is used again. false: there are no more than i. */
GX_API bool gx_source_get_note(const gx_source *s, size_t i, gx_source_note *out);

/* How gx_builder_add_source goes on. */
typedef struct gx_feed_options {
    size_t size;
    uint64_t limit; /* most documents that are taken, bad ones included; 0: all */
    /* A document is bad; err begins with "file:line: ". true: go on without it. NULL: stop. */
    bool (*bad)(void *user, const gx_error *err);
    void (*progress)(void *user); /* called now and then; may ask for counts. May be NULL */
    void *user;
} gx_feed_options;
#define GX_FEED_OPTIONS                                                                                                \
    {                                                                                                                  \
        sizeof(gx_feed_options), 0, NULL, NULL, NULL                                                                   \
    }
GX_API void gx_feed_options_init(gx_feed_options *o, size_t size);

/* Add all documents that the source has left, as gx_source_next and gx_builder_add do one after
 * another, with the same file, errors and counts, but for raw_bytes where a file is left early. The
 * builder's threads split files of all formats but smart and csr to documents. Idle ones
 * decompress the next files and members, in up to a quarter of the builder's memory besides it. The
 * functions of opt, which may be NULL, and of the source's options are called on the caller's thread alone.
 * GX_EINPUT: a document is bad, and opt->bad has not said to go on. After a failure, and where a
 * limit has ended the call, the source can only be closed; the builder is as after gx_builder_add.
 * GX_EUSAGE (opt's size), and the statuses of both. */
GX_API gx_status gx_builder_add_source(gx_builder *b, gx_source *s, const gx_feed_options *opt, gx_error *err);

/* ---- an index without a name ---- */

/* For a caller that writes the index again in another order. Call gx_builder_keep_unnamed before
 * the first document. The builder checks options.path as always, but gx_builder_finish does not
 * write there: the index remains a file without a name. Until gx_builder_abort it can be opened
 * at gx_builder_unnamed_path. The caller frees that path; NULL: no memory. */
GX_API void gx_builder_keep_unnamed(gx_builder *b);
GX_API char *gx_builder_unnamed_path(const gx_builder *b);

#ifdef __cplusplus
}
#endif
#endif
