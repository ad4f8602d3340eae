/* unpack_ahead.h: decompress the files of a corpus ahead of the thread that reads them, by several threads.
 *
 * The files are listed as the reader lists them (walk.h). A compressed file is cut into parts where members may
 * begin: those of gzip that several compressions or bgzip have left, frames of zstd, streams of bzip2.
 *
 *   file 3    |part 0        |part 1      |part 2 ...      being read: part 0 is the head
 *   file 4    |part 0                                      decompressed ahead, one thread a part
 *   file 7    |part 0        |part 1                       (5 and 6 are not compressed)
 *
 * Where a part begins is a guess by the first bytes of a member. It is right if the part before ends exactly
 * there, which is known before the part's first byte is given: else the part is dropped, and the one before goes
 * on. So the bytes and the errors are those of one thread. A part that fails ahead of its turn (its member is
 * damaged, or wants more memory than is allowed ahead) is decompressed once more in its turn.
 *
 * Memory: blocks of decompressed bytes and decompressors take up to the given number of bytes. When it is spent,
 * only the head goes on. So a part may be as long as it likes.
 *
 * Threads: any number call gx_unpack_ahead_work, at any time. All others are for one thread, the reader's. */
#ifndef GX_INDEX_CORPUS_UNPACK_AHEAD_H
#define GX_INDEX_CORPUS_UNPACK_AHEAD_H

#include "engine/api/gpuidx.h"

typedef struct gx_unpack_ahead gx_unpack_ahead;

typedef struct gx_unpack_ahead_options {
    const char *const *paths; /* [n_paths] of the corpus, which outlive the object */
    size_t n_paths;
    uint32_t threads; /* about as many will call gx_unpack_ahead_work */
    uint64_t memory;  /* bytes */
    /* Called by the reader's thread when there may be new work. May be NULL. */
    void (*wake)(void *user);
    void *user;
} gx_unpack_ahead_options;

/* GX_ENOMEM, and the statuses of gx_walk_open. */
gx_status gx_unpack_ahead_open(gx_unpack_ahead **out, const gx_unpack_ahead_options *opt, gx_error *err);
void gx_unpack_ahead_close(gx_unpack_ahead *a); /* NULL is fine. No thread works any more */

/* Do a piece of work: find the next part, or decompress a block of one. false: there is nothing to do now. */
bool gx_unpack_ahead_work(gx_unpack_ahead *a);

/* The reader has opened file number `number` of the walk, from 0, as fd, a compressed file. true: it is decompressed
 * here; the reader calls gx_unpack_ahead_read, and gx_unpack_ahead_end when it is done with the file. false: the
 * reader does it. */
bool gx_unpack_ahead_begin(gx_unpack_ahead *a, uint64_t number, int fd);

/* The next bytes, at most max; *n = 0 at the end. *raw grows by the compressed bytes that are done with. The
 * thread decompresses them itself where no other does. Statuses as of gx_unpack_read, and GX_EIO. */
gx_status gx_unpack_ahead_read(gx_unpack_ahead *a, char *to, size_t max, size_t *n, uint64_t *raw, gx_error *err);
const char *gx_unpack_ahead_name(const gx_unpack_ahead *a); /* of the compression */
void gx_unpack_ahead_end(gx_unpack_ahead *a);

/* Parts that were given to the reader; those dropped because no member began there; the most bytes of blocks and
 * decompressors that were held at once. */
typedef struct gx_unpack_ahead_counts {
    uint64_t given, dropped, most_held;
} gx_unpack_ahead_counts;
gx_unpack_ahead_counts gx_unpack_ahead_get_counts(gx_unpack_ahead *a);

#endif
