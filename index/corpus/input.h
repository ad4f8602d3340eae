/* input.h: read the bytes of a corpus file, decompressed, through a window that moves over them.
 *
 *   buf     0 ........ begin ............... end ........ cap
 *           taken      unread: the window    to be filled
 *
 * A reader looks for its record in the window. While the record is not complete, the reader calls
 * gx_input_fill. It then takes the record by moving begin. The reader may change the record's
 * bytes, which stay in place until the next call of gx_input_fill.
 *
 * Plain files, pipes and compressed streams (gzip, bzip2, xz, zstd; one, or several end to end)
 * look the same to a reader. A byte order mark is skipped. NUL bytes become spaces and are counted.
 * Latin-1 becomes UTF-8 if the owner asks for it. A file that is compressed twice is refused.
 *
 * An archive (tar, also compressed, or zip) is read a member after another, if the owner asks:
 *
 *   gx_input_open(in, "a.tar.gz")     in->archive is set, and the window empty
 *   gx_input_next_member(in, &name)   the window is on the first member: as after opening a file
 */
#ifndef GX_INDEX_CORPUS_INPUT_H
#define GX_INDEX_CORPUS_INPUT_H

#include "index/corpus/notes.h"

#define GX_INPUT_READ ((size_t)256 << 10) /* bytes asked of the system at once: they stay in the second-level cache */
#define GX_INPUT_SLACK 64u                /* bytes behind end that a reader may load, but not use */

typedef struct gx_archive gx_archive;

typedef struct gx_input {
    char *buf;
    size_t begin, end, cap;
    uint64_t line; /* of the byte at begin, from 1 */
    bool eof;      /* the file ends at end */
    /* totals over all files opened with this object */
    uint64_t raw_bytes;            /* bytes read from files and pipes */
    uint64_t bytes;                /* bytes after decompression */
    uint64_t nul_bytes, first_nul; /* NUL bytes; the position of the first */

    uint64_t too_long;    /* records refused because they have more than max_record bytes */
    gx_error failed;      /* met behind the window's bytes; the next gx_input_fill returns it. GX_OK: none */
    uint64_t failed_line; /* the line that its words name, if they name one */

    /* The owner sets max_record, latin1, binary, members, cancel and user before the first open. */
    size_t max_record;          /* most bytes of a record */
    bool latin1;                /* files are Latin-1 (Windows-1252), to be read as UTF-8 */
    bool binary;                /* leave all bytes as they are: no mark is skipped, no NUL changed */
    bool nuls_wait;             /* NUL bytes stay until gx_input_replace_nuls is called for the file */
    bool members;               /* archives are read by their members; false: they are refused, unless binary */
    bool (*cancel)(void *user); /* called at every read; true: stop. May be NULL */
    void *user;
    gx_notes *notes; /* of entries of archives that are no members; NULL: they are passed over without one */

    /* Set before an open by an owner whose threads decompress files ahead (unpack_ahead.h); NULL: none do. */
    struct gx_unpack_ahead *ahead;
    uint64_t number; /* of the file to be opened, in the walk */
    bool is_ahead;   /* the open file is decompressed there */

    bool nuls_stay;   /* of the open file, so far */
    const char *path; /* the caller's string, valid while the file is open; of a member ARCHIVE/NAME */
    int fd;           /* -1: no file is open */
    bool in_memory;   /* the window is on bytes in memory */
    char *own;        /* the buffer meanwhile */
    size_t own_cap;
    struct gx_input_layer {
        struct gx_unpack *unpack; /* NULL: it is not compressed */
        char *raw;                /* compressed bytes */
        size_t n_raw;             /* bytes of the first block that the decompressor has not got yet */
    } layers[2];                  /* of the file, and of the archive's member */
    const char *compression;      /* of the open file, or of one before */
    bool is_again;                /* the file is read again: its bytes are not counted */
    struct gx_archive *archive;   /* archive.h; or NULL */
    const char *archive_path;
    char *member; /* path and name of the member */
} gx_input;

#define GX_INPUT_INIT ((gx_input){.max_record = SIZE_MAX / 4, .fd = -1})

/* Close the open file, if any. Then open path ("-": stdin) and fill the window for the first time.
 * GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED; GX_EINPUT: the file is UTF-16, compressed twice
 * or an archive that is not asked for, or its compressed stream is broken. */
gx_status gx_input_open(gx_input *in, const char *path, gx_error *err);

/* Go to the next member of the archive: a file without a hidden part in its name. *name, its path in the
 * archive, is NULL after the last. The string and in->path live until the next call. Statuses as of
 * gx_input_open; with in->archive NULL after an error, the rest of the archive is lost. */
gx_status gx_input_next_member(gx_input *in, const char **name, gx_error *err);
/* Make *to what *from is, an open file that is no archive; *from is GX_INPUT_INIT then. */
void gx_input_move(gx_input *to, gx_input *from);
/* Close the open file, if any, and put the window on n bytes in memory, until gx_input_close. They
 * are all that there is. A reader may change them, and may read GX_INPUT_SLACK more behind them.
 * fresh: they count as read from a file, and NUL bytes become spaces. */
void gx_input_open_bytes(gx_input *in, const char *path, char *bytes, size_t n, bool fresh);
/* NUL bytes of the window, and those read from now on, become spaces, where they wait for that. */
void gx_input_replace_nuls(gx_input *in);
void gx_input_close(gx_input *in); /* close the file; the totals and the buffer stay */
void gx_input_free(gx_input *in);  /* close the file and free everything */

/* Move the unread bytes to the front of the buffer, and read until the window holds at least twice
 * as many bytes or the file ends (eof); behind its end nothing is done. GX_EIO, GX_ENOMEM,
 * GX_ECANCELLED; GX_EINPUT: the compressed stream is broken or truncated. */
gx_status gx_input_fill(gx_input *in, gx_error *err);

/* Take the next line, without its end, which is "\n", "\r\n" or the end of the file. *found is
 * false when there is no further line. GX_EINPUT: the line has more than max_record bytes; it is
 * skipped. Also the statuses of gx_input_fill. */
gx_status gx_input_line(gx_input *in, char **line, size_t *len, bool *found, gx_error *err);

/* Whether the open file is compressed. */
bool gx_input_is_packed(const gx_input *in);

/* Take n bytes, n <= end - begin, and count their line ends. */
void gx_input_consume(gx_input *in, size_t n);

/* The code point of a Latin-1 byte. Bytes 0x80 to 0x9f are those of Windows-1252, or U+FFFD if it
 * does not assign the byte. */
unsigned gx_latin1_code(unsigned char byte);

#endif
