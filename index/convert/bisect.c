#include "index/convert/bisect.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/status.h"

enum {
    MAX_THREADS = 256,
    N_STEPS = 4096,         /* values of step() that are kept in a table */
    MIN_SHARED_RANGE = 2048 /* any free thread may take a range of more documents */
};

/* Documents [first, first + n) of sets[set], and their forward lists. */
typedef struct range {
    uint32_t first, n, n_terms, set;
    uint64_t at; /* index in terms of the first document's list */
} range;

typedef struct doc_arrays {
    uint32_t *docs;  /* [n_docs] old docids, rising within each range */
    uint32_t *lens;  /* [n_docs] lengths of their forward lists */
    uint32_t *terms; /* [n_postings] the forward lists, concatenated: term numbers below the range's n_terms */
} doc_arrays;

typedef struct bisection {
    const gx_index *ix;
    const gx_order_options *opt;
    uint32_t iterations, leaf, n_levels;
    doc_arrays sets[2];
    float *scores, *room; /* [n_docs] by position, as docs; room: scratch of select_score */
    uint8_t *right;       /* [n_docs] whether the document is in the right half */
    uint32_t *new_docids;
    float steps[N_STEPS];

    pthread_mutex_t lock; /* protects pending to status */
    pthread_cond_t changed;
    range *pending; /* [n_pending] ranges that any thread may take */
    uint32_t n_pending, busy;
    gx_status status;
    pthread_mutex_t progress_lock; /* held while the progress function runs */
    atomic_uint_least64_t done;
    atomic_bool stopped;
} bisection;

typedef struct degree {
    uint32_t half[2];
} degree;

/* First what a document gains through one term by moving to the other half; later the number of the
 * term in each half. */
typedef union gain {
    float from[2];
    uint32_t number[2];
} gain;

typedef struct worker {
    bisection *b;
    uint32_t room; /* terms that degrees and gains have room for */
    degree *degrees;
    gain *gains;
} worker;

/* ---- the cost ---- */

/* A term in d documents of n costs d log2(n / (d + 1)) bits. With f(d) = d log2(d + 1), this
 * function is f(d + 1) - f(d). */
static double exact_step(uint32_t d)
{
    return ((double)d + 1) * log2((double)d + 2) - (double)d * log2((double)d + 1);
}

static inline float step(const bisection *b, uint32_t d)
{
    return d < N_STEPS ? b->steps[d] : log2f((float)d + 2) + 1.442695f; /* error below 0.0006 */
}

/* from[0]: the gain of a document of the left half that moves right; from[1]: the gain of one of
 * the right half that moves left. */
static void compute_gains(worker *w, const range *r, uint32_t n_left)
{
    const bisection *b = w->b;
    const float sides = log2f((float)n_left) - log2f((float)(r->n - n_left));
    for (uint32_t t = 0; t < r->n_terms; ++t) {
        const uint32_t left = w->degrees[t].half[0], right = w->degrees[t].half[1];
        w->gains[t].from[0] = left ? sides + step(b, right) - step(b, left - 1) : 0;
        w->gains[t].from[1] = right ? sides + step(b, right - 1) - step(b, left) : 0;
    }
}

/* ---- one range ---- */

static void count_degrees(worker *w, const range *r)
{
    const doc_arrays *a = &w->b->sets[r->set];
    const uint32_t *terms = a->terms + r->at;
    if (r->n_terms)
        memset(w->degrees, 0, r->n_terms * sizeof *w->degrees);
    for (uint32_t i = r->first; i < r->first + r->n; ++i) {
        const uint32_t side = w->b->right[i];
        for (const uint32_t *end = terms + a->lens[i]; terms < end; ++terms)
            ++w->degrees[*terms].half[side];
    }
}

/* The gain a move needs rises with each round. Otherwise similar documents could change sides
 * together for ever. */
static void score_documents(const worker *w, const range *r, uint32_t round)
{
    const float stay[2] = {-0.5f * (float)round, 0.5f * (float)round};
    const doc_arrays *a = &w->b->sets[r->set];
    const uint32_t *terms = a->terms + r->at;
    const gain *gains = w->gains;
    for (uint32_t i = r->first; i < r->first + r->n; ++i) {
        const uint32_t side = w->b->right[i], n = a->lens[i];
        float sum[4] = {0}; /* four independent sums, which the CPU adds in parallel */
        uint32_t j = 0;
        for (; j + 4 <= n; j += 4)
            for (uint32_t k = 0; k < 4; ++k)
                sum[k] += gains[terms[j + k]].from[side];
        for (; j < n; ++j)
            sum[0] += gains[terms[j]].from[side];
        w->b->scores[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]) + stay[side];
        terms += n;
    }
}

/* The k-th smallest of x[n], counted from 0. Rearranges x. */
static float select_score(float *x, uint32_t n, uint32_t k)
{
    uint64_t random = n;
    while (n > 1) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u; /* random pivot: no input is slow */
        const float pivot = x[(uint32_t)((random >> 32) * n >> 32)];
        uint32_t less = 0, i = 0, more = n;
        while (i < more) {
            const float y = x[i];
            if (y < pivot) {
                x[i++] = x[less];
                x[less++] = y;
            } else if (y > pivot) {
                x[i] = x[--more];
                x[more] = y;
            } else {
                ++i;
            }
        }
        if (k < less) {
            n = less;
        } else if (k < more) {
            return pivot;
        } else {
            x += more;
            k -= more;
            n -= more;
        }
    }
    return x[0];
}

/* Moves the n_left documents of smallest score to the left half, the others to the right. Documents
 * whose score equals the border's stay where they are if possible. Returns the number of documents
 * that moved. */
static uint32_t move_documents(worker *w, const range *r, uint32_t n_left)
{
    bisection *b = w->b;
    const doc_arrays *a = &b->sets[r->set];
    const float *scores = b->scores + r->first;
    uint8_t *right = b->right + r->first;
    float *room = b->room + r->first;
    memcpy(room, scores, r->n * sizeof *room);
    const float border = select_score(room, r->n, n_left - 1);
    uint32_t equal[2] = {0}, less = 0, moved = 0;
    for (uint32_t i = 0; i < r->n; ++i) {
        less += scores[i] < border;
        equal[right[i]] += scores[i] == border;
    }
    uint32_t free_left[2]; /* places on the left for documents of the border score, by present half */
    free_left[0] = n_left - less < equal[0] ? n_left - less : equal[0];
    free_left[1] = n_left - less - free_left[0];
    const uint32_t *terms = a->terms + r->at;
    for (uint32_t i = 0; i < r->n; ++i) {
        const uint32_t n = a->lens[r->first + i], from = right[i];
        uint32_t to = scores[i] > border;
        if (scores[i] == border)
            to = free_left[from] ? (--free_left[from], 0) : 1;
        if (to != from) {
            for (uint32_t j = 0; j < n; ++j) {
                --w->degrees[terms[j]].half[from];
                ++w->degrees[terms[j]].half[to];
            }
            right[i] = (uint8_t)to;
            ++moved;
        }
        terms += n;
    }
    return moved;
}

/* Copies the documents and forward lists of both halves to the other set. Drops terms that a half
 * has in one document only, because they cost the same at any place. */
static void split_range(worker *w, const range *r, uint32_t n_left, range halves[2])
{
    bisection *b = w->b;
    const doc_arrays *a = &b->sets[r->set], *to = &b->sets[!r->set];
    uint64_t n_postings = 0;
    uint32_t n_terms[2] = {0};
    for (uint32_t t = 0; t < r->n_terms; ++t) {
        const degree d = w->degrees[t];
        n_postings += d.half[0] >= 2 ? d.half[0] : 0;
        for (uint32_t side = 0; side < 2; ++side)
            w->gains[t].number[side] = d.half[side] >= 2 ? n_terms[side]++ : UINT32_MAX;
    }
    halves[0] = (range){r->first, n_left, n_terms[0], !r->set, r->at};
    halves[1] = (range){r->first + n_left, r->n - n_left, n_terms[1], !r->set, r->at + n_postings};
    uint32_t doc_at[2] = {halves[0].first, halves[1].first};
    uint32_t *put[2] = {to->terms + halves[0].at, to->terms + halves[1].at};
    const uint32_t *terms = a->terms + r->at;
    for (uint32_t i = r->first; i < r->first + r->n; ++i) {
        const uint32_t side = b->right[i];
        uint32_t *begin = put[side];
        for (const uint32_t *end = terms + a->lens[i]; terms < end; ++terms) {
            const uint32_t number = w->gains[*terms].number[side];
            if (number != UINT32_MAX)
                *put[side]++ = number;
        }
        to->docs[doc_at[side]] = a->docs[i];
        to->lens[doc_at[side]++] = (uint32_t)(put[side] - begin);
    }
}

static bool reserve_terms(worker *w, uint32_t n_terms)
{
    if (n_terms <= w->room)
        return true;
    free(w->degrees);
    free(w->gains);
    w->room = n_terms;
    w->degrees = malloc(n_terms * sizeof *w->degrees);
    w->gains = malloc(n_terms * sizeof *w->gains);
    if (!w->degrees || !w->gains)
        w->room = 0;
    return w->room;
}

/* n documents have had `rounds` more rounds, or skip that many. Returns false if the work is to
 * stop. */
static bool report_progress(bisection *b, uint32_t n, uint32_t rounds)
{
    const uint64_t done = atomic_fetch_add(&b->done, (uint64_t)n * rounds) + (uint64_t)n * rounds;
    if (n > MIN_SHARED_RANGE && b->opt->cancel && b->opt->cancel(b->opt->user))
        atomic_store(&b->stopped, true);
    if (n > MIN_SHARED_RANGE && b->opt->progress && pthread_mutex_trylock(&b->progress_lock) == 0) {
        const uint64_t total = (uint64_t)b->ix->n_docs * b->n_levels * b->iterations;
        b->opt->progress(b->opt->user, done < total ? done : total, total);
        pthread_mutex_unlock(&b->progress_lock);
    }
    return !atomic_load_explicit(&b->stopped, memory_order_relaxed);
}

static gx_status bisect(worker *w, const range *r, range halves[2])
{
    bisection *b = w->b;
    const uint32_t n_left = r->n / 2;
    if (!reserve_terms(w, r->n_terms))
        return GX_ENOMEM;
    for (uint32_t i = 0; i < r->n; ++i)
        b->right[r->first + i] = i >= n_left;
    count_degrees(w, r);
    uint32_t round = 0, moved = 1;
    while (round < b->iterations && moved) {
        compute_gains(w, r, n_left);
        score_documents(w, r, round);
        moved = move_documents(w, r, n_left);
        ++round;
        if (!report_progress(b, r->n, 1))
            return GX_ECANCELLED;
    }
    split_range(w, r, n_left, halves);
    return report_progress(b, r->n, b->iterations - round) ? GX_OK : GX_ECANCELLED;
}

/* ---- all ranges ---- */

static void number_documents(bisection *b, const range *r)
{
    for (uint32_t i = r->first; i < r->first + r->n; ++i)
        b->new_docids[b->sets[r->set].docs[i]] = i;
}

/* Bisects a range down to its leaves. The depth is at most the number of bits of n. */
static gx_status bisect_recursively(worker *w, const range *r)
{
    range halves[2];
    if (r->n <= w->b->leaf) {
        number_documents(w->b, r);
        return GX_OK;
    }
    gx_status st = bisect(w, r, halves);
    for (uint32_t side = 0; st == GX_OK && side < 2; ++side)
        st = bisect_recursively(w, &halves[side]);
    return st;
}

static gx_status process_range(worker *w, const range *r, range halves[2], uint32_t *n_halves)
{
    *n_halves = 0;
    if (r->n <= MIN_SHARED_RANGE || r->n <= w->b->leaf)
        return bisect_recursively(w, r);
    *n_halves = 2;
    return bisect(w, r, halves);
}

static void bisect_thread(void *arg, uint32_t thread)
{
    (void)thread;
    bisection *b = arg;
    worker w = {.b = b};
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->n_pending && b->busy && b->status == GX_OK)
            pthread_cond_wait(&b->changed, &b->lock);
        if (!b->n_pending || b->status != GX_OK)
            break;
        const range r = b->pending[--b->n_pending];
        range halves[2];
        uint32_t n_halves;
        ++b->busy;
        pthread_mutex_unlock(&b->lock);
        const gx_status st = process_range(&w, &r, halves, &n_halves);
        pthread_mutex_lock(&b->lock);
        --b->busy;
        if (st != GX_OK) {
            b->status = b->status == GX_OK ? st : b->status;
            atomic_store(&b->stopped, true);
        } else {
            for (uint32_t i = 0; i < n_halves; ++i)
                b->pending[b->n_pending++] = halves[i];
        }
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    free(w.degrees);
    free(w.gains);
}

/* ---- forward lists from inverted lists ---- */

typedef struct transposer {
    bisection *b;
    uint32_t *numbers; /* [terms of the index] the number of a term that takes part, else UINT32_MAX */
    uint64_t *ends;    /* [n_docs] where the next term of each forward list goes */
} transposer;

/* Goes through the blocks of list t and checks them. Writes the term to its documents' forward
 * lists if fill, otherwise only counts it there. */
static gx_status transpose_list(transposer *x, uint32_t t, bool fill, gx_error *err)
{
    const gx_index *ix = x->b->ix;
    const gx_list l = gx_index_list(ix, t);
    const doc_arrays *a = &x->b->sets[0];
    uint32_t docids[GX_MAX_BLOCK];
    uint64_t least = 0;
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t d = docids[i];
            if (d < least || d >= ix->n_docs)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u: block %u has docid %u, outside [%llu, %u)", ix->path, t,
                               j, d, (unsigned long long)least, ix->n_docs);
            least = (uint64_t)d + 1;
            if (fill)
                a->terms[x->ends[d]++] = x->numbers[t];
            else
                ++a->lens[d];
        }
    }
    return GX_OK;
}

static gx_status transpose_lists(transposer *x, bool fill, gx_error *err)
{
    const gx_order_options *opt = x->b->opt;
    for (uint32_t t = 0; t < x->b->ix->n_terms; ++t) {
        if (t % 1024 == 0 && opt->cancel && opt->cancel(opt->user))
            return GX_ECANCELLED;
        const gx_status st = x->numbers[t] != UINT32_MAX ? transpose_list(x, t, fill, err) : GX_OK;
        if (st != GX_OK)
            return st;
    }
    return GX_OK;
}

/* Makes the whole collection a range of set 0. */
static gx_status build_forward_lists(transposer *x, range *whole, uint64_t *n_postings, gx_error *err)
{
    const gx_index *ix = x->b->ix;
    doc_arrays *a = &x->b->sets[0];
    const uint32_t min_df = x->b->opt->min_df ? x->b->opt->min_df : 16;
    *whole = (range){.n = ix->n_docs};
    *n_postings = 0;
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const bool used = ix->lists[t].df >= min_df && ix->lists[t].df >= 2;
        x->numbers[t] = used ? whole->n_terms++ : UINT32_MAX;
        *n_postings += used ? ix->lists[t].df : 0;
    }
    gx_status st = transpose_lists(x, false, err);
    if (st != GX_OK)
        return st;
    if (!(a->terms = malloc((*n_postings + 1) * sizeof *a->terms)))
        return GX_ENOMEM;
    uint64_t at = 0;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        a->docs[d] = d;
        x->ends[d] = at;
        at += a->lens[d];
    }
    return transpose_lists(x, true, err);
}

/* ---- open and close ---- */

static gx_status open_forward(bisection *b, range *whole, gx_error *err)
{
    transposer x = {.b = b};
    const size_t n = (size_t)b->ix->n_docs + 1;
    uint64_t n_postings = 0;
    gx_status st = GX_ENOMEM;
    b->sets[0].docs = malloc(n * sizeof(uint32_t));
    b->sets[0].lens = calloc(n, sizeof(uint32_t));
    x.numbers = malloc(((size_t)b->ix->n_terms + 1) * sizeof *x.numbers);
    x.ends = malloc(n * sizeof *x.ends);
    if (b->sets[0].docs && b->sets[0].lens && x.numbers && x.ends)
        st = build_forward_lists(&x, whole, &n_postings, err);
    free(x.numbers);
    free(x.ends);
    if (st != GX_OK)
        return st;
    b->sets[1].docs = malloc(n * sizeof(uint32_t));
    b->sets[1].lens = malloc(n * sizeof(uint32_t));
    b->sets[1].terms = malloc((n_postings + 1) * sizeof(uint32_t));
    b->scores = malloc(n * sizeof *b->scores);
    b->room = malloc(n * sizeof *b->room);
    b->right = malloc(n);
    /* a pending range has more than MIN_SHARED_RANGE / 2 documents */
    b->pending = malloc((b->ix->n_docs / (MIN_SHARED_RANGE / 2) + 2) * sizeof *b->pending);
    const bool ok =
        b->sets[1].docs && b->sets[1].lens && b->sets[1].terms && b->scores && b->room && b->right && b->pending;
    return ok ? GX_OK : GX_ENOMEM;
}

static void close_forward(bisection *b)
{
    for (uint32_t s = 0; s < 2; ++s) {
        free(b->sets[s].docs);
        free(b->sets[s].lens);
        free(b->sets[s].terms);
    }
    free(b->scores);
    free(b->room);
    free(b->right);
    free(b->pending);
}

gx_status gx_bisect(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err)
{
    bisection b = {.ix = ix, .opt = opt, .new_docids = new_docids, .status = GX_OK};
    b.iterations = opt->iterations ? opt->iterations : 20;
    b.leaf = opt->leaf ? opt->leaf : 16;
    for (uint32_t n = ix->n_docs; n > b.leaf; n -= n / 2)
        ++b.n_levels;
    for (uint32_t d = 0; d < N_STEPS; ++d)
        b.steps[d] = (float)exact_step(d);
    range whole;
    gx_status st = open_forward(&b, &whole, err);
    if (st == GX_OK) {
        pthread_mutex_init(&b.lock, NULL);
        pthread_mutex_init(&b.progress_lock, NULL);
        pthread_cond_init(&b.changed, NULL);
        b.pending[b.n_pending++] = whole;
        gx_parallel_run(opt->threads < MAX_THREADS ? opt->threads : MAX_THREADS, bisect_thread, &b);
        pthread_cond_destroy(&b.changed);
        pthread_mutex_destroy(&b.progress_lock);
        pthread_mutex_destroy(&b.lock);
        st = b.status;
    }
    close_forward(&b);
    if (st == GX_ENOMEM)
        return gx_fail(err, st, "%s: no memory to order its documents: it takes 8 bytes a posting and 25 a document",
                       ix->path);
    return st == GX_ECANCELLED ? gx_fail(err, st, "cancelled") : st;
}
