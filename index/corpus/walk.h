/* walk.h: the files of a list of paths, in order: files as given, directories from the inside,
 * names in byte order. */
#ifndef GX_INDEX_CORPUS_WALK_H
#define GX_INDEX_CORPUS_WALK_H

#include "engine/gpuidx.h"

typedef struct gx_walk gx_walk;

typedef struct gx_walk_file {
    const char *path; /* to open it; "-" for stdin */
    const char *name; /* below the directory that was given; the path itself if that is a file */
    size_t input;     /* which of the paths it comes from */
    bool in_directory;
} gx_walk_file;

/* The strings of paths must outlive the walk. Every path is looked at: GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. */
gx_status gx_walk_open(gx_walk **out, const char *const *paths, size_t n, gx_error *err);
/* The next file, or path NULL after the last. The strings live until the next call. In directories,
 * hidden names and what is no regular file are left out; symbolic links are followed, save into a
 * directory that is being walked. */
gx_status gx_walk_next(gx_walk *w, gx_walk_file *file, gx_error *err);
void gx_walk_close(gx_walk *w);

/* The bytes of all files; 0 when that cannot be known. */
gx_status gx_walk_total(const char *const *paths, size_t n, uint64_t *bytes, gx_error *err);

#endif
