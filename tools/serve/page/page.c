/* page.c: the page for people at /. Its files hold nothing of an index: what the page shows it asks from /v1, as any
 * client, and puts in as text alone. */
#include "tools/serve/page/page.h"

#include <string.h>

#include "tools/serve/protocols.h"

static void reply(exchange *x, const char *name, const char *type)
{
    const page_file *f = page_files;
    while (f->name && strcmp(f->name, name))
        ++f;
    if (!f->name) {
        fault_set(&x->fault, 404, "there is nothing at %.200s", x->path);
        return;
    }
    gx_text_add(&x->reply, (const char *)f->bytes, f->len);
    x->type = type;
    exchange_add_header(x, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "
                                                      "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'");
    exchange_add_header(x, "X-Content-Type-Options", "nosniff");
    exchange_add_header(x, "Referrer-Policy", "no-referrer");
    exchange_add_header(x, "Cache-Control", "no-cache");
    exchange_add_header(x, "Vary", "Accept");
    exchange_reply(x, 200);
}

void page_reply(exchange *x)
{
    reply(x, "page.html", "text/html; charset=utf-8");
}

void page_script(exchange *x)
{
    reply(x, "page.js", "text/javascript; charset=utf-8");
}

void page_style(exchange *x)
{
    reply(x, "page.css", "text/css; charset=utf-8");
}
