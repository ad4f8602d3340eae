#include "tools/cli/corpus.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

static void warn_of_broken_links(const gx_source_counts *in)
{
    if (in->broken_links == 1)
        cli_warn("a symbolic link in the corpus leads nowhere, and was passed over: %s", in->broken_link);
    else if (in->broken_links)
        cli_warn("%s symbolic links in the corpus lead nowhere, and were passed over; the first is %s",
                 show_count(in->broken_links), in->broken_link);
}

/* Names of files and of members may hold anything: a terminal is shown no control characters. */
static const char *plain(const char *name)
{
    static char shown[256];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof shown; ++n)
        shown[n] = (unsigned char)name[n] < ' ' || name[n] == 0x7f ? '?' : name[n];
    shown[n] = 0;
    return shown;
}

void corpus_tell_notes(const gx_source *s)
{
    const gx_source_counts in = gx_source_get_counts(s);
    gx_source_note note;
    warn_of_broken_links(&in);
    for (size_t i = 0; gx_source_get_note(s, i, &note); ++i) {
        char line[24] = "";
        if (note.line)
            snprintf(line, sizeof line, ":%" PRIu64, note.line);
        (note.is_loss ? cli_warn : cli_note)("%s %s%s%s%s", show_count(note.count), note.text,
                                             note.count == 1 ? ": " : "; the first is ", plain(note.file), line);
    }
}

static void put_string(const char *text)
{
    out_put_json(stdout, text, strlen(text));
}

void corpus_print_notes(const gx_source *s)
{
    gx_source_note note;
    fputs(",\"notes\":[", stdout);
    for (size_t i = 0; gx_source_get_note(s, i, &note); ++i) {
        printf("%s{\"name\":\"%s\",\"detail\":", i ? "," : "", note.name);
        if (note.detail)
            put_string(note.detail);
        else
            fputs("null", stdout);
        printf(",\"count\":%" PRIu64 ",\"file\":", note.count);
        put_string(note.file);
        printf(",\"line\":%" PRIu64 "}", note.line);
    }
    putchar(']');
}

int cli_read_unit(const cli_args *a, double *unit)
{
    const char *text = cli_text(a, "unit");
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE, GX_LOAD_MAP};
    gx_index_stats stats = {.size = sizeof stats};
    gx_index *ix;
    gx_error err = {0};
    char *end = NULL;
    *unit = 0;
    if (!text)
        return 0;
    const double x = strtod(text, &end);
    if (end != text && !*end) {
        if (!(x >= FLT_MIN && x <= FLT_MAX))
            return cli_usage(a, "--unit=%s: a finite number above 0 is expected, or an index of vectors", text);
        *unit = x;
        return 0;
    }
    if (!*text || gx_index_open(&ix, text, &light, &err))
        return cli_fail(*text ? err.status : GX_EUSAGE, "--unit=%s: it is no number, and no index%s%s", text,
                        *text ? ": " : "", err.text);
    const gx_status st = gx_index_get_stats(ix, &stats);
    gx_index_close(ix);
    if (st != GX_OK || !stats.impacts || !(stats.impact_unit > 0))
        return cli_usage(a, "--unit=%s: %s", text,
                         stats.impacts ? "each of its terms has a unit of its own" : "it is no index of vectors");
    *unit = stats.impact_unit;
    return 0;
}
