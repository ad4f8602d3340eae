/* epoll.c: the epoll_wait that libmicrohttpd calls.
 *
 * libmicrohttpd (seen in 0.9.75) drains its events by 128 at a time and waits again, for as long as a connection may be
 * idle, until fewer come: of exactly 128 events none is then looked at before another one comes, and where all clients
 * wait for their answers none does. So the wait behind a full array is none. A program's own symbol precedes that of
 * libc for the libraries which it loads; tools/meson.build exports it.
 */
#include <stddef.h>
#include <sys/epoll.h>

enum { MHD_EVENTS = 128 }; /* its array; waits with another one are left as they are */

__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    static _Thread_local int full = -1; /* the epoll that filled the array in this thread's last call */
    const int n = epoll_pwait(fd, events, max, full == fd ? 0 : timeout, NULL);
    full = n == max && max == MHD_EVENTS ? fd : -1;
    return n;
}
