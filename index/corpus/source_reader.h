/* source_reader.h: the interface between source.c and the readers of the formats.
 *
 * A reader takes the next record out of the window s->in and splits it into s->rec. The pointers of
 * s->rec lead into the window or into the scratch buffers of s. The reader may change the record's
 * bytes. When a reader returns GX_EINPUT, it has taken the bad record, so that the next call reads
 * the record behind it.
 */
#ifndef GX_INDEX_CORPUS_SOURCE_READER_H
#define GX_INDEX_CORPUS_SOURCE_READER_H

#include <inttypes.h>
#include <string.h>

#include "engine/status.h"
#include "index/corpus/input.h"
#include "index/corpus/notes.h"
#include "index/corpus/source.h"
#include "index/corpus/walk.h"

typedef struct gx_span {
    char *p; /* [n]; NULL: absent */
    size_t n;
} gx_span;

/* A growing buffer. All zero: empty. */
typedef struct gx_scratch {
    char *p;
    size_t n, cap;
} gx_scratch;

bool gx_scratch_reserve(gx_scratch *b, size_t n);            /* make room for n more bytes; false: no memory */
bool gx_scratch_add(gx_scratch *b, const char *p, size_t n); /* append n bytes; false: no memory */

/* Pass over a byte order mark, which stands where a file was joined to another. */
static inline bool gx_skip_mark(char **p, size_t *n)
{
    if (*n < 3 || memcmp(*p, "\xef\xbb\xbf", 3) != 0)
        return false;
    *p += 3;
    *n -= 3;
    return true;
}

/* Length of the longest prefix that is ASCII. */
size_t gx_ascii_prefix(const char *p, size_t n);

/* Write the code point c as UTF-8 at `to`; return the end. */
char *gx_put_utf8(char *to, unsigned c);

typedef struct gx_record {
    gx_span id, title, text;
    bool has_vector; /* gx_source.vector is the record's */
    uint64_t line;
} gx_record;

enum { GX_MAX_COLUMNS = 256 };
/* What a column of tsv and csv is; GX_COLUMN_ATTRIBUTE + i: attribute i. */
enum gx_column_use {
    GX_COLUMN_NONE,
    GX_COLUMN_ID,
    GX_COLUMN_TITLE,
    GX_COLUMN_TEXT,
    GX_COLUMN_VECTOR, /* of JSON alone */
    GX_COLUMN_ATTRIBUTE
};

enum { GX_MAX_JSON_MEMBERS = 16 };

typedef struct gx_json_member {
    const char *name; /* [n] */
    size_t n;
    uint8_t role; /* an enum gx_column */
} gx_json_member;

struct gx_source {
    gx_source_options opt;
    gx_walk *walk;
    uint64_t n_walked;        /* files of the walk */
    const char *const *paths; /* [n_paths] the caller's */
    size_t n_paths;
    struct gx_unpack_ahead *ahead; /* or NULL */
    gx_walk_file file;
    gx_input in;
    bool reading;            /* a file or a member is open */
    gx_source_format format; /* of the open file */
    size_t guessed_input;    /* the path, a directory, for whose files `guessed` is the format */
    gx_source_format guessed;
    gx_record rec;
    gx_source_document doc;
    gx_source_counts counts;
    gx_notes notes;
    uint64_t raw_total;

    gx_scratch id, title, text;         /* for parts of a record that cannot stay in the window */
    gx_scratch fixed_title, fixed_text; /* for copies with repaired UTF-8 */
    gx_scratch page, bodies[2];   /* for pages of another character set (charset.h), and encoded ones (coding.h) */
    gx_scratch head_line;         /* of a record of WARC */
    struct gx_charsets *charsets; /* that are open, or NULL */
    gx_scratch composed;          /* of fields: the text */
    gx_scratch elements;          /* of fields: the contents of TREC's elements */
    gx_attribute *with_fields;    /* the attributes, and fields that are read as they are; or NULL */
    gx_attribute_value *values;   /* [n_values] of the record's attributes */
    uint32_t n_values;
    size_t max_values;

    gx_weighted_term *vector; /* [n_vector] of the record */
    uint32_t n_vector;
    size_t max_vector;
    struct gx_csr *csr;            /* the open matrix, or NULL */
    struct gx_line_ranges *ranges; /* that threads read of the open file, or NULL */
    bool may_cut;                  /* the open file's rest has not been tried to be cut */

    bool first;      /* no record of this file has been read */
    bool smart_open; /* the next document of format smart has begun, with smart_id on smart_line */
    uint64_t smart_line;
    gx_scratch smart_id;
    uint64_t plain_lines; /* lines read in the format plain, over all files */
    /* columns of tsv and csv */
    uint8_t given[GX_MAX_COLUMNS], columns[GX_MAX_COLUMNS];
    unsigned n_given, n_columns;
    char delimiter; /* of csv; 0: a comma */
    gx_span fields[GX_MAX_COLUMNS];
    gx_json_member json_members[GX_MAX_JSON_MEMBERS]; /* [n_json_members] */
    unsigned n_json_members;
};

/* Read the next record into s->rec. GX_OK with *found false: the file has no further record. */
typedef gx_status gx_reader_fn(gx_source *s, bool *found, gx_error *err);
gx_reader_fn gx_read_json, gx_read_tsv, gx_read_csv, gx_read_trectext, gx_read_trecweb, gx_read_plain, gx_read_file,
    gx_read_smart, gx_read_warc, gx_read_vectors, gx_read_csr;

/* Open the next file, or member of an archive, if none is open. *end: there is none. s->reading stays false where an
 * archive has been opened, or has no further member: it is to be called again. Statuses as of gx_source_next. */
gx_status gx_source_continue(gx_source *s, bool *end, gx_error *err);
void gx_source_close_file(gx_source *s);

/* Read the open file's next record as s->doc, and count it. *found is false at the file's end.
 * Statuses as of gx_source_next. */
gx_status gx_source_read_record(gx_source *s, bool *found, gx_error *err);

/* Bytes at the beginning of the window that are whole records, as the reader splits them; no further record is
 * looked at when there are `enough`. They may be more, and 0. *odd: the record behind them is damaged or too
 * long, and for the reader itself. The window is not changed. The format's first record has been read. */
typedef size_t gx_whole_records_fn(gx_source *s, size_t enough, bool *odd);
gx_whole_records_fn gx_whole_csv, gx_whole_trec, gx_whole_warc;

/* Bytes of the end tag "</DOC>" at p, which may have white space before its '>', at most GX_TREC_END_TAG; 0: there is
 * none. */
enum { GX_TREC_END_TAG = 64 };
size_t gx_trec_end_tag(const char *p, const char *end);

/* Line ends of the window that gx_read_warc would take before it asks for more: of a record's head, say. */
uint64_t gx_warc_lines_ahead(gx_source *s);

/* Close the character sets of pages (charset.c). */
void gx_charsets_close(gx_source *s);

/* Close the input, and free all that reading records has allocated. */
void gx_source_free_buffers(gx_source *s);

/* Map the matrix at path ("-", which is refused: stdin), which becomes the open file. GX_EINPUT: it
 * is none; GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_csr_open(gx_source *s, const char *path, gx_error *err);
void gx_csr_close(gx_source *s);

/* The record's vector has one more term. GX_ENOMEM. */
gx_status gx_source_add_weight(gx_source *s, const char *term, size_t len, float weight, gx_error *err);

/* The number of the attribute of that name; opt.n_attributes: there is none. */
uint32_t gx_source_find_attribute(const gx_source *s, const char *name, size_t n);

/* Let the source read fields as it reads attributes, behind those. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_source_open_fields(gx_source *s, gx_error *err);
/* The number of the first field among the attributes; opt.n_attributes: there is none but title and text. */
uint32_t gx_source_first_field(const gx_source *s);
/* Make the record's text of its fields. false: no memory. */
bool gx_source_compose_fields(gx_source *s);

/* The record has one more value of attribute number i. GX_ENOMEM. */
gx_status gx_source_add_value(gx_source *s, uint32_t i, gx_span text, gx_error *err);

/* Parse opt.columns into given and n_given. GX_EUSAGE. */
gx_status gx_columns_parse(gx_source *s, gx_error *err);

/* Parse opt.members into json_members; of vectors one of them has the role GX_COLUMN_VECTOR. GX_EUSAGE. */
gx_status gx_json_members_parse(gx_source *s, gx_error *err);

/* For a bad document a reader does `return gx_fail_record(s, line, err, "why");`, which is
 * GX_EINPUT. */
#define gx_fail_record(s, line_no, err, format, ...)                                                                   \
    gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": " format, (s)->in.path, (uint64_t)(line_no), ##__VA_ARGS__)

#endif
