/* temporary_file.h: files that the system deletes when their last descriptor is closed, files that
 * get their name when they are complete, and reads and writes that repeat until all bytes are
 * transferred.
 *
 * Where the file system has files without a name (O_TMPFILE), a temporary file has none. Else, and
 * for the moment in which a file replaces another one, it is called ".gpuidx-RANDOM.tmp". While it
 * has such a name its owner holds a lock on it (flock) and the name stands in a list of this
 * process. So what a process leaves behind can be removed:
 *
 *   a signal ends the process    a handler calls gx_temporary_names_unlink (gpuidx_advanced.h)
 *   SIGKILL, a power failure     gx_temporary_files_sweep of a later process, to which the missing
 *                                lock tells that the owner is dead
 */
#ifndef GX_ENGINE_FILES_TEMPORARY_FILE_H
#define GX_ENGINE_FILES_TEMPORARY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Where a function takes dir_fd and a path, dir_fd is that of the path's directory, which may have
 * been moved since: then the path is for messages, and the name alone is looked up there. AT_FDCWD:
 * the path says it. */

/* What openat and its like take with dir_fd: the path's last name, or with AT_FDCWD the path. */
const char *gx_name_in(int dir_fd, const char *path);

/* Create a file without a name in directory dir, for reading and writing. Returns its descriptor,
 * or -1 and errno. */
int gx_temporary_file_open(const char *dir);

/* Create a file that linkat can give a name later. If the file system has files without a name,
 * *name is NULL. Else the file gets a random name, which is stored in *name; it goes to
 * gx_temporary_name_drop. Returns the descriptor, or -1 and errno. */
int gx_temporary_file_open_nameable(int dir_fd, const char *dir, char **name);

/* Give the file fd, which has no name, a random name in directory dir, stored in *name. Returns 0
 * or the errno. */
int gx_temporary_file_link(int fd, int dir_fd, const char *dir, char **name);

/* Give the file fd, which has no name, the name path. EEXIST: there is one. Returns 0 or the
 * errno. */
int gx_temporary_file_link_as(int fd, int dir_fd, const char *path);

/* Unlink the file called name, unless it was renamed, and free the name. name may be NULL. errno
 * stays as it is. */
void gx_temporary_name_drop(int dir_fd, char *name);

/* Remove the temporary files in directory dir that belong to this user and to no living process. */
void gx_temporary_files_sweep(int dir_fd, const char *dir);

/* The directory that path lies in; the caller frees the string. NULL: no memory. */
char *gx_directory_of(const char *path);

/* Call write, pwrite or pread until n bytes are transferred. Return 0 or the errno. */
int gx_write_all(int fd, const void *data, size_t n);
int gx_pwrite_all(int fd, const void *data, size_t n, uint64_t offset);
int gx_pread_all(int fd, void *data, size_t n, uint64_t offset);

/* fsync, repeated if a signal interrupts it. 0 for what cannot be synced (a pipe), or the errno. */
int gx_fsync(int fd);

#endif
