/* epoll.c: the epoll_wait that libmicrohttpd calls.
 *
 * libmicrohttpd (seen in 0.9.75) takes up to 128 events at a time. After 128 it waits for more before it looks at any,
 * for as long as a connection may be idle. When exactly 128 clients have asked and all wait for their answers, no more
 * come. So behind a full array this epoll_wait returns at once. The libraries that a program loads call its symbols
 * before those of libc, where it exports them, as tools/meson.build does with this one.
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
