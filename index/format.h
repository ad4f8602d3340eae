/* format.h: the fields and constants of the index file. FORMAT.md describes the same file in words;
 * a change goes into both.
 *
 *   | header (256 bytes) | section table (n_sections x 64 bytes) | section | section | ...
 *   \_____________________ one XXH3-64 ________________________/   each begins at a multiple of
 *                                                                  GX_ALIGN
 *
 * Integers are little-endian. Reserved bytes are zero, and a reader checks that. The device
 * sections lie next to each other, in the order of enum gx_section_kind, so that one copy takes
 * [device_offset, device_offset + device_bytes) to a GPU. The payload is the first of them, because
 * the writer writes it while the lists are encoded.
 */
#ifndef GX_INDEX_FORMAT_H
#define GX_INDEX_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read and written as it lies in memory");

#define GX_MAGIC "\x89GPUIDX\n" /* 8 bytes, no terminator */
#define GX_FORMAT_VERSION 1u
#define GX_ALIGN 256u /* of sections, in the file and on the device */
#define GX_MAX_CODINGS 16u

/* A pair of codecs. Each list names one pair. docids == 0: no list uses this entry. */
typedef struct gx_coding {
    uint8_t docids, tfs; /* codec ids */
} gx_coding;

/* gx_header.flags. A reader refuses a file with a flag that it does not know. */
#define GX_HEADER_IMPACTS 1u   /* tf streams hold impacts (quantised scores), not term frequencies */
#define GX_HEADER_UNIT 2u      /* an impact i adds i * impact_unit to a score; without this flag, i */
#define GX_HEADER_POSITIONS 4u /* there are POSN and PEND; not with impacts */
#define GX_HEADER_FIELDS 8u    /* the documents have fields: the section FLDS; not with impacts */
#define GX_HEADER_FLAGS /* the flags of this version */                                                                \
    (GX_HEADER_IMPACTS | GX_HEADER_UNIT | GX_HEADER_POSITIONS | GX_HEADER_FIELDS)

typedef struct gx_header {
    char magic[8];
    uint32_t version;      /* GX_FORMAT_VERSION */
    uint32_t header_bytes; /* 256 */
    uint8_t uuid[16];      /* RFC 4122 version 4; random */
    uint64_t file_bytes;
    uint32_t n_sections;
    uint32_t block_len; /* postings a block; the same for every list */
    uint32_t n_docs, n_terms;
    uint64_t n_postings; /* sum of dfs */
    uint64_t n_tokens;   /* sum of document lengths */
    uint64_t sum_tfs;    /* sum of all tfs: n_tokens, unless tfs are impacts or lengths were imported */
    uint64_t n_blocks;   /* sum over lists of ceil(df / block_len); < 2^32 */
    uint64_t device_offset, device_bytes;
    gx_coding codings[GX_MAX_CODINGS];
    uint32_t flags; /* GX_HEADER_... */
    uint8_t reserved0[4];
    double impact_unit; /* with GX_HEADER_UNIT: finite and above 0; else all bytes are 0 */
    uint8_t reserved[96];
    uint64_t checksum; /* XXH3-64 of the header, with this field 0, and the section table */
} gx_header;
#define GX_AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
static_assert(sizeof(gx_header) == 256, "header size");
GX_AT(gx_header, version, 8);
GX_AT(gx_header, header_bytes, 12);
GX_AT(gx_header, uuid, 16);
GX_AT(gx_header, file_bytes, 32);
GX_AT(gx_header, n_sections, 40);
GX_AT(gx_header, block_len, 44);
GX_AT(gx_header, n_docs, 48);
GX_AT(gx_header, n_terms, 52);
GX_AT(gx_header, n_postings, 56);
GX_AT(gx_header, n_tokens, 64);
GX_AT(gx_header, sum_tfs, 72);
GX_AT(gx_header, n_blocks, 80);
GX_AT(gx_header, device_offset, 88);
GX_AT(gx_header, device_bytes, 96);
GX_AT(gx_header, codings, 104);
GX_AT(gx_header, flags, 136);
GX_AT(gx_header, impact_unit, 144);
GX_AT(gx_header, reserved, 152);
GX_AT(gx_header, checksum, 248);

#define GX_SECTION_REQUIRED 1u /* a reader that does not know the kind must refuse the file */
#define GX_SECTION_DEVICE 2u   /* a GPU needs the section to decode and score lists */

typedef struct gx_section {
    uint32_t kind; /* enum gx_section_kind, four letters */
    uint32_t flags;
    uint64_t offset;   /* from the file's start, a multiple of GX_ALIGN */
    uint64_t bytes;    /* without the zeros between this section and the next */
    uint64_t checksum; /* XXH3-64 of the section's bytes */
    uint64_t param;    /* its meaning depends on kind */
    uint8_t reserved[24];
} gx_section;
static_assert(sizeof(gx_section) == 64, "section entry size");
GX_AT(gx_section, flags, 4);
GX_AT(gx_section, offset, 8);
GX_AT(gx_section, bytes, 16);
GX_AT(gx_section, checksum, 24);
GX_AT(gx_section, param, 32);
GX_AT(gx_section, reserved, 40);

#define GX_KIND(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
enum gx_section_kind {
    /* device */
    GX_SEC_PAYLOAD = GX_KIND('P', 'A', 'Y', 'L'),    /* u32 words, then GX_READ_SLACK zero bytes */
    GX_SEC_LISTS = GX_KIND('L', 'I', 'S', 'T'),      /* gx_list_entry [n_terms], by term id */
    GX_SEC_HEADS = GX_KIND('H', 'E', 'A', 'D'),      /* u32 [n_blocks]: first docid of each block */
    GX_SEC_DOCID_ENDS = GX_KIND('D', 'E', 'N', 'D'), /* u32 [n_blocks]: see gx_list_entry */
    GX_SEC_TF_ENDS = GX_KIND('T', 'E', 'N', 'D'),    /* u32 [n_blocks] */
    GX_SEC_DOC_LENS = GX_KIND('D', 'L', 'E', 'N'),   /* u32 [n_docs]: document lengths in tokens, exact */
    /* host */
    GX_SEC_META = GX_KIND('M', 'E', 'T', 'A'),  /* JSON: analyzer, builder's version, time, source */
    GX_SEC_TERMS = GX_KIND('T', 'E', 'R', 'M'), /* strings [n_terms], rising; param: bytes an offset (4 or 8) */
    /* u32 [2^param]: term id + 1, or 0 for an empty slot. The hash table is open-addressed with
     * linear probing; a search begins at the slot given by the low param bits of the term's
     * XXH3-64. */
    GX_SEC_TERM_HASH = GX_KIND('T', 'H', 'S', 'H'),
    GX_SEC_DOC_IDS = GX_KIND('D', 'I', 'D', 'S'),           /* strings [n_docs]; param as for TERM */
    GX_SEC_TITLES = GX_KIND('T', 'I', 'T', 'L'),            /* strings [n_docs]; param as for TERM; optional */
    GX_SEC_TEXT = GX_KIND('T', 'E', 'X', 'T'),              /* zstd frames; optional, see FORMAT.md */
    GX_SEC_ATTRIBUTES = GX_KIND('A', 'T', 'T', 'R'),        /* gx_column_entry [param]; optional */
    GX_SEC_ATTRIBUTE_VALUES = GX_KIND('A', 'T', 'T', 'V'),  /* the columns' values; where there is ATTR */
    GX_SEC_ATTRIBUTE_STRINGS = GX_KIND('A', 'T', 'T', 'S'), /* strings, param as for TERM; where there is ATTR */
    GX_SEC_ATTRIBUTE_BITMAPS = GX_KIND('A', 'T', 'T', 'B'), /* gx_bitmaps_entry [param], bitmap columns; optional */
    GX_SEC_UNITS = GX_KIND('U', 'N', 'I', 'T'),             /* float [n_terms]: each list's unit of impacts; optional */
    GX_SEC_FIELDS = GX_KIND('F', 'L', 'D', 'S'),            /* lengths and tfs by field (fields.h); optional */
    /* With GX_HEADER_POSITIONS: u32 words, then GX_READ_SLACK zero bytes (codecs/positions.h); and u32 [n_blocks]: the
     * word at which each block ends, modulo 2^32, then u32 [param]: the blocks at whose end the count passes a multiple
     * of 2^32 */
    GX_SEC_POSITIONS = GX_KIND('P', 'O', 'S', 'N'),
    GX_SEC_POSITION_ENDS = GX_KIND('P', 'E', 'N', 'D'),
    GX_SEC_TITLE_LENS = GX_KIND('P', 'L', 'E', 'N'), /* [n_docs] of param bytes: positions of each title; optional */
    /* reserved: no version writes it yet */
    GX_SEC_DELETES = GX_KIND('D', 'E', 'L', 'S') /* the deleted documents */
};

/* The required flag of a reserved kind: GX_SECTION_REQUIRED, or 0. A reader that does not know the
 * kind may skip a section that leaves the answers as they are; it must refuse a file with any
 * other. UINT32_MAX: the kind is not reserved. */
static inline uint32_t gx_reserved_section_flag(uint32_t kind)
{
    switch (kind) {
    case GX_SEC_DELETES:
        return GX_SECTION_REQUIRED;
    default:
        return UINT32_MAX;
    }
}

/* The flags that a section of this kind has; UINT32_MAX: this version does not know the kind. */
static inline uint32_t gx_section_flags(uint32_t kind)
{
    switch (kind) {
    case GX_SEC_PAYLOAD:
    case GX_SEC_LISTS:
    case GX_SEC_HEADS:
    case GX_SEC_DOCID_ENDS:
    case GX_SEC_TF_ENDS:
    case GX_SEC_DOC_LENS:
        return GX_SECTION_REQUIRED | GX_SECTION_DEVICE;
    case GX_SEC_META:
    case GX_SEC_TERMS:
    case GX_SEC_TERM_HASH:
    case GX_SEC_DOC_IDS:
    case GX_SEC_UNITS:
        return GX_SECTION_REQUIRED;
    case GX_SEC_TITLES:
    case GX_SEC_TEXT:
    case GX_SEC_ATTRIBUTES:
    case GX_SEC_ATTRIBUTE_VALUES:
    case GX_SEC_ATTRIBUTE_STRINGS:
    case GX_SEC_ATTRIBUTE_BITMAPS:
    case GX_SEC_POSITIONS:
    case GX_SEC_POSITION_ENDS:
    case GX_SEC_TITLE_LENS:
    case GX_SEC_FIELDS:
        return 0;
    default:
        return UINT32_MAX;
    }
}

/* A section of strings [n]: n + 1 offsets of 4 or 8 bytes each, then the bytes of all strings.
 * Offsets count from the first byte of the first string. */

/* The TEXT section: param + 1 of these entries, then the bytes of param frames. Frame i holds the
 * texts of documents [first_doc, first_doc of entry i + 1), and a reader decompresses it alone. A
 * decompressed frame is u32 ends[n] and then the n texts; ends count from the first byte of the
 * first text. The last entry has no frame. */
typedef struct gx_text_frame {
    uint64_t offset;    /* of the frame, from the first byte of frame 0; last entry: the end of the last frame */
    uint32_t first_doc; /* last entry: n_docs */
    uint32_t raw_bytes; /* of the decompressed frame, ends included; last entry: 0 */
} gx_text_frame;
static_assert(sizeof(gx_text_frame) == 16, "text frame entry size");
GX_AT(gx_text_frame, first_doc, 8);
GX_AT(gx_text_frame, raw_bytes, 12);

/* One list. Its words begin at word `payload` of the PAYL section: first all docid blocks, then all
 * tf blocks. The list's ends, in DEND and TEND from first_block on, count words from its first
 * word:
 *
 *   docid block j   words [j ? docid_ends[j-1] : 0, docid_ends[j])
 *   tf block j      words [j ? tf_ends[j-1] : docid_ends[last], tf_ends[j])
 *
 * Every block holds block_len postings, except that the last holds the rest. A block of n postings
 * with docids d and term frequencies tf codes n integers v:
 *
 *   docids          v[0] = 0, v[i] = d[i] - d[i-1] - 1
 *                   so d[i] = heads[j] + (v[1] + 1) + .. + (v[i] + 1)
 *   tfs             v[i] = tf[i] - 1; with GX_HEADER_IMPACTS, impact[i] - 1
 */
typedef struct gx_list_entry {
    uint32_t df;                   /* postings of the list, at least 1 */
    uint32_t first_block;          /* in HEAD, DEND and TEND; blocks lie in order of term id, without gaps */
    uint32_t payload_lo;           /* payload = payload_hi << 32 | payload_lo */
    uint8_t payload_hi;            /* words lie in order of term id, without gaps */
    uint8_t coding;                /* index in header.codings */
    uint8_t docid_param, tf_param; /* gx_codec.param of each */
} gx_list_entry;
static_assert(sizeof(gx_list_entry) == 16, "list entry size");
GX_AT(gx_list_entry, first_block, 4);
GX_AT(gx_list_entry, payload_lo, 8);
GX_AT(gx_list_entry, payload_hi, 12);
GX_AT(gx_list_entry, coding, 13);
GX_AT(gx_list_entry, docid_param, 14);
GX_AT(gx_list_entry, tf_param, 15);

/* An attribute. Its column begins at byte `values` of ATTV, which is a multiple of 8; the columns
 * follow each other, in the order of the entries. A column is, each part padded with zeros to a
 * multiple of 8 bytes:
 *
 *   the values         n_values numbers of `width` bytes: int, date: value - base; float: a double
 *                      of IEEE 754; keyword, keywords: an ordinal, the place among the attribute's
 *                      strings; bool: 0 or 1. Without starts, n_values is n_docs, and the value of
 *                      a document without one is 0
 *   starts             of keywords, and where `several`: u32 [n_docs + 1]: document d has the values
 *                      [starts[d], starts[d + 1]), which rise strictly
 *   else: presence     where n_present < n_docs: u64 [ceil(n_docs / 64)]: bit d % 64 of word d / 64
 *                      is set where document d has a value
 *
 * The strings of ATTS are the names of all attributes, then the strings of each, which rise
 * strictly in byte order. */
typedef struct gx_column_entry {
    uint8_t type;    /* gx_attribute_type */
    uint8_t width;   /* 1, 2, 4 or 8 */
    uint8_t several; /* int, float, date, bool: 1 where a document has more than one value; else 0 */
    uint8_t reserved0;
    uint32_t n_present; /* documents that have a value */
    int64_t base;       /* int, date: the least value; else 0 */
    uint64_t values;    /* where the column begins in ATTV */
    uint64_t n_values;
    uint32_t first_string, n_strings; /* keyword, keywords: its strings in ATTS; else 0, 0 */
    uint8_t reserved[24];
} gx_column_entry;
static_assert(sizeof(gx_column_entry) == 64, "column entry size");
GX_AT(gx_column_entry, width, 1);
GX_AT(gx_column_entry, several, 2);
GX_AT(gx_column_entry, n_present, 4);
GX_AT(gx_column_entry, base, 8);
GX_AT(gx_column_entry, values, 16);
GX_AT(gx_column_entry, n_values, 24);
GX_AT(gx_column_entry, first_string, 32);
GX_AT(gx_column_entry, n_strings, 36);
GX_AT(gx_column_entry, reserved, 40);

/* The bitmap columns of an attribute, in ATTB from byte `begin` on, a multiple of 8; the attributes
 * that have any follow each other, the first behind the entries. 64 zero bytes end the section.
 * The documents that have a value are divided into bins by it: a bin a string, in order, or n_bins
 * bins of rising values. There is a column for each bin, which has its documents (equality), or for
 * each bin but the last, which has the documents of the bins up to this one (range; not of an
 * attribute with starts). In range columns a document without a value is where the last one before it
 * that has a value is, or nowhere:
 *
 *   bounds     but for keyword, keywords: the least value of each bin, then the greatest of each,
 *              `width` bytes each as in ATTV, padded with zeros to a multiple of 8 bytes
 *   directory  gx_bitmap_entry [n_columns]
 *   words      u32: those of all columns, padded with zeros to a multiple of 8 bytes
 *
 * A column of m numbers is m numbers in blocks of 128, coded as docids by GPU-BP128: u32
 * heads[n_blocks], u32 ends[n_blocks - 1], counted from the word behind them, and the blocks. */
typedef struct gx_bitmaps_entry {
    uint8_t encoding;                      /* gx_bitmap_encoding, not AUTO; NONE: the attribute has no bitmap columns */
    uint8_t asked_encoding, asked_binning; /* what the builder was told, for whoever writes the index again */
    uint8_t reserved0;
    uint32_t asked_bins;
    uint32_t n_bins; /* 0 where there are none */
    uint32_t reserved1;
    uint64_t begin, bytes; /* both 0 where there are none */
} gx_bitmaps_entry;
static_assert(sizeof(gx_bitmaps_entry) == 32, "bitmaps entry size");
GX_AT(gx_bitmaps_entry, asked_encoding, 1);
GX_AT(gx_bitmaps_entry, asked_binning, 2);
GX_AT(gx_bitmaps_entry, asked_bins, 4);
GX_AT(gx_bitmaps_entry, n_bins, 8);
GX_AT(gx_bitmaps_entry, begin, 16);
GX_AT(gx_bitmaps_entry, bytes, 24);

/* How a bitmap column is stored. */
typedef enum gx_bitmap_form {
    GX_BITMAP_LIST, /* its docids, as numbers */
    GX_BITMAP_RUNS, /* numbers b0 < e0 < b1 < e1 ..: it has the documents [b0, e0), [b1, e1), .. */
    GX_BITMAP_WORDS /* u32 [ceil(n_docs / 32)]: bit d % 32 of word d / 32 is set where it has document d */
} gx_bitmap_form;

typedef struct gx_bitmap_entry {
    uint32_t n;   /* numbers; of GX_BITMAP_WORDS the documents. | form << 30 */
    uint32_t end; /* where its words end, counted from the first word of the first column */
} gx_bitmap_entry;
static_assert(sizeof(gx_bitmap_entry) == 8, "bitmap entry size");
GX_AT(gx_bitmap_entry, end, 4);

/* Limits that every writer of a file keeps. */
#define GX_MAX_STRING (1u << 20) /* most bytes of an id, a title or a term */
#define GX_MAX_TEXT (1u << 30)   /* most bytes of a stored text */
/* Most bytes of a frame of texts, uncompressed:
 * GX_MAX_TEXT after almost a whole frame of others. */
#define GX_MAX_FRAME_BYTES (GX_MAX_TEXT + (1u << 20))

#endif
