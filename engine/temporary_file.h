/* temporary_file.h: files that are gone when their last descriptor is closed, and reads and writes
 * that end only when all is done.
 */
#ifndef GX_ENGINE_TEMPORARY_FILE_H
#define GX_ENGINE_TEMPORARY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A new file without a name in directory dir, for reading and writing. Returns the descriptor, or
 * -1 and errno. */
int gx_temporary_file_open(const char *dir);

/* The same, of a file that linkat can give a name later. Where the file system has no files without
 * a name, the file gets a random one, which *name then holds and which the caller unlinks and
 * frees; else *name is NULL. */
int gx_temporary_file_open_nameable(const char *dir, char **name);

/* The directory that path lies in; the caller frees it. NULL: no memory. */
char *gx_directory_of(const char *path);

/* write and pread, repeated until n bytes are done. Return 0, or the errno. */
int gx_write_all(int fd, const void *data, size_t n);
int gx_pread_all(int fd, void *data, size_t n, uint64_t offset);

#endif
