/* files.h: the files in the folder of a collection. */
#ifndef GX_INDEX_COMMIT_FILES_H
#define GX_INDEX_COMMIT_FILES_H

#include "index/manifest.h"

#define GX_PART_NAME "part-%06llu.gx"     /* by gx_manifest.next */
#define GX_DELETES_NAME "%.*s.%06llu.del" /* the part's name without .gx, and the commit */
#define GX_LOCK_NAME "LOCK"

/* Remove the parts and files of deletes in the folder that the manifest does not name, and temporary files
 * that no living process has. The caller is the collection's one writer. A file that cannot be removed stays, and so
 * does
 * one whose name no writer gives. */
void gx_sweep_folder(int dir_fd, const gx_manifest *m);

/* Remove the files of an old commit that the new one does not name. False: no memory, none is removed. */
bool gx_remove_old_files(int dir_fd, const gx_manifest *old, const gx_manifest *now);

/* Whether the folder that is open, or a file, still has that name in dir_fd (AT_FDCWD: by its path). */
bool gx_has_name(int fd, int dir_fd, const char *path);

/* Remove a folder with its files; one that holds folders stays. */
void gx_remove_folder(const char *dir);

/* Make a folder with a name of its own beside `path`, in the folder `parent`, and lock it while this
 * process lives: *fd, which the caller closes. Folders of this kind in `parent` that no living
 * process has are removed first. GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_folder_aside(char **out, int *fd, const char *path, const char *parent, gx_error *err);

/* fsync a folder: 0 or the errno. */
int gx_sync_folder(const char *dir);

#endif
