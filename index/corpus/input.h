/* input.h: the bytes of one corpus file, decompressed, through a window that moves over them.
 *
 *   buf     0 ........ begin ............... end ........ cap
 *           passed     unread: the window    to be filled
 *
 * A reader looks for its record in the window, asks for more while the record is not complete,
 * takes it by moving begin, and may change the record's bytes: they are its own until the next call
 * of gx_input_fill. Plain files, pipes and gzip, bzip2, xz and zstd streams (several joined, too)
 * look the same. A byte order mark is passed over, NUL bytes become spaces and are counted, Latin-1
 * becomes UTF-8 when asked for.
 */
#ifndef GX_INDEX_CORPUS_INPUT_H
#define GX_INDEX_CORPUS_INPUT_H

#include "engine/gpuidx.h"

#define GX_INPUT_SLACK 64u /* bytes that may be read, not used, behind end */

typedef struct gx_input {
    char *buf;
    size_t begin, end, cap;
    uint64_t line; /* of the byte at begin, from 1 */
    bool eof;      /* nothing comes after end */
    /* totals over all files opened with this object */
    uint64_t raw_bytes;            /* read from files and pipes, as they lie there */
    uint64_t bytes;                /* after decompression */
    uint64_t nul_bytes, first_nul; /* first_nul: where the first of them stood */

    size_t max_record; /* set by the owner before the first open, as are the next four */
    bool latin1;
    bool binary;                /* bytes as they are: no mark is passed over, no NUL changed */
    bool (*cancel)(void *user); /* asked when a signal interrupts a read; may be NULL */
    void *user;

    const char *path;           /* the caller's, valid while the file is open */
    int fd;                     /* -1: nothing is open */
    struct archive *archive;    /* the decompressor, or NULL */
    struct gx_inflate *inflate; /* the same of gzip, where zlib is */
    const char *compression;    /* "gzip", ..., or NULL */
    char *raw;                  /* compressed bytes */
    size_t n_raw;               /* of the first block, not yet given to the decompressor */
} gx_input;

#define GX_INPUT_INIT ((gx_input){.max_record = SIZE_MAX / 4, .fd = -1})

/* Open path ("-": stdin) and fill the window for the first time. GX_ENOTFOUND, GX_EIO, GX_ENOMEM,
 * GX_ECANCELLED; GX_EINPUT: it is UTF-16, or a broken compressed file. A file that was open is
 * closed first. */
gx_status gx_input_open(gx_input *in, const char *path, gx_error *err);
void gx_input_close(gx_input *in); /* the file; the totals and the buffer stay */
void gx_input_free(gx_input *in);  /* all */

/* Move the unread bytes to the front and read on until there are at least twice as many, or the
 * file ends (eof). GX_EIO, GX_ENOMEM, GX_ECANCELLED; GX_EINPUT: the compressed stream is broken or
 * truncated. */
gx_status gx_input_fill(gx_input *in, gx_error *err);

/* Take the next line, without its end ("\n", "\r\n" or that of the file). *found is false when
 * there is none. A line of more than max_record bytes is passed over, and is GX_EINPUT. */
gx_status gx_input_line(gx_input *in, char **line, size_t *len, bool *found, gx_error *err);

/* Take n bytes (n <= end - begin), counting their lines. */
void gx_input_consume(gx_input *in, size_t n);

/* The code point of a Latin-1 byte, 0x80 to 0x9f as in Windows-1252 (U+FFFD where that has none).
 * */
unsigned gx_latin1_code(unsigned char byte);

#endif
