/* fail_malloc.c: a library to preload. The FAIL_AT-th allocation fails, and FAIL_MORE further ones
 * (0: only that one). Where FAIL_COUNT names a file, the number of allocations is written there
 * when the program exits. Allocations are counted from the beginning of main: what constructors
 * need is not the program's (CUDA's runtime registers its kernels there, and does not check).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
__attribute__((visibility("default"))) void *malloc(size_t n);
__attribute__((visibility("default"))) void *calloc(size_t n, size_t size);
__attribute__((visibility("default"))) void *realloc(void *p, size_t n);

static atomic_ulong count;
static unsigned long fail_at, fail_more;

typedef int main_function(int argc, char **argv, char **envp);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
static main_function *program_main;

static int counted_main(int argc, char **argv, char **envp)
{
    const char *at = getenv("FAIL_AT"), *more = getenv("FAIL_MORE");
    fail_more = more ? strtoul(more, NULL, 10) : 0;
    atomic_store(&count, 0);
    fail_at = at ? strtoul(at, NULL, 10) : 0;
    return program_main(argc, argv, envp);
}

/* The C library's, which calls the constructors and then main. */
__attribute__((visibility("default"))) int __libc_start_main(main_function *main, int argc, char **argv,
                                                             void (*init)(void), void (*fini)(void),
                                                             void (*rtld_fini)(void), void *stack_end)
{
    start_function *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = main;
    return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const char *path = getenv("FAIL_COUNT");
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd >= 0) {
        const int n = snprintf(text, sizeof text, "%lu\n", atomic_load(&count));
        if (write(fd, text, (size_t)n) < 0)
            _exit(99);
        close(fd);
    }
}

static bool fails(void)
{
    const unsigned long n = atomic_fetch_add(&count, 1) + 1;
    if (!fail_at || n < fail_at || n > fail_at + fail_more)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}
