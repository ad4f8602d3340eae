/* log_topics.c: topics of TREC as queries. Their texts are read as those of TREC documents are: character references
 * stand for characters, and tags that are not those of a field for blanks. */
#include <stdio.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/ascii.h"
#include "index/corpus/formats/html.h"
#include "query/log/log_reader.h"

/* The name of the tag at p, "<", perhaps "/", and n bytes of a name: is it this one? */
static bool is_tag(const char *p, const char *name)
{
    const size_t n = strlen(name);
    p += p[1] == '/' ? 2 : 1;
    return gx_same_start(p, name, n) && (p[n] == '>' || gx_is_space(p[n]) || !p[n]);
}

/* The text behind the first <top>, or </top>, of the line; NULL: it has none. */
static const char *behind_top(const char *line, bool closing)
{
    const char *const tag = closing ? "</top" : "<top";
    for (const char *p = line; *p; ++p)
        if (gx_same_start(p, tag, strlen(tag)) && is_tag(p, "top")) {
            const char *end = strchr(p, '>');
            return end ? end + 1 : p + strlen(p);
        }
    return NULL;
}

/* The fields' names, and the labels with which their texts begin in older topics. */
static const struct topic_field {
    const char *name, *label;
} topic_fields[GX_LOG_N_FIELDS] = {
    [GX_LOG_TITLE] = {"title", "Topic:"},
    [GX_LOG_DESC] = {"desc", "Description:"},
    [GX_LOG_NARR] = {"narr", "Narrative:"},
    [GX_LOG_NUM] = {"num", "Number:"},
};

gx_status gx_log_parse_topic_fields(gx_log *log, const char *list, gx_error *err)
{
    for (const char *p = list ? list : "title"; p;) {
        const size_t n = strcspn(p, ",");
        unsigned f = 0;
        while (f < GX_LOG_NUM && (strlen(topic_fields[f].name) != n || memcmp(topic_fields[f].name, p, n)))
            ++f;
        for (unsigned i = 0; i < log->n_wanted; ++i)
            f = f == log->wanted[i] ? GX_LOG_NUM : f;
        if (f == GX_LOG_NUM)
            return gx_fail(err, GX_EUSAGE, "topic fields: '%.*s' is none of title, desc and narr, or is said twice",
                           (int)(n < 80 ? n : 80), p);
        log->wanted[log->n_wanted++] = (enum gx_log_field)f;
        p = p[n] ? p + n + 1 : NULL;
    }
    return GX_OK;
}

/* Add the bytes from p to end to the open field,
 * with a blank between lines and without its label. */
static gx_status add_to_field(gx_log *log, enum gx_log_field f, const char *p, const char *end, gx_error *err)
{
    gx_log_text *b = &log->fields[f];
    const char *label = topic_fields[f].label;
    p = gx_log_skip_blanks(p);
    if (!b->n && gx_same_start(p, label, strlen(label)))
        p = gx_log_skip_blanks(p + strlen(label));
    while (end > p && gx_is_space(end[-1]))
        --end;
    if (end <= p)
        return GX_OK;
    const gx_status st = b->n ? gx_log_append(b, " ", 1, err) : GX_OK;
    return st == GX_OK ? gx_log_append(b, p, (size_t)(end - p), err) : st;
}

/* The next tag that ends a field: one of a field's, those that no query is made of included, or of the topic. What
 * else looks like a tag, and a "<" alone, is text. The end of the string if there is none. */
static const char *next_tag(const char *p)
{
    static const char *const others[] = {"top", "head", "dom", "smry", "con", "fac", "def", "nat", "time", NULL};
    for (; (p = strchr(p, '<')); ++p) {
        for (unsigned f = 0; f < GX_LOG_N_FIELDS; ++f)
            if (is_tag(p, topic_fields[f].name))
                return p;
        for (const char *const *o = others; *o; ++o)
            if (is_tag(p, *o))
                return p;
    }
    return NULL;
}

/* Read a line of an open topic. A field goes from its tag to the next one, over any number of
 * lines. */
static gx_status read_topic_line(gx_log *log, gx_log_topic *t, const char *line, gx_error *err)
{
    for (const char *p = line;;) {
        const char *tag = next_tag(p);
        gx_status st =
            t->field == GX_LOG_NO_FIELD ? GX_OK : add_to_field(log, t->field, p, tag ? tag : p + strlen(p), err);
        if (st != GX_OK || !tag)
            return st;
        t->field = GX_LOG_NO_FIELD;
        for (unsigned f = 0; f < GX_LOG_N_FIELDS; ++f) {
            if (tag[1] == '/' || !is_tag(tag, topic_fields[f].name))
                continue;
            t->field = (enum gx_log_field)f;
            t->has[f] = true;
            if ((st = gx_log_assign(&log->fields[f], "", 0, err)) != GX_OK)
                return st;
        }
        p = strchr(tag, '>');
        if (!p)
            return GX_OK;
        ++p;
    }
}

/* Take tags and references out of the field, and leave one blank where several are. */
static gx_status clean_field(gx_log *log, enum gx_log_field f, gx_error *err)
{
    gx_log_text *const b = &log->fields[f];
    gx_span text = {b->p, b->n};
    if (!b->n)
        return GX_OK;
    if (!gx_html_to_text(&text, NULL, false))
        return gx_fail(err, GX_ENOMEM, "no memory for a topic");
    size_t n = 0;
    for (size_t i = 0; i < text.n; ++i)
        if (!gx_is_space(text.p[i]))
            b->p[n++] = text.p[i];
        else if (n && b->p[n - 1] != ' ')
            b->p[n++] = ' ';
    b->n = n - (n && b->p[n - 1] == ' ');
    b->p[b->n] = 0;
    return GX_OK;
}

static gx_status emit_topic(gx_log *log, gx_log_query *q, gx_error *err)
{
    const gx_log_topic *t = &log->topic;
    bool any = false;
    gx_status st = gx_log_assign(&log->title, "", 0, err);
    for (unsigned f = 0; f < GX_LOG_N_FIELDS && st == GX_OK; ++f)
        st = t->has[f] ? clean_field(log, (enum gx_log_field)f, err) : GX_OK;
    if (st != GX_OK)
        return st;
    if (!log->number && (!t->has[GX_LOG_NUM] || !log->fields[GX_LOG_NUM].n))
        return gx_log_refuse(log, t->begin, "the topic has no <num>", err);
    for (unsigned i = 0; i < log->n_wanted && st == GX_OK; ++i) {
        const enum gx_log_field f = log->wanted[i];
        if (!t->has[f])
            continue;
        any = true;
        st = log->title.n ? gx_log_append(&log->title, " ", 1, err) : GX_OK;
        if (st == GX_OK)
            st = gx_log_append(&log->title, log->fields[f].p, log->fields[f].n, err);
    }
    if (st != GX_OK)
        return st;
    if (!any) {
        char why[40];
        snprintf(why, sizeof why, "the topic has no <%s>", topic_fields[log->wanted[0]].name);
        return gx_log_refuse(log, t->begin, why, err);
    }
    return gx_log_emit(
        log, q,
        &(gx_log_query){log->fields[GX_LOG_NUM].p, log->title.p, log->fields[GX_LOG_NUM].n, log->title.n, t->begin},
        err);
}

gx_status gx_log_next_topic(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    static const char unclosed[] = "<top> without </top>";
    gx_log_topic *t = &log->topic;
    for (;;) {
        char *line;
        size_t n;
        gx_status st = gx_log_read_line(log, &line, &n, more, err);
        if (st != GX_OK)
            return st;
        if (!*more) {
            *more = t->open;
            t->open = false;
            return *more ? gx_log_refuse(log, t->begin, unclosed, err) : GX_OK;
        }
        const char *behind = behind_top(line, false);
        if (behind) {
            const gx_log_topic before = *t;
            *t = (gx_log_topic){.open = true, .begin = log->line, .field = GX_LOG_NO_FIELD};
            if (before.open)
                return gx_log_refuse(log, before.begin, unclosed, err);
        }
        if (!t->open)
            continue;
        if ((st = read_topic_line(log, t, behind ? behind : line, err)) != GX_OK)
            return st;
        for (unsigned f = 0; f < GX_LOG_N_FIELDS; ++f)
            if (log->fields[f].n > GX_LOG_MAX_LINE) {
                t->field = GX_LOG_NO_FIELD;
                log->fields[f].n = 0;
                return gx_log_refuse(log, t->begin, "a field of the topic has more than 1048576 bytes", err);
            }
        if (behind_top(line, true)) {
            t->open = false;
            return emit_topic(log, q, err);
        }
    }
}
