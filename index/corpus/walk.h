/* walk.h: list the files of several paths, in the order of the paths. For a path that is a
 * directory these are all files below it, in byte order of the names in each directory. */
#ifndef GX_INDEX_CORPUS_WALK_H
#define GX_INDEX_CORPUS_WALK_H

#include "index/corpus/notes.h"

typedef struct gx_walk gx_walk;

typedef struct gx_walk_file {
    const char *path;  /* to open the file; "-": stdin */
    const char *name;  /* the path below the given directory; the path itself if it was given as a file */
    size_t input;      /* the index of the given path from which the file comes */
    bool in_directory; /* the given path is a directory */
} gx_walk_file;

/* From now on hidden names, names that are no files, and links that lead out of their given directory are noted. */
void gx_walk_set_notes(gx_walk *w, gx_notes *notes);

/* Check that every path exists, and begin. The strings of paths must outlive the walk.
 * GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_walk_open(gx_walk **out, const char *const *paths, size_t n, gx_error *err);

/* The next file; file->path is NULL after the last. The strings live until the next call. Inside
 * directories, hidden names and everything but regular files are left out. Symbolic links are
 * followed, except to a directory that is being walked, and counted where they lead nowhere. */
gx_status gx_walk_next(gx_walk *w, gx_walk_file *file, gx_error *err);

/* Symbolic links to nothing, so far. *first: the path of the first one, which the walk owns, or NULL. */
uint64_t gx_walk_broken_links(const gx_walk *w, const char **first);
void gx_walk_close(gx_walk *w);

/* The sum of the sizes of all files, in bytes; 0 if a size is unknown, as that of a pipe. */
gx_status gx_walk_total(const char *const *paths, size_t n, uint64_t *bytes, gx_error *err);

#endif
