#include "index/corpus/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

enum { MAX_DEPTH = 128 };

/* A directory that is being walked. */
typedef struct directory_level {
    struct dirent **names; /* [n]; those before at are freed */
    int n, at;
    size_t path_len; /* of the directory, in walk.path */
    dev_t dev;
    ino_t ino;
} directory_level;

struct gx_walk {
    const char *const *paths;
    size_t n, at;
    char *path; /* the directory being walked and a name in it */
    size_t cap, root_len;
    struct stat file; /* of the file that next gave last */
    uint64_t n_broken;
    char *broken;    /* the path of the first */
    gx_notes *notes; /* or NULL */
    char *root;      /* the given directory's path, without links; NULL: not looked up yet */
    int depth;
    directory_level levels[MAX_DEPTH];
};

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to list the corpus's files");
}

static gx_status cannot(const char *what, const char *path, gx_error *err)
{
    return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot %s %s: %s", what, path, strerror(errno));
}

static int is_no_dot(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Put "/name" behind the first dir_len bytes of the path. */
static gx_status set_path(gx_walk *w, size_t dir_len, const char *name, gx_error *err)
{
    const size_t n = strlen(name);
    const bool slash = dir_len > 0 && w->path[dir_len - 1] != '/';
    if (!gx_reserve(&w->path, &w->cap, dir_len + n + 2, 1))
        return no_memory(err);
    if (slash)
        w->path[dir_len] = '/';
    memcpy(w->path + dir_len + slash, name, n + 1);
    return GX_OK;
}

static bool is_on_stack(const gx_walk *w, const struct stat *st)
{
    for (int i = 0; i < w->depth; ++i)
        if (w->levels[i].dev == st->st_dev && w->levels[i].ino == st->st_ino)
            return true;
    return false;
}

/* Enter the directory at w->path. */
static gx_status push_directory(gx_walk *w, const struct stat *st, gx_error *err)
{
    if (w->depth == MAX_DEPTH)
        return gx_fail(err, GX_EIO, "cannot list %s: more than %d directories deep", w->path, MAX_DEPTH);
    directory_level *l = &w->levels[w->depth];
    *l = (directory_level){.path_len = strlen(w->path), .dev = st->st_dev, .ino = st->st_ino};
    l->n = scandir(w->path, &l->names, is_no_dot, by_bytes);
    if (l->n < 0)
        return cannot("list the directory", w->path, err);
    ++w->depth;
    return GX_OK;
}

static void pop_directory(gx_walk *w)
{
    directory_level *l = &w->levels[--w->depth];
    while (l->at < l->n)
        free(l->names[l->at++]);
    free(l->names);
}

/* Take the next path of the list: return a file, enter a directory. */
static gx_status next_path(gx_walk *w, gx_walk_file *file, gx_error *err)
{
    const char *path = w->paths[w->at];
    file->input = w->at++;
    if (strcmp(path, "-") == 0) {
        w->file = (struct stat){.st_mode = S_IFIFO};
        file->path = file->name = path;
        return GX_OK;
    }
    if (stat(path, &w->file) != 0)
        return cannot("open the corpus", path, err);
    if (!S_ISDIR(w->file.st_mode)) {
        file->path = file->name = path;
        return GX_OK;
    }
    const gx_status st = set_path(w, 0, path, err);
    if (st)
        return st;
    w->root_len = strlen(path);
    free(w->root);
    w->root = NULL;
    return push_directory(w, &w->file, err);
}

/* Count w->path as a link to nothing; but not a name that is gone since its directory was read. */
static gx_status pass_over(gx_walk *w, gx_error *err)
{
    struct stat link;
    if (lstat(w->path, &link) != 0)
        return GX_OK;
    ++w->n_broken;
    if (!w->broken && !(w->broken = strdup(w->path)))
        return no_memory(err);
    return GX_OK;
}

/* Note w->path if it is a link that leads out of the given directory. */
static gx_status look_at_link(gx_walk *w, const struct dirent *e, gx_error *err)
{
    struct stat link;
    if (!w->notes || (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) || lstat(w->path, &link) != 0 ||
        !S_ISLNK(link.st_mode))
        return GX_OK;
    if (!w->root && !(w->root = realpath(w->paths[w->at - 1], NULL)))
        return errno == ENOMEM ? no_memory(err) : GX_OK;
    char *to = realpath(w->path, NULL);
    if (!to)
        return errno == ENOMEM ? no_memory(err) : GX_OK;
    const size_t n = strcmp(w->root, "/") == 0 ? 0 : strlen(w->root);
    if (strncmp(to, w->root, n) != 0 || (to[n] != '/' && to[n] != 0))
        gx_notes_add(w->notes, GX_NOTE_LINKS_OUTSIDE, NULL, 0, w->path, 0);
    free(to);
    return GX_OK;
}

/* The next entry of the innermost directory. */
static gx_status next_entry(gx_walk *w, gx_walk_file *file, gx_error *err)
{
    directory_level *l = &w->levels[w->depth - 1];
    if (l->at == l->n) {
        pop_directory(w);
        return GX_OK;
    }
    const struct dirent *const e = l->names[l->at];
    gx_status st = set_path(w, l->path_len, e->d_name, err);
    const bool hidden = e->d_name[0] == '.';
    if (!st && hidden)
        gx_notes_add(w->notes, GX_NOTE_HIDDEN_FILES, NULL, 0, w->path, 0);
    else if (!st)
        st = look_at_link(w, e, err);
    free(l->names[l->at++]);
    if (st || hidden)
        return st;
    if (stat(w->path, &w->file) != 0)
        return errno == ENOENT ? pass_over(w, err) : cannot("open", w->path, err);
    if (S_ISDIR(w->file.st_mode))
        return is_on_stack(w, &w->file) ? GX_OK : push_directory(w, &w->file, err);
    if (S_ISREG(w->file.st_mode)) {
        file->path = w->path;
        file->name = w->path + w->root_len;
        file->name += strspn(file->name, "/");
        file->input = w->at - 1;
        file->in_directory = true;
    } else {
        gx_notes_add(w->notes, GX_NOTE_SPECIAL_FILES, NULL, 0, w->path, 0);
    }
    return GX_OK;
}

gx_status gx_walk_next(gx_walk *w, gx_walk_file *file, gx_error *err)
{
    *file = (gx_walk_file){0};
    while (!file->path && (w->depth > 0 || w->at < w->n)) {
        const gx_status st = w->depth > 0 ? next_entry(w, file, err) : next_path(w, file, err);
        if (st)
            return st;
    }
    return GX_OK;
}

void gx_walk_set_notes(gx_walk *w, gx_notes *notes)
{
    w->notes = notes;
}

gx_status gx_walk_open(gx_walk **out, const char *const *paths, size_t n, gx_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n; ++i) {
        struct stat st;
        if (strcmp(paths[i], "-") != 0 && stat(paths[i], &st) != 0)
            return cannot("open the corpus", paths[i], err);
    }
    gx_walk *w = calloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    w->paths = paths;
    w->n = n;
    *out = w;
    return GX_OK;
}

void gx_walk_close(gx_walk *w)
{
    if (!w)
        return;
    while (w->depth > 0)
        pop_directory(w);
    free(w->path);
    free(w->broken);
    free(w->root);
    free(w);
}

uint64_t gx_walk_broken_links(const gx_walk *w, const char **first)
{
    *first = w->broken;
    return w->n_broken;
}

gx_status gx_walk_total(const char *const *paths, size_t n, uint64_t *bytes, gx_error *err)
{
    gx_walk *w;
    gx_walk_file file;
    uint64_t sum = 0;
    bool known = true;
    gx_status st = gx_walk_open(&w, paths, n, err);
    while (!st && !(st = gx_walk_next(w, &file, err)) && file.path) {
        known &= S_ISREG(w->file.st_mode);
        sum += (uint64_t)w->file.st_size;
    }
    gx_walk_close(w);
    if (!st)
        *bytes = known ? sum : 0;
    return st;
}
