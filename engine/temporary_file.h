/* temporary_file.h: files that the system deletes when their last descriptor is closed, and reads
 * and writes that repeat until all bytes are transferred.
 */
#ifndef GX_ENGINE_TEMPORARY_FILE_H
#define GX_ENGINE_TEMPORARY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Create a file without a name in directory dir, for reading and writing. Returns its descriptor,
 * or -1 and errno. */
int gx_temporary_file_open(const char *dir);

/* Create a file that linkat can give a name later. If the file system has files without a name,
 * *name is NULL. Else the file gets a random name, which is stored in *name; the caller unlinks the
 * file and frees the name. Returns the descriptor, or -1 and errno. */
int gx_temporary_file_open_nameable(const char *dir, char **name);

/* The directory that path lies in; the caller frees the string. NULL: no memory. */
char *gx_directory_of(const char *path);

/* Call write, or pread, until n bytes are transferred. Return 0 or the errno. */
int gx_write_all(int fd, const void *data, size_t n);
int gx_pread_all(int fd, void *data, size_t n, uint64_t offset);

#endif
