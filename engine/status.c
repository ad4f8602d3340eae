#include "engine/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/text/c_locale.h"

static const struct {
    const char *name;
    int exit;
} words[] = {
    [GX_OK] = {"ok", 0},
    [GX_EUSAGE] = {"usage", 2},
    [GX_EINPUT] = {"bad input", 3},
    [GX_ECORRUPT] = {"corrupt index", 4},
    [GX_EIO] = {"input/output error", 5},
    [GX_EEXISTS] = {"exists already", 5},
    [GX_ENOTFOUND] = {"not found", 5},
    [GX_ENOMEM] = {"out of memory", 6},
    [GX_ENOGPU] = {"no usable GPU", 7},
    [GX_ECUDA] = {"GPU failure", 7},
    [GX_ECANCELLED] = {"cancelled", 8},
    [GX_EDEADLINE] = {"deadline passed", 9},
    [GX_EINTERNAL] = {"internal error", 70},
    [GX_EBUSY] = {"busy", 75},
};

const char *gx_status_name(gx_status st)
{
    return (unsigned)st < sizeof words / sizeof *words ? words[st].name : "unknown status";
}

int gx_status_exit(gx_status st)
{
    return (unsigned)st < sizeof words / sizeof *words ? words[st].exit : 70;
}

const char *gx_version(void)
{
    return GX_VERSION;
}

/* Replaces control characters, C1 in UTF-8 and those that turn the direction of text too: ids, terms and names come
 * from files, and a terminal would obey them. */
static void put_question_marks(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; ++c) {
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?';
        else if (c[0] == 0xe2 && c[1] && c[2] && gx_utf8_turns((const char *)c, 3))
            c[0] = c[1] = c[2] = '?';
    }
}

gx_status gx_fail(gx_error *err, gx_status st, const char *format, ...)
{
    if (err) {
        const gx_c_locale l = gx_c_locale_begin();
        va_list ap;
        va_start(ap, format);
        err->status = st;
        vsnprintf(err->text, sizeof err->text, format, ap);
        put_question_marks(err->text);
        va_end(ap);
        gx_c_locale_end(l);
    }
    return st;
}

gx_status gx_status_of_errno(int e)
{
    switch (e) {
    case ENOMEM:
        return GX_ENOMEM;
    case ENOENT:
    case ENOTDIR:
        return GX_ENOTFOUND;
    case EEXIST:
        return GX_EEXISTS;
    default:
        return GX_EIO;
    }
}
